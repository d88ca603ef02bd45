"""Judging a ranking: precision, hit rate and NDCG at K, and macro-F1.

Everything is computed per query first, because paired tests need the values behind a mean. A corpus item is
relevant to a query when both carry the same fault; normal (0) and unlabelled (-1) queries have no relevant
items and score 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from readbench.errors import UsageError
from readbench.windows import NORMAL

CUTOFFS = (1, 3, 5, 10, 20)
"""The K at which rankings are judged."""
METRICS = tuple(f"{name}@{k}" for name in ("P", "HR", "NDCG") for k in CUTOFFS)
"""Names of the per-query metrics in table order: P@1, P@3, ..., NDCG@20."""
MACRO_F1 = "macro_F1"
"""Name of the one metric that belongs to a set of queries and not to a single one."""

Floats: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.integer[Any]]
Ranking: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PerQuery:
    """What a ranking scored on each of Q queries.

    Args:
        values: metric name -> (Q,) values in [0, 1], in the order of `METRICS`.
        query_labels: (Q,) true fault types.
        predicted: (Q,) label of each query's first hit, the retriever's opinion on the fault type.
    """

    values: Mapping[str, Floats]
    query_labels: Labels
    predicted: Labels

    def __len__(self) -> int:
        return len(self.query_labels)

    def means(self) -> dict[str, float]:
        """Each metric averaged over the queries, then `macro_F1`."""
        means = {name: float(column.mean()) for name, column in self.values.items()}
        return means | {MACRO_F1: macro_f1(self.query_labels, self.predicted)}


def evaluate(ranking: Ranking, query_labels: Labels, corpus_labels: Labels) -> PerQuery:
    """Judge the top of a ranking.

    Args:
        ranking: (Q, D) corpus positions, best first; D at least the largest cutoff, or the whole corpus.
        query_labels: (Q,) fault types of the queries.
        corpus_labels: (N,) labels of the corpus.

    >>> result = evaluate(np.array([[2, 0, 1]]), np.array([1]), np.array([1, 0, 2]))
    >>> result.values["P@1"], result.values["P@3"], result.values["HR@3"]
    (array([0.]), array([0.33333333]), array([1.]))
    """
    top = _checked_top(np.asarray(ranking), len(corpus_labels))
    hits = relevance(top, query_labels, corpus_labels)
    relevant = count_relevant(query_labels, corpus_labels)
    values = {f"P@{k}": precision(hits, k) for k in CUTOFFS}
    values |= {f"HR@{k}": hit_rate(hits, k) for k in CUTOFFS}
    values |= {f"NDCG@{k}": ndcg(hits, relevant, k) for k in CUTOFFS}
    return PerQuery(values, np.asarray(query_labels), np.asarray(corpus_labels)[top[:, 0]])


def relevance(ranking: Ranking, query_labels: Labels, corpus_labels: Labels) -> NDArray[np.bool_]:
    """Whether each ranked item carries its query's fault, (Q, D) like `ranking`.

    Nothing is relevant to a query that is normal or unlabelled: there is no fault to find again.

    >>> relevance(np.array([[0, 1], [0, 1]]), np.array([3, 0]), np.array([3, 0]))
    array([[ True, False],
           [False, False]])
    """
    ranking = np.asarray(ranking)
    query_labels, corpus_labels = np.asarray(query_labels), np.asarray(corpus_labels)
    if ranking.ndim != 2 or query_labels.shape != ranking.shape[:1] or corpus_labels.ndim != 1:
        raise UsageError(
            f"Expected a ranking (Q, D), query labels (Q,) and corpus labels (N,); got {ranking.shape},"
            f" {query_labels.shape} and {corpus_labels.shape}."
        )
    if ranking.size and (ranking.min() < 0 or ranking.max() >= len(corpus_labels)):
        raise UsageError(
            f"The ranking holds positions {ranking.min()} to {ranking.max()}, but the corpus has"
            f" {len(corpus_labels)} items. Rank this corpus, not another level of it."
        )
    asked = query_labels[:, None]
    same: NDArray[np.bool_] = (corpus_labels[ranking] == asked) & (asked > NORMAL)
    return same


def count_relevant(query_labels: Labels, corpus_labels: Labels) -> NDArray[np.int64]:
    """(Q,) how many corpus items carry each query's fault.

    >>> count_relevant(np.array([1, 2, 0]), np.array([0, 0, 1, 1, -1])).tolist()
    [2, 0, 0]
    """
    queries, corpus = (np.maximum(labels, NORMAL) for labels in (query_labels, corpus_labels))
    counts = np.bincount(corpus, minlength=int(queries.max(initial=NORMAL)) + 1).astype(np.int64, copy=False)
    counts[NORMAL] = 0
    return counts[queries]


def precision(hits: NDArray[np.bool_], k: int) -> Floats:
    """P@K = (1 / K) sum_{i <= K} rel_i for each query, (Q,).

    A corpus of N < K items fills only N places; the share is then of those N, not of places nobody can fill.

    Args:
        hits: (Q, D) relevance of the ranked items, D at least min(K, N).
        k: the cutoff K.
    """
    share: Floats = hits[:, :k].mean(axis=1, dtype=np.float64)
    return share


def hit_rate(hits: NDArray[np.bool_], k: int) -> Floats:
    """HR@K = 1 if any of the first K items is relevant, else 0, for each query, (Q,).

    Args:
        hits: (Q, D) relevance of the ranked items, D at least min(K, N).
        k: the cutoff K.
    """
    found: NDArray[np.bool_] = np.any(hits[:, :k], axis=1)
    return found.astype(np.float64)


def ndcg(hits: NDArray[np.bool_], relevant: NDArray[np.int64], k: int) -> Floats:
    """NDCG@K = DCG@K / IDCG@K for each query, (Q,); 0 where nothing is relevant.

    DCG@K = sum_{i <= K} rel_i / log2(i + 1); IDCG@K is the DCG@K of a list with all relevant items first, so
    it sums the first min(K, R) discounts for R relevant items in the corpus (Järvelin and Kekäläinen, 2002).

    Args:
        hits: (Q, D) relevance of the ranked items, D at least min(K, N).
        relevant: (Q,) number R of relevant items in the whole corpus.
        k: the cutoff K.
    """
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    top = hits[:, :k]
    # Both sums run from the first place to the last, so rounding cannot push a list above the ideal one, and
    # an ideal list scores exactly 1.
    dcg = np.cumsum(top * discounts[: top.shape[1]], axis=1)[:, -1]
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])[np.minimum(relevant, k)]
    share: Floats = np.divide(dcg, ideal, out=np.zeros_like(dcg), where=ideal > 0)
    return share


def macro_f1(query_labels: Labels, predicted: Labels) -> float:
    """Mean over the fault types among the queries of F1 = 2 TP / (2 TP + FP + FN).

    2 TP + FP + FN is how often a type was predicted plus how often it was true. A type that is predicted but
    that no query has costs its victims a miss and is not averaged over. Without any fault among the queries
    the mean is 0.

    >>> macro_f1(np.array([1, 1, 2]), np.array([1, 2, 2]))
    0.6666666666666666
    """
    query_labels, predicted = np.asarray(query_labels), np.asarray(predicted)
    faults = np.unique(query_labels[query_labels > NORMAL])[:, None]
    if not faults.size:
        return 0.0
    true, guessed = query_labels == faults, predicted == faults
    f1 = 2.0 * (true & guessed).sum(axis=1) / (true.sum(axis=1) + guessed.sum(axis=1))
    return float(f1.mean())


def _checked_top(ranking: Ranking, corpus_size: int) -> Ranking:
    """The columns that any metric reads, after making sure that they are a ranking at all."""
    if ranking.ndim != 2 or not len(ranking) or not corpus_size:
        raise UsageError(
            f"Nothing to evaluate: the ranking has shape {ranking.shape} and the corpus {corpus_size} items."
            " Give at least one query and one corpus item."
        )
    needed = min(max(CUTOFFS), corpus_size)
    if ranking.shape[1] < needed:
        raise UsageError(
            f"The ranking is {ranking.shape[1]} deep, but metrics at {max(CUTOFFS)} read {needed} of"
            f" {corpus_size} places. Rank with depth={max(CUTOFFS)} or more."
        )
    top = ranking[:, :needed]
    twice = (np.diff(np.sort(top, axis=1), axis=1) == 0).any(axis=1)
    if twice.any():
        raise UsageError(f"The ranking of query {int(twice.argmax())} holds the same corpus item twice.")
    return top
