"""Pools to rerank: random ones of any shape, and ones made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from readbench.ranking import rank
from readbench.rerank import Pool


def random_pool(
    seed: int, queries: int = 6, items: int = 30, depth: int = 20, classes: int = 4, labelled: float = 1.0
) -> Pool:
    """A pool over a corpus of noisy clusters, class 0 being normal; scores are negative distances."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((classes, 6))
    labels = rng.integers(0, classes, items).astype(np.int32)
    vectors = (centres[labels] + 0.7 * rng.standard_normal((items, 6))).astype(np.float32)
    targets = (centres[rng.integers(0, classes, queries)] + 0.7 * rng.standard_normal((queries, 6))).astype(np.float32)
    labels[rng.random(items) >= labelled] = -1
    scores = -np.linalg.norm(targets[:, None] - vectors[None], axis=2)
    candidates = rank(scores, depth)
    similarity = -np.linalg.norm(vectors[:, None] - vectors[None], axis=2).astype(np.float32)
    return Pool(
        candidates=candidates,
        scores=np.take_along_axis(scores, candidates, axis=1),
        queries=targets,
        items=vectors,
        labels=labels[candidates],
        corpus_labels=labels,
        similarity=lambda: similarity,
    )


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
        queries=np.array([query], np.float32),
        items=items,
        labels=known[None],
        corpus_labels=known,
        similarity=lambda: similarity,
    )


def without_labels(pool: Pool) -> Pool:
    """The same pool with an empty label budget, and without leave to compare the corpus with itself."""

    def refused() -> np.ndarray:
        raise AssertionError("the similarity of the corpus was asked for")

    return Pool(
        candidates=pool.candidates,
        scores=pool.scores,
        queries=pool.queries,
        items=pool.items,
        labels=np.full_like(pool.labels, -1),
        corpus_labels=np.full_like(pool.corpus_labels, -1),
        similarity=refused,
    )


def reordered(pool: Pool, scores: np.ndarray) -> list[list[int]]:
    """Candidates of each query in their new order; equal scores keep the base order."""
    order: list[list[int]] = np.take_along_axis(pool.candidates, rank(scores), axis=1).tolist()
    return order
