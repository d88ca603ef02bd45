"""One cell of the study: a method on a corpus of one size, measured in the process that calls."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from readbench.errors import UsageError
from readbench.evaluate import DEFAULT_METRIC, evaluate
from readbench.pipeline import Method
from readbench.processes import MemoryWatch, Tell
from readbench.retrieve import Hits
from readbench.retrieve.stored import StoredVectors
from readbench.scale.world import Material, World
from readbench.windows import WindowSet

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

    material, method = cell.world.open(cell.size), single_leg(cell.method)
    corpus, queries, normals = material.corpus, material.queries, material.normals
    stored = cell.stored(tell)
    with threadpool_limits(1), MemoryWatch() as memory:  # our own threads work side by side, those of products do not
        tell("warming up", 0, cell.size)
        _warm_up(method, corpus, queries, normals)
        tell("fitting", 0, cell.size)
        began = time.perf_counter()
        fitted = method.fit(corpus, normals, in_place=True, stored=stored).prepare()
        ready = time.perf_counter()
        encode_s = fitted.encode_seconds
        tell("searching", 0, cell.size)
        searched = time.perf_counter()
        hits = fitted.search(queries, DEPTH)
        ended = time.perf_counter()
    index = fitted.index_bytes
    result = Measured(
        method=cell.method,
        size=len(corpus),
        queries=len(queries),
        ndcg=ndcg(hits, material),
        encode_s=encode_s,
        fit_s=max(0.0, ready - began - (encode_s - stored.earlier)),
        search_s=ended - searched,
        memory_bytes=memory.peak,
        disk_bytes=material.bytes if index is None else index,
    )
    if not cell.keep:
        stored.clear()
    return result


def single_leg(text: str) -> Method:
    """A method of one leg, which can be searched at any size."""
    method = Method(text)
    if len(method.legs) > 1 or method.rerankers:
        raise UsageError(f"{method} looks at whole lists. Name methods of one leg without rerankers.")
    if method.uses_labels:
        raise UsageError(f"{method} reads labels; the study measures retrieval without any.")
    return method


def ndcg(hits: Hits, material: Material) -> float:
    """NDCG@10 of lists of corpus positions, mean over the queries."""
    judged = evaluate(hits.indices, material.queries.labels, material.corpus.labels, [METRIC])
    return float(judged.values[METRIC].mean())


def _warm_up(method: Method, corpus: WindowSet, queries: WindowSet, normals: WindowSet) -> None:
    size = WARM_UP_ENCODED if method.legs[0].embeds else WARM_UP
    method.fit(corpus[:size], normals[:size], in_place=True).search(queries[:4], 1)
