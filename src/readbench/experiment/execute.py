"""Where jobs run: in this process, or in several."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from readbench.data import Composition, Task, load_task
from readbench.experiment.cells import Outcome, cell_fingerprint, judge, scored_level
from readbench.experiment.plan import Cell, Job
from readbench.experiment.store import RunStore
from readbench.pipeline import System
from readbench.spec import build_source

Executor = Literal["local", "processes"]


@dataclass(frozen=True)
class Setting:
    """What every job of a run shares."""

    folder: Path
    cache: Path
    root: Path | None
    composition: Composition


@dataclass(frozen=True)
class CellReport:
    """What happened to one cell: computed, already there (`reused`), or failed for a reason.

    `task` is the fingerprint of its task and `notes` what the task's build had to say.
    """

    cell: Cell
    failure: str = ""
    reused: bool = False
    task: str = ""
    notes: tuple[str, ...] = ()


def execute(jobs: Iterable[Job], setting: Setting, executor: Executor, workers: int) -> Iterator[list[CellReport]]:
    """Run all jobs and yield the reports of each as it ends (with `processes`, in any order)."""
    jobs = list(jobs)
    if executor == "local":
        for job in jobs:
            yield run_job(job, setting)
        return
    context = multiprocessing.get_context("spawn")
    threads = max(1, (os.cpu_count() or 1) // workers)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_limit_threads, initargs=(threads,)) as pool:
        futures = [pool.submit(run_job, job, setting) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _limit_threads(count: int) -> None:
    """Share the processors among the workers, unless the user said how many threads to use."""
    os.environ.setdefault("READBENCH_THREADS", str(count))


def run_job(job: Job, setting: Setting) -> list[CellReport]:
    """Compute and store the cells of a job that are not there yet.

    One linear-algebra thread per job: results then do not depend on how many jobs run beside it.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import, needed only here

    store = RunStore(setting.folder)
    with threadpool_limits(1):
        try:
            task, task_fingerprint = _task(job.dataset, job.seed, setting)
            system = System(job.method, setting.cache)
        except Exception as error:  # noqa: BLE001 - reported in the table, the other jobs go on
            return [_failed(store, cell, "", error) for cell in job.cells()]
        reports = [_run_cell(cell, store, task, task_fingerprint, system, setting.cache) for cell in job.cells()]
    return [replace(report, task=task_fingerprint, notes=task.notes) for report in reports]


def _run_cell(
    cell: Cell, store: RunStore, task: Task, task_fingerprint: str, system: System, cache: Path
) -> CellReport:
    fingerprint = cell_fingerprint(task_fingerprint, system.spec, cell.rho)
    if store.finished(cell) == fingerprint:
        return CellReport(cell, reused=True)
    try:
        scored = scored_level(task, task_fingerprint, system, cell.rho, cache)
        store.save(judge(cell, fingerprint, task, scored))
    except Exception as error:  # noqa: BLE001 - reported in the table, the other cells go on
        return _failed(store, cell, fingerprint, error)
    return CellReport(cell)


def _failed(store: RunStore, cell: Cell, fingerprint: str, error: Exception) -> CellReport:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    store.save(Outcome(cell, fingerprint, failure=reason))
    return CellReport(cell, failure=reason)


@lru_cache(maxsize=2)
def _task(dataset: str, seed: int, setting: Setting) -> tuple[Task, str]:
    source = build_source(dataset)
    task = load_task(source, seed=seed, root=setting.root, cache=setting.cache, settings=setting.composition)
    return task, task.fingerprint()
