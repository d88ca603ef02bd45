"""Active learning: which case to label next, and which labels to doubt.

**Next** (`next_cases`) is the case that tells most about the cases one is still unsure of. A label tells about the
cases that resemble its own. With the mean cosine s over the views, the doubt d(x) = 1 - max p(c | x) of the resolved
cases about each case x (1 where fewer than two fault types are known), and n(x) the number of cases in the recording of
x, the worth of labelling z next is

    worth(z) = sum over x of  (d(x) + FLOOR) / n(x)  max(0, s(z, x) - cover(x))

where cover(x) is the likeness of x to the nearest case that has a label or was chosen before, 0 where there is none. So
a case is worth the more, the denser and the more doubtful its surroundings are, and nothing twice; each recording
counts the same. Cases are chosen one after the other, the best first; equal worth keeps corpus order.

**Doubtful** (`suspects`) is a label that cases of other recordings contradict. The ridge judges every case by the cases
of other recordings alone (`fit_ridge`). Where these give the case's own label a small probability and another one a
larger, the label, or the case, deserves a second look. A wrong label is met more often among them than elsewhere; a
rare or unusual case of the right name is met there too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.engine.protocols import Vectors, View
from readbench.engine.rerankers._opinion import sharpen
from readbench.engine.rerankers._ridge import Array, FittedVerdict, fit_verdict
from readbench.engine.windows import NORMAL, UNLABELLED

FLOOR = 0.05
"""Least doubt: what resolved cases are certain of, they may be wrong about."""
MOST_OPEN = 4096
"""Unlabelled cases that are compared with each other; above it, evenly spread ones."""


@dataclass(frozen=True, eq=False)
class LabelSuggestions:
    """Cases to label next.

    Args:
        positions: (M,) in the corpus, most telling first.
        tells: (M,) how many other open cases are more like it than like any case labelled or chosen before.
    """

    positions: NDArray[np.intp]
    tells: NDArray[np.int64]


def next_cases(
    items: Sequence[Vectors], labels: NDArray[np.int32], groups: NDArray[np.int64], count: int = 1
) -> NDArray[np.intp]:
    """Positions of the unlabelled cases that should be labelled next, most telling first.

    Args:
        items: (N, D) vectors of length one of all cases, a matrix for each view.
        labels: (N,) -1 where unknown.
        groups: (N,) numbers of recordings.
        count: how many; fewer where fewer are unlabelled.

    >>> two_heaps = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    >>> next_cases([two_heaps], np.full(3, -1, np.int32), np.arange(3), 2)
    array([0, 2])
    """
    doubt, still = np.ones(len(labels)), _open(labels)
    doubt[still] = _doubt(items, labels, groups, still)
    return select_most_informative(items, labels, groups, doubt, count).positions


def select_most_informative(
    items: Sequence[Vectors],
    labels: NDArray[np.int32],
    groups: NDArray[np.int64],
    doubt: NDArray[np.float64],
    count: int,
) -> LabelSuggestions:
    """The same where the doubt (N,) about each case is known already.

    >>> heaps = np.array([[1, 0], [1, 0], [1, 0], [0, 1]], np.float32)
    >>> select_most_informative([heaps], np.full(4, -1, np.int32), np.arange(4), np.ones(4), 2).tells
    array([2, 0])
    """
    still = _open(labels)
    weights = (doubt[still] + FLOOR) / _recording_sizes(groups)[still]
    near = _likeness(items, still, still)
    cover = _likeness(items, still, np.flatnonzero(labels != UNLABELLED)).max(axis=1, initial=0.0)
    chosen, tells = list[int](), list[int]()
    for _ in range(min(count, len(still))):
        worth = np.maximum(near - cover, 0.0) @ weights.astype(near.dtype)
        worth[chosen] = -1.0
        chosen.append(int(worth.argmax()))
        nearer = near[chosen[-1]] > cover
        nearer[chosen] = False
        tells.append(int(nearer.sum()))
        cover = np.maximum(cover, near[chosen[-1]])
    return LabelSuggestions(still[chosen], np.array(tells, np.int64))


def _open(labels: NDArray[np.int32]) -> NDArray[np.intp]:
    """(M,) positions of the unlabelled cases, of very many evenly spread ones."""
    silent = np.flatnonzero(labels == UNLABELLED)
    return silent[np.linspace(0, len(silent) - 1, min(len(silent), MOST_OPEN)).astype(np.intp)]


def _doubt(
    items: Sequence[Vectors], labels: NDArray[np.int32], groups: NDArray[np.int64], still: NDArray[np.intp]
) -> NDArray[np.float64]:
    """(M,) how unsure resolved cases are of cases (M,); 1 where they know fewer than two fault types."""
    cases = np.flatnonzero(labels > NORMAL)
    if len(np.unique(labels[cases])) < 2:
        return np.ones(len(still))
    judgement = fit_verdict(tuple(View(own[:0], own) for own in items), cases, labels, groups)
    doubt: NDArray[np.float64] = 1.0 - judgement.item_posterior(still).max(axis=1)
    return doubt


def _likeness(items: Sequence[Vectors], rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.float32]:
    """(M, P) mean cosine over the views."""
    mean: NDArray[np.float32] = np.mean([own[rows] @ own[columns].T for own in items], axis=0)
    return mean


def _recording_sizes(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N,) number of cases in the recording of each case."""
    _, own, counts = np.unique(groups, return_inverse=True, return_counts=True)
    sizes: NDArray[np.int64] = counts[own]
    return sizes


@dataclass(frozen=True, eq=False)
class Suspects:
    """Cases whose label others contradict, the least likely label first.

    Args:
        positions: (M,) in the corpus.
        own: (M,) probability of their label by cases of other recordings.
        labels: (M,) the label that these find most likely.
        others: (M,) its probability.
    """

    positions: NDArray[np.intp]
    own: Array
    labels: NDArray[np.int32]
    others: Array


def suspects(judgement: FittedVerdict, exponent: float) -> Suspects:
    """The labelled cases that look like another fault type to all other recordings.

    The only case of a type is never among them: without it, nobody could know the type.

    Args:
        judgement: what the labels teach.
        exponent: that calibrates its posteriors (`Calibration`).
    """
    classes, rows = judgement.classes, np.arange(len(judgement.cases))
    held_out = sharpen(judgement.held_out, exponent)
    codes = np.searchsorted(classes, judgement.labels[judgement.cases])
    own, likeliest = held_out[rows, codes], held_out.argmax(axis=1)
    told = np.bincount(codes, minlength=len(classes))[codes] > 1
    found = np.flatnonzero(told & (likeliest != codes))
    found = found[np.argsort(own[found], kind="stable")]
    return Suspects(
        positions=judgement.cases[found],
        own=own[found],
        labels=classes[likeliest[found]],
        others=held_out[found, likeliest[found]],
    )
