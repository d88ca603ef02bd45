"""What the tests allow to be said: every sentence about who is ahead is made here, from a test's outcome.

"Better" is a claim about other data of the same kind, so it needs both tests over datasets: Wilcoxon's, corrected by
Holm, and an interval over datasets above zero.
"Ahead on these queries" needs an interval over split groups that leaves out zero. Anything less is no difference shown.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from readbench.evaluate import Interval
from readbench.report.leaderboard import Leaderboard, Significance
from readbench.report.paired import Comparison
from readbench.report.results import Results

ALPHA = 0.05
Outcome = Literal["better", "ahead on these queries", "no difference shown"]


def outcome(compared: Comparison) -> Outcome:
    """What may be said of the first method of a comparison against the other.

    >>> near = Interval(0.01, -0.02, 0.04, 1000, 0.95)
    >>> outcome(Comparison("dtw-i", "euclidean", near, near, None, p_value=0.4))
    'no difference shown'
    """
    datasets = compared.over_datasets
    if datasets and datasets.low > 0 and compared.p_value <= ALPHA:
        return "better"
    return "ahead on these queries" if compared.interval.low > 0 else "no difference shown"


def sentence(results: Results, compared: Comparison) -> str:
    """One comparison in words, with the numbers behind them."""
    best, other = results.title(compared.best), results.title(compared.other)
    unit = "split groups" if compared.over_groups else "queries of one split group"
    numbers = f"{compared.over_queries.mean:+.3f} {bracket(compared.interval)} over {unit}"
    if not np.isnan(compared.p_value):
        numbers += f", p = {compared.p_value:.2g} over datasets"
    words = {
        "better": f"{best} is better than {other}",
        "ahead on these queries": f"{best} is ahead of {other} on these queries, which says nothing of other datasets",
        "no difference shown": f"No difference shown between {best} and {other}",
    }
    return f"{words[outcome(compared)]} ({results.headline} {numbers})."


def bracket(interval: Interval) -> str:
    """An interval in brackets."""
    return f"[{interval.low:+.3f}, {interval.high:+.3f}]"


def friedman_sentences(board: Leaderboard) -> list[str]:
    """Friedman's test at each level in words."""
    if not board.significance:
        return ["Too few datasets or methods for Friedman and Nemenyi (3 of each are needed)."]
    return [friedman_sentence(tested) for tested in board.significance]


def friedman_sentence(tested: Significance) -> str:
    """Friedman's test at one level in words, with Nemenyi's critical difference, which counts only after it."""
    test = tested.test
    differ = test.p_value <= ALPHA
    verdict = "some methods differ" if differ else "no difference shown"
    line = (
        f"ρ={tested.rho}%: Friedman χ² = {test.statistic:.2f}, p = {test.p_value:.2g} over {test.datasets} datasets and"
        f" {test.methods} methods ({verdict})"
    )
    return (
        f"{line}; mean ranks more than {tested.critical_difference:.2f} apart differ (Nemenyi)."
        if differ
        else f"{line}."
    )
