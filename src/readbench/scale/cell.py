"""One cell of the study: a method on a corpus of one size, measured in the process that calls."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from readbench.errors import UsageError
from readbench.evaluate import DEFAULT_METRIC, evaluate
from readbench.pipeline import LegSystem
from readbench.processes import MemoryWatch, Tell
from readbench.retrieve import Hits, Retriever
from readbench.retrieve.embedding import EmbeddingRetriever
from readbench.retrieve.searching import search
from readbench.retrieve.stored import StoredVectors
from readbench.scale.world import Material, World
from readbench.spec import Leg, parse
from readbench.windows import UNLABELLED, WindowSet

VERSION = 1
"""Raised whenever something else is measured, so that stored results are not mixed."""
METRIC = DEFAULT_METRIC
DEPTH = 20
"""Places that a search fills."""
WARM_UP, WARM_UP_ENCODED = 1000, 64
"""Windows that are searched, or encoded, beforehand, so that compiling and loading do not count."""


@dataclass(frozen=True)
class Cell:
    """What is measured.

    Args:
        world: corpus, queries and normals.
        size: windows of the corpus.
        method: canonical text of one leg.
        version: of the code.
        vectors: folder where vectors of corpora are kept while they are needed.
        jobs: processes that encode.
        keep: leave the vectors for what comes next.
    """

    world: World
    size: int
    method: str
    version: str
    vectors: Path
    jobs: int = 1
    keep: bool = False

    @property
    def key(self) -> str:
        """Hash of all that the result depends on, the machine aside."""
        identity = (VERSION, self.world.key, self.world.queries, self.size, self.method, self.version)
        return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]

    def stored(self, tell: Tell) -> StoredVectors:
        """Where the vectors of its corpus are kept."""
        return StoredVectors(self.vectors / self.key, self.key, self.jobs, partial(tell, "encoding"))


@dataclass(frozen=True)
class Measured:
    """What was found.

    Args:
        method: canonical text.
        size: windows of the corpus.
        queries: how many.
        ndcg: NDCG@10, mean over the queries.
        encode_s: vectors of the corpus, written to disk, and of the normals; 0 without an encoder.
        fit_s: all else before the first query.
        search_s: best 20 of all queries.
        memory_bytes: most memory of its own that the process had (memory-mapped files are not counted).
        disk_bytes: what a search reads: vectors, an index, or the values of the corpus.
    """

    method: str
    size: int
    queries: int
    ndcg: float
    encode_s: float
    fit_s: float
    search_s: float
    memory_bytes: float
    disk_bytes: int


def measure(cell: Cell, tell: Tell) -> Measured:
    """Fit the method, search for all queries, and judge the lists.

    Labels are hidden from the method as in the benchmark, but the corpus stays on disk.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import

    material, leg = cell.world.open(cell.size), single_leg(cell.method)
    corpus, queries, normals = (bare(part) for part in (material.corpus, material.queries, material.normals))
    stored = cell.stored(tell)
    retriever = built(leg, stored)
    with threadpool_limits(1), MemoryWatch() as memory:  # our own threads work side by side, those of products do not
        tell("warming up", 0, cell.size)
        _warm_up(leg, corpus, queries, normals)
        tell("fitting", 0, cell.size)
        began = time.perf_counter()
        retriever.fit(corpus, normals)
        fitted = time.perf_counter()
        encode_s = float(getattr(retriever, "encode_seconds", 0.0))
        tell("searching", 0, cell.size)
        searched = time.perf_counter()
        hits = search(retriever, queries, DEPTH)
        ended = time.perf_counter()
    result = Measured(
        method=cell.method,
        size=len(corpus),
        queries=len(queries),
        ndcg=ndcg(hits, material),
        encode_s=encode_s,
        fit_s=max(0.0, fitted - began - (encode_s - stored.earlier)),
        search_s=ended - searched,
        memory_bytes=memory.peak,
        disk_bytes=_disk_bytes(retriever, material),
    )
    if not cell.keep:
        stored.clear()
    return result


def single_leg(method: str) -> Leg:
    """The one leg of a method that can be searched at any size."""
    spec = parse(method)
    if len(spec.legs) > 1 or spec.rerankers:
        raise UsageError(f"{spec} looks at whole lists. Name methods of one leg without rerankers.")
    leg = spec.legs[0]
    if LegSystem(leg).uses_labels:
        raise UsageError(f"{spec} reads labels; the study measures retrieval without any.")
    return leg


def built(leg: Leg, stored: StoredVectors) -> Retriever:
    """The retriever of a leg; vectors of an encoder go to disk."""
    retriever = LegSystem(leg).retriever
    if isinstance(retriever, EmbeddingRetriever):
        return EmbeddingRetriever(retriever.encoder, retriever.transforms, None, stored)
    return retriever


def bare(windows: WindowSet) -> WindowSet:
    """The windows without any fact about them, their values where they are."""
    count = len(windows)
    unknown = np.zeros(count, windows.ids.dtype)
    return replace(
        windows,
        labels=np.full(count, UNLABELLED, np.int32),
        classes=(),
        ids=unknown,
        groups=unknown,
        assets=unknown,
        times=np.full(count, np.nan),
        spans=np.zeros((count, 2), np.int32),
    )


def ndcg(hits: Hits, material: Material) -> float:
    """NDCG@10 of lists of corpus positions, mean over the queries."""
    judged = evaluate(hits.indices, material.queries.labels, material.corpus.labels, [METRIC])
    return float(judged.values[METRIC].mean())


def _warm_up(leg: Leg, corpus: WindowSet, queries: WindowSet, normals: WindowSet) -> None:
    system = LegSystem(leg)
    size = WARM_UP_ENCODED if system.embeds else WARM_UP
    search(system.retriever.fit(corpus[:size], normals[:size]), queries[:4], 1)


def _disk_bytes(retriever: Retriever, material: Material) -> int:
    if isinstance(retriever, EmbeddingRetriever):
        return int(retriever.vectors_.nbytes)
    return int(getattr(retriever, "index_bytes", material.bytes))
