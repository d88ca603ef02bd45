"""Our own label-aware reranker: what resolved cases say a query is, over several views at once.

A posterior p(c | q) of the fault types is learned from the labelled cases by ridge (`readbench.rerank.ridge`) on the
sum of the views' cosines. An item's score is the probability that it shares the query's fault type,

    score(x) = sum over c of p(c | q) p(c | x)

where p(c | x) is certain for a labelled item and the ridge's own opinion for one without a label. Items of one class
keep the order of the retrieval below.

Few labels name few types. How likely the query's is none of them is estimated from the types that were met in one
recording only (Good, 1953): u, their number over that of the labelled recordings, one more counted on both sides. The
order of the retrieval then counts with the weight sqrt(u) v, where v is the share of the query's nearest items that
have no label; with many labels it is nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from readbench.encoders import Vectors, unit
from readbench.parameters import Interval
from readbench.registry import RERANKERS
from readbench.rerank.base import Pool, Scores, View
from readbench.rerank.ridge import Array, Ridge, fit_ridge
from readbench.windows import NORMAL, UNLABELLED

MOST_CASES = 4096
"""Labelled cases that a ridge is fitted on; above it, every class gives its share, evenly spread over its cases."""
NEAREST = 5
"""Items of which the labels tell whether types near a query are named."""
HALF_AT = 10
"""The place at which the order of the retrieval is worth half of what it is at the first."""


@RERANKERS.register("verdict", title="Verdict", tags=["normals-last"])
class Verdict:
    """Orders by the probability of sharing the query's fault type, learned from resolved cases.

    Args:
        pool: see only this many candidates and their labels; none: the whole corpus.
        drop_normals: cases known to be normal teach nothing and come last; otherwise they are one more class.
    """

    uses_labels = True

    def __init__(self, pool: Annotated[int, Interval(2)] | None = None, *, drop_normals: bool = True) -> None:
        self.pool = pool
        self.drop_normals = drop_normals

    @property
    def depth(self) -> int | None:
        """The size of the pool."""
        return self.pool

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) probabilities that each candidate shares the query's fault type; -1 for known normals.

        Queries that know no label keep their base scores; where few types are named, the base order counts too.
        """
        views = tuple(View(unit(view.queries), unit(view.items)) for view in pool.views)
        scores = np.where(pool.labelled.any(axis=1, keepdims=True), np.float32(0), pool.scores)
        for rows, labels in self._lessons(pool):
            cases = self.cases(labels)
            if len(cases):
                judgement = judged(views, cases, labels, pool.groups)
                shared = judgement.shared(rows, pool.candidates[rows])
                scores[rows] = self.weighed(shared, judgement, pool.labels[rows])
            elif self.drop_normals:
                scores[rows] = np.where(pool.labels[rows] == NORMAL, np.float32(-1), scores[rows])
        return scores

    def weighed(self, shared: Array, judgement: Judgement, labels: NDArray[np.int32]) -> Array:
        """(M, K) scores of candidates, in the order of the retrieval.

        Args:
            shared: (M, K) probabilities that they share the query's fault type.
            judgement: what gave them.
            labels: (M, K) of the candidates, -1 where unknown.
        """
        silent = (labels[:, :NEAREST] == UNLABELLED).mean(axis=1, keepdims=True)
        doubt = silent * judgement.unnamed**0.5
        scores = (1 - doubt) * shared + doubt / (1 + np.arange(shared.shape[1]) / HALF_AT)
        return np.where(labels == NORMAL, -1.0, scores) if self.drop_normals else scores

    def cases(self, labels: NDArray[np.int32]) -> NDArray[np.intp]:
        """Positions of the items that teach something, by the labels (N,) of the corpus, -1 where unknown."""
        return np.flatnonzero(labels > NORMAL if self.drop_normals else labels != UNLABELLED)

    def _lessons(self, pool: Pool) -> list[tuple[NDArray[np.intp], NDArray[np.int32]]]:
        """Queries that know the same labels, and those (N,) labels."""
        labels = pool.corpus_labels
        if self.pool is not None:
            labels = np.full(labels.shape, UNLABELLED, np.int32)
            np.put_along_axis(labels, pool.candidates, pool.labels, axis=1)
        distinct, of = np.unique(labels, axis=0, return_inverse=True)
        return [(np.flatnonzero(of == k), known) for k, known in enumerate(distinct)]


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
