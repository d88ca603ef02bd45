"""The three parts of a method as Protocols: encoder, retriever and reranker.

An `Encoder` maps windows to vectors, in bounded memory (`BatchEncoder`). A `Retriever` scores a corpus for queries. A
`Reranker` reorders a short `Pool`. Further capabilities are declared as abilities (`readbench.engine.abilities`).
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
MAX_BATCH_NUMBERS = 2**23
"""Maximum numbers of all windows in one batch of encoding."""


class Encoder(Protocol):
    """Maps windows to vectors of equal length; a Protocol, no base class."""

    @property
    def metric(self) -> Metric:
        """Metric by which its vectors are compared."""
        ...

    @property
    def corpus_dependent(self) -> bool:
        """Whether vectors depend on the fitted corpus; if so, it is fitted at each pollution level."""
        ...

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Learn from the corpus, without labels; frozen encoders learn nothing."""
        ...

    def encode(self, windows: WindowSet) -> Vectors:
        """(N, D) float32; windows may be ragged in length and channels."""
        ...

    def fingerprint(self) -> str:
        """Hash of weights, parameters and fitted state; vectors of equal fingerprints are comparable."""
        ...


class BatchEncoder(ABC):
    """Base class of encoders that encode in batches of bounded memory.

    Subclasses implement `encode_batch`, and `footprint` if a window needs more memory than its values. A window is
    never divided: one large window may exceed the bound.
    """

    @abstractmethod
    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, D) vectors of a batch, which may be empty."""

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers in memory per window while encoding: by default channels x length."""
        return windows.channel_counts.astype(np.int64) * windows.lengths

    def batches(self, windows: WindowSet) -> Iterator[WindowSet]:
        """Consecutive subsets of at most `MAX_BATCH_NUMBERS` numbers, each at least one window."""
        ends = np.cumsum(self.footprint(windows))
        start, before = 0, 0
        while start < len(windows):
            stop = max(start + 1, int(np.searchsorted(ends, before + MAX_BATCH_NUMBERS, side="right")))
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
    """Scale rows to length one; zero rows stay zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Vectors = np.divide(vectors, norms, out=np.zeros_like(vectors, dtype=np.float32), where=norms > 1e-12)
    return units


Scores = NDArray[np.float32]


class Retriever(Protocol):
    """Scores a corpus for queries; a Protocol, no base class."""

    @property
    def uses_labels(self) -> bool:
        """Whether it uses corpus labels; if not, they are hidden from it."""
        ...

    @property
    def corpus_dependent(self) -> bool:
        """Whether a score depends on other items of the corpus (an IDF, a fitted model).

        If so, it is fitted at each pollution level; otherwise pairs are scored once.
        """
        ...

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Store or index a corpus of N windows; `normals` show normal operation and may be empty."""
        ...

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) float32, larger is better, finite."""
        ...


def check_scores(scores: Scores, queries: int, items: int, name: str) -> Scores:
    """Return the scores as float32, or raise `MethodError` if shape or values are invalid."""
    scores = np.asarray(scores)
    if scores.shape != (queries, items):
        raise MethodError(f"{name} returned scores of shape {scores.shape}; expected ({queries}, {items}).")
    if not np.isfinite(scores).all():
        row, column = np.argwhere(~np.isfinite(scores))[0]
        raise MethodError(f"{name} returned {scores[row, column]} for query {row} and corpus item {column}.")
    return scores.astype(np.float32, copy=False)


@dataclass(frozen=True, eq=False)
class View:
    """Queries (Q, D) and corpus items (N, D) as vectors of one encoder."""

    queries: Vectors
    items: Vectors


@dataclass(frozen=True, eq=False)
class Scene:
    """The windows behind a pool, for rerankers that read the series.

    Args:
        queries: Q windows without metadata.
        items: the N windows of the corpus without metadata.
        classes: names of the classes by label; empty if labels are hidden.
    """

    queries: WindowSet
    items: WindowSet
    classes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Pool:
    """The K best items of each of Q queries, and the labels that may be used.

    Args:
        candidates: (Q, K) positions in the corpus, best first.
        scores: (Q, K) base scores, descending.
        views: queries and all corpus items as vectors of each embedding leg, at least one.
        corpus_labels: (Q, N) corpus labels known to each query; -1 if unknown, all -1 for rerankers that use none.
            Often one row broadcast Q times: do not write to it.
        groups: (N,) numbers of the recordings: cases of one recording are no evidence for each other.
        similarity: computes the (N, N) base scores between corpus items.
        scene: the windows, for rerankers that read them (`ReadsWindows`); None for all others.
        assets: (N,) numbers of the assets; None if unknown, or labels are hidden.
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
        """(Q, K) labels of the candidates; -1 if unknown."""
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
    """Scores a pool again; a Protocol, no base class.

    A reranker that uses labels keeps the base order where no label is known. A parameter named `pool` is the size of
    its pool, which a run raises to the number of labels that it grants each query. Further capabilities are abilities:
    one with a language model reads windows (`ReadsWindows`) and queries a model (`AsksModel`).
    """

    @property
    def uses_labels(self) -> bool:
        """Whether it uses the labels of the candidates."""
        ...

    @property
    def depth(self) -> int | None:
        """Number of candidates it sees; None for the whole corpus."""
        ...

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores of the candidates, larger is better, finite; equal scores keep the base order."""
        ...
