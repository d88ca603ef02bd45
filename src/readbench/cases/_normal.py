"""Whether a window shows normal operation: learned from a library's normals and from cases labelled normal.

A ridge (`readbench.engine.rerankers`) tells normal windows from faults by one of two views, or by both, whichever
explains held-out recordings best: the levels, movement and roughness of the channels in standard deviations of normal
operation; and coarse MiniRocket features, which the first look at a large library uses, too. Penalty and temperature
are those under which held-out recordings are most likely.

Who asks has a reason: a question is normal less often than a window of a library's normals and cases. The odds of
normal operation are multiplied by `LESS_OFTEN`, which was chosen on simulators, with one real source in sight.

A normal window must not be given the name of a fault above one half in more than `MOST_NAMED` of cases. The library
counts how often that would happen to its own normal windows, each recording having one vote: by the probability of a
fault f, held out, and by that of the likeliest fault type m, from a ridge on the faults of other recordings. Where f m
is above one half too often, a bound on f is raised until `MOST_NAMED` of the votes are left. Up to it normal operation
is not ruled out, and gets what leaves the likeliest fault one half: the window is not called normal, and no fault is
certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.cases._journal import Snapshot
from readbench.cases._plausibility import LibraryProfile, describe_windows, mean_and_spread, spread_evenly
from readbench.cases._search import bare, coarse_encoder
from readbench.engine.protocols import Encoder, unit_vectors
from readbench.engine.rerankers import Ridge, estimate_unseen_share, fit_ridge
from readbench.engine.windows import NORMAL, WindowSet

Array = NDArray[np.float64]
LEAST_NORMALS = 10
"""Normal windows, of two recordings at least, from which normal operation is an option."""
MOST_LEARNED = 400
"""Faults, and normal windows, that it learns from, evenly spread."""
LESS_OFTEN = 0.7
"""Between 1 and 0.5 of a sweep of 1, 0.5 and 0.25 over simulators and SKAB: at 1, normal operation came first for many
true faults. `research.normal_operation` measures what it gives."""
MOST_NAMED = 0.05
"""Share of the library's own normal windows that may be given a named fault above `LIKELY`."""
LIKELY = 0.5
FOLDS = 5
"""Parts of the recordings whose faults are held out in turn, to name faults for the normal windows of the same part."""
FARTHEST = 8.0
LEAST_SPREAD = 0.05
CHOICES: tuple[tuple[int, ...], ...] = ((0,), (1,), (0, 1))
"""Views by which normal windows are told from faults."""


@dataclass(frozen=True)
class NormalOpinion:
    """How likely a window shows normal operation, and whether that is ruled out."""

    probability: float
    ruled_out: bool

    def beside(self, likeliest: float) -> float:
        """Its share beside the likeliest fault, given how likely that is if the window shows a fault.

        >>> NormalOpinion(0.1, ruled_out=False).beside(0.8), NormalOpinion(0.1, ruled_out=True).beside(0.8)
        (0.375, 0.1)
        """
        if self.ruled_out or likeliest <= LIKELY:
            return self.probability
        return max(self.probability, 1.0 - LIKELY / likeliest)


@dataclass(frozen=True, eq=False)
class NormalModel:
    """Tells normal operation from faults.

    Args:
        profile: of the library.
        encoder: of the coarse features.
        centre: (F,) mean description of normal windows.
        spread: (F,) its standard deviation.
        views: (L, D) the windows that it learned from, as each of the two views sees them; rows of length one.
        chosen: numbers of the views that it uses.
        ridge: fitted on the mean of their cosines.
        bound: probability of a fault above which normal operation is ruled out.
    """

    profile: LibraryProfile
    encoder: Encoder
    centre: Array
    spread: Array
    views: tuple[Array, Array]
    chosen: tuple[int, ...]
    ridge: Ridge
    bound: float

    @classmethod
    def of(cls, snapshot: Snapshot, profile: LibraryProfile | None) -> Self | None:
        """Learned from a library; None where it knows too few normal windows, or no fault."""
        alarms, faults = np.flatnonzero(snapshot.labels == NORMAL), np.flatnonzero(snapshot.labels > NORMAL)
        stored = snapshot.normals[spread_evenly(len(snapshot.normals), MOST_LEARNED)]
        count = len(stored) + len(alarms)
        if profile is None or count < LEAST_NORMALS or not len(faults):
            return None
        chosen = np.concatenate([alarms, faults[spread_evenly(len(faults), MOST_LEARNED)]])
        cases = snapshot.windows(chosen)
        windows = WindowSet.of([*cases, *stored])
        normal = np.concatenate([snapshot.labels[chosen] == NORMAL, np.ones(len(stored), bool)])
        groups = np.unique(windows.groups.tolist(), return_inverse=True)[1]
        if len(np.unique(groups[normal])) == 1:
            return None
        described = describe_windows(profile, windows)
        centre, spread = mean_and_spread(described[normal])
        encoder = coarse_encoder(snapshot)
        views = _depart(described, centre, spread), _unit(encoder.encode(bare(windows)))
        labels = np.where(normal, 0, 1).astype(np.int32)
        kernels = {own: _likeness(views, views, own) for own in CHOICES}
        fits = {own: fit_ridge(kernel, labels, groups) for own, kernel in kernels.items()}
        best = min(CHOICES, key=lambda own: fits[own].loss)
        types = np.concatenate([snapshot.labels[chosen], np.full(len(stored), NORMAL)]).astype(np.int32)
        named = name_held_out(list(kernels.values()), types, groups)
        bound = bound_faults(_fault_share(fits[best].held_out)[normal], named, groups[normal])
        return cls(profile, encoder, centre, spread, views, best, fits[best], bound)

    def judge(self, windows: WindowSet) -> list[NormalOpinion]:
        """Whether windows show normal operation."""
        described = _depart(describe_windows(self.profile, windows), self.centre, self.spread)
        asked = described, _unit(self.encoder.encode(bare(windows)))
        faults = _fault_share(self.ridge.posterior(_likeness(asked, self.views, self.chosen)))
        return [NormalOpinion(1.0 - share, ruled_out=share > self.bound) for share in faults.tolist()]


