"""From a method's spec to something that runs: the one place where methods meet windows.

Both the benchmark and the case library run methods through `System`. `LegSystem` is also the gate: what a method sees
of the queries, and of a corpus whose labels it may not use, is stripped there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.encoders import EmbeddingCache, Vectors
from readbench.errors import MethodError
from readbench.ranking import places, rank
from readbench.registry import ENCODERS, FUSIONS, RERANKERS, RETRIEVERS, TRANSFORMS, Registry
from readbench.rerank import Pool, Reranker
from readbench.retrieve import Retriever, Scores, checked_scores
from readbench.retrieve.embedding import EmbeddingRetriever
from readbench.retrieve.fusion import Fusion
from readbench.spec import Leg, MethodSpec, Stage, parse
from readbench.windows import UNLABELLED, Normalisation, WindowSet, channel_axis, dense, normalise

Encoding = Callable[[str, int, int], None]
"""Told how far an encoding has come: the leg, the windows that have their vectors, and all of them."""


class LegSystem:
    """One leg of a method, behind the gate.

    Args:
        leg: what it is.
        cache: cache root for embeddings; None computes them each time.
        encoding: told about each block of windows that the cache gained.
    """

    def __init__(self, leg: Leg, cache: Path | None = None, encoding: Encoding | None = None) -> None:
        self.leg = leg
        self.spec = MethodSpec((leg,))
        self.retriever = _build_leg(leg, cache, encoding)

    @property
    def uses_labels(self) -> bool:
        """Whether it reads corpus labels."""
        return self.retriever.uses_labels

    @property
    def corpus_dependent(self) -> bool:
        """Whether it must be fitted anew when the corpus grows."""
        return self.retriever.corpus_dependent

    @property
    def encode_seconds(self) -> float:
        """Time spent on encoding so far; part of fitting and scoring."""
        return float(getattr(self.retriever, "encode_seconds", 0.0))

    @property
    def embeds(self) -> bool:
        """Whether it compares embeddings."""
        return isinstance(self.retriever, EmbeddingRetriever)

    @property
    def content_key(self) -> str:
        """Hash of the files it reads beside its parameters, such as weights; empty where it reads none."""
        return self.retriever.content_key if isinstance(self.retriever, EmbeddingRetriever) else ""

    def represent(self, corpus: WindowSet, queries: WindowSet) -> tuple[Vectors, Vectors]:
        """(Q, D) and (N, D) vectors of queries and corpus: embeddings, or scaled windows on the common grid."""
        if isinstance(self.retriever, EmbeddingRetriever):
            return self.retriever.represent(queries.anonymous()), self.retriever.vectors_
        own: Normalisation = getattr(self.retriever, "norm", "channel")
        norm: Normalisation = "channel" if own == "normals" else own
        both = [normalise(w, norm, corpus=corpus) for w in (queries, corpus)]
        axis, length = channel_axis(*both), int(max(w.lengths.max(initial=1) for w in both))
        flat = [dense(w, channels=axis, length=length).reshape(len(w), -1) for w in both]
        return flat[0], flat[1]

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Fit on what the method may see of the corpus and the normals."""
        if not len(corpus):
            raise MethodError(f"{self.spec}: the corpus is empty.")
        for windows in (corpus, normals):
            windows.require_finite()
        if not self.uses_labels:
            corpus, normals = corpus.anonymous(), normals.anonymous()
        self._items = len(corpus)
        self.retriever.fit(corpus, normals)
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) checked scores; the method sees nothing of the queries but their values and channel names."""
        queries.require_finite()
        scores = self.retriever.score(queries.anonymous())
        return checked_scores(scores, len(queries), self._items, str(self.spec))


class System:
    """A runnable method: legs, the fusion between them, and rerankers.

    >>> import numpy as np
    >>> corpus = WindowSet.from_arrays(np.arange(12.0).reshape(3, 1, 4))
    >>> System("euclidean(norm=none)").fit(corpus, corpus[:0]).score(corpus[1:2]).argmax()
    np.int64(1)
    """

    def __init__(self, method: MethodSpec | str, cache: Path | None = None, encoding: Encoding | None = None) -> None:
        self.spec = parse(method) if isinstance(method, str) else method
        self.legs = tuple(LegSystem(leg, cache, encoding) for leg in self.spec.legs)
        self._fusions: list[Fusion] = [_build(FUSIONS, stage) for stage in self.spec.fusions]
        self.rerankers: list[Reranker] = [_build(RERANKERS, stage) for stage in self.spec.rerankers]

    @property
    def uses_labels(self) -> bool:
        """Whether any part reads corpus labels."""
        return any(leg.uses_labels for leg in self.legs) or any(r.uses_labels for r in self.rerankers)

    @property
    def corpus_dependent(self) -> bool:
        """Whether scores of an item depend on the rest of the corpus; fused and reranked scores always do."""
        return len(self.legs) > 1 or bool(self.rerankers) or self.legs[0].corpus_dependent

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Fit all legs."""
        for leg in self.legs:
            leg.fit(corpus, normals)
        self._corpus = corpus
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) scores of the whole method."""
        fused = self.combine([leg.score(queries) for leg in self.legs])
        if not self.rerankers:
            return fused
        vectors, items = self.representing.represent(self._corpus, queries)
        labels = np.broadcast_to(self._corpus.labels, fused.shape)
        return self.rerank(fused, Evidence(vectors, items, labels, self._similarity))

    def combine(self, scores: list[Scores]) -> Scores:
        """Fuse the legs' scores over one corpus, from left to right."""
        fused = scores[0]
        for fusion, other in zip(self._fusions, scores[1:], strict=True):
            fused = fusion.combine(fused, other)
        return fused

    @property
    def representing(self) -> LegSystem:
        """The leg whose representation the rerankers see: the first that has an embedding, else the first."""
        return next((leg for leg in self.legs if leg.embeds), self.legs[0])

    def rerank(self, scores: Scores, evidence: Evidence) -> Scores:
        """Apply the rerankers in turn; each reorders the top of the list and leaves the rest below as it was."""
        for reranker in self.rerankers:
            order = rank(scores)
            depth = min(reranker.depth or order.shape[1], order.shape[1])
            top = order[:, :depth]
            pool = evidence.pool(top, np.take_along_axis(scores, top, axis=1), uses_labels=reranker.uses_labels)
            new = checked_scores(reranker.rerank(pool), len(top), depth, str(self.spec))
            order[:, :depth] = np.take_along_axis(top, rank(new), axis=1)
            scores = places(order)
        return scores

    def _similarity(self) -> Scores:
        return self.combine([leg.score(self._corpus) for leg in self.legs])


