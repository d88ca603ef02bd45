"""Labels that the other cases contradict.

Split groups are dealt into FOLDS parts. Each part in turn is judged by `rocket+verdict`, taught by the others: its
probabilities are calibrated, and no window is judged by its own group. A label is contradicted where it has at most
UNLIKELY and another one at least CERTAIN. Even right labels are contradicted now and then: among windows whose most
likely class has probability p, a share 1 - p is expected to have another one. So many are expected, and more than that
is what the page warns of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Task
from readbench.engine.method import Method
from readbench.engine.windows import NORMAL, WindowSet, concatenate

FOLDS = 5
UNLIKELY, CERTAIN = 0.05, 0.9
JUDGE = "rocket+verdict"
MOST_JUDGED = 600
"""Windows that are judged: evenly spaced ones of a larger task."""


@dataclass(frozen=True)
class Contradiction:
    """A window whose label is held unlikely: its id and group, the label, and what it is held for instead."""

    id: str
    group: str
    label: str
    instead: str
    probability: float


@dataclass(frozen=True)
class DoubtfulLabels:
    """What the other groups say of the labels.

    Args:
        judged: windows whose class other groups have.
        agreement: share of them whose most likely class is their label.
        expected: contradictions that the stated probabilities let expect.
        found: the contradictions, surest first.
        groups: how many groups they come from.
    """

    judged: int
    agreement: float
    expected: float
    found: tuple[Contradiction, ...]
    groups: int


def doubt_labels(task: Task) -> DoubtfulLabels | str:
    """Judge every label by the other groups; a reason where nothing can be judged."""
    corpus = task.corpus_at(min(task.levels)).with_stats(None)
    both = concatenate([task.queries, corpus[corpus.labels > NORMAL]])
    if len(both) > MOST_JUDGED:
        both = both[np.linspace(0, len(both) - 1, MOST_JUDGED).astype(np.intp)]
    fold = _deal_groups(both.groups)
    if fold.max(initial=0) < 1 or len(np.unique(both.labels)) < 2:
        return "one group or one class: there is nobody to contradict"
    judged = np.zeros(len(both), bool)
    own, best, instead = np.zeros(len(both)), np.zeros(len(both)), np.zeros(len(both), np.int32)
    for number in range(int(fold.max()) + 1):
        asked, taught = np.flatnonzero(fold == number), both[np.flatnonzero(fold != number)]
        asked = asked[np.isin(both.labels[asked], taught.labels)]
        if not len(asked) or len(np.unique(taught.labels)) < 2:
            continue
        said = Method(JUDGE).fit(taught, task.normals).ask(both[asked]).opinions()
        for place, opinion in zip(asked.tolist(), said or (), strict=True):
            judged[place] = True
            own[place] = float(opinion.posterior[opinion.classes == both.labels[place]].sum())
            best[place], instead[place] = opinion.confidence, opinion.label
    if not judged.any():
        return "no class is in two groups: there is nobody to contradict"
    return _summarise(both, judged, own, best, instead)


def _summarise(
    windows: WindowSet,
    judged: NDArray[np.bool_],
    own: NDArray[np.float64],
    best: NDArray[np.float64],
    instead: NDArray[np.int32],
) -> DoubtfulLabels:
    sure = judged & (best >= CERTAIN)
    wrong = np.flatnonzero(sure & (own <= UNLIKELY))
    found = tuple(
        Contradiction(
            str(windows.ids[i]),
            str(windows.groups[i]),
            windows.classes[windows.labels[i]],
            windows.classes[instead[i]],
            round(float(best[i]), 3),
        )
        for i in wrong[np.argsort(-best[wrong], kind="stable")]
    )
    return DoubtfulLabels(
        judged=int(judged.sum()),
        agreement=float((instead[judged] == windows.labels[judged]).mean()),
        expected=float((1 - best[sure]).sum()),
        found=found,
        groups=len({one.group for one in found}),
    )


def _deal_groups(groups: NDArray[np.object_]) -> NDArray[np.intp]:
    """(N,) the fold of each window; groups are dealt in a fixed random order."""
    names, code = np.unique(groups, return_inverse=True)
    fold = np.random.default_rng(0xF01D).permutation(len(names)) % min(FOLDS, max(1, len(names)))
    dealt: NDArray[np.intp] = fold[code]
    return dealt
