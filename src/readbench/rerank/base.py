"""What a reranker is: it sees a short pool and gives it a new order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from readbench.windows import UNLABELLED, WindowSet

Scores = NDArray[np.float32]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class View:
    """Queries and corpus as one encoder sees them.

    Args:
        queries: (Q, D).
        items: (N, D).
    """

    queries: Vectors
    items: Vectors


@dataclass(frozen=True, eq=False)
class Scene:
    """The windows behind a pool, for rerankers that read the series themselves.

    Args:
        queries: Q windows without any fact about them.
        items: the N windows of the corpus, likewise.
        classes: names of the classes by label; empty where labels are hidden.
    """

    queries: WindowSet
    items: WindowSet
    classes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Pool:
    """The K best items of each of Q queries, and what may be known about them.

    Args:
        candidates: (Q, K) positions in the corpus, best first.
        scores: (Q, K) base scores, descending.
        views: queries and all corpus items as each embedding leg sees them, at least one.
        corpus_labels: (Q, N) labels of the corpus that each query may know; -1 where a label is unknown, all -1 for
            rerankers that use none. Often one row seen Q times: read it, never write to it.
        groups: (N,) numbers of the corpus's recordings: cases of one recording are no evidence for each other.
        similarity: computes the base scorer's (N, N) scores between corpus items when first asked for.
        scene: the windows, for rerankers that declare `reads_windows`; None for all others.
    """

    candidates: NDArray[np.int64]
    scores: Scores
    views: tuple[View, ...]
    corpus_labels: NDArray[np.int32]
    groups: NDArray[np.int64]
    similarity: Callable[[], Scores]
    scene: Scene | None = None

    @property
    def queries(self) -> Vectors:
        """(Q, D) queries in the first view."""
        return self.views[0].queries

    @property
    def items(self) -> Vectors:
        """(N, D) corpus items in the first view; `items[candidates]` are those of the pool."""
        return self.views[0].items

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        """(Q, K) labels of the candidates; -1 where unknown."""
        return np.take_along_axis(self.corpus_labels, self.candidates, axis=1)

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """(Q, K) which candidates have a label."""
        known: NDArray[np.bool_] = self.labels != UNLABELLED
        return known

    @cached_property
    def corpus_similarity(self) -> Scores:
        """(N, N) base scores between corpus items."""
        return self.similarity()


class Reranker(Protocol):
    """Anything that scores a pool anew (no base class to inherit from).

    `uses_labels`: it reads labels. `depth`: how many candidates it sees; None for the whole corpus. One that reads
    labels uses those there are: where none is known it keeps the base order. A parameter named `pool` is the size of
    its pool, which an experiment raises to the number of labels that it grants each query.

    Optional, for rerankers around a language model: `reads_windows` (it is given the windows), `description` (set to
    what the source says of itself), `content_key` (hash of what else decides its scores) and `usage` (what its last
    scores took, by name).
    """

    @property
    def uses_labels(self) -> bool:
        """It reads the labels of the candidates."""
        ...

    @property
    def depth(self) -> int | None:
        """How many candidates it sees; None for the whole corpus."""
        ...

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores of the candidates, larger is better, finite; equal scores keep the base order."""
        ...
