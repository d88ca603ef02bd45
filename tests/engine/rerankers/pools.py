"""Pools to rerank that are made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from readbench.engine.protocols import Pool, View
from readbench.engine.ranking import rank


def pool_of(
    labels: Sequence[int],
    vectors: Sequence[Sequence[float]] | None = None,
    query: Sequence[float] = (1.0, 0.0),
    scores: Sequence[float] | None = None,
) -> Pool:
    """One query whose candidates are the whole corpus, in corpus order."""
    count = len(labels)
    items = np.array(vectors if vectors is not None else [[1.0, i] for i in range(count)], np.float32)
    base = np.array(scores if scores is not None else np.linspace(1, 0, count), np.float32)
    known = np.array(labels, np.int32)
    similarity = -np.linalg.norm(items[:, None] - items[None], axis=2).astype(np.float32)
    return Pool(
        candidates=np.arange(count)[None],
        scores=base[None],
        views=(View(np.array([query], np.float32), items),),
        corpus_labels=known[None],
        groups=np.arange(count),
        similarity=lambda: similarity,
    )


def reordered(pool: Pool, scores: np.ndarray) -> list[list[int]]:
    """Candidates of each query in their new order; equal scores keep the base order."""
    order: list[list[int]] = np.take_along_axis(pool.candidates, rank(scores), axis=1).tolist()
    return order
