"""Where jobs run: in this process, or in several."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from threading import Thread
from typing import Literal

from readbench.data import Composition, Task, load_task
from readbench.experiment.budget import parse_budget
from readbench.experiment.cells import Outcome, Setup, cell_fingerprint, judge, scored_level
from readbench.experiment.plan import Cell, Job
from readbench.experiment.store import RunStore
from readbench.pipeline import Encoding, System
from readbench.spec import build_source, parse

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


def execute(
    jobs: Iterable[Job], setting: Setting, executor: Executor, workers: int, encoding: Encoding
) -> Iterator[list[CellReport]]:
    """Run all jobs and yield the reports of each as it ends (with `processes`, in any order).

    Args:
        jobs: what to do.
        setting: what they share.
        executor: where.
        workers: number of processes.
        encoding: told how far encodings have come, from whichever process.
    """
    jobs = list(jobs)
    if executor == "local":
        for job in jobs:
            yield run_job(job, setting, encoding)
        return
    context = multiprocessing.get_context("spawn")
    threads = max(1, (os.cpu_count() or 1) // workers)
    news: SimpleQueue[News] = context.SimpleQueue()
    with (
        _passed_on(news, encoding),
        ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare, initargs=(threads, news)) as pool,
    ):
        futures = [pool.submit(_run_in_worker, job, setting) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


News = tuple[str, int, int] | None
"""How far an encoding in another process has come; None at the end of the run."""
_worker_news: list[SimpleQueue[News]] = []
"""In a worker: where its news go."""


@contextmanager
def _passed_on(news: SimpleQueue[News], encoding: Encoding) -> Iterator[None]:
    """Tell what the workers tell, until the block ends."""

    def listen() -> None:
        while (item := news.get()) is not None:
            encoding(*item)

    thread = Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield
    finally:
        news.put(None)
        thread.join()


def _prepare(threads: int, news: SimpleQueue[News]) -> None:
    """In a worker: share the processors, unless the user said how many threads to use, and know where news go."""
    os.environ.setdefault("READBENCH_THREADS", str(threads))
    _worker_news.append(news)


def _run_in_worker(job: Job, setting: Setting) -> list[CellReport]:
    return run_job(job, setting, lambda leg, done, total: _worker_news[0].put((leg, done, total)))


def run_job(job: Job, setting: Setting, encoding: Encoding) -> list[CellReport]:
    """Compute and store the cells of a job that are not there yet.

    One linear-algebra thread per job: results then do not depend on how many jobs run beside it.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import, needed only here

    store = RunStore(setting.folder)
    with threadpool_limits(1):
        try:
            setup = Setup(*_task(job.dataset, job.seed, setting), setting.cache)
        except Exception as error:  # noqa: BLE001 - reported in the table, the other jobs go on
            return [_failed(store, cell, "", error) for cell in job.cells()]
        reports = [_run_cell(cell, store, setup, encoding) for cell in job.cells()]
    return [replace(report, task=setup.fingerprint, notes=setup.task.notes) for report in reports]


def _run_cell(cell: Cell, store: RunStore, setup: Setup, encoding: Encoding) -> CellReport:
    fingerprint = ""
    try:
        budget = parse_budget(cell.labels)
        system = System(budget.widened(parse(cell.method)), setup.cache, encoding)
        fingerprint = cell_fingerprint(setup, system, cell.rho, budget)
        if store.finished(cell) == fingerprint:
            return CellReport(cell, reused=True)
        scored = scored_level(setup, system, cell.rho, budget)
        store.save(judge(cell, fingerprint, setup.task, scored))
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
