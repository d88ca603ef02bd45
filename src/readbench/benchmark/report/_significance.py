"""Outcomes of the tests between the best method and each other one, in words.

"Better" claims a difference on other data of the same kind and needs both tests over datasets: Wilcoxon's, corrected by
Holm, and an interval over datasets above zero. "Ahead on these queries" needs an interval over split groups above zero.
Anything else is "no difference shown".
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
    """Best minus other at the first level under the last label budget, signed so that larger is better.

    Args:
        best: first complete method of the leaderboard.
        other: method compared with.
        over_queries: difference when queries are resampled.
        over_groups: difference when split groups are resampled; wider, since windows of a run are alike. None with one.
        over_datasets: difference of means when datasets are resampled; None with too few.
        over_real: the same over the real datasets; None also if all or none are real.
        p_value: Wilcoxon signed-rank over datasets, Holm-corrected; NaN if the test cannot reach .05.
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
        """The interval that decides: over groups if there are several, else over queries."""
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
    """The headline of methods on all queries at the first level under the last label budget.

    Args:
        values: (methods, queries), signed so that larger is better.
        datasets: (queries,) dataset of each.
        groups: (queries,) split group of each.
    """

    values: NDArray[np.float64]
    datasets: list[str]
    groups: list[str]

    @property
    def clusters(self) -> list[str]:
        """(queries,) split groups, distinct between datasets."""
        return [f"{dataset}/{group}" for dataset, group in zip(self.datasets, self.groups, strict=True)]


def read_query_values(results: Results, methods: Sequence[str]) -> QueryValues:
    """Values of methods with every cell, queries in plan order."""
    filters = [("rho", "=", results.levels[0]), ("metric", "=", results.headline)]
    table = open_folder(results.folder).read_per_query(filters)
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
    """(methods, methods) Holm-corrected p-values; NaN if the test cannot reach `ALPHA` on any data."""
    pairs = len(methods) * (len(methods) - 1) // 2
    if len(results.datasets) < MIN_DATASETS or smallest_adjusted_p(len(results.datasets), pairs) > ALPHA:
        return np.full((len(methods), len(methods)), np.nan)
    columns = [results.methods.index(method) for method in methods]
    return wilcoxon_holm(results.orient(dataset_scores(results, results.levels[0])[:, columns])).adjusted_p


ALPHA = 0.05
Outcome = Literal["better", "ahead on these queries", "no difference shown"]


def outcome(compared: PairedComparison) -> Outcome:
    """Outcome of a comparison for the best method.

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
    """Friedman's test at one level in words; if significant, with Nemenyi's critical difference."""
    test = tested.test
    differ = test.p_value <= ALPHA
    nemenyi = f"; mean ranks more than {tested.critical_difference:.2f} apart differ (Nemenyi)" if differ else ""
    return (
        f"ρ={tested.rho}%: Friedman χ² = {test.statistic:.2f}, p = {test.p_value:.2g} over {test.datasets} datasets and"
        f" {test.methods} methods ({'some methods differ' if differ else 'no difference shown'}){nemenyi}."
    )
