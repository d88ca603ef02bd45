"""Confidence intervals of ranks, tie groups, and the number of datasets that would separate two methods.

For every pair of methods the difference of the means over
datasets gets an interval from one paired bootstrap, which draws datasets anew and inside each of them whole split
groups. Method j stands behind every k whose interval for k - j lies above zero, and before every k whose interval lies
below, so its rank is between 1 + (number of methods surely better) and m - (number surely worse): the construction of
Mogstad, Romano, Shaikh and Wilhelm ("Inference for Ranks", Review of Economic Studies, 2024). The intervals of one
method hold together, over all its rivals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.benchmark.metrics._bootstrap import MIN_DATASETS
from readbench.errors import UsageError

Floats = NDArray[np.float64]
RESAMPLES = 2000
CONFIDENCE, POWER, ALPHA = 0.95, 0.8, 0.05
"""Of the intervals of ranks; power and level of the test that `datasets_to_separate` plans."""
WITHIN = 200
"""Resamples of the groups of each dataset, from which a resample of the datasets takes its means."""
BLOCK = 250
"""Resamples per block; a block holds (block, methods, methods) numbers."""
MIN_RESAMPLED_DATASETS = 6
"""Fewest datasets that are resampled; with fewer only their groups are."""
EQUAL = 1e-12
"""Standard errors below this count as zero."""


@dataclass(frozen=True, eq=False)
class RankedMethods:
    """Places of m methods with their intervals.

    Args:
        means: (m,) mean over datasets, larger is better.
        order: (m,) methods from best to worst.
        low: (m,) best rank in the interval.
        high: (m,) worst rank in the interval.
        better: (m, m) True when method i is significantly better than j by the intervals of both.
        groups: per method the numbers of its tie groups, from 0. A group is a method and all below it that are not
            significantly worse; the next group begins with the first that is.
        over_datasets: True when datasets were resampled, so that ranks generalise to other datasets.
    """

    means: Floats
    order: NDArray[np.intp]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    better: NDArray[np.bool_]
    groups: tuple[tuple[int, ...], ...]
    over_datasets: bool


def rank_methods(
    values: Sequence[ArrayLike], clusters: Sequence[Sequence[str]], *, seed: int, resamples: int = RESAMPLES
) -> RankedMethods:
    """Rank methods by their mean over datasets, with the interval of each rank.

    With D the (n, m) means by dataset, d_jk = mean_i (D_ij - D_ik), and d*_jk the same of a resample, s_jk is the
    deviation of d*_jk over resamples, and c_j the CONFIDENCE quantile of max_k |d*_jk - d_jk| / s_jk. The interval of
    d_jk is d_jk +- f c_j s_jk. The factor f = t_{n-1} / z * sqrt(n / (n - 1)) makes up for the few datasets that are
    drawn (Hesterberg, "What Teachers Should Know about the Bootstrap", 2015).

    Args:
        values: of each dataset (m, Q) values of the queries, larger is better.
        clusters: of each dataset the split group of each query.
        seed: seed of the draws.
        resamples: number of draws R.
    """
    tables = [np.asarray(own, np.float64) for own in values]
    if not tables or any(table.shape[0] != tables[0].shape[0] for table in tables):
        raise UsageError("Ranks need at least one dataset, and every method on each.")
    rng = np.random.default_rng(seed)
    drawn = np.stack([_draw_groups(t, c, rng) for t, c in zip(tables, clusters, strict=True)])  # (n, W, m)
    means = np.stack([table.mean(axis=1) for table in tables])  # (n, m)
    several = len(tables) >= MIN_RESAMPLED_DATASETS
    center = means.mean(axis=0)
    starred = _resample(drawn, rng, resamples, datasets=several) - center
    observed = center[:, None] - center
    groups = [len(set(names)) for names in clusters]  # a dataset of one group is resampled by query
    units = len(tables) if several else sum(n if n > 1 else len(c) for n, c in zip(groups, clusters, strict=True))
    critical, errors = _max_t(starred)
    reach = _widen(units) * critical[:, None] * errors
    ahead = (observed - reach > 0) & (errors > EQUAL)
    behind = (-observed - reach > 0) & (errors > EQUAL)
    m = len(center)
    order = np.argsort(-center, kind="stable")
    return RankedMethods(
        means=center,
        order=order,
        low=1 + behind.sum(axis=1),
        high=m - ahead.sum(axis=1),
        better=ahead & behind.T,
        groups=_tie_groups(order, ahead & behind.T),
        over_datasets=several,
    )


def _draw_groups(table: Floats, clusters: Sequence[str], rng: np.random.Generator) -> Floats:
    """(W, m) means of a dataset when its split groups, or its queries where it has one group, are drawn anew."""
    _, group = np.unique(np.asarray(clusters), return_inverse=True)
    if group.max(initial=0) == 0:
        group = np.arange(table.shape[1])
    count = int(group.max()) + 1
    sizes = np.bincount(group, minlength=count).astype(np.float64)
    sums = np.stack([np.bincount(group, weights=row, minlength=count) for row in table])  # (m, G)
    weights = rng.multinomial(count, np.full(count, 1 / count), size=WITHIN).astype(np.float64)  # (W, G)
    means: Floats = (weights @ sums.T) / (weights @ sizes)[:, None]
    return means


def _resample(drawn: Floats, rng: np.random.Generator, resamples: int, *, datasets: bool) -> Floats:
    """(R, m) means over datasets."""
    n = len(drawn)
    chosen = rng.integers(n, size=(resamples, n)) if datasets else np.tile(np.arange(n), (resamples, 1))
    within = rng.integers(drawn.shape[1], size=(resamples, n))
    means: Floats = drawn[chosen, within].mean(axis=1)
    return means


def _max_t(starred: Floats) -> tuple[Floats, Floats]:
    """(m,) critical values, and (m, m) standard errors of the differences, from resampled means less the observed."""
    centred = starred - starred.mean(axis=0)
    covariance = centred.T @ centred / (len(starred) - 1)
    variance = np.diag(covariance)
    errors = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0.0))
    scale = np.where(errors > EQUAL, errors, np.inf)
    largest = np.concatenate(
        [
            (np.abs(block[:, :, None] - block[:, None, :]) / scale).max(axis=2)
            for block in (starred[i : i + BLOCK] for i in range(0, len(starred), BLOCK))
        ]
    )
    return np.quantile(largest, CONFIDENCE, axis=0), errors


def _widen(units: int) -> float:
    """Factor that widens a bootstrap interval of few independent units to Student's."""
    from scipy.stats import norm, t  # noqa: PLC0415 - scipy.stats takes a second to import

    units = max(units, 2)
    tail = 0.5 + CONFIDENCE / 2
    return float(t.ppf(tail, units - 1) / norm.ppf(tail) * math.sqrt(units / (units - 1)))


