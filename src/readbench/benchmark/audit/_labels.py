"""Doubtful labels, found by cross-validation over split groups.

Split groups are dealt into FOLDS parts; `rocket+verdict`, fitted on the others, classifies each part. A window
contradicts its label if it looks like a typical window of another class: that class is at least as likely as for the
median window of the class, and the label no more likely than there. Thresholds on probabilities would not do, since a
calibrated classifier that learned from wrong labels is unsure. Both classes must be recognised in KNOWN of their
windows. A group is contradicted if half of its windows of a class are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Task
from readbench.engine.method import Method
from readbench.engine.windows import NORMAL, WindowSet, concatenate

FOLDS = 3
KNOWN = 0.7
"""Smallest share of a class that must be classified as it."""
JUDGE = "rocket+verdict"
MAX_JUDGED = 400
"""Most windows that are classified; evenly spaced ones of a larger task."""


@dataclass(frozen=True)
class Contradiction:
    """A window with a doubtful label: id, group, label, and the more likely class with its probability."""

    id: str
    group: str
    label: str
    instead: str
    probability: float


@dataclass(frozen=True)
class DoubtfulLabels:
    """Result of the check of labels.

    Args:
        judged: number of windows whose class occurs in other groups.
        agreement: share of them whose most likely class is their label.
        known: share of them in recognised classes.
        groups: number of units: classes in groups.
        found: contradicted windows, most certain first.
        contradicted: number of contradicted units.
    """

    judged: int
    agreement: float
    known: float
    groups: int
    found: tuple[Contradiction, ...]
    contradicted: int


def doubt_labels(task: Task) -> DoubtfulLabels | str:
    """Check every label against the other groups; the reason if that is impossible."""
    corpus = task.corpus_at(min(task.levels)).with_stats(None)
    both = concatenate([task.queries, corpus[corpus.labels > NORMAL]])
    if len(both) > MAX_JUDGED:
        both = both[np.linspace(0, len(both) - 1, MAX_JUDGED).astype(np.intp)]
    fold = _deal_groups(both.groups)
    if fold.max(initial=0) < 1 or len(np.unique(both.labels)) < 2:
        return "one group or one class: there is nobody to contradict"
    classes = np.unique(both.labels)
    chances = np.full((len(both), len(classes)), np.nan)
    for number in range(int(fold.max()) + 1):
        asked, taught = np.flatnonzero(fold == number), both[np.flatnonzero(fold != number)]
        asked = asked[np.isin(both.labels[asked], taught.labels)]
        if not len(asked) or len(np.unique(taught.labels)) < 2:
            continue
        said = Method(JUDGE).fit(taught, task.normals).ask(both[asked]).opinions()
        for place, opinion in zip(asked.tolist(), said or (), strict=True):
            chances[place] = 0.0
            chances[place, np.searchsorted(classes, opinion.classes)] = opinion.posterior
    judged = np.flatnonzero(~np.isnan(chances[:, 0]))
    if not len(judged):
        return "no class is in two groups: there is nobody to contradict"
    return _summarise(both[judged], classes, chances[judged])


def _summarise(windows: WindowSet, classes: NDArray[np.int32], chances: NDArray[np.float64]) -> DoubtfulLabels:
    own, best = np.searchsorted(classes, windows.labels), chances.argmax(axis=1)
    members = [np.flatnonzero(own == k) for k in range(len(classes))]
    known = np.array([len(of) > 0 and (best[of] == k).mean() >= KNOWN for k, of in enumerate(members)])
    usual = np.array([np.median(chances[of], axis=0) if len(of) else np.full(len(classes), 2.0) for of in members])
    each = np.arange(len(windows))
    wrong = (best != own) & known[own] & known[best]
    wrong &= (chances[each, best] >= usual[best, best]) & (chances[each, own] <= usual[best, own])
    _, group = np.unique(windows.groups, return_inverse=True)
    _, unit = np.unique(np.stack([group, own]), axis=1, return_inverse=True)
    shares = np.bincount(unit.reshape(-1), weights=wrong) / np.bincount(unit.reshape(-1))
    found = tuple(
        Contradiction(
            str(windows.ids[i]),
            str(windows.groups[i]),
            windows.classes[windows.labels[i]],
            windows.classes[classes[best[i]]],
            round(float(chances[i, best[i]]), 3),
        )
        for i in sorted(np.flatnonzero(wrong).tolist(), key=lambda i: -chances[i].max())
    )
    return DoubtfulLabels(
        judged=len(windows),
        agreement=float((best == own).mean()),
        known=float(known[own].mean()),
        groups=len(shares),
        found=found,
        contradicted=int((shares >= 0.5).sum()),
    )


def _deal_groups(groups: NDArray[np.object_]) -> NDArray[np.intp]:
    """(N,) the fold of each window; groups are dealt in a fixed random order."""
    names, code = np.unique(groups, return_inverse=True)
    fold = np.random.default_rng(0xF01D).permutation(len(names)) % min(FOLDS, max(1, len(names)))
    dealt: NDArray[np.intp] = fold[code]
    return dealt
