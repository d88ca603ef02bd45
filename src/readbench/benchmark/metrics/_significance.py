"""Tests over datasets: Friedman's with Nemenyi's post-hoc test, and Wilcoxon's with Holm's correction.

Friedman's and Nemenyi's tests use ranks within each dataset, so datasets of different difficulty count alike (Demšar,
"Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7, 2006). Wilcoxon's signed-rank test compares
all pairs with Holm's correction; unlike Nemenyi's, its verdict on a pair does not depend on the methods ranked between
the two (Benavoli, Corani and Mangili, JMLR 17, 2016).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.common.checks import DECIMALS, paired_differences, require_probability, score_table
from readbench.errors import ParameterError


@dataclass(frozen=True, eq=False)
class FriedmanResult:
    """Outcome of the Friedman test.

    Args:
        statistic: chi-squared with m - 1 degrees of freedom.
        p_value: probability of so large a statistic if all methods were alike.
        mean_ranks: (m,) mean rank of each method, 1 is best.
        datasets: n.
        methods: m.
    """

    statistic: float
    p_value: float
    mean_ranks: NDArray[np.float64]
    datasets: int
    methods: int


@dataclass(frozen=True, eq=False)
class NemenyiResult:
    """Outcome of Nemenyi's test.

    Args:
        friedman: the test it follows.
        critical_difference: how far apart two mean ranks must be.
        alpha: family-wise level of both tests.
        different: (m, m) whether two methods differ significantly; symmetric.
    """

    friedman: FriedmanResult
    critical_difference: float
    alpha: float
    different: NDArray[np.bool_]

    @property
    def mean_ranks(self) -> NDArray[np.float64]:
        """(m,) mean rank of each method, 1 is best."""
        return self.friedman.mean_ranks

    @cached_property
    def cliques(self) -> tuple[tuple[int, ...], ...]:
        """The bars of a critical-difference diagram; see the function `cliques`."""
        return cliques(self.mean_ranks, self.different)


def mean_ranks(scores: ArrayLike) -> NDArray[np.float64]:
    """Mean rank of each method over the datasets, (m,); the best has rank 1, ties share their mean rank.

    Args:
        scores: (n, m) one row per dataset, one column per method; larger is better.

    >>> mean_ranks([[0.9, 0.5, 0.5], [0.8, 0.9, 0.1]])
    array([1.5 , 1.75, 2.75])
    """
    from scipy.stats import rankdata  # noqa: PLC0415 - scipy.stats takes a second to import

    table = score_table(scores, "A mean rank")
    ranks: NDArray[np.float64] = rankdata(-table, method="average", axis=1)
    means: NDArray[np.float64] = ranks.mean(axis=0)
    return means


def friedman(scores: ArrayLike) -> FriedmanResult:
    """Test whether any of m methods differs from the others on n datasets.

    chi2 = 12 n / (m (m + 1)) [sum_i R_i^2 - m (m + 1)^2 / 4], with R_i the mean rank of method i (Friedman,
    1937; Demšar, 2006). The formula ignores ties, which makes the test slightly conservative;
    `scipy.stats.friedmanchisquare` divides by a correction for them and agrees exactly where there are none.

    Args:
        scores: (n, m) one row per dataset, one column per method; larger is better.

    >>> result = friedman([[0.9, 0.5, 0.1], [0.8, 0.6, 0.2], [0.7, 0.4, 0.3]])
    >>> result.statistic, round(result.p_value, 4)
    (6.0, 0.0498)
    """
    from scipy.stats import chi2  # noqa: PLC0415 - scipy.stats takes a second to import

    datasets, methods = score_table(scores, "The Friedman test").shape
    ranks = mean_ranks(scores)
    # The bracket of the formula, rewritten with sum_i R_i = m (m + 1) / 2: a sum of squares cannot round
    # below zero.
    spread = float(np.sum((ranks - (methods + 1) / 2) ** 2))
    statistic = 12 * datasets / (methods * (methods + 1)) * spread
    return FriedmanResult(statistic, float(chi2.sf(statistic, methods - 1)), ranks, datasets, methods)


def critical_difference(methods: int, datasets: int, alpha: float = 0.05) -> float:
    """How far apart the mean ranks of two methods must be to differ significantly (Nemenyi, 1963).

    CD = q_alpha sqrt(m (m + 1) / (6 n)). As in Demšar (2006), q_alpha is the upper quantile of the
    studentized range of m groups with infinite degrees of freedom, divided by sqrt(2).

    >>> round(critical_difference(methods=4, datasets=14), 2)
    1.25
    """
    from scipy.stats import studentized_range  # noqa: PLC0415 - scipy.stats takes a second to import

    for name, value in (("methods", methods), ("datasets", datasets)):
        if value < 2:
            raise ParameterError(
                f"The {name!r} parameter of critical_difference must be an int in the range [2, inf)."
                f" Got {value} instead."
            )
    require_probability("alpha", alpha, "critical_difference")
    quantile = float(studentized_range.ppf(1 - alpha, methods, math.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * datasets))


def nemenyi(scores: ArrayLike, alpha: float = 0.05) -> NemenyiResult:
    """Say which methods differ: their mean ranks are more than the critical difference apart.

    A post-hoc test follows a significant Friedman test. Where that one finds nothing at level alpha, no pair
    is called different, however far apart its ranks.

    Args:
        scores: (n, m) one row per dataset, one column per method; larger is better.
        alpha: family-wise level.
    """
    require_probability("alpha", alpha, "nemenyi")
    overall = friedman(scores)
    threshold = critical_difference(overall.methods, overall.datasets, alpha)
    gaps = np.abs(overall.mean_ranks[:, None] - overall.mean_ranks)
    different = (gaps > threshold) & (overall.p_value <= alpha)
    return NemenyiResult(overall, threshold, alpha, different)


def cliques(mean_ranks: NDArray[np.float64], different: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Largest groups of neighbours in rank order among which no two methods differ.

    A group is one bar of a critical-difference diagram, so it has at least two methods and never skips one
    between its ends. No group lies inside another.

    Args:
        mean_ranks: (m,) 1 is best.
        different: (m, m) whether two methods differ significantly.

    Returns:
        Method indices of each group, best first; groups in the order of their best method.

    >>> far = np.array([[False, True, False], [True, False, False], [False, False, False]])
    >>> cliques(np.array([1.0, 3.0, 2.0]), far)
    ((0, 2), (2, 1))
    """
    order = np.argsort(mean_ranks, kind="stable")
    apart = different[np.ix_(order, order)]
    groups: list[tuple[int, ...]] = []
    reach = 0
    for start in range(len(order)):
        stop = max(reach, start + 1)
        while stop < len(order) and not apart[start:stop, stop].any():
            stop += 1
        if stop > max(reach, start + 1):
            groups.append(tuple(order[start:stop].tolist()))
        reach = stop
    return tuple(groups)


