"""What language models may cost in a run, told before it starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from readbench.data import load_task
from readbench.errors import ReadbenchError
from readbench.experiment.budget import parse_budget
from readbench.experiment.cells import Setup, cell_fingerprint
from readbench.experiment.plan import Job, Plan
from readbench.experiment.runner import Listener
from readbench.experiment.shard import WHOLE, Shard
from readbench.experiment.store import RunStore
from readbench.llm import Spending, split_model
from readbench.paths import cache_root, data_root
from readbench.pipeline import System
from readbench.spec import build_source, parse
from readbench.windows import WindowSet


@runtime_checkable
class Priced(Protocol):
    """A part of a method that asks a language model."""

    model: str

    def forecast(self, queries: WindowSet, corpus: WindowSet) -> Spending:
        """The most that scoring these queries costs."""
        ...


@dataclass(frozen=True)
class Forecast:
    """The most that one model costs on one dataset, where no answer is known yet."""

    model: str
    dataset: str
    most: Spending


def forecasts(
    plan: Plan,
    out: Path,
    *,
    shard: Shard = WHOLE,
    root: Path | None = None,
    cache: Path | None = None,
    listener: Listener | None = None,
) -> list[Forecast]:
    """What each language model may cost on each dataset; cells that are finished cost nothing.

    Data are built where a method asks a model, and not otherwise. What cannot run is left to its cells to say.

    Args:
        plan: what will run.
        out: the run folder.
        shard: the part of the plan that will run.
        root: data root.
        cache: cache root.
        listener: told about data that are built.
    """
    store, tasks = RunStore(out), _Tasks(plan, data_root(root), cache or cache_root(), listener or Listener())
    total: dict[tuple[str, str], Spending] = {}
    for job in shard.of(list(plan.jobs())):
        for model, most in _job_forecasts(job, store, tasks):
            total[model, job.dataset] = total.get((model, job.dataset), Spending()) + most
    return [Forecast(model, dataset, most) for (model, dataset), most in sorted(total.items())]


class _Tasks:
    """Tasks of a plan; the last one is kept, since jobs of one task stand together."""

    def __init__(self, plan: Plan, root: Path | None, cache: Path, listener: Listener) -> None:
        self.plan, self.root, self.cache, self.listener = plan, root, cache, listener
        self._last: tuple[tuple[str, int], Setup] | None = None

    def of(self, job: Job) -> Setup:
        """The task of a job."""
        key = (job.dataset, job.seed)
        if self._last is None or self._last[0] != key:
            task = load_task(
                build_source(job.dataset),
                seed=job.seed,
                root=self.root,
                cache=self.cache,
                settings=self.plan.composition,
                progress=lambda recordings, windows: self.listener.building(job.dataset, recordings, windows),
            )
            self._last = key, Setup(task, task.fingerprint(), self.cache)
        return self._last[1]


def _job_forecasts(job: Job, store: RunStore, tasks: _Tasks) -> Iterator[tuple[str, Spending]]:
    """Models of a job's method and what each unfinished cell may cost."""
    try:
        if not _priced(System(job.method)):
            return
        setup = tasks.of(job)
        for cell in job.cells():
            budget = parse_budget(cell.labels)
            system = System(budget.widened(parse(cell.method)))
            if store.finished(cell) != cell_fingerprint(setup, system, cell.rho, budget):
                yield from _system_forecasts(system, setup, cell.rho)
    except ReadbenchError:  # its cells say so
        return


def _system_forecasts(system: System, setup: Setup, rho: int) -> Iterator[tuple[str, Spending]]:
    system.describe(setup.task.info.description)
    for part in _priced(system):
        yield split_model(part.model)[0], part.forecast(setup.task.queries.anonymous(), setup.task.corpus_at(rho))


def _priced(system: System) -> list[Priced]:
    parts = (*(leg.retriever for leg in system.legs), *system.rerankers)
    return [part for part in parts if isinstance(part, Priced)]
