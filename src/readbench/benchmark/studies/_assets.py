"""Does a method find the fault on another machine? Rankings where whole recordings, or whole assets, are held out.

Every query is kept with its fault type, its recording, and how many of its hits come from its own asset: one asset may
have most of the queries, so a mean over queries says less than the mean over fault types beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import evaluate
from readbench.benchmark.protocol import SplitUnit, Task
from readbench.benchmark.runs import (
    Executor,
    Plan,
    Setting,
    build_first,
    fingerprint_of,
    load_cell_task,
    take_once,
)
from readbench.benchmark.studies._study import Failure, Rows, SeededCell, Study, measure_results
from readbench.common.progress import SILENT, Progress, within
from readbench.engine.method import Method
from readbench.engine.vectors import VectorFolder

DEPTH = 10
METRICS = (f"NDCG@{DEPTH}", f"HR@{DEPTH}")
CONSTANT = "constant"
"""A probe that knows the most frequent fault type among the queries, and answers it to all: no method can."""


@dataclass(frozen=True)
class AssetCell(SeededCell):
    """A method on one task."""

    split_by: SplitUnit
    rho: int

    @property
    def place(self) -> str:
        """Dataset, what is held out, seed and level."""
        return f"{self.dataset} by {self.split_by} {self.seed} at {self.rho}"


@dataclass(frozen=True, eq=False)
class AssetResult:
    """What a method found for Q queries.

    Args:
        cell: where.
        ndcg: (Q,) NDCG@10.
        hit: (Q,) HR@10.
        hits: (Q,) relevant items among the first ten.
        own: (Q,) those of them that come from the query's own asset.
        faults: (Q,) fault types of the queries.
        groups: (Q,) their recordings.
        assets: (Q,) where they come from.
        has_before: (Q,) which bring the time before them.
    """

    cell: AssetCell
    ndcg: NDArray[np.float64]
    hit: NDArray[np.float64]
    hits: NDArray[np.int64]
    own: NDArray[np.int64]
    faults: NDArray[np.str_]
    groups: NDArray[np.str_]
    assets: NDArray[np.str_]
    has_before: NDArray[np.bool_]

    @classmethod
    def of(cls, cell: AssetCell, row: dict[str, Any]) -> Self:
        """From the row that `measure_assets` keeps."""
        return cls(cell, **{name: np.array(values) for name, values in row.items()})

    @property
    def macro(self) -> float:
        """NDCG@10, mean over fault types of the mean over their queries."""
        return float(np.mean([self.ndcg[self.faults == fault].mean() for fault in np.unique(self.faults)]))


def measure_assets(
    plan: Plan,
    splits: Sequence[SplitUnit],
    out: Path,
    *,
    root: Path | None = None,
    cache: Path | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> tuple[list[AssetResult], Sequence[Failure]]:
    """Rank with the methods of a plan under several splits; finished cells in the folder are kept.

    Args:
        plan: datasets, split seeds, levels and methods.
        splits: what is held out.
        out: folder of the study.
        root: data root.
        cache: cache root.
        executor: where cells are measured; in this process by default.
        progress: told how far it has come.
    """
    setting = Setting.of(plan, out, root, cache)
    build_first(plan.datasets, setting, progress)
    cells = [
        AssetCell(dataset, method, seed, split_by, rho)
        for dataset in plan.datasets
        for split_by in splits
        for seed in take_once(replace(plan, split_by=split_by), setting).seeds_of(dataset)
        for method in plan.methods
        for rho in plan.levels
    ]
    study = Study(cells, partial(identify_cell, setting=setting), partial(measure_cell, setting=setting))
    return measure_results(study, AssetResult.of, out, executor, progress)


def identify_cell(cell: AssetCell, setting: Setting) -> str:
    """Fingerprint of a task and of a method on it."""
    _, task = load_cell_task(cell.dataset, cell.seed, _split(setting, cell))
    if cell.method == CONSTANT:
        return fingerprint_of(answer_constantly, judge_by_asset, spec=None, also=(task, cell.rho))
    method = Method(cell.method)
    return fingerprint_of(judge_by_asset, spec=method.spec, also=(task, cell.rho, *method.content_keys))


def measure_cell(cell: AssetCell, progress: Progress, setting: Setting) -> Rows:
    """In a worker: one row with what was found for each query."""
    task, _ = load_cell_task(cell.dataset, cell.seed, _split(setting, cell))
    if cell.method == CONSTANT:
        return [judge_by_asset(task, cell.rho, answer_constantly(task, cell.rho))]
    method = Method(cell.method, vectors=VectorFolder(setting.cache), progress=within(progress, "encoding"))
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


def _split(setting: Setting, cell: AssetCell) -> Setting:
    return replace(setting, composition=replace(setting.composition, split_by=cell.split_by))
