"""From a method's spec to something that runs: the one place where methods meet windows.

Both the benchmark and the case library run methods through `System`. `LegSystem` is also the gate: what a method sees
of the queries, and of a corpus whose labels it may not use, is stripped there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.encoders import EmbeddingCache, Vectors
from readbench.errors import MethodError
from readbench.ranking import places, rank
from readbench.registry import ENCODERS, FUSIONS, RERANKERS, RETRIEVERS, TRANSFORMS, Registry
from readbench.rerank import Pool, Reranker, Scene, View
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
        """Hash of what it reads beside its parameters, such as weights or prompts; empty where it reads nothing."""
        return str(getattr(self.retriever, "content_key", ""))

    @property
    def usage(self) -> dict[str, float]:
        """What its last scores took beside time, by name; empty for all but language models."""
        return dict(getattr(self.retriever, "usage", {}))

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

    @property
    def content_keys(self) -> list[str]:
        """Hashes of what its parts read beside their parameters; empty texts where they read nothing."""
        return [leg.content_key for leg in self.legs] + [str(getattr(r, "content_key", "")) for r in self.rerankers]

    @property
    def usage(self) -> dict[str, float]:
        """What the last reranking took beside time, by name; empty for all but language models."""
        return added(getattr(reranker, "usage", {}) for reranker in self.rerankers)

    def describe(self, description: str) -> None:
        """Tell the parts that read prose what the source says of itself."""
        for part in (*(leg.retriever for leg in self.legs), *self.rerankers):
            if hasattr(part, "description"):
                part.description = description

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
        views = tuple(View(*leg.represent(self._corpus, queries)) for leg in self.viewing)
        labels = np.broadcast_to(self._corpus.labels, fused.shape)
        scene = partial(scene_of, queries, self._corpus)
        return self.rerank(fused, Evidence(views, labels, group_numbers(self._corpus), self._similarity, scene))

    def combine(self, scores: list[Scores]) -> Scores:
        """Fuse the legs' scores over one corpus, from left to right."""
        fused = scores[0]
        for fusion, other in zip(self._fusions, scores[1:], strict=True):
            fused = fusion.combine(fused, other)
        return fused

    @property
    def viewing(self) -> tuple[LegSystem, ...]:
        """The legs whose representation the rerankers see: those that have an embedding, else the first."""
        return tuple(leg for leg in self.legs if leg.embeds) or self.legs[:1]

    def rerank(self, scores: Scores, evidence: Evidence) -> Scores:
        """Apply the rerankers in turn; each reorders the top of the list and leaves the rest below as it was."""
        for reranker in self.rerankers:
            order = rank(scores)
            depth = min(reranker.depth or order.shape[1], order.shape[1])
            top = order[:, :depth]
            pool = evidence.pool(top, np.take_along_axis(scores, top, axis=1), reranker)
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
        views: queries and corpus as each embedding leg sees them.
        labels: (Q, N) labels that each query may know, -1 where unknown.
        groups: (N,) numbers of the corpus's recordings.
        similarity: computes (N, N) scores between corpus items.
        scene: gives the windows to rerankers that read them.
    """

    views: tuple[View, ...]
    labels: NDArray[np.int32]
    groups: NDArray[np.int64]
    similarity: Callable[[], Scores]
    scene: Callable[[], Scene]

    def pool(self, candidates: NDArray[np.int64], scores: Scores, reranker: Reranker) -> Pool:
        """The pool as a reranker sees it: without labels unless it uses them, and without windows likewise."""
        scene = self.scene() if getattr(reranker, "reads_windows", False) else None
        if reranker.uses_labels:
            return Pool(candidates, scores, self.views, self.labels, self.groups, self.similarity, scene)
        labels, groups = np.full_like(self.labels, UNLABELLED), np.zeros_like(self.groups)
        scene = scene and replace(scene, classes=())
        return Pool(candidates, scores, self.views, labels, groups, self.similarity, scene)


def scene_of(queries: WindowSet, corpus: WindowSet) -> Scene:
    """The windows of queries and corpus without any fact about them, and the names of the classes."""
    return Scene(queries.anonymous(), corpus.anonymous(), corpus.classes)


def added(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Sums by name.

    >>> added([{"calls": 2}, {"calls": 1, "cost": 0.5}])
    {'calls': 3, 'cost': 0.5}
    """
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


def group_numbers(corpus: WindowSet) -> NDArray[np.int64]:
    """(N,) the recording of each window as a number, which says nothing else about it."""
    return np.unique(np.array(corpus.groups.tolist()), return_inverse=True)[1].astype(np.int64)


def _build_leg(leg: Leg, cache: Path | None, encoding: Encoding | None) -> Retriever:
    if leg.stage.name in RETRIEVERS:
        retriever: Retriever = _build(RETRIEVERS, leg.stage)
        return retriever
    transforms = tuple(_build(TRANSFORMS, stage) for stage in leg.transforms)
    store = EmbeddingCache(cache, partial(encoding, str(leg)) if encoding else None) if cache else None
    return EmbeddingRetriever(_build(ENCODERS, leg.stage), transforms, store)


def _build(registry: Registry, stage: Stage) -> Any:  # noqa: ANN401 - each registry has its own protocol
    return registry.get(stage.name).build(**dict(stage.parameters))
