"""Many methods on many datasets: the Friedman test and Nemenyi's post-hoc test.

Both look only at how the methods rank on each dataset, so datasets of very different difficulty count alike.
They are used as J. Demšar recommends in "Statistical Comparisons of Classifiers over Multiple Data Sets",
JMLR 7 (2006). SciPy is imported inside the functions, so that importing this module is cheap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.errors import ParameterError
from readbench.evaluate.checks import require_probability, score_table


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
        """The bars of a critical-difference diagram; see `cliques`."""
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