def _tie_groups(order: NDArray[np.intp], better: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    groups: list[list[int]] = [[] for _ in order]
    below, number = order, 0
    while below.size:
        behind = better[below[0], below]
        for method in below[~behind]:
            groups[method].append(number)
        below, number = below[behind.argmax() :] if behind.any() else below[:0], number + 1
    return tuple(map(tuple, groups))


MAX_DATASETS = 1000
"""Largest number of datasets that `datasets_to_separate` considers."""


def datasets_to_separate(differences: ArrayLike) -> int | None:
    """Number of datasets with which a paired t-test finds the mean of `differences` (n,) with probability `POWER`.

    The power is about 1 - T(t_c - delta sqrt(n)), with T Student's distribution of n - 1 degrees, t_c its critical
    value and delta the mean difference over its deviation, both as measured. None above `MAX_DATASETS`, or where the
    deviation is unknown.

    >>> datasets_to_separate([0.1, 0.2, 0.15, 0.05]), datasets_to_separate([0.1, -0.1, 0.2, -0.2])
    (5, None)
    """
    own = np.asarray(differences, np.float64)
    spread = float(own.std(ddof=1)) if len(own) >= MIN_DATASETS else math.nan
    if math.isnan(spread) or abs(own.mean()) <= EQUAL:
        return None
    if spread <= EQUAL:
        return MIN_DATASETS
    effect = abs(float(own.mean())) / spread
    low, high = 2, MAX_DATASETS + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(effect, middle) >= POWER else (middle + 1, high)
    return low if low <= MAX_DATASETS else None


def _power(effect: float, n: int) -> float:
    """Power of the t-test for n pairs; a shifted Student distribution stands for the noncentral one."""
    from scipy.stats import t  # noqa: PLC0415 - scipy.stats takes a second to import

    critical = float(t.ppf(1 - ALPHA / 2, n - 1))
    return float(t.sf(critical - effect * math.sqrt(n), n - 1))


def smallest_adjusted_p(datasets: int, pairs: int) -> float:
    """The smallest p-value that Wilcoxon's test with Holm's correction can give.

    >>> smallest_adjusted_p(5, 1), round(smallest_adjusted_p(13, 136), 3)
    (0.0625, 0.033)
    """
    return min(1.0, 2.0 ** (1 - datasets) * pairs)
