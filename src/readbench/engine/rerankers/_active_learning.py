"""Active learning: which case to label next, and which labels are doubtful.

**Next** (`next_cases`): the case that is most informative about uncertain cases. A label informs about similar cases.
With the mean cosine s over the views, the doubt d(x) = 1 - max p(c | x) about each case x by the resolved cases (1 with
fewer than two fault types), and n(x) the number of cases in the recording of x, labelling z has the value

    worth(z) = sum over x of  (d(x) + MIN_DOUBT) / n(x)  max(0, s(z, x) - cover(x))

where cover(x) is the cosine of x to the nearest case that has a label or was chosen before, 0 without any. So a case is
worth more in dense and doubtful regions, regions count once, and each recording counts the same. Cases are chosen
greedily; ties keep corpus order.

**Doubtful** (`suspects`): labels contradicted by cases of other recordings. The ridge predicts every case from cases of
other recordings (`fit_ridge`); labels with a smaller probability than another type should be checked. Wrong labels are
more frequent among them than elsewhere; so are rare or unusual cases.
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

MIN_DOUBT = 0.05
"""Minimum doubt: resolved cases may be wrong where they are certain."""
MAX_OPEN_CASES = 4096
"""Maximum unlabelled cases compared with each other; of more, evenly spread ones are taken."""


@dataclass(frozen=True, eq=False)
class LabelSuggestions:
    """Cases to label next.

    Args:
        positions: (M,) in the corpus, most informative first.
        tells: (M,) number of other open cases closer to it than to any case labelled or chosen before.
    """

    positions: NDArray[np.intp]
    tells: NDArray[np.int64]


def next_cases(
    items: Sequence[Vectors], labels: NDArray[np.int32], groups: NDArray[np.int64], count: int = 1
) -> NDArray[np.intp]:
    """Positions of the unlabelled cases to label next, most informative first.

    Args:
        items: (N, D) unit vectors of all cases, one matrix per view.
        labels: (N,) -1 if unknown.
        groups: (N,) numbers of recordings.
        count: maximum number of cases.

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
    """The same with the doubt (N,) about each case given.

    >>> heaps = np.array([[1, 0], [1, 0], [1, 0], [0, 1]], np.float32)
    >>> select_most_informative([heaps], np.full(4, -1, np.int32), np.arange(4), np.ones(4), 2).tells
    array([2, 0])
    """
    still = _open(labels)
    weights = (doubt[still] + MIN_DOUBT) / _recording_sizes(groups)[still]
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
    """(M,) positions of the unlabelled cases; of very many, evenly spread ones."""
    silent = np.flatnonzero(labels == UNLABELLED)
    return silent[np.linspace(0, len(silent) - 1, min(len(silent), MAX_OPEN_CASES)).astype(np.intp)]


def _doubt(
    items: Sequence[Vectors], labels: NDArray[np.int32], groups: NDArray[np.int64], still: NDArray[np.intp]
) -> NDArray[np.float64]:
    """(M,) uncertainty of resolved cases about cases (M,); 1 with fewer than two fault types."""
    cases = np.flatnonzero(labels > NORMAL)
    if len(np.unique(labels[cases])) < 2:
        return np.ones(len(still))
    judgement = fit_verdict(tuple(View(vectors[:0], vectors) for vectors in items), cases, labels, groups)
    doubt: NDArray[np.float64] = 1.0 - judgement.item_posterior(still).max(axis=1)
    return doubt


def _likeness(items: Sequence[Vectors], rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.float32]:
    """(M, P) mean cosine over the views."""
    mean: NDArray[np.float32] = np.mean([vectors[rows] @ vectors[columns].T for vectors in items], axis=0)
    return mean


def _recording_sizes(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N,) number of cases in each case's recording."""
    _, codes, counts = np.unique(groups, return_inverse=True, return_counts=True)
    sizes: NDArray[np.int64] = counts[codes]
    return sizes


@dataclass(frozen=True, eq=False)
class Suspects:
    """Cases whose label others contradict, the least likely label first.

    Args:
        positions: (M,) in the corpus.
        own: (M,) probability of their label, by cases of other recordings.
        labels: (M,) the most likely label by these.
        others: (M,) its probability.
    """

    positions: NDArray[np.intp]
    own: Array
    labels: NDArray[np.int32]
    others: Array


def suspects(judgement: FittedVerdict, exponent: float) -> Suspects:
    """The labelled cases that resemble another fault type to all other recordings; `exponent` calibrates posteriors.

    The only case of a type is never included: without it the type is unknown.
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