def name_held_out(kernels: list[Array], types: NDArray[np.int32], groups: NDArray[np.intp]) -> Array:
    """(M,) probability of the likeliest fault type of each normal window, by faults of other recordings, or a new type.

    Args:
        kernels: (L, L) likenesses of normal windows and faults by several views; the one that tells faults best counts.
        types: (L,) fault types, `NORMAL` for normal windows.
        groups: (L,) recordings.
    """
    normals, faults = np.flatnonzero(types == NORMAL), np.flatnonzero(types != NORMAL)
    kernel = min(kernels, key=lambda own: fit_ridge(own[np.ix_(faults, faults)], types[faults], groups[faults]).loss)
    fold = np.unique(groups, return_inverse=True)[1] % FOLDS
    likeliest = np.ones(len(normals))
    for part in np.unique(fold[normals]):
        others, own = faults[fold[faults] != part], fold[normals] == part
        if len(others):
            ridge = fit_ridge(kernel[np.ix_(others, others)], types[others], groups[others])
            likeliest[own] = ridge.posterior(kernel[np.ix_(normals[own], others)]).max(axis=1)
    return likeliest * (1.0 - estimate_unseen_share(types[faults], groups[faults]))


def bound_faults(faults: Array, named: Array, groups: NDArray[np.intp]) -> float:
    """The probability of a fault above which at most `MOST_NAMED` of normal windows are given a name; 0 where few are.

    Args:
        faults: (M,) probabilities that the normal windows show a fault.
        named: (M,) those of the likeliest fault type, if they do.
        groups: (M,) recordings, each of which has one vote.

    >>> bound_faults(np.array([0.9, 0.8, 0.1, 0.1]), np.ones(4), np.arange(4))
    0.9
    """
    _, own, counts = np.unique(groups, return_inverse=True, return_counts=True)
    votes = np.where(faults * named > LIKELY, 1.0 / (counts[own] * len(counts)), 0.0)
    order = np.argsort(-faults, kind="stable")
    above = np.round(np.cumsum(votes[order]), 12) > MOST_NAMED  # sums of shares: equal ones are equal
    return float(faults[order][above.argmax()]) if above.any() else 0.0


def _fault_share(posterior: Array) -> Array:
    """(Q,) probabilities of a fault from posteriors (Q, 2) of normal windows and faults, normal ones `LESS_OFTEN`."""
    normal, fault = posterior.T
    share: Array = fault / (LESS_OFTEN * normal + fault)
    return share


def _depart(described: Array, centre: Array, spread: Array) -> Array:
    """(N, 2 F) departures from normal and their sizes, rows of length one: both ways to leave it are alike."""
    scores = np.nan_to_num((described - centre) / np.maximum(spread, LEAST_SPREAD)).clip(-FARTHEST, FARTHEST)
    return _unit(np.concatenate([scores, np.abs(scores)], axis=1))


def _unit(vectors: NDArray[np.floating]) -> Array:
    return unit_vectors(vectors.astype(np.float32)).astype(np.float64)


def _likeness(left: tuple[Array, Array], right: tuple[Array, Array], chosen: tuple[int, ...]) -> Array:
    mean: Array = np.mean([left[v] @ right[v].T for v in chosen], axis=0)
    return mean