EXACT_UP_TO = 50
"""Number of non-zero differences up to which the p-value is exact; above, a normal approximation."""


@dataclass(frozen=True, eq=False)
class WilcoxonResult:
    """Outcome of all pairwise tests.

    Args:
        adjusted_p: (m, m) p-values after Holm's correction; symmetric, 1 on the diagonal.
        mean_ranks: (m,) mean rank of each method, 1 is best.
        alpha: family-wise level.
    """

    adjusted_p: NDArray[np.float64]
    mean_ranks: NDArray[np.float64]
    alpha: float

    @property
    def different(self) -> NDArray[np.bool_]:
        """(m, m) whether two methods differ significantly."""
        return self.adjusted_p <= self.alpha

    @cached_property
    def cliques(self) -> tuple[tuple[int, ...], ...]:
        """The bars of a critical-difference diagram; see the function `cliques`."""
        return cliques(self.mean_ranks, self.different)


def wilcoxon_holm(scores: ArrayLike, alpha: float = 0.05) -> WilcoxonResult:
    """Compare every pair of m methods over n datasets, corrected for the m (m - 1) / 2 comparisons.

    The smallest p-value that n pairs can give is 2^(1 - n): with fewer than 6 datasets nothing is significant
    at .05, even between two methods.

    Args:
        scores: (n, m) one row per dataset, one column per method; larger is better.
        alpha: family-wise level.
    """
    require_probability("alpha", alpha, "wilcoxon_holm")
    table = score_table(scores, "The Wilcoxon-Holm test")
    methods = table.shape[1]
    pairs = np.array(list(combinations(range(methods), 2)))
    corrected = holm([wilcoxon(table[:, i], table[:, j]) for i, j in pairs])
    adjusted = np.ones((methods, methods))
    adjusted[pairs[:, 0], pairs[:, 1]] = adjusted[pairs[:, 1], pairs[:, 0]] = corrected
    return WilcoxonResult(adjusted, mean_ranks(table), alpha)


def wilcoxon(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test (1945) on two paired vectors, (n,) each.

    Zero differences are left out, as Wilcoxon did; if all are zero the p-value is 1. Up to `EXACT_UP_TO`
    differences it is exact, ties or not: few datasets and saturated metrics make ties the rule, and the usual
    normal approximation is poor there.

    >>> wilcoxon([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], [0.8, 0.6, 0.4, 0.2, 0.0, -0.2])
    0.03125
    """
    from scipy import stats  # noqa: PLC0415 - scipy.stats takes a second to import

    differences = np.round(paired_differences(a, b, "Wilcoxon's test"), DECIMALS)
    differences = differences[differences != 0]
    if not differences.size:
        return 1.0
    ranks: NDArray[np.float64] = stats.rankdata(np.abs(differences))
    if len(ranks) > EXACT_UP_TO:
        return float(stats.wilcoxon(differences, method="asymptotic").pvalue)
    return _exact_p(ranks, positive=float(ranks[differences > 0].sum()))


def _exact_p(ranks: NDArray[np.float64], positive: float) -> float:
    """If signs were coin tosses, how often would the smaller rank sum be as small as it is?

    Tied ranks are halves, so twice a rank is an integer, and the distribution of twice the positive rank sum
    grows by one toss at a time. Its probabilities are multiples of 2^-n and therefore exact in floating point
    up to n = 53.
    """
    steps = np.rint(2 * ranks).astype(np.int64)
    chances = np.ones(1)
    for step in steps:
        tails, heads = np.pad(chances, (0, step)), np.pad(chances, (step, 0))
        chances = (tails + heads) / 2
    doubled = round(2 * positive)
    smaller = min(doubled, int(steps.sum()) - doubled)
    return min(1.0, 2 * float(chances[: smaller + 1].sum()))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust M p-values for M tests (Holm, 1979).

    The i-th smallest becomes max_{j <= i} min(1, (M - j + 1) p_(j)).

    Args:
        p_values: (M,) in [0, 1].

    Returns:
        (M,) in the order given; a hypothesis is rejected at family-wise level alpha where its value is at
        most alpha.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ParameterError(f"The 'p_values' parameter of holm must be a vector of floats in [0, 1]. Got {p} instead.")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted
