"""Bootstrap intervals of means and paired differences (Efron, 1979)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.common.checks import paired_differences, require_probability
from readbench.errors import ParameterError, UsageError

BLOCK = 1 << 20
"""Largest number of draws per block: about 25 MB with the values they pick."""


@dataclass(frozen=True)
class ConfidenceInterval:
    """A mean, or mean difference, with its percentile interval.

    Args:
        mean: mean over the queries, of a - b where two methods are compared.
        low: lower end.
        high: upper end.
        resamples: number of resamples.
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
    means = _resample_mean(differences, clusters, np.random.default_rng(seed), resamples)
    return _interval(float(differences.mean()), means, confidence)


MIN_DATASETS = 3
"""Fewest datasets that are resampled, or over which ranks are tested."""


def bootstrap_datasets(a: ArrayLike, b: ArrayLike, *, seed: int) -> ConfidenceInterval | None:
    """Percentile interval of the mean difference of `a` and `b`, (n,) means by dataset, when datasets are resampled.

    Each dataset counts the same whatever its number of queries. The interval shows how far the difference would move
    with other datasets of the same kind. With few datasets it is too narrow: the variance of a resampled mean is
    (n - 1) / n of the unbiased one, and no quantile of Student's t corrects for it. None below `MIN_DATASETS`.

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
        means.append(given[own].mean())
        drawn.append(_resample_mean(given[own], groups[own] if several else None, rng, resamples))
    return _interval(float(np.mean(means)), np.mean(drawn, axis=0), confidence)


def sums_interval(
    columns: ArrayLike,
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *,
    clusters: ArrayLike,
    seed: int,
    resamples: int = 10_000,
) -> ConfidenceInterval:
    """95 % percentile interval of a function of sums over queries, whole clusters being drawn with replacement.

    Args:
        columns: (Q, K) what is summed, with the queries' weights in it where they do not count alike.
        statistic: from sums (K, R) to values (R,); infinite where there is none, so that the interval is open.
        clusters: (Q,) group of each query.
        seed: seed of the draws.
        resamples: number of draws R.

    >>> sums_interval([[1, 2], [2, 4]], lambda s: s[0] / s[1], clusters=["a", "b"], seed=0, resamples=100)
    ConfidenceInterval(mean=0.5, low=0.5, high=0.5, resamples=100, confidence=0.95)
    """
    given = np.asarray(columns, np.float64).T
    sums = np.stack([_groups(column, clusters)[0] for column in given])
    rng = np.random.default_rng(seed)
    values = np.concatenate([statistic(sums[:, drawn].sum(axis=2)) for drawn in _draws(rng, sums.shape[1], resamples)])
    return _interval(float(statistic(given.sum(axis=1)[:, None])[0]), values, nearest=True)


def _interval(
    value: float, resampled: NDArray[np.float64], confidence: float = 0.95, *, nearest: bool = False
) -> ConfidenceInterval:
    """A value with the percentile interval of its resamples (R,)."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], method="nearest" if nearest else "linear")
    return ConfidenceInterval(value, float(low), float(high), len(resampled), confidence)


def _resample_mean(
    values: NDArray[np.float64], clusters: ArrayLike | None, rng: np.random.Generator, resamples: int
) -> NDArray[np.float64]:
    """(R,) means over queries when whole clusters are drawn with replacement."""
    sums, sizes = _groups(values, clusters)
    drawn = _draws(rng, len(sums), resamples)
    return np.concatenate([sums[d].sum(axis=1) / sizes[d].sum(axis=1) for d in drawn])


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
