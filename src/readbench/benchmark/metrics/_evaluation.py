"""From a ranking and the labels to what it scored, query by query.

Everything is computed per query first, because paired tests need the values behind a mean. A corpus item is
relevant to a query when both carry the same fault; normal (0) and unlabelled (-1) queries have no relevant
items and score 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from readbench.engine.registry import BUILT_IN, METRICS, MetricEntry
from readbench.engine.windows import NORMAL
from readbench.errors import MethodError, UsageError

Floats: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.integer[Any]]
Ranking: TypeAlias = NDArray[np.int64]

DEFAULT_METRIC = "NDCG@10"
"""What methods are ordered and compared by where nobody names another metric."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """The lists of Q queries beside the truth: all that a metric may read.

    Args:
        query_labels: (Q,) true fault types.
        labels: (Q, D) labels of the listed items, best first; D is what the metric reads, or the whole corpus.
        relevant: (Q,) number R of relevant items in the whole corpus.
        corpus_size: number N of items in the corpus.
    """

    query_labels: Labels
    labels: Labels
    relevant: NDArray[np.int64]
    corpus_size: int

    @classmethod
    def of(cls, ranking: Ranking, query_labels: Labels, corpus_labels: Labels) -> Self:
        """Look up the labels of a ranking.

        Args:
            ranking: (Q, D) corpus positions, best first.
            query_labels: (Q,) fault types of the queries.
            corpus_labels: (N,) labels of the corpus.

        >>> Judgement.of(np.array([[2, 0]]), np.array([1]), np.array([1, 0, 2])).hits
        array([[False,  True]])
        """
        ranking = np.asarray(ranking)
        queries, corpus = np.asarray(query_labels), np.asarray(corpus_labels)
        if ranking.ndim != 2 or queries.shape != ranking.shape[:1] or corpus.ndim != 1:
            raise UsageError(
                f"Expected a ranking (Q, D), query labels (Q,) and corpus labels (N,); got {ranking.shape},"
                f" {queries.shape} and {corpus.shape}."
            )
        if ranking.size and (ranking.min() < 0 or ranking.max() >= len(corpus)):
            raise UsageError(
                f"The ranking holds positions {ranking.min()} to {ranking.max()}, but the corpus has"
                f" {len(corpus)} items. Rank this corpus, not another level of it."
            )
        return cls(queries, corpus[ranking], count_relevant(queries, corpus), len(corpus))

    @cached_property
    def hits(self) -> NDArray[np.bool_]:
        """(Q, D) whether each listed item carries its query's fault.

        Nothing is relevant to a query that is normal or unlabelled: there is no fault to find again.
        """
        asked = self.query_labels[:, None]
        same: NDArray[np.bool_] = (self.labels == asked) & (asked > NORMAL)
        return same

    @property
    def predicted(self) -> Labels:
        """(Q,) label of each query's first hit, the retriever's opinion on the fault type."""
        return self.labels[:, 0]

    def cut(self, depth: int) -> Self:
        """The same lists, no longer than `depth`."""
        return replace(self, labels=self.labels[:, :depth])

    def __len__(self) -> int:
        return len(self.query_labels)


@dataclass(frozen=True, eq=False)
class PerQuery:
    """What a ranking scored on each of Q queries.

    Args:
        values: metric name -> (Q,) values, in the order of `readbench.engine.registry.METRICS`.
        overall: metric name -> value, of metrics that belong to all queries together.
        query_labels: (Q,) true fault types.
        predicted: (Q,) label of each query's first hit, the retriever's opinion on the fault type.
    """

    values: Mapping[str, Floats]
    overall: Mapping[str, float]
    query_labels: Labels
    predicted: Labels

    def __len__(self) -> int:
        return len(self.query_labels)

    def means(self) -> dict[str, float]:
        """Each metric averaged over the queries, and those of all queries together, in the order of columns."""
        means = {name: float(column.mean()) for name, column in self.values.items()} | dict(self.overall)
        return {name: means[name] for name in metric_order(means)}


def evaluate(
    ranking: Ranking, query_labels: Labels, corpus_labels: Labels, metrics: Iterable[str] | None = None
) -> PerQuery:
    """Judge the top of a ranking.

    Args:
        ranking: (Q, D) corpus positions, best first; D at least what the metrics read, or the whole corpus.
        query_labels: (Q,) fault types of the queries.
        corpus_labels: (N,) labels of the corpus.
        metrics: names; all that are registered by default.

    >>> result = evaluate(np.array([[2, 0, 1]]), np.array([1]), np.array([1, 0, 2]))
    >>> result.values["P@1"], result.values["P@3"], result.values["HR@3"]
    (array([0.]), array([0.33333333]), array([1.]))
    """
    wanted = list(METRICS) if metrics is None else [METRICS.get(name) for name in metrics]
    top = _checked_top(np.asarray(ranking), len(corpus_labels), max(wanted, key=lambda metric: metric.depth))
    judged = Judgement.of(top, query_labels, corpus_labels)
    return PerQuery(
        values={metric.name: compute(metric, judged) for metric in wanted if metric.per_query},
        overall={metric.name: float(compute(metric, judged)) for metric in wanted if not metric.per_query},
        query_labels=judged.query_labels,
        predicted=judged.predicted,
    )


def expect(query_labels: Labels, corpus_labels: Labels, metric: str) -> Floats:
    """(Q,) what random lists are expected to reach.

    Args:
        query_labels: (Q,) fault types of the queries.
        corpus_labels: (N,) labels of the corpus.
        metric: name of one that knows its chance.

    >>> expect(np.array([1]), np.array([1, 0, 0, 2]), "P@1")
    array([0.25])
    """
    entry = METRICS.get(metric)
    if entry.chance is None:
        raise UsageError(f"What random lists reach is not known of {metric}. Register it with chance=.")
    listed = np.tile(np.arange(min(entry.depth, len(corpus_labels))), (len(query_labels), 1))
    judged = Judgement.of(listed, query_labels, corpus_labels)
    return np.asarray(entry.chance(judged, *entry.arguments), np.float64)


def compute(metric: MetricEntry, judged: Judgement) -> Floats:
    """The values of a metric, (Q,), or one number without a shape where it belongs to all queries together."""
    values = np.asarray(metric.factory(judged.cut(metric.depth), *metric.arguments), np.float64)
    expected = (len(judged),) if metric.per_query else ()
    if values.shape != expected or not np.isfinite(values).all():
        found = f"shape {values.shape}" if values.shape != expected else "values that are not finite"
        raise MethodError(
            f"The metric {metric.name} of {metric.origin} gave {found}; it must give finite numbers of shape"
            f" {expected}."
        )
    return values


def metric_order(names: Iterable[str]) -> list[str]:
    """Names of metrics in the order of columns; those that are not registered here come last, as they came."""
    places = {name: place for place, name in enumerate(METRICS.names())}
    return sorted(names, key=lambda name: places.get(name, len(places)))


def plugin_metrics() -> str:
    """Names and origins of the metrics that plug-ins registered: they add to a result. Empty where there are none."""
    return " ".join(f"{metric.name} of {metric.origin}" for metric in METRICS if metric.origin != BUILT_IN)


def count_relevant(query_labels: Labels, corpus_labels: Labels) -> NDArray[np.int64]:
    """(Q,) how many corpus items carry each query's fault.

    >>> count_relevant(np.array([1, 2, 0]), np.array([0, 0, 1, 1, -1])).tolist()
    [2, 0, 0]
    """
    queries, corpus = (np.maximum(labels, NORMAL) for labels in (query_labels, corpus_labels))
    counts = np.bincount(corpus, minlength=int(queries.max(initial=NORMAL)) + 1).astype(np.int64, copy=False)
    counts[NORMAL] = 0
    return counts[queries]


def _checked_top(ranking: Ranking, corpus_size: int, deepest: MetricEntry) -> Ranking:
    """The columns that any metric reads, after making sure that they are a ranking at all."""
    if ranking.ndim != 2 or not len(ranking) or not corpus_size:
        raise UsageError(
            f"Nothing to evaluate: the ranking has shape {ranking.shape} and the corpus {corpus_size} items."
            " Give at least one query and one corpus item."
        )
    needed = min(deepest.depth, corpus_size)
    if ranking.shape[1] < needed:
        raise UsageError(
            f"The ranking is {ranking.shape[1]} deep, but {deepest.name} reads {needed} of {corpus_size} places."
            f" Rank with depth={deepest.depth} or more."
        )
    top = ranking[:, :needed]
    twice = (np.diff(np.sort(top, axis=1), axis=1) == 0).any(axis=1)
    if twice.any():
        raise UsageError(f"The ranking of query {int(twice.argmax())} holds the same corpus item twice.")
    return top
