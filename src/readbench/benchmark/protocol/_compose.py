"""Which windows make up a task: queries, nested corpora and normal windows, drawn with a seed or ready-made.

`select` draws them from a split, with caps, class balance and nested pollution. `select_ready` takes a ready-made task:
which windows are corpus, queries and normals is given, not drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol._source import CompositionRule, SplitUnit
from readbench.engine.windows import NORMAL
from readbench.errors import DataError

MIN_OWN_NORMALS = 30
"""Fewest normals outside the corpus that make a pool of their own."""
SHORT_OF_NORMALS = "normal windows for a pollution of"
"""What every note says about a level that has fewer normals than it should."""
MIN_RELEVANT, MAX_RELEVANT = 10, 12
"""Corpus items per class where queries are drawn first."""


@dataclass(frozen=True)
class Composition:
    """How large the parts of a task are.

    Args:
        corpus_cap: most anomalies in the corpus; None for all.
        query_cap: most queries; None for all.
        rho: pollution levels in percent, ascending; normals make up that share of the corpus.
        normals_cap: most normals in the pool that scores are measured relative to.
        split_by: hold out whole split groups, or whole assets (wells, patients, machines): no case of the query's own
            asset is then in the corpus.
    """

    corpus_cap: int | None = 1000
    query_cap: int | None = 100
    rho: tuple[int, ...] = (0, 10, 20)
    normals_cap: int = 500
    split_by: SplitUnit = "group"


@dataclass(frozen=True, eq=False)
class Draw:
    """What a rule chose: `corpus` anomalies, `queries` and shuffled train-side `normals` (indices), and its notes."""

    corpus: NDArray[np.intp]
    queries: NDArray[np.intp]
    normals: NDArray[np.intp]
    notes: tuple[str, ...] = ()


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


def select(
    labels: NDArray[np.int32],
    test: NDArray[np.bool_],
    settings: Composition,
    seed: int,
    rule: CompositionRule = "stratified",
) -> Selection:
    """Choose the windows of a task.

    Args:
        labels: (N,) class of each window.
        test: (N,) which windows are held out.
        settings: caps and levels.
        seed: of all draws.
        rule: `order_stratified`, or `query-classes` where there are far more classes than queries.
    """
    rng = np.random.default_rng([seed, 0xC0])
    if rule == "stratified":
        draw = draw_stratified(labels, test, settings, rng)
    else:
        draw = draw_query_classes(labels, test, settings, rng)
    return pollute(draw, settings, rng)


def draw_stratified(
    labels: NDArray[np.int32], test: NDArray[np.bool_], settings: Composition, rng: np.random.Generator
) -> Draw:
    """Corpus first, in native proportions; then queries among the held-out windows whose class the corpus has."""
    anomalies = labels > NORMAL
    corpus = order_stratified(np.flatnonzero(anomalies & ~test), labels, settings.corpus_cap, rng)
    known = np.isin(labels, labels[corpus])
    queries = order_stratified(np.flatnonzero(anomalies & test & known), labels, settings.query_cap, rng)
    normals = rng.permutation(np.flatnonzero((labels == NORMAL) & ~test))
    dropped = int((anomalies & test & ~known).sum())
    note = (f"{dropped} held-out windows have no relevant corpus item and are no queries",) if dropped else ()
    return Draw(corpus, queries, normals, note)


def draw_query_classes(
    labels: NDArray[np.int32], test: NDArray[np.bool_], settings: Composition, rng: np.random.Generator
) -> Draw:
    """Queries first, over all classes with enough train items; then a corpus of the queries' classes only.

    Each query class gets MIN_RELEVANT items, then the best supplied classes up to MAX_RELEVANT, until the corpus is
    full; only if that is not enough, more. Items of all other classes play the part of normals, and the task labels
    them so.
    """
    train = np.flatnonzero((labels > NORMAL) & ~test)
    counts = np.bincount(labels[train], minlength=int(labels.max(initial=0)) + 1)
    candidates = np.flatnonzero(test & (counts[labels] >= MIN_RELEVANT) & (labels > NORMAL))
    candidates = _of_first_classes(rng.permutation(candidates), labels, settings.corpus_cap)
    queries = candidates[: settings.query_cap]
    classes = np.unique(labels[queries])
    places = _fill_classes(counts[classes], settings.corpus_cap)
    parts = [
        rng.permutation(train[labels[train] == label])[:count] for label, count in zip(classes, places, strict=True)
    ]
    corpus = rng.permutation(np.concatenate([np.empty(0, np.intp), *parts]).astype(np.intp))
    others = rng.permutation(np.flatnonzero(~np.isin(labels, classes) & ~test))
    return Draw(corpus, queries, others)


def _of_first_classes(items: NDArray[np.intp], labels: NDArray[np.int32], corpus_cap: int | None) -> NDArray[np.intp]:
    """The items of as many classes, in order of appearance, as a corpus can hold MIN_RELEVANT items of."""
    if corpus_cap is None:
        return items
    classes, first = np.unique(labels[items], return_index=True)
    kept = classes[np.argsort(first)][: max(1, corpus_cap // MIN_RELEVANT)]
    return items[np.isin(labels[items], kept)]


def _fill_classes(available: NDArray[np.intp], cap: int | None) -> NDArray[np.intp]:
    """Items per class: MIN_RELEVANT each, then up to MAX_RELEVANT by supply, then whatever there is, until `cap`."""
    total = int(available.sum()) if cap is None else min(cap, int(available.sum()))
    places = np.minimum(available, max(1, min(MIN_RELEVANT, total // max(1, len(available)))))
    richest = np.argsort(-available, kind="stable")
    for limit in (MAX_RELEVANT, int(available.max(initial=0))):
        for label in richest:
            room = min(limit - places[label], available[label] - places[label], total - places.sum())
            places[label] += max(0, room)
    return places


def pollute(draw: Draw, settings: Composition, rng: np.random.Generator) -> Selection:
    """Add normals for each level, shuffle them among the anomalies, and set a pool of others aside."""
    notes = list(draw.notes)
    counts = {rho: pollution_count(len(draw.corpus), rho) for rho in settings.rho}
    wanted = max(counts.values(), default=0)
    notes += [_shortfall(draw, rho, count) for rho, count in counts.items() if count > len(draw.normals)]
    pool, note = _normals_pool(draw.normals, wanted, settings.normals_cap)
    items = np.concatenate([draw.corpus, draw.normals])
    # Each item has its own key, so that two items stand in the same order whichever levels are composed.
    order = np.argsort(rng.random(len(items))[: len(draw.corpus) + wanted], kind="stable")
    levels = {rho: np.flatnonzero(order < len(draw.corpus) + count) for rho, count in counts.items()}
    return Selection(draw.queries, items[order], levels, pool, (*notes, *note))


def _shortfall(draw: Draw, rho: int, wanted: int) -> str:
    """How far a level falls short for want of normals."""
    there = len(draw.normals)
    real = 100 * there / (there + len(draw.corpus))
    return f"only {there} of {wanted} {SHORT_OF_NORMALS} {rho} %: the corpus has {real:.0f} %"


def pollution_count(anomalies: int, rho: int) -> int:
    """Normals that make up `rho` percent of a corpus with this many anomalies; halves round up.

    >>> [n + pollution_count(n, rho) for n in (1000, 305, 71) for rho in (0, 10, 20)]
    [1000, 1111, 1250, 305, 339, 381, 71, 79, 89]
    """
    return math.floor(anomalies * rho / (100 - rho) + 0.5)


def order_stratified(
    items: NDArray[np.intp], labels: NDArray[np.int32], cap: int | None, rng: np.random.Generator
) -> NDArray[np.intp]:
    """At most `cap` of the items, shuffled, with the classes in their native proportions.

    The order tells nothing about the class: a method that breaks ties by position gains nothing.
    """
    if cap is None or len(items) <= cap:
        return rng.permutation(items)
    classes, counts = np.unique(labels[items], return_counts=True)
    shares = allocate_places(counts, cap)
    parts = [
        rng.permutation(items[labels[items] == label])[:share] for label, share in zip(classes, shares, strict=True)
    ]
    return rng.permutation(np.concatenate(parts))


def allocate_places(counts: NDArray[np.intp], total: int) -> NDArray[np.intp]:
    """Share `total` places in proportion to `counts`: largest remainders, at least one each, never more than there are.

    Classes that would get less than one place get one; the others share what is left in their native proportions.
    When there are fewer places than classes, the most frequent classes get one each. Ties go to the lower index.

    >>> allocate_places(np.array([700, 290, 10, 1]), 100).tolist()
    [69, 29, 1, 1]
    """
    places = np.ones(len(counts), np.intp)
    if total < len(counts):
        places[np.argsort(-counts, kind="stable")[total:]] = 0
        return places
    left, larger = min(total, int(counts.sum())), np.ones(len(counts), bool)
    while (few := larger & (counts * left < counts[larger].sum())).any():
        larger &= ~few
        left -= int(few.sum())
    whole, remainder = np.divmod(counts[larger] * left, counts[larger].sum())
    whole[np.argsort(-remainder, kind="stable")[: left - whole.sum()]] += 1
    places[larger] = whole
    return places


def _normals_pool(train_normals: NDArray[np.intp], used: int, cap: int) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Normals outside the corpus; where too few are left, all of the train side."""
    rest = train_normals[used:]
    if len(rest) >= MIN_OWN_NORMALS:
        return rest[:cap], ()
    pool = train_normals[:cap]
    note = f"only {len(rest)} normals are left outside the corpus: {len(pool)} of all {len(train_normals)} are used"
    return pool, (note,)


