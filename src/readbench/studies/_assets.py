"""Does a method find the fault on another machine? Rankings where whole recordings, or whole assets, are held out.

Every query is kept with its fault type, its recording, and how many of its hits come from its own asset: one asset may
have most of the queries, so a mean over queries says less than the mean over fault types beside it. Differences are to
the first method, paired over the queries of all seeds, whole recordings being drawn together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import evaluate, paired_bootstrap
from readbench.benchmark.protocol import Task
from readbench.benchmark.report import ReportTable
from readbench.benchmark.runs import load_cell_task
from readbench.common.progress import Progress, within
from readbench.engine.method import Method
from readbench.engine.parameters import Parameter
from readbench.engine.vectors import VectorFolder
from readbench.errors import UsageError
from readbench.studies._study import STUDIES, Grid, Row, Study, StudyCell, once

DEPTH = 10
METRICS = (f"NDCG@{DEPTH}", f"HR@{DEPTH}")
CONSTANT = "constant"
"""A probe that knows the most frequent fault type among the queries, and answers it to all: no method can."""
PAIRED = ("ours-dtw", "ours-before", "flagship-window", "flagship")
"""Without labels and with them, each without context and with it."""
PROBES = ("presence", "presence+verdict", "before-level", "before-level+verdict", "stats", "random", CONSTANT)
"""Shortcuts that stand beside them."""
COLUMNS = ("NDCG@10", "macro", "HR@10", "own asset", "difference", "95 % interval")


@dataclass(frozen=True, eq=False)
class AssetResult:
    """What a method found for Q queries.

    Args:
        cell: where; its part is what is held out.
        ndcg: (Q,) NDCG@10.
        hit: (Q,) HR@10.
        hits: (Q,) relevant items among the first ten.
        own: (Q,) those of them that come from the query's own asset.
        faults: (Q,) fault types of the queries.
        groups: (Q,) their recordings.
        assets: (Q,) where they come from.
        has_before: (Q,) which bring the time before them.
    """

    cell: StudyCell
    ndcg: NDArray[np.float64]
    hit: NDArray[np.float64]
    hits: NDArray[np.int64]
    own: NDArray[np.int64]
    faults: NDArray[np.str_]
    groups: NDArray[np.str_]
    assets: NDArray[np.str_]
    has_before: NDArray[np.bool_]

    @classmethod
    def of(cls, cell: StudyCell, row: Row) -> Self:
        """From a row."""
        return cls(cell, **{name: np.array(values) for name, values in row.items()})

    @property
    def macro(self) -> float:
        """NDCG@10, mean over fault types of the mean over their queries."""
        return float(np.mean([self.ndcg[self.faults == fault].mean() for fault in np.unique(self.faults)]))


def add_probes(grid: Grid) -> Grid:
    """The grid, with shortcuts where they are asked for."""
    return replace(grid, methods=tuple(once([*grid.methods, *(PROBES if grid["probes"] else ())])))


def cells_of_splits(dataset: str, method: str, grid: Grid) -> Iterable[StudyCell]:
    """A cell a split, seed and level."""
    for split_by in ("group", "asset") if grid["split_by"] == "both" else (grid["split_by"],):
        for seed in grid.seeds_of(dataset, split_by):
            yield from (StudyCell(dataset, method, seed, rho, split_by) for rho in grid.levels)


def load_split(cell: StudyCell, grid: Grid) -> tuple[Task, str]:
    """The task of a cell, and its fingerprint."""
    return load_cell_task(cell.dataset, cell.seed, grid.setting(split_by=cell.part))


def depends_on(cell: StudyCell, grid: Grid) -> object:
    """The task."""
    return load_split(cell, grid)[1]


def measure_cell(cell: StudyCell, progress: Progress, grid: Grid) -> list[Row]:
    """One row with what was found for each query."""
    task, _ = load_split(cell, grid)
    if cell.method == CONSTANT:
        return [judge_by_asset(task, cell.rho, answer_constantly(task, cell.rho))]
    vectors = VectorFolder(grid.setting().cache)
    method = Method(cell.method, vectors=vectors, progress=within(progress, "encoding"))
    fitted = method.brief(task.info.description).fit(task.corpus_at(cell.rho), task.normals)
    return [judge_by_asset(task, cell.rho, fitted.rank(task.queries, DEPTH).order)]


def answer_constantly(task: Task, rho: int) -> NDArray[np.int64]:
    """(Q, 10) corpus items of the fault type that most queries have, for every query."""
    faults, counts = np.unique(task.queries.labels, return_counts=True)
    first = np.argsort(task.corpus_at(rho).labels != faults[counts.argmax()], kind="stable")[:DEPTH]
    return np.tile(first, (len(task.queries), 1))


def judge_by_asset(task: Task, rho: int, order: NDArray[np.int64]) -> dict[str, list[Any]]:
    """What a ranking (Q, 10) is worth, query by query, and how much of it comes from the query's own asset."""
    corpus, queries = task.corpus_at(rho), task.queries
    values = evaluate(order, queries.labels, corpus.labels, METRICS).values
    top = order[:, :DEPTH]
    relevant = corpus.labels[top] == queries.labels[:, None]
    same = (corpus.assets[top] == queries.assets[:, None]) & (queries.assets != "")[:, None]
    before = np.zeros(len(queries), bool) if queries.context is None else queries.context.has_before
    return {
        "ndcg": values[METRICS[0]].tolist(),
        "hit": values[METRICS[1]].tolist(),
        "hits": relevant.sum(axis=1).tolist(),
        "own": (relevant & same).sum(axis=1).tolist(),
        "faults": [queries.classes[label] for label in queries.labels],
        "groups": queries.groups.tolist(),
        "assets": queries.assets.tolist(),
        "has_before": before.tolist(),
    }


