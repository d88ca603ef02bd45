"""The best method against each other one, on the same queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from readbench.evaluate import Interval, paired_bootstrap, wilcoxon_holm
from readbench.report.leaderboard import MIN_DATASETS, Leaderboard, dataset_scores
from readbench.report.results import Results


@dataclass(frozen=True)
class Comparison:
    """Best minus other at the first level, under the last label budget, signed such that more is better.

    Args:
        best: the first method of the leaderboard that has every cell.
        other: the method compared with.
        over_queries: difference with its interval when queries are drawn anew.
        over_groups: the same when whole split groups are: wider, because windows of one run resemble each other; None
            where there is only one.
        over_datasets: difference of the means over datasets when datasets are drawn anew; None with too few of them.
        p_value: Wilcoxon signed-rank over datasets, Holm-corrected over all pairs; NaN with too few datasets.
    """

    best: str
    other: str
    over_queries: Interval
    over_groups: Interval | None
    over_datasets: Interval | None
    p_value: float

    @property
    def interval(self) -> Interval:
        """The one to judge by: over groups where there are several."""
        return self.over_groups or self.over_queries


def comparisons(results: Results, board: Leaderboard) -> list[Comparison]:
    """Compare the first row of the leaderboard with all others that have every cell."""
    complete = [results.methods[m] for m in results.complete()]
    ranked = [row.method for row in board.rows if row.method in complete]
    if len(ranked) < 2:
        return []
    values, clusters = _per_query(results, ranked)
    several = len(set(clusters)) > 1
    p_values = _wilcoxon(results, ranked)
    return [
        Comparison(
            best=ranked[0],
            other=method,
            over_queries=paired_bootstrap(values[0], values[m], seed=0),
            over_groups=paired_bootstrap(values[0], values[m], seed=0, clusters=clusters) if several else None,
            over_datasets=_over_datasets(results, ranked[0], method),
            p_value=float(p_values[0, m]),
        )
        for m, method in enumerate(ranked[1:], start=1)
    ]


def _per_query(results: Results, methods: list[str]) -> tuple[NDArray[np.float64], list[str]]:
    """(methods, queries) oriented headline and each query's split group; rows stand in plan order throughout."""
    filters = [("rho", "=", results.levels[0]), ("metric", "=", results.headline)]
    table = pq.read_table(results.folder / "per_query.parquet", filters=filters)
    rows = []
    for method in methods:
        here = pc.equal(table["method"].cast("string"), method)
        under = pc.equal(table["labels"].cast("string"), results.budgets(method)[-1])
        own = table.filter(pc.and_(here, under))
        rows.append(own["value"].to_numpy())
    pairs = zip(own["dataset"].to_pylist(), own["group"].to_pylist(), strict=True)
    return results.orient(np.stack(rows)), [f"{dataset}/{group}" for dataset, group in pairs]


def _over_datasets(results: Results, best: str, other: str) -> Interval | None:
    if len(results.datasets) < MIN_DATASETS:
        return None
    scores = results.orient(dataset_scores(results, results.levels[0]))
    return paired_bootstrap(*(scores[:, results.methods.index(method)] for method in (best, other)), seed=0)


def _wilcoxon(results: Results, methods: list[str]) -> NDArray[np.float64]:
    if len(results.datasets) < MIN_DATASETS:
        return np.full((len(methods), len(methods)), np.nan)
    columns = [results.methods.index(method) for method in methods]
    return wilcoxon_holm(results.orient(dataset_scores(results, results.levels[0])[:, columns])).adjusted_p