@dataclass(frozen=True, eq=False)
class Parts:
    """Which windows of a set are what; indices of windows.

    Args:
        corpus: items of the corpus at its highest level, in order.
        queries: queries.
        normals: normals outside the corpus.
        lowest: (corpus,) the lowest pollution level that an item belongs to; None where the corpus holds faults only,
            and normals are drawn for each level.
        levels: the levels that were composed; empty where they are drawn.
        origin: dataset and seed that the task was exported from.
    """

    corpus: NDArray[np.intp]
    queries: NDArray[np.intp]
    normals: NDArray[np.intp]
    lowest: NDArray[np.int32] | None = None
    levels: tuple[int, ...] = ()
    origin: tuple[str, int] | None = None


def select_ready(parts: Parts, settings: Composition, seed: int) -> Selection:
    """The windows of a task that is divided already: all of them, whatever the caps.

    Without levels of its own, the corpus is polluted as usual with the normals that are there.
    """
    if settings.split_by == "asset":
        raise DataError("A ready-made task is split already: leave out --split-by asset.")
    if parts.lowest is None:
        rng = np.random.default_rng([seed, 0xC0])
        return pollute(Draw(parts.corpus, parts.queries, rng.permutation(parts.normals)), settings, rng)
    if missing := sorted(set(settings.rho) - set(parts.levels)):
        raise DataError(
            f"This ready-made task has no corpus with a pollution of {missing[0]} %. "
            f"Ask for its own levels: --rho {','.join(map(str, parts.levels))}."
        )
    kept = parts.lowest <= max(settings.rho)
    levels = {rho: np.flatnonzero(parts.lowest[kept] <= rho) for rho in settings.rho}
    notes = ("a ready-made task: the same at every split seed",)
    return Selection(parts.queries, parts.corpus[kept], levels, parts.normals, notes)
