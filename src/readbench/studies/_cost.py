"""What a method costs: seconds of a processor for one task, from nothing.

The times in the rows of a run cannot be compared: cells share vectors and scores, and other work runs beside them. Here
each method fits the corpus of one task and ranks its queries alone, on one thread, with an empty cache, after a small
task has compiled what it needs. Processor time counts, so other work on the machine hardly matters.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from readbench.benchmark.protocol import Task
from readbench.benchmark.report import ReportTable
from readbench.benchmark.runs import MethodCost, open_folder, write_costs
from readbench.common.progress import Progress
from readbench.engine.method import Method
from readbench.engine.parameters import Parameter
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError
from readbench.studies._study import STUDIES, Grid, Measured, Row, Study, StudyCell, depends_on_task

THINNED = 25
"""Of the small task before: every so many windows."""


@dataclass(frozen=True)
class CostResult(Measured):
    """Seconds of a processor for a task, which is said in words."""

    task: str
    cpu_s: float


def take_methods(grid: Grid) -> Grid:
    """The grid; where a run is set and no method is named, with the methods of the run."""
    planned = open_folder(Path(grid["run"])).read_manifest()["plan"]["methods"] if grid["run"] else ()
    return grid if grid.methods else replace(grid, methods=tuple(planned))


def cells_alone(dataset: str, method: str, grid: Grid) -> list[StudyCell]:  # noqa: ARG001 - it is the same in all
    """One cell."""
    return [StudyCell(dataset, method)]


def depends_on(cell: StudyCell, grid: Grid) -> object:
    """The task; methods that ask a language model are refused."""
    if Method(cell.method).asks_models:
        raise UsageError(f"{cell.method} asks a language model: usage.csv of a run has its cost.")
    return depends_on_task(cell, grid)


def measure_cell(cell: StudyCell, progress: Progress, grid: Grid) -> list[Row]:  # noqa: ARG001 - nothing may be told
    """One row."""
    task = grid.task(cell)
    corpus = task.corpus_at(0)
    with TemporaryDirectory() as empty, _variables(READBENCH_CACHE=empty, READBENCH_THREADS="1"):
        spend(cell.method, corpus[::THINNED], task.normals[::THINNED], task.queries[::THINNED])
        began = time.process_time()
        spend(cell.method, corpus, task.normals, task.queries)
        return [{"task": _tell_size(cell.dataset, task), "cpu_s": time.process_time() - began}]


def spend(method: str, corpus: WindowSet, normals: WindowSet, queries: WindowSet) -> None:
    """What is measured."""
    Method(method).fit(corpus, normals).rank(queries)


def _tell_size(dataset: str, task: Task) -> str:
    cases = task.corpus_at(0)
    size = f"{cases.channel_counts.max()} x {cases.lengths.max()}"
    return f"{dataset}: {len(task.queries)} queries, {len(cases)} cases of {size}, {len(task.normals)} normals"


@contextmanager
def _variables(**values: str) -> Iterator[None]:
    """Variables of the environment, for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def cost_table(measured: Sequence[CostResult]) -> ReportTable:
    """Methods from the cheapest on."""
    rows = [[one.cell.method, f"{one.cpu_s:.3g}"] for one in sorted(measured, key=lambda one: one.cpu_s)]
    return ReportTable("cost", measured[0].task, ["Method", "Processor seconds"], rows, labels=1)


def keep_costs(measured: Sequence[CostResult], grid: Grid) -> None:
    """Write `costs.csv` beside the run: its reports then show these seconds."""
    if grid["run"]:
        write_costs(Path(grid["run"]), [MethodCost(one.cell.method, one.task, one.cpu_s) for one in measured])


STUDIES.register(
    Study(
        name="cost",
        summary="Processor seconds of one task, on one thread, with nothing remembered; run= names a run to keep them.",
        measure=measure_cell,
        depends=depends_on,
        cells=cells_alone,
        complete=take_methods,
        finish=keep_costs,
        result=CostResult,
        tables=(cost_table,),
        datasets=("sim_ecg",),
        axes=("datasets", "methods"),
        single=("datasets",),
        settings=(Parameter("run", str, ""),),
        alone=True,
    )
)