@dataclass(frozen=True, eq=False)
class Evidence:
    """What rerankers may use of one corpus.

    Args:
        queries: (Q, D) representation of the queries.
        items: (N, D) representation of the corpus.
        labels: (Q, N) labels that each query may know, -1 where unknown.
        similarity: computes (N, N) scores between corpus items.
    """

    queries: Vectors
    items: Vectors
    labels: NDArray[np.int32]
    similarity: Callable[[], Scores]

    def pool(self, candidates: NDArray[np.int64], scores: Scores, *, uses_labels: bool) -> Pool:
        """The pool as a reranker sees it: without labels unless it uses them."""
        labels = self.labels if uses_labels else np.full_like(self.labels, UNLABELLED)
        return Pool(candidates, scores, self.queries, self.items, labels, self.similarity)


def _build_leg(leg: Leg, cache: Path | None, encoding: Encoding | None) -> Retriever:
    if leg.stage.name in RETRIEVERS:
        retriever: Retriever = _build(RETRIEVERS, leg.stage)
        return retriever
    transforms = tuple(_build(TRANSFORMS, stage) for stage in leg.transforms)
    store = EmbeddingCache(cache, partial(encoding, str(leg)) if encoding else None) if cache else None
    return EmbeddingRetriever(_build(ENCODERS, leg.stage), transforms, store)


def _build(registry: Registry, stage: Stage) -> Any:  # noqa: ANN401 - each registry has its own protocol
    return registry.get(stage.name).build(**dict(stage.parameters))
