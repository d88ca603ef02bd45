"""What labelled cases teach: posteriors of queries and items, by ridge on the views that explain held-out cases best.

How likely the next recording is of a type that no label names yet is estimated here, too (`unnamed`): the one estimate
of unseen types, for Verdict's order and for a library's "unlike anything here".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from readbench.encoders import Vectors
from readbench.rerank.base import View
from readbench.rerank.ridge import Array, Ridge, fit_ridge
from readbench.windows import UNLABELLED

MOST_CASES = 4096
"""Labelled cases that a ridge is fitted on; above it, every class gives its share, evenly spread over its cases."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """What one set of labelled cases teaches: posteriors of queries and of items.

    Args:
        views: queries and items as each view sees them, rows of length one.
        labels: (N,) of the corpus, -1 where unknown.
        groups: (N,) numbers of the corpus's recordings.
        cases: (L,) positions in the corpus of the labelled cases.
        chosen: numbers of the views that it was fitted on.
        ridge: fitted on the cases.
    """

    views: tuple[View, ...]
    labels: NDArray[np.int32]
    groups: NDArray[np.int64]
    cases: NDArray[np.intp]
    chosen: tuple[int, ...]
    ridge: Ridge

    @property
    def unnamed(self) -> float:
        """How likely a query is of a type that no case has."""
        return unnamed(self.labels[self.cases], self.groups[self.cases])

    def query_likeness(self, queries: NDArray[np.intp]) -> Array:
        """(M, L) mean cosine, over the chosen views, of queries (M,) and the cases."""
        return self._likeness([view.queries[queries] for view in self.views])

    def item_likeness(self, items: NDArray[np.intp]) -> Array:
        """(M, L) mean cosine, over the chosen views, of corpus items (M,) and the cases."""
        return self._likeness([view.items[items] for view in self.views])

    def _likeness(self, vectors: list[Vectors]) -> Array:
        cosines = [vectors[v] @ self.views[v].items[self.cases].T for v in self.chosen]
        mean: Array = np.mean(cosines, axis=0, dtype=np.float64)
        return mean

    def shared(self, queries: NDArray[np.intp], items: NDArray[np.int64]) -> Array:
        """(M, K) probability that each item shares the fault type of its query.

        Args:
            queries: (M,) their numbers.
            items: (M, K) positions in the corpus, one row a query.
        """
        used, places = np.unique(items, return_inverse=True)
        posterior = self.ridge.posterior(self.query_likeness(queries))
        alike = posterior @ self.opinion(used).T
        return np.take_along_axis(alike, places.reshape(items.shape), axis=1)

    def opinion(self, items: NDArray[np.intp]) -> Array:
        """(M, K) probabilities of the classes of items: their label, else the ridge's opinion.

        A label that is no class, as that of a known normal which taught nothing, leaves a row of zeros.
        """
        labels = self.labels[items]
        opinion = (labels[:, None] == self.ridge.classes).astype(np.float64)
        silent = labels == UNLABELLED
        if silent.any():
            opinion[silent] = self.ridge.posterior(self.item_likeness(items[silent]))
        return opinion


def judged(
    views: tuple[View, ...], cases: NDArray[np.intp], labels: NDArray[np.int32], groups: NDArray[np.int64]
) -> Judgement:
    """Learn from labelled cases on the views, or the combination of them, that explains held-out cases best.

    Args:
        views: queries and items, rows of length one.
        cases: positions in the corpus of those to learn from, at least one.
        labels: (N,) of the corpus, -1 where unknown.
        groups: (N,) of the corpus.
    """
    cases = thinned(cases, labels)
    kernels = [view.items[cases].astype(np.float64) @ view.items[cases].T for view in views]
    numbers = range(len(views))
    choices = [chosen for size in numbers for chosen in combinations(numbers, size + 1)]
    ridges = [
        fit_ridge(np.mean([kernels[v] for v in chosen], axis=0), labels[cases], groups[cases]) for chosen in choices
    ]
    best = int(np.argmin([ridge.loss for ridge in ridges]))
    return Judgement(views, labels, groups, cases, choices[best], ridges[best])


def unnamed(labels: NDArray[np.int32], groups: NDArray[np.int64]) -> float:
    """How likely the next recording is of a type that no label names yet, from the types met in one recording only.

    One is added to both counts: two recordings of one type are no proof that there is no other.

    >>> unnamed(np.array([1, 1, 1, 2], np.int32), np.array([0, 0, 1, 2]))
    0.5
    """
    types, _ = np.unique(np.stack([labels, groups]), axis=1)
    _, recordings = np.unique(types, return_counts=True)
    return min(1.0, float(((recordings == 1).sum() + 1) / (len(np.unique(groups)) + 1)))


def thinned(cases: NDArray[np.intp], labels: NDArray[np.int32]) -> NDArray[np.intp]:
    """All cases, or about `MOST_CASES` of them: every class its share, one at least, evenly spread."""
    if len(cases) <= MOST_CASES:
        return cases
    kept = []
    for label in np.unique(labels[cases]):
        own = cases[labels[cases] == label]
        count = max(1, len(own) * MOST_CASES // len(cases))
        kept.append(own[np.linspace(0, len(own) - 1, count).astype(np.intp)])
    return np.sort(np.concatenate(kept))
