"""How sure is the difference between two methods on the same queries? A paired bootstrap (Efron, 1979)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.common.checks import paired_differences, require_probability
from readbench.errors import ParameterError, UsageError

BLOCK = 1 << 20
"""Most draws held in memory at a time: about 25 MB with the values they pick."""


@dataclass(frozen=True)
class ConfidenceInterval:
    """A mean, or mean difference, with its percentile interval.

    Args:
        mean: mean over the queries, of a - b where two methods are compared.
        low: lower end.
        high: upper end.
        resamples: how many times the queries were drawn anew.
        confidence: share of the resampled means between the ends.
    """

    mean: float
    low: float
    high: float
    resamples: int
    confidence: float


def paired_bootstrap(
    a: ArrayLike,
    b: ArrayLike,
    *,
    seed: int,
    clusters: ArrayLike | None = None,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> ConfidenceInterval:
    """Percentile interval of mean(a - b) over queries.

    Windows cut from one recording resemble each other, so they are not independent queries. With `clusters`,
    whole groups are drawn with replacement, and a resampled mean is the ratio of the drawn sum of differences
    to the drawn number of queries, so that it still estimates the mean over queries and not over groups.
    Memory is bounded, and a seed fixes the result.

    Args:
        a: (Q,) one method's values.
        b: (Q,) the other method's values on the same queries.
        seed: seed of the draws.
        clusters: (Q,) group of each query (names or numbers); each query is its own group by default.
        resamples: number of draws.
        confidence: share of the resampled means that the interval holds.

    >>> paired_bootstrap([1.0, 1.0, 0.0], [0.5, 0.5, 0.5], seed=0)  # doctest: +ELLIPSIS
    ConfidenceInterval(mean=0.166..., low=-0.5, high=0.5, resamples=10000, confidence=0.95)
    """
    differences = paired_differences(a, b, "The paired bootstrap")
    require_probability("confidence", confidence, "paired_bootstrap")
    if resamples < 1:
        raise ParameterError(
            "The 'resamples' parameter of paired_bootstrap must be an int in the range [1, inf)."
            f" Got {resamples} instead."
        )
    sums, sizes = _groups(differences, clusters)
    rng = np.random.default_rng(seed)
    means = np.concatenate(
        [sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1) for drawn in _draws(rng, len(sums), resamples)]
    )
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return ConfidenceInterval(float(differences.mean()), float(low), float(high), resamples, confidence)


MIN_DATASETS = 3
"""Fewest datasets that are resampled, or over which ranks are tested; below that queries are the better sample."""


def bootstrap_datasets(a: ArrayLike, b: ArrayLike, *, seed: int) -> ConfidenceInterval | None:
    """Percentile interval of the mean difference over datasets, when datasets are drawn anew.

    With d_j = a_j - b_j on dataset j of n, the difference is D = (1/n) sum_j d_j, each dataset counting the same
    whatever its number of queries. A resample draws n datasets with replacement, J_1 ... J_n, and has D* = (1/n) sum_i
    d_{J_i}; the ends are the 2.5 % and 97.5 % quantiles of 10,000 such D*. It says how far D would move with other
    datasets of the same kind, which an interval over split groups of these datasets does not. With few datasets it is
    too narrow: the variance of D* is (n - 1) / n of the unbiased one, and no quantile of Student's t corrects for it.

    Args:
        a: (n,) one method's mean on each dataset.
        b: (n,) the other method's.
        seed: seed of the draws.

    Returns:
        None with fewer than `MIN_DATASETS` datasets.

    >>> found = bootstrap_datasets([0.6, 0.7, 0.8, 0.9], [0.5, 0.5, 0.5, 0.5], seed=0)
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    (0.25, 0.15, 0.35)
    """
    return paired_bootstrap(a, b, seed=seed) if len(np.asarray(a)) >= MIN_DATASETS else None


def mean_interval(
    values: ArrayLike,
    strata: ArrayLike,
    clusters: ArrayLike,
    *,
    seed: int,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> ConfidenceInterval:
    """Percentile interval of a mean over strata (datasets), each counting the same.

    Within a stratum whole clusters are drawn with replacement; where it has only one, its queries are.

    Args:
        values: (Q,) one a query.
        strata: (Q,) name of the stratum of each query.
        clusters: (Q,) name of its group.
        seed: seed of the draws.
        resamples: number of draws.
        confidence: share of the resampled means that the interval holds.

    >>> mean_interval([0.0, 1.0, 0.5], ["a", "a", "b"], ["1", "2", "1"], seed=0, resamples=200)
    ConfidenceInterval(mean=0.5, low=0.25, high=0.75, resamples=200, confidence=0.95)
    """
    given, names, groups = np.asarray(values, np.float64), np.asarray(strata), np.asarray(clusters)
    require_probability("confidence", confidence, "mean_interval")
    rng = np.random.default_rng(seed)
    means, drawn = [], []
    for name in np.unique(names):
        own = names == name
        several = len(np.unique(groups[own])) > 1
        sums, sizes = _groups(given[own], groups[own] if several else None)
        means.append(given[own].mean())
        drawn.append(
            np.concatenate([sums[d].sum(axis=1) / sizes[d].sum(axis=1) for d in _draws(rng, len(sums), resamples)])
        )
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.mean(drawn, axis=0), [tail, 1 - tail])
    return ConfidenceInterval(float(np.mean(means)), float(low), float(high), resamples, confidence)


def sums_interval(
    columns: ArrayLike,
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *,
    clusters: ArrayLike,
    seed: int,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> ConfidenceInterval:
    """Percentile interval of a function of sums over queries, whole clusters being drawn with replacement.

    Args:
        columns: (Q, K) what is summed, with the queries' weights in it where they do not count alike.
        statistic: from sums (K, R) to values (R,); infinite where there is none, so that the interval is open.
        clusters: (Q,) group of each query.
        seed: seed of the draws.
        resamples: number of draws R.
        confidence: share of the resampled values that the interval holds.

    >>> sums_interval([[1, 2], [2, 4]], lambda s: s[0] / s[1], clusters=["a", "b"], seed=0, resamples=100)
    ConfidenceInterval(mean=0.5, low=0.5, high=0.5, resamples=100, confidence=0.95)
    """
    given = np.asarray(columns, np.float64).T
    require_probability("confidence", confidence, "sums_interval")
    sums = np.stack([_groups(column, clusters)[0] for column in given])
    rng = np.random.default_rng(seed)
    values = np.concatenate([statistic(sums[:, drawn].sum(axis=2)) for drawn in _draws(rng, sums.shape[1], resamples)])
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail], method="nearest")
    value = float(statistic(given.sum(axis=1)[:, None])[0])
    return ConfidenceInterval(value, float(low), float(high), resamples, confidence)


def _groups(
    differences: NDArray[np.float64], clusters: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum of differences and number of queries of each group, (G,) each."""
    if clusters is None:
        return differences, np.ones(len(differences), np.int64)
    names = np.asarray(clusters)
    if names.shape != differences.shape:
        raise UsageError(f"Expected a cluster for each of {len(differences)} queries, got shape {names.shape}.")
    _, group = np.unique(names, return_inverse=True)
    sizes = np.bincount(group)
    if len(sizes) < 2:
        raise UsageError(
            "All queries are in one cluster: nothing is left to vary between resamples."
            " Leave `clusters` out to resample queries, and say so."
        )
    sums = np.bincount(group, weights=differences).astype(np.float64, copy=False)
    return sums, sizes.astype(np.int64, copy=False)


def _draws(rng: np.random.Generator, groups: int, resamples: int) -> Iterator[NDArray[np.int64]]:
    """Positions of the drawn groups, (rows, groups) at a time, `resamples` rows in all."""
    rows = max(1, BLOCK // groups)
    for start in range(0, resamples, rows):
        yield rng.integers(groups, size=(min(rows, resamples - start), groups))
