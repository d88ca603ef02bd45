"""What the tests allow to be said: every sentence about who is ahead is made here, from a test's outcome.

The best method is compared with each other one, on the same queries. "Better" is a claim about other data of the same
kind, so it needs both tests over datasets: Wilcoxon's, corrected by Holm, and an interval over datasets above zero.
"Ahead on these queries" needs an interval over split groups that leaves out zero. Anything less is no difference shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from readbench.benchmark.metrics import (
    MIN_DATASETS,
    ConfidenceInterval,
    bootstrap_datasets,
    paired_bootstrap,
    smallest_adjusted_p,
    wilcoxon_holm,
)
from readbench.benchmark.report._methods import describe
from readbench.benchmark.report._origins import find_real
from readbench.benchmark.report._results import Leaderboard, Results, Significance, dataset_scores
from readbench.benchmark.runs import open_folder


@dataclass(frozen=True)
class PairedComparison:
    """Best minus other at the first level, under the last label budget, signed such that more is better.

    Args:
        best: the first method of the leaderboard that has every cell.
        other: the method compared with.
        over_queries: difference with its interval when queries are drawn anew.
        over_groups: the same when whole split groups are: wider, because windows of one run resemble each other; None
            where there is only one.
        over_datasets: difference of the means over datasets when datasets are drawn anew; None with too few of them.
        over_real: the same over the real datasets alone; None also where the run has only one kind.
        p_value: Wilcoxon signed-rank over datasets, Holm-corrected over all pairs; NaN where
            datasets are so few, and pairs so many, that the test cannot reach .05.
    """

    best: str
    other: str
    over_queries: ConfidenceInterval
    over_groups: ConfidenceInterval | None
    over_datasets: ConfidenceInterval | None
    over_real: ConfidenceInterval | None
    p_value: float

    @property
    def interval(self) -> ConfidenceInterval:
        """The one to judge by: over groups where there are several."""
        return self.over_groups or self.over_queries


def comparisons(results: Results, board: Leaderboard) -> list[PairedComparison]:
    """Compare the first row of the leaderboard with all others that have every cell."""
    complete = [results.methods[m] for m in results.complete()]
    ranked = [row.method for row in board.rows if row.method in complete]
    if len(ranked) < 2:
        return []
    read = read_query_values(results, ranked)
    values, clusters = read.values, read.clusters
    several = len(set(clusters)) > 1
    p_values = _wilcoxon(results, ranked)
    return [
        PairedComparison(
            best=ranked[0],
            other=method,
            over_queries=paired_bootstrap(values[0], values[m], seed=0),
            over_groups=paired_bootstrap(values[0], values[m], seed=0, clusters=clusters) if several else None,
            over_datasets=_over_datasets(results, results.datasets, ranked[0], method),
            over_real=_over_datasets(results, find_real(results.origins), ranked[0], method),
            p_value=float(p_values[0, m]),
        )
        for m, method in enumerate(ranked[1:], start=1)
    ]


@dataclass(frozen=True, eq=False)
class QueryValues:
    """The headline of some methods on all queries at one level, under the last label budget.

    Args:
        values: (methods, queries), signed such that more is better.
        datasets: (queries,) dataset of each.
        groups: (queries,) split group of each.
    """

    values: NDArray[np.float64]
    datasets: list[str]
    groups: list[str]

    @property
    def clusters(self) -> list[str]:
        """Split groups, told apart between datasets."""
        return [f"{dataset}/{group}" for dataset, group in zip(self.datasets, self.groups, strict=True)]


def read_query_values(results: Results, methods: Sequence[str], rho: int | None = None) -> QueryValues:
    """Values of methods that have every cell; rows stand in plan order throughout.

    Args:
        results: of a run.
        methods: canonical texts.
        rho: the level; the first by default.
    """
    level = results.levels[0] if rho is None else rho
    table = open_folder(results.folder).read_per_query([("rho", "=", level), ("metric", "=", results.headline)])
    rows = []
    for method in methods:
        here = pc.equal(table["method"].cast("string"), method)
        under = pc.equal(table["labels"].cast("string"), results.budgets(method)[-1])
        own = table.filter(pc.and_(here, under))
        rows.append(own["value"].to_numpy())
    return QueryValues(results.orient(np.stack(rows)), own["dataset"].to_pylist(), own["group"].to_pylist())


def _over_datasets(results: Results, datasets: Sequence[str], best: str, other: str) -> ConfidenceInterval | None:
    scores = results.orient(dataset_scores(results, results.levels[0]))[list(map(results.datasets.index, datasets))]
    return bootstrap_datasets(*(scores[:, results.methods.index(method)] for method in (best, other)), seed=0)


def _wilcoxon(results: Results, methods: list[str]) -> NDArray[np.float64]:
    """Holm-corrected p-values; NaN where the test cannot reach `ALPHA`, whatever the data say."""
    pairs = len(methods) * (len(methods) - 1) // 2
    if len(results.datasets) < MIN_DATASETS or smallest_adjusted_p(len(results.datasets), pairs) > ALPHA:
        return np.full((len(methods), len(methods)), np.nan)
    columns = [results.methods.index(method) for method in methods]
    return wilcoxon_holm(results.orient(dataset_scores(results, results.levels[0])[:, columns])).adjusted_p


ALPHA = 0.05
Outcome = Literal["better", "ahead on these queries", "no difference shown"]


def outcome(compared: PairedComparison) -> Outcome:
    """What may be said of the first method of a comparison against the other.

    >>> near = ConfidenceInterval(0.01, -0.02, 0.04, 1000, 0.95)
    >>> outcome(PairedComparison("dtw-i", "euclidean", near, near, None, None, p_value=0.4))
    'no difference shown'
    """
    datasets = compared.over_datasets
    if datasets and datasets.low > 0 and compared.p_value <= ALPHA:
        return "better"
    return "ahead on these queries" if compared.interval.low > 0 else "no difference shown"


def sentence(results: Results, compared: PairedComparison) -> str:
    """One comparison in words, with the numbers behind them."""
    best, other = results.title(compared.best), results.title(compared.other)
    unit = "split groups" if compared.over_groups else "queries of one split group"
    numbers = f"{compared.over_queries.mean:+.3f} {bracket(compared.interval)} over {unit}"
    if not np.isnan(compared.p_value):
        numbers += f", p = {compared.p_value:.2g} over datasets"
    if compared.over_datasets:
        mean = compared.over_datasets.mean
        numbers += f"; mean over {describe(results)} {mean:+.3f} {bracket(compared.over_datasets)}"
    words = {
        "better": f"{best} is better than {other}",
        "ahead on these queries": f"{best} is ahead of {other} on these queries, which says nothing of other datasets",
        "no difference shown": f"No difference shown between {best} and {other}",
    }
    return f"{words[outcome(compared)]} ({results.headline} {numbers})."


def bracket(interval: ConfidenceInterval) -> str:
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
