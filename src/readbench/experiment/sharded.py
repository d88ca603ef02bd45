"""Searching a corpus that no one machine should score alone: part by part, merged exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from readbench.encoders.devices import device_of
from readbench.errors import RunError, UsageError
from readbench.experiment.executors import Executor, Lost
from readbench.pipeline import Encoding, System
from readbench.ranking import rank
from readbench.retrieve import Hits
from readbench.retrieve.embedding import EmbeddingRetriever
from readbench.retrieve.merging import merge_hits
from readbench.retrieve.vectors import top_k
from readbench.windows import ChannelStats, WindowSet, load_windows

Part = tuple[int, int]
"""First item of a part, and one past the last."""


@dataclass(frozen=True)
class Archive:
    """A corpus on disk that all workers see, with normals beside it.

    Args:
        corpus: folder of windows.
        normals: folder of windows of normal operation; None where there are none.
        cache: cache root for vectors; None computes them each time.
    """

    corpus: Path
    normals: Path | None = None
    cache: Path | None = None


@dataclass(frozen=True, eq=False)
class Request:
    """What every part is asked: a method, windows, how many hits, and how channels are scaled."""

    archive: Archive
    method: str
    queries: WindowSet
    k: int
    stats: ChannelStats


def search_in_parts(
    archive: Archive, method: str, queries: WindowSet, k: int, *, parts: int, executor: Executor
) -> Hits:
    """The k best items of a corpus for each query, best first; ties keep corpus order.

    The answer is that of searching the whole corpus at once, but no worker holds more of it than a part. Scores are the
    same to the bit for the elastic distances, SBD and embeddings; `euclidean` multiplies matrices, whose last digits
    depend on their size. A method whose scores depend on the whole corpus (an IDF, a fitted model) is refused.

    Args:
        archive: where the corpus is.
        method: a text of one leg without rerankers.
        queries: Q windows.
        k: how many.
        parts: into how many stretches the corpus is cut.
        executor: where they are searched.

    Returns:
        Positions and scores (Q, min(k, N)).
    """
    _check(method)
    corpus = _opened(archive.corpus)
    request = Request(archive, method, queries.anonymous().compact(), k, corpus.stats or ChannelStats.of(corpus))
    found: dict[Part, Hits] = {}
    for part, hits in executor.map(partial(_search, request=request), _cut(len(corpus), parts), _untold):
        if isinstance(hits, Lost):
            raise RunError(f"Items {part[0]} to {part[1] - 1} of {archive.corpus} were not searched: {hits.reason}")
        found[part] = hits
    ordered = sorted(found)
    return merge_hits([found[part] for part in ordered], [start for start, _ in ordered], k)


def _check(method: str) -> None:
    system = System(method)
    if len(system.legs) > 1 or system.rerankers:
        raise UsageError(
            f"{system.spec} looks at whole lists. Search its legs in parts, then fuse and rerank the hits."
        )
    leg = system.legs[0]
    if leg.corpus_dependent or leg.uses_labels:
        raise UsageError(
            f"{leg.spec} depends on the whole corpus, so parts would give other scores. Choose a method that compares"
            " one pair at a time, or score the corpus at once."
        )


def _cut(items: int, parts: int) -> Sequence[Part]:
    """Consecutive stretches that differ by one item at most; never an empty one."""
    ends = np.linspace(0, items, min(parts, items) + 1).astype(int).tolist()
    return list(pairwise(ends))


def _search(part: Part, encoding: Encoding, request: Request) -> Hits:
    """In a worker: the best of one part."""
    archive = request.archive
    corpus = replace(_opened(archive.corpus)[part[0] : part[1]], stats=request.stats)
    normals = _opened(archive.normals) if archive.normals else corpus[:0]
    leg = System(request.method, archive.cache, encoding).legs[0].fit(corpus, normals)
    if isinstance(leg.retriever, EmbeddingRetriever):
        device = device_of(leg.retriever.encoder)
        return top_k(*leg.represent(corpus, request.queries), request.k, leg.retriever.metric, device=device)
    scores = leg.score(request.queries)
    order = rank(scores, request.k)
    return Hits(order, np.take_along_axis(scores, order, axis=1))


@lru_cache(maxsize=4)
def _opened(folder: Path) -> WindowSet:
    return load_windows(folder)


def _untold(leg: str, done: int, total: int) -> None:
    """Nobody asked how far encodings have come."""
