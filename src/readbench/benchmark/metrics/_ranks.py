"""How sure is a place on a leaderboard? Intervals of ranks, groups that tie, and how many datasets would part two.

A place is only as sure as the differences behind it. For every pair of methods the difference of the means over
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
WITHIN = 200
"""Draws of the groups of each dataset, from which a resample of the datasets takes its means."""
BLOCK = 250
"""Resamples at a time: (block, methods, methods) numbers in memory."""
FEWEST_DATASETS = 6
"""Datasets from which they are drawn anew; with fewer their groups are, and nothing is said of other datasets."""
EQUAL = 1e-12
"""Standard errors below this are those of methods that do the same."""


@dataclass(frozen=True, eq=False)
class RankedMethods:
    """Places of m methods with their intervals.

    Args:
        means: (m,) mean over datasets, larger is better.
        order: (m,) methods from best to worst.
        low: (m,) best rank that cannot be excluded.
        high: (m,) worst rank that cannot be excluded.
        better: (m, m) whether method i is surely better than j, by the intervals of both.
        groups: of each method the numbers of its tie groups, from 0: the first of a group, and whoever stands below it
            and is not surely behind it; the next group begins with the first who is.
        over_datasets: whether datasets were drawn anew, so that it speaks of other datasets too.
        confidence: of each interval.
    """

    means: Floats
    order: NDArray[np.intp]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    better: NDArray[np.bool_]
    groups: tuple[tuple[int, ...], ...]
    over_datasets: bool
    confidence: float


def rank_methods(
    values: Sequence[ArrayLike],
    clusters: Sequence[Sequence[str]],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
) -> RankedMethods:
    """Rank methods by their mean over datasets, with the interval of each rank.

    With D the (n, m) means by dataset, d_jk = mean_i (D_ij - D_ik), and d*_jk the same of a resample, s_jk is the
    deviation of d*_jk over resamples, and c_j the `confidence` quantile of max_k |d*_jk - d_jk| / s_jk. The interval of
    d_jk is d_jk +- f c_j s_jk. The factor f = t_{n-1} / z * sqrt(n / (n - 1)) makes up for the few datasets that are
    drawn (Hesterberg, "What Teachers Should Know about the Bootstrap", 2015); `simulate_coverage` shows what it does.

    Args:
        values: of each dataset (m, Q) values of the queries, larger is better.
        clusters: of each dataset the split group of each query.
        seed: of the draws.
        resamples: how many.
        confidence: of each interval.
    """
    tables = [np.asarray(own, np.float64) for own in values]
    if not tables or any(table.shape[0] != tables[0].shape[0] for table in tables):
        raise UsageError("Ranks need at least one dataset, and every method on each.")
    rng = np.random.default_rng(seed)
    drawn = np.stack([_draw_groups(t, c, rng) for t, c in zip(tables, clusters, strict=True)])  # (n, W, m)
    means = np.stack([table.mean(axis=1) for table in tables])  # (n, m)
    several = len(tables) >= FEWEST_DATASETS
    center = means.mean(axis=0)
    starred = _resample(drawn, rng, resamples, datasets=several) - center
    observed = center[:, None] - center
    units = len(tables) if several else sum(map(_count_units, clusters))
    critical, errors = _max_t(starred, confidence)
    reach = _widen(units, confidence) * critical[:, None] * errors
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
        confidence=confidence,
    )


def _count_units(clusters: Sequence[str]) -> int:
    """What is drawn of a dataset: its groups, or its queries where it has one group."""
    groups = len(set(clusters))
    return groups if groups > 1 else len(clusters)


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


def _max_t(starred: Floats, confidence: float) -> tuple[Floats, Floats]:
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
    return np.quantile(largest, confidence, axis=0), errors


def _widen(units: int, confidence: float) -> float:
    """What makes a bootstrap interval of few independent units as wide as Student's."""
    from scipy.stats import norm, t  # noqa: PLC0415 - scipy.stats takes a second to import

    units = max(units, 2)
    tail = 0.5 + confidence / 2
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


MOST_DATASETS = 1000
"""Numbers of datasets above this are not told apart from never."""


