"""Queries, corpus and normals from a split: caps, class balance, nested pollution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.windows import NORMAL

MIN_OWN_NORMALS = 30


@dataclass(frozen=True)
class Composition:
    """How large the parts of a task are.

    Args:
        corpus_cap: most anomalies in the corpus; None for all.
        query_cap: most queries; None for all.
        rho: pollution levels in percent, ascending; normals make up that share of the corpus.
        normals_cap: most normals in the pool that scores are measured relative to.
    """

    corpus_cap: int | None = 1000
    query_cap: int | None = 100
    rho: tuple[int, ...] = (0, 10, 20)
    normals_cap: int = 500


@dataclass(frozen=True, eq=False)
class Selection:
    """Which windows make up a task.

    Args:
        queries: indices of the queries.
        corpus: indices of the corpus at the highest level, normals shuffled among anomalies.
        levels: rho -> ascending positions in `corpus` of the items that belong to this level; nested.
        normals: indices of the normals pool.
        notes: what could not be met.
    """

    queries: NDArray[np.intp]
    corpus: NDArray[np.intp]
    levels: dict[int, NDArray[np.intp]]
    normals: NDArray[np.intp]
    notes: tuple[str, ...]


def select(labels: NDArray[np.int32], test: NDArray[np.bool_], settings: Composition, seed: int) -> Selection:
    """Choose the windows of a task.

    Args:
        labels: (N,) class of each window.
        test: (N,) which windows are held out.
        settings: caps and levels.
        seed: of all draws.
    """
    notes: list[str] = []
    rng = np.random.default_rng([seed, 0xC0])
    anomalies = labels > NORMAL
    corpus = stratified(np.flatnonzero(anomalies & ~test), labels, settings.corpus_cap, rng)
    known = np.isin(labels, labels[corpus])
    answerable = np.flatnonzero(anomalies & test & known)
    if dropped := int((anomalies & test & ~known).sum()):
        notes.append(f"{dropped} held-out windows have no relevant corpus item and are no queries")
    queries = stratified(answerable, labels, settings.query_cap, rng)
    train_normals = rng.permutation(np.flatnonzero((labels == NORMAL) & ~test))
    counts = {rho: pollution_count(len(corpus), rho) for rho in settings.rho}
    wanted = max(counts.values(), default=0)
    if wanted > len(train_normals):
        notes.append(f"only {len(train_normals)} of {wanted} normal windows for the highest pollution level")
    pool, note = _normals_pool(train_normals, wanted, settings.normals_cap)
    items = np.concatenate([corpus, train_normals])
    # Each item has its own key, so that two items stand in the same order whichever levels are composed.
    order = np.argsort(rng.random(len(items))[: len(corpus) + wanted], kind="stable")
    levels = {rho: np.flatnonzero(order < len(corpus) + count) for rho, count in counts.items()}
    return Selection(queries, items[order], levels, pool, (*notes, *note))


def pollution_count(anomalies: int, rho: int) -> int:
    """Normals that make up `rho` percent of a corpus with this many anomalies; halves round up.

    >>> [n + pollution_count(n, rho) for n in (1000, 305, 71) for rho in (0, 10, 20)]
    [1000, 1111, 1250, 305, 339, 381, 71, 79, 89]
    """
    return math.floor(anomalies * rho / (100 - rho) + 0.5)


def stratified(
    items: NDArray[np.intp], labels: NDArray[np.int32], cap: int | None, rng: np.random.Generator
) -> NDArray[np.intp]:
    """At most `cap` of the items, shuffled, with the classes in their native proportions.

    The order tells nothing about the class: a method that breaks ties by position gains nothing.
    """
    if cap is None or len(items) <= cap:
        return rng.permutation(items)
    classes, counts = np.unique(labels[items], return_counts=True)
    shares = allocate(counts, cap)
    parts = [
        rng.permutation(items[labels[items] == label])[:share] for label, share in zip(classes, shares, strict=True)
    ]
    return rng.permutation(np.concatenate(parts))


def allocate(counts: NDArray[np.intp], total: int) -> NDArray[np.intp]:
    """Share `total` places in proportion to `counts`: largest remainders, at least one each, never more than there are.

    When there are fewer places than classes, the most frequent classes get one each. Ties go to the lower index.

    >>> allocate(np.array([700, 290, 10, 1]), 100).tolist()
    [69, 29, 1, 1]
    """
    if total < len(counts):
        chosen = np.argsort(-counts, kind="stable")[:total]
        few: NDArray[np.intp] = np.isin(np.arange(len(counts)), chosen).astype(np.intp)
        return few
    quota = counts * (min(total, int(counts.sum())) / counts.sum())
    places: NDArray[np.intp] = np.maximum(1, np.floor(quota)).astype(np.intp)
    while places.sum() < min(total, int(counts.sum())):
        places[np.argmax(np.where(places < counts, quota - places, -np.inf))] += 1
    while places.sum() > total:
        places[np.argmax(np.where(places > 1, places - quota, -np.inf))] -= 1
    return places


def _normals_pool(train_normals: NDArray[np.intp], used: int, cap: int) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Normals outside the corpus; where too few are left, all of the train side."""
    rest = train_normals[used:]
    if len(rest) >= MIN_OWN_NORMALS:
        return rest[:cap], ()
    note = f"only {len(rest)} normals are left outside the corpus: all {len(train_normals)} of the train side are used"
    return train_normals[:cap], (note,)
