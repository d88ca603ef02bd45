"""Does a method find the fault on another machine? Rankings where whole recordings, or whole assets, are held out.

Every query is kept with its fault type, its recording, and how many of its hits come from its own asset: one asset may
have most of the queries, so a mean over queries says less than the mean over fault types beside it. Differences are to
the first method, paired over the queries of all seeds, whole recordings being drawn together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import evaluate, paired_bootstrap
from readbench.benchmark.protocol import Task
from readbench.benchmark.report import ReportTable
from readbench.common.progress import Progress
from readbench.engine.parameters import Parameter
from readbench.errors import UsageError
from readbench.studies._study import (
    STUDIES,
    Grid,
    Measured,
    Row,
    Study,
    StudyCell,
    count_seeds,
    depends_on_task,
    group_by,
    once,
    tell,
)

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
class AssetResult(Measured):
    """What a method found for Q queries; the part of its cell is what is held out.

    Args:
        ndcg: (Q,) NDCG@10.
        hit: (Q,) HR@10.
        hits: (Q,) relevant items among the first ten.
        own: (Q,) those of them that come from the query's own asset.
        faults: (Q,) fault types of the queries.
        groups: (Q,) their recordings.
        assets: (Q,) where they come from.
        has_before: (Q,) which bring the time before them.
    """

    ndcg: NDArray[np.float64]
    hit: NDArray[np.float64]
    hits: NDArray[np.int64]
    own: NDArray[np.int64]
    faults: NDArray[np.str_]
    groups: NDArray[np.str_]
    assets: NDArray[np.str_]
    has_before: NDArray[np.bool_]

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
        for seed in grid.composed(split_by=split_by).seeds_of(dataset):
            yield from (StudyCell(dataset, method, seed, rho, split_by) for rho in grid.levels)


def depends_on(cell: StudyCell, grid: Grid) -> object:
    """The task."""
    return depends_on_task(cell, grid.composed(split_by=cell.part))


def measure_cell(cell: StudyCell, progress: Progress, grid: Grid) -> list[Row]:
    """One row with what was found for each query."""
    task = grid.composed(split_by=cell.part).task(cell)
    if cell.method == CONSTANT:
        return [judge_by_asset(task, cell.rho, answer_constantly(task, cell.rho))]
    method = grid.method(cell, progress).brief(task.info.description)
    fitted = method.fit(task.corpus_at(cell.rho), task.normals)
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
    rows = []
    for place, block in _by_place(measured):
        by_method = group_by(lambda one: one.cell.method, block)
        first = next(iter(by_method.values()))
        rows += [[*place, method, *_figures(own), *_difference(own, first)] for method, own in by_method.items()]
    caption = (
        f"Held out by recording and by asset, mean over {count_seeds(measured)}. macro: NDCG@10,"
        " mean over fault types. own asset: share of the hits that come from the query's own asset. difference: in"
        " NDCG@10, to the first method of the block"
    )
    return ReportTable("assets", caption, ["Dataset", "Held out", "ρ", "Method", *COLUMNS], rows, labels=4)


def fault_table(measured: Sequence[AssetResult]) -> ReportTable:
    """NDCG@10 of each fault type over the queries of all seeds; how many, with a time before, from how many assets."""
    methods = once(one.cell.method for one in measured)
    rows = []
    for place, block in _by_place(measured):
        own = [one for one in block if one.cell.method == methods[0]]
        for fault in dict.fromkeys(name for one in block for name in one.faults.tolist()):
            count = sum(int((one.faults == fault).sum()) for one in own)
            before = sum(int(one.has_before[one.faults == fault].sum()) for one in own)
            assets = {asset for one in own for asset in one.assets[one.faults == fault].tolist()}
            values = [_mean([one for one in block if one.cell.method == method], fault) for method in methods]
            rows.append([*place, fault, str(count), str(before), str(len(assets)), *tell(values)])
    header = ["Dataset", "Held out", "ρ", "Fault", "Queries", "With before", "Assets", *methods]
    return ReportTable("faults", "NDCG@10 by fault type, over the queries of all seeds", header, rows, labels=4)


def _by_place(measured: Sequence[AssetResult]) -> Iterable[tuple[tuple[str, str, str], list[AssetResult]]]:
    """Results of all methods and seeds by dataset, split and level, in the order of their names."""
    ordered = sorted(measured, key=lambda one: (one.cell.dataset, one.cell.part, one.cell.rho))
    return group_by(lambda one: (one.cell.dataset, one.cell.part, str(one.cell.rho)), ordered).items()


def _figures(results: Sequence[AssetResult]) -> list[str]:
    hits, own = (sum(int(getattr(one, name).sum()) for one in results) for name in ("hits", "own"))
    values = (
        np.mean([one.ndcg.mean() for one in results]),
        np.mean([one.macro for one in results]),
        np.mean([one.hit.mean() for one in results]),
        own / hits if hits else float("nan"),
    )
    return tell(values, "nan")


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


def _mean(results: Sequence[AssetResult], fault: str) -> float:
    values = [value for one in results for value in one.ndcg[one.faults == fault].tolist()]
    return float(np.mean(values)) if values else float("nan")


STUDIES.register(
    Study(
        name="assets",
        summary="Methods with and without context, on machines that the corpus knows and on machines that it does not.",
        measure=measure_cell,
        depends=depends_on,
        cells=cells_of_splits,
        complete=add_probes,
        result=AssetResult,
        tables=(asset_table, fault_table),
        shown=(asset_table,),
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