def datasets_to_separate(differences: ArrayLike, *, power: float = 0.8, alpha: float = 0.05) -> int | None:
    """How many datasets in all would show a difference such as this one: those of a paired t-test with this power.

    The test has a power of about 1 - T(t_c - delta sqrt(n)), with T Student's distribution of n - 1 degrees, t_c its
    critical value and delta the mean difference over its deviation, both taken as they were measured: a guess that is
    as unsure as they are.

    Args:
        differences: (n,) of two methods on each dataset.
        power: chance to show it.
        alpha: level of the test.

    Returns:
        None where it takes more than `MOST_DATASETS`, or cannot be said.

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
    low, high = 2, MOST_DATASETS + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(effect, middle, alpha) >= power else (middle + 1, high)
    return low if low <= MOST_DATASETS else None


def _power(effect: float, n: int, alpha: float) -> float:
    """Chance of the test to show an effect, with Student's distribution moved by it for the noncentral one."""
    from scipy.stats import t  # noqa: PLC0415 - scipy.stats takes a second to import

    critical = float(t.ppf(1 - alpha / 2, n - 1))
    return float(t.sf(critical - effect * math.sqrt(n), n - 1))


def smallest_adjusted_p(datasets: int, pairs: int) -> float:
    """The smallest p-value that Wilcoxon's test with Holm's correction can give.

    >>> smallest_adjusted_p(5, 1), round(smallest_adjusted_p(13, 136), 3)
    (0.0625, 0.033)
    """
    return min(1.0, 2.0 ** (1 - datasets) * pairs)


@dataclass(frozen=True)
class Coverage:
    """What a simulation says of rank intervals.

    Args:
        ranks: share of intervals that hold the true rank, all of them where true means tie.
        width: mean number of ranks in an interval.
        exact: share of intervals of one rank only.
    """

    ranks: float
    width: float
    exact: float


def simulate_coverage(  # noqa: PLR0913 - what the world is made of
    *,
    simulations: int,
    seed: int,
    datasets: int = 13,
    methods: int = 8,
    groups: int = 10,
    queries: int = 90,
    resamples: int = 500,
    alike: bool = False,
) -> Coverage:
    """How often rank intervals hold the true rank, where the truth is known.

    A method's value on a query is its true mean, plus what the dataset does to all and to this method (deviation .08),
    what the split group does to all and to this method (.15), and what is left (.2); one dataset in five moves a method
    three times as much, as real ones do. True means are .70, .70, .69, .66 and so on downwards, so that two tie and
    others are near; or all are the same, where any place that is told apart is an error.

    Args:
        simulations: how many leaderboards.
        seed: of everything.
        datasets: of each.
        methods: of each.
        groups: split groups of a dataset.
        queries: of a dataset.
        resamples: of each interval.
        alike: all true means are the same.
    """
    rng = np.random.default_rng(seed)
    steps = np.array([0.0, 0.0, 0.01, *np.linspace(0.04, 0.3, max(methods - 3, 0))])[:methods]
    truth = 0.7 - steps * (not alike)
    best = 1 + (truth[None, :] > truth[:, None]).sum(axis=1)
    worst = methods - (truth[None, :] < truth[:, None]).sum(axis=1)
    held, width, exact = [], [], []
    names = [str(g) for g in np.arange(queries) % groups]
    for number in range(simulations):
        tables = [_simulate_dataset(rng, truth, groups, queries) for _ in range(datasets)]
        found = rank_methods(tables, [names] * datasets, seed=number, resamples=resamples)
        held.append((found.low <= best) & (found.high >= worst))
        width.append(found.high - found.low + 1)
        exact.append(found.high == found.low)
    return Coverage(float(np.mean(held)), float(np.mean(width)), float(np.mean(exact)))


def _simulate_dataset(rng: np.random.Generator, truth: Floats, groups: int, queries: int) -> Floats:
    m, own = len(truth), np.arange(queries) % groups
    scale = 0.08 * (3.0 if rng.random() < 0.2 else 1.0)
    mean = truth + rng.normal(0, 0.15) + rng.normal(0, scale, m)
    by_group = rng.normal(0, 0.15, groups) + rng.normal(0, 0.15, (m, groups))
    values: Floats = mean[:, None] + by_group[:, own] + rng.normal(0, 0.2, (m, queries))
    return values
