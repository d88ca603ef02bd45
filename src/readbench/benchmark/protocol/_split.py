"""Train | test by whole groups, seeded.

* A source's own split is kept where it has one.
* Where each group holds one fault type: of the n groups of each type with n >= 2, max(1, round(share * n)) are held
  out. A type with a single group stays in the corpus.
* Where groups hold several types (a patient's record): max(1, round(share * n)) of the n groups that are not the only
  one of some type; the first draw in which every type with n >= 2 is on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from readbench.engine.windows import NORMAL
from readbench.errors import UsageError

MAX_DRAWS = 2000
MOST_SEED = 2**32 - 1
"""The largest number that every generator takes."""


def check_seeds(seeds: Iterable[int]) -> None:
    """Refuse split seeds that no generator takes."""
    if wrong := [seed for seed in seeds if not isinstance(seed, Integral) or not 0 <= seed <= MOST_SEED]:
        raise UsageError(
            f"Split seeds are whole numbers from 0 on, up to {MOST_SEED}. Got {', '.join(map(repr, wrong))}."
        )


@dataclass(frozen=True, eq=False)
class Split:
    """(N,) which windows are held out, and what could not be met."""

    test: NDArray[np.bool_]
    notes: tuple[str, ...] = ()


def split_by_group(labels: NDArray[np.int32], groups: NDArray[np.intp], *, share: float, seed: int) -> Split:
    """Hold out whole groups.

    Args:
        labels: (N,) class index of each window.
        groups: (N,) group code of each window, 0 .. G - 1.
        share: share of the groups of each class to hold out.
        seed: of the draw.

    >>> split_by_group(np.array([1, 1, 1, 2]), np.array([0, 0, 1, 2]), share=0.2, seed=0).test.sum() > 0
    np.True_
    """
    holds = _group_classes(labels, groups)
    rng = np.random.default_rng([seed, 0x51])
    faults = holds[:, NORMAL + 1 :]
    if (faults.sum(axis=1) <= 1).all():
        return Split(_draw_by_class(holds, share, rng)[groups])
    held, notes = _draw_jointly(faults, share, rng)
    return Split(held[groups], notes)


def count_held_out(count: int, share: float) -> int:
    """How many of `count` groups to hold out: at least one, never all, halves round up.

    >>> [count_held_out(n, 0.2) for n in (1, 2, 7, 8, 13)]
    [0, 1, 1, 2, 3]
    """
    return 0 if count < 2 else min(count - 1, max(1, math.floor(share * count + 0.5)))


def _group_classes(labels: NDArray[np.int32], groups: NDArray[np.intp]) -> NDArray[np.bool_]:
    """(G, K) which classes each group holds, normal included; K >= 2 even where all windows are normal."""
    holds = np.zeros((int(groups.max(initial=-1)) + 1, int(labels.max(initial=NORMAL + 1)) + 1), bool)
    holds[groups, labels] = True
    return holds


def _draw_by_class(holds: NDArray[np.bool_], share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw class by class; groups without any fault are drawn as a class of their own."""
    held = np.zeros(len(holds), bool)
    own = np.where(holds[:, NORMAL + 1 :].any(axis=1), holds[:, NORMAL + 1 :].argmax(axis=1) + 1, NORMAL)
    for label in np.unique(own):
        members = np.flatnonzero(own == label)
        held[rng.permutation(members)[: count_held_out(len(members), share)]] = True
    return held


def _draw_jointly(
    faults: NDArray[np.bool_], share: float, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Draw whole groups until every class that has two groups is on both sides."""
    several = faults.sum(axis=0) >= 2
    sole_holder = (faults & ~several).any(axis=1)
    candidates = np.flatnonzero(~sole_holder)
    best = np.zeros(len(faults), bool)
    reached = -1
    for _ in range(MAX_DRAWS):
        held = np.zeros(len(faults), bool)
        held[rng.permutation(candidates)[: count_held_out(len(candidates), share)]] = True
        both = np.logical_and(faults[held].any(axis=0), faults[~held].any(axis=0))[several]
        if both.sum() > reached:
            best, reached = held, int(both.sum())
        if both.all():
            return held, ()
    missing = int(several.sum()) - reached
    return best, (
        f"in {MAX_DRAWS} draws no split had every class on both sides; {missing} classes are on one side only",
    )
