"""The three parts of a method as Protocols: encoder, retriever and reranker.

An `Encoder` maps windows to vectors, in bounded memory (`BatchEncoder`). A `Retriever` scores a corpus for queries. A
`Reranker` sees a short `Pool` and gives it a new order. What a part can do beyond this it declares as an ability
(`readbench.engine.abilities`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.windows import UNLABELLED, WindowSet
from readbench.errors import MethodError

Vectors = NDArray[np.float32]
Metric = Literal["euclidean", "cosine"]
BATCH_NUMBERS = 2**23
"""Numbers that the windows of one batch may take while they are encoded."""


class Encoder(Protocol):
    """Anything that maps windows to vectors of one length (no base class to inherit from)."""

    @property
    def metric(self) -> Metric:
        """How its vectors are compared."""
        ...

    @property
    def corpus_dependent(self) -> bool:
        """Its vectors depend on the corpus it was fitted on; it is fitted at each pollution level."""
        ...

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Learn what it needs from the corpus, without labels; frozen encoders learn nothing."""
        ...

    def encode(self, windows: WindowSet) -> Vectors:
        """(N, D) float32; windows may be ragged in length and channels."""
        ...

    def fingerprint(self) -> str:
        """Hash of weights, parameters and what was fitted: vectors of equal fingerprints can be compared."""
        ...


class BatchEncoder(ABC):
    """Base of encoders that take windows in batches, so that memory grows with neither their number nor their size.

    Subclasses write `encode_batch`, and `footprint` where a window takes more room than its own numbers. A window is
    never divided: the largest one alone may exceed the bound.
    """

    @abstractmethod
    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, D) vectors of a batch, which may be empty."""

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers that each window takes while it is encoded: by default channels x length."""
        return windows.channel_counts.astype(np.int64) * windows.lengths

    def batches(self, windows: WindowSet) -> Iterator[WindowSet]:
        """Consecutive pieces of a set, each as large as `BATCH_NUMBERS` admits and at least one window."""
        ends = np.cumsum(self.footprint(windows))
        start, before = 0, 0
        while start < len(windows):
            stop = max(start + 1, int(np.searchsorted(ends, before + BATCH_NUMBERS, side="right")))
            yield windows[start:stop]
            start, before = stop, int(ends[stop - 1])

    def encode(self, windows: WindowSet) -> Vectors:
        """(N, D) float32, computed batch by batch."""
        if not len(windows):
            return self.encode_batch(windows)
        out, done = np.empty((0, 0), np.float32), 0
        for batch in self.batches(windows):
            vectors = self.encode_batch(batch)
            if not done:
                out = np.empty((len(windows), vectors.shape[1]), np.float32)
            out[done : done + len(batch)] = vectors
            done += len(batch)
        return out


def unit_vectors(vectors: Vectors) -> Vectors:
    """Rows of length one; rows of length zero stay zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Vectors = np.divide(vectors, norms, out=np.zeros_like(vectors, dtype=np.float32), where=norms > 1e-12)
    return units


Scores = NDArray[np.float32]


class Retriever(Protocol):
    """Anything that scores a corpus for queries (no base class to inherit from)."""

    @property
    def uses_labels(self) -> bool:
        """It reads the labels of the corpus; without this, the corpus it is given has none."""
        ...

    @property
    def corpus_dependent(self) -> bool:
        """A score depends on more of the corpus than the one item (an IDF, a fitted model).

        Such a method is fitted anew at each pollution level; a pairwise one is scored once.
        """
        ...

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Remember or index a corpus of N windows; `normals` show normal operation and may be empty."""
        ...

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) float32, larger is better, finite."""
        ...


def check_scores(scores: Scores, queries: int, items: int, name: str) -> Scores:
    """The scores as float32 if they keep the contract, else `MethodError`."""
    scores = np.asarray(scores)
    if scores.shape != (queries, items):
        raise MethodError(f"{name} returned scores of shape {scores.shape}; expected ({queries}, {items}).")
    if not np.isfinite(scores).all():
        row, column = np.argwhere(~np.isfinite(scores))[0]
        raise MethodError(f"{name} returned {scores[row, column]} for query {row} and corpus item {column}.")
    return scores.astype(np.float32, copy=False)


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
        scene: the windows, for rerankers that read them (`ReadsWindows`); None for all others.
        assets: (N,) numbers of the assets that they come from; None where nobody knows them, or labels are hidden.
    """

    candidates: NDArray[np.int64]
    scores: Scores
    views: tuple[View, ...]
    corpus_labels: NDArray[np.int32]
    groups: NDArray[np.int64]
    similarity: Callable[[], Scores]
    scene: Scene | None = None
    assets: NDArray[np.int64] | None = None

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
    its pool, which a run raises to the number of labels that it grants each query.

    What else it can do is an ability that it declares: one around a language model reads the windows (`ReadsWindows`)
    and asks a model (`AsksModel`).
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
