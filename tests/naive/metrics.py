"""Slow twins of `readbench.benchmark.metrics`: each line can be read against the definition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np


def rank(row: Sequence[float], depth: int) -> list[int]:
    return sorted(range(len(row)), key=lambda i: (-row[i], i))[:depth]


def is_relevant(query_label: int, item_label: int) -> bool:
    return query_label not in {-1, 0} and query_label == item_label


def precision(hits: Sequence[bool], k: int) -> float:
    return sum(hits[:k]) / min(k, len(hits))


def hit_rate(hits: Sequence[bool], k: int) -> float:
    return 1.0 if sum(hits[:k]) > 0 else 0.0


def dcg(hits: Sequence[bool], k: int) -> float:
    return sum(rel / math.log2(i + 1) for i, rel in enumerate(hits[:k], start=1))


def ndcg(hits: Sequence[bool], k: int) -> float:
    """NDCG of a list that holds the whole corpus, so that its own ideal order is the ideal list."""
    ideal = dcg(sorted(hits, reverse=True), k)
    return dcg(hits, k) / ideal if ideal else 0.0


def per_query(scores: Sequence[float], query_label: int, corpus_labels: Sequence[int]) -> dict[str, float]:
    hits = [is_relevant(query_label, corpus_labels[i]) for i in rank(scores, len(scores))]
    metrics = {"P": precision, "HR": hit_rate, "NDCG": ndcg}
    return {f"{name}@{k}": metric(hits, k) for name, metric in metrics.items() for k in (1, 3, 5, 10, 20)}


def mean_ranks(scores: Sequence[Sequence[float]]) -> list[float]:
    """1 + methods strictly better + half of the other methods that tie, averaged over datasets."""
    ranks = [
        [1 + sum(other > own for other in row) + (sum(other == own for other in row) - 1) / 2 for own in row]
        for row in scores
    ]
    return [sum(column) / len(scores) for column in zip(*ranks, strict=True)]


def friedman_statistic(scores: Sequence[Sequence[float]]) -> float:
    """The formula as the paper prints it."""
    n, m = len(scores), len(scores[0])
    return 12 * n / (m * (m + 1)) * (sum(r**2 for r in mean_ranks(scores)) - m * (m + 1) ** 2 / 4)


def wilcoxon_p(differences: Sequence[float]) -> float:
    """Flip every sign in every way and count the rank sums that are as extreme as the one observed."""
    kept = [d for d in differences if d]
    sizes = [abs(d) for d in kept]
    ranks = [sum(s < own for s in sizes) + (sum(s == own for s in sizes) + 1) / 2 for own in sizes]
    centre = sum(ranks) / 2
    observed = abs(sum(r for r, d in zip(ranks, kept, strict=True) if d > 0) - centre)
    flips = [sum(r for r, up in zip(ranks, ups, strict=True) if up) for ups in product((0, 1), repeat=len(ranks))]
    return sum(abs(w - centre) >= observed for w in flips) / len(flips)


def holm(p_values: Sequence[float]) -> list[float]:
    """Step down from the smallest: multiply by the tests left, and never fall below the step before."""
    left, before = len(p_values), 0.0
    adjusted = [0.0] * len(p_values)
    for p, position in sorted((p, position) for position, p in enumerate(p_values)):
        before = max(before, min(1.0, left * p))
        adjusted[position] = before
        left -= 1
    return adjusted


def cliques(
    mean_ranks: Sequence[float], different: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
) -> set[tuple[int, ...]]:
    """Every run in rank order without a significant pair, less those inside a longer one."""
    order = sorted(range(len(mean_ranks)), key=lambda i: (mean_ranks[i], i))
    runs = [tuple(order[i:j]) for i, j in combinations(range(len(order) + 1), 2) if j - i > 1]
    alike = [run for run in runs if not any(different[i, j] for i, j in combinations(run, 2))]
    return {run for run in alike if not any(set(run) < set(other) for other in alike)}


def bootstrap_means(differences: Sequence[float], clusters: Sequence[str], resamples: int, seed: int) -> list[float]:
    """Draw as many groups as there are, with replacement, and average over the queries in them."""
    members: dict[str, list[float]] = {name: [] for name in sorted(set(clusters))}
    for name, difference in zip(clusters, differences, strict=True):
        members[name].append(difference)
    groups = list(members.values())
    rng = np.random.default_rng(seed)
    means = []
    for _ in range(resamples):
        drawn = [value for g in rng.integers(len(groups), size=len(groups)) for value in groups[g]]
        means.append(sum(drawn) / len(drawn))
    return means
