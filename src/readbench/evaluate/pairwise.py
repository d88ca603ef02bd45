"""Two methods at a time: Wilcoxon's signed-rank test, and all pairs of methods with Holm's correction.

Unlike Nemenyi's test, the verdict on a pair does not depend on which other methods were ranked between the
two, only the correction for their number does (Benavoli, Corani and Mangili, JMLR 17, 2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.errors import ParameterError
from readbench.evaluate.checks import DECIMALS, paired, require_probability, score_table
from readbench.evaluate.significance import cliques, mean_ranks

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
        """The bars of a critical-difference diagram; see `readbench.evaluate.cliques`."""
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
    from scipy.stats import rankdata  # noqa: PLC0415 - scipy.stats takes a second to import

    differences = np.round(paired(a, b, "Wilcoxon's test"), DECIMALS)
    differences = differences[differences != 0]
    if not differences.size:
        return 1.0
    ranks: NDArray[np.float64] = rankdata(np.abs(differences))
    if len(ranks) > EXACT_UP_TO:
        return _normal_p(differences)
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


def _normal_p(differences: NDArray[np.float64]) -> float:
    from scipy import stats  # noqa: PLC0415 - scipy.stats takes a second to import

    return float(stats.wilcoxon(differences, method="asymptotic").pvalue)


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