def asset_table(measured: Sequence[AssetResult]) -> ReportTable:
    """One row a dataset, split, level and method; in each block the others are compared with the first."""
    rows: list[list[str]] = []
    rules = []
    for (dataset, split_by, rho), block in groupby(sorted(measured, key=_place), key=_place):
        by_method: dict[str, list[AssetResult]] = {}
        for one in block:
            by_method.setdefault(one.cell.method, []).append(one)
        rules.append(len(rows))
        first = next(iter(by_method.values()))
        for method, own in by_method.items():
            rows.append([dataset, split_by, str(rho), method, *_figures(own), *_difference(own, first)])
    seeds = len({one.cell.seed for one in measured})
    caption = (
        f"Held out by recording and by asset, mean over {seeds} split seed{'s' if seeds > 1 else ''}. macro: NDCG@10,"
        " mean over fault types. own asset: share of the hits that come from the query's own asset. difference: in"
        " NDCG@10, to the first method of the block"
    )
    header = ["Dataset", "Held out", "ρ", "Method", *COLUMNS]
    return ReportTable("assets", caption, header, rows, labels=4, rules=tuple(rules[1:]))


def fault_table(measured: Sequence[AssetResult]) -> ReportTable:
    """NDCG@10 of each fault type over the queries of all seeds; how many, with a time before, from how many assets."""
    methods = once(one.cell.method for one in measured)
    rows = []
    for (dataset, split_by, rho), block in groupby(sorted(measured, key=_place), key=_place):
        results = list(block)
        for fault in dict.fromkeys(name for one in results for name in one.faults.tolist()):
            own = [one for one in results if one.cell.method == methods[0]]
            assets = {asset for one in own for asset in one.assets[one.faults == fault].tolist()}
            count = sum(int((one.faults == fault).sum()) for one in own)
            before = sum(int(one.has_before[one.faults == fault].sum()) for one in own)
            values = [_mean([one for one in results if one.cell.method == method], fault) for method in methods]
            rows.append([dataset, split_by, str(rho), fault, str(count), str(before), str(len(assets)), *values])
    header = ["Dataset", "Held out", "ρ", "Fault", "Queries", "With before", "Assets", *methods]
    return ReportTable("faults", "NDCG@10 by fault type, over the queries of all seeds", header, rows, labels=4)


def _place(one: AssetResult) -> tuple[str, str, int]:
    return one.cell.dataset, one.cell.part, one.cell.rho


def _figures(results: Sequence[AssetResult]) -> list[str]:
    hits, own = (sum(int(getattr(one, name).sum()) for one in results) for name in ("hits", "own"))
    values = (
        np.mean([one.ndcg.mean() for one in results]),
        np.mean([one.macro for one in results]),
        np.mean([one.hit.mean() for one in results]),
        own / hits if hits else float("nan"),
    )
    return [f"{value:.3f}" for value in values]


def _difference(results: Sequence[AssetResult], first: Sequence[AssetResult]) -> list[str]:
    """The mean difference to the first method and its interval; empty for that method, or where seeds are missing."""
    theirs = {one.cell.seed: one for one in first}
    pairs = [(one, theirs[one.cell.seed]) for one in results if one.cell.seed in theirs]
    if results is first or len(pairs) < len(results):
        return ["", ""]
    own, other = (np.concatenate([pair[side].ndcg for pair in pairs]) for side in (0, 1))
    try:
        interval = paired_bootstrap(own, other, seed=0, clusters=np.concatenate([one.groups for one, _ in pairs]))
    except UsageError:  # all queries are of one recording
        return [f"{(own - other).mean():+.3f}", ""]
    return [f"{interval.mean:+.3f}", f"{interval.low:+.3f} to {interval.high:+.3f}"]


def _mean(results: Sequence[AssetResult], fault: str) -> str:
    values = np.concatenate([one.ndcg[one.faults == fault] for one in results]) if results else np.empty(0)
    return f"{values.mean():.3f}" if len(values) else ""


def show_tables(measured: Sequence[AssetResult]) -> list[ReportTable]:
    """Methods, and fault types."""
    return [asset_table(measured), fault_table(measured)]


def show_briefly(measured: Sequence[AssetResult]) -> list[ReportTable]:
    """What has room on a terminal."""
    return [asset_table(measured)]


STUDIES.register(
    Study(
        name="assets",
        summary="Methods with and without context, on machines that the corpus knows and on machines that it does not.",
        measure=measure_cell,
        depends=depends_on,
        cells=cells_of_splits,
        complete=add_probes,
        read=AssetResult.of,
        tables=show_tables,
        shown=show_briefly,
        methods=PAIRED,
        levels=(0, 20),
        settings=(
            Parameter("split_by", str, "both", choices=("both", "group", "asset")),
            Parameter("probes", bool, default=True),
        ),
        metrics=METRICS,
        probes=(CONSTANT,),
    )
)
