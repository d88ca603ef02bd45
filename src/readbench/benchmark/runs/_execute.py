"""Execution of one job: its task, its cells and their reports."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from readbench.benchmark.protocol import Composition, Task, composition_row, load_task
from readbench.benchmark.runs._budget import Budget, parse_budget
from readbench.benchmark.runs._cells import Outcome, Setup, cell_fingerprint, judge, rank_level
from readbench.benchmark.runs._folder import TRANSCRIPTS, RunFolder
from readbench.benchmark.runs._plan import Cell, Job, Plan
from readbench.common.files import cache_root, data_root
from readbench.common.progress import SILENT, Progress
from readbench.common.sharing import one_thread_for_products
from readbench.engine.llm import ModelOptions, explain_silence
from readbench.engine.method import Method, Ranking
from readbench.engine.spec import parse
from readbench.errors import RunError

Compute = Callable[[Setup, Method, int, Budget], Ranking]
"""From a method on a task, at one level and under one label budget, to its ranking."""


@dataclass(frozen=True)
class Setting:
    """Settings that all jobs of a run share."""

    folder: Path
    cache: Path
    root: Path | None
    composition: Composition
    models: ModelOptions = field(default_factory=ModelOptions)

    @classmethod
    def of(
        cls,
        plan: Plan,
        out: Path,
        root: Path | None = None,
        cache: Path | None = None,
        models: ModelOptions | None = None,
    ) -> Setting:
        """Settings of a run with absolute paths; creates the run folder."""
        data, folder = data_root(root), Path(out).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        cached = (cache or cache_root()).absolute()
        asked = replace(models or ModelOptions(), transcripts=str(folder / TRANSCRIPTS))
        return cls(folder, cached, data and data.absolute(), plan.composition, asked)


@dataclass(frozen=True)
class CellReport:
    """Result of one cell: computed, `reused` or failed; with fingerprint, notes and sizes of its task."""

    cell: Cell
    failure: str = ""
    reused: bool = False
    task: str = ""
    notes: tuple[str, ...] = ()
    sizes: dict[str, Any] = field(default_factory=dict)


def run_job(job: Job, progress: Progress, setting: Setting) -> list[CellReport]:
    """Compute and store the unfinished cells of a job.

    One linear-algebra thread per job, so that results do not depend on the number of parallel jobs.
    """
    if not setting.folder.is_dir():
        raise RunError(
            f"{platform.node()} does not see the run folder {setting.folder}. Put it on storage that all nodes mount"
            " at the same place, or run parts (--shard) and merge them."
        )
    return _run_job(job, progress, setting, rank_level)


def give_up(job: Job, setting: Setting, reason: str) -> list[CellReport]:
    """Fail the unfinished cells of a job."""

    def refuse(*_: object) -> NoReturn:
        raise RunError(reason)

    return _run_job(job, SILENT, setting, refuse)


def _run_job(job: Job, progress: Progress, setting: Setting, compute: Compute) -> list[CellReport]:
    folder = RunFolder(setting.folder)
    try:
        setup = Setup(*load_cell_task(job.dataset, job.seed, setting), setting.cache, setting.models)
        folder.keep_qrels(job.dataset, setup.task, setup.fingerprint)
    except Exception as error:  # noqa: BLE001 - reported in the table, the other jobs go on
        return [_fail(folder, cell, "", error) for cell in job.cells()]
    known = _Fingerprints(setup)
    reports = [_run_cell(cell, folder, setup, progress, compute, known) for cell in job.cells()]
    sizes = _sizes(setup.task)
    return [replace(report, task=setup.fingerprint, notes=setup.task.notes, sizes=sizes) for report in reports]


class _Fingerprints:
    """Fingerprints of the cells of one method, which is built once for all levels."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._methods: dict[str, Method] = {}

    def of(self, cell: Cell) -> str:
        """Fingerprint of a cell; raises if its method cannot be built."""
        budget = parse_budget(cell.labels)
        if cell.labels not in self._methods:
            self._methods[cell.labels] = self._setup.method(budget.widened(parse(cell.method)))
        return cell_fingerprint(self._setup, self._methods[cell.labels], cell.rho, budget)


def _run_cell(
    cell: Cell, folder: RunFolder, setup: Setup, progress: Progress, compute: Compute, known: _Fingerprints
) -> CellReport:
    fingerprint = ""
    try:
        fingerprint = known.of(cell)
        if folder.finished(cell) == fingerprint:
            return CellReport(cell, reused=True)
        budget = parse_budget(cell.labels)
        method = setup.method(budget.widened(parse(cell.method)), progress)
        with one_thread_for_products():
            ranking = compute(setup, method, cell.rho, budget)
            if silence := explain_silence(ranking.usage):  # no result, but what it took is kept
                folder.save(Outcome(cell, fingerprint, usage=ranking.usage, failure=silence))
                return CellReport(cell, failure=silence)
            folder.save(judge(cell, fingerprint, setup.task, ranking))
    except Exception as error:  # noqa: BLE001 - reported in the table, the other cells go on
        return _fail(folder, cell, fingerprint, error)
    return CellReport(cell)


def _fail(folder: RunFolder, cell: Cell, fingerprint: str, error: Exception) -> CellReport:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    folder.save(Outcome(cell, fingerprint, failure=reason))
    return CellReport(cell, failure=reason)


@lru_cache(maxsize=2)
def _sizes(task: Task) -> dict[str, Any]:
    """Composition of a task, cached."""
    return composition_row(task)


@lru_cache(maxsize=2)
def load_cell_task(dataset: str, seed: int, setting: Setting) -> tuple[Task, str]:
    """A task and its fingerprint, cached."""
    task = load_task(dataset, seed, setting.root, setting.cache, setting.composition)
    return task, task.fingerprint()
