"""What language models may cost in a run, told before it starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from readbench.benchmark.protocol import load_task
from readbench.benchmark.runs._budget import parse_budget
from readbench.benchmark.runs._cells import Setup, cell_fingerprint
from readbench.benchmark.runs._folder import RunFolder
from readbench.benchmark.runs._plan import WHOLE, Job, Plan, Shard
from readbench.common.files import cache_root, data_root
from readbench.common.progress import SILENT, Progress
from readbench.engine.llm import ModelOptions, Spending
from readbench.engine.method import Method
from readbench.engine.spec import parse
from readbench.errors import ReadbenchError


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
    models: ModelOptions | None = None,
    progress: Progress = SILENT,
) -> list[Forecast]:
    """What each language model may cost on each dataset; cells that are finished cost nothing.

    Data are built where a method asks a model, and not otherwise. What cannot run is left to its cells to say.

    Args:
        plan: what will run.
        out: the run folder.
        shard: the part of the plan that will run.
        root: data root.
        cache: cache root.
        models: what goes before the profiles of language models.
        progress: told about data that are built.
    """
    folder = RunFolder(out)
    tasks = _Tasks(plan, data_root(root), cache or cache_root(), models or ModelOptions(), progress)
    total: dict[tuple[str, str], Spending] = {}
    for job in shard.of(list(plan.jobs())):
        for model, most in _job_forecasts(job, folder, tasks):
            total[model, job.dataset] = total.get((model, job.dataset), Spending()) + most
    return [Forecast(model, dataset, most) for (model, dataset), most in sorted(total.items())]


class _Tasks:
    """Tasks of a plan; the last one is kept, since jobs of one task stand together."""

    def __init__(self, plan: Plan, root: Path | None, cache: Path, models: ModelOptions, progress: Progress) -> None:
        self.plan, self.root, self.cache, self.models, self.progress = plan, root, cache, models, progress
        self._last: tuple[tuple[str, int], Setup] | None = None

    def of(self, job: Job) -> Setup:
        """The task of a job."""
        key = (job.dataset, job.seed)
        if self._last is None or self._last[0] != key:
            settings = self.plan.composition
            task = load_task(job.dataset, job.seed, self.root, self.cache, settings, self.progress)
            self._last = key, Setup(task, task.fingerprint(), self.cache, self.models)
        return self._last[1]


def _job_forecasts(job: Job, folder: RunFolder, tasks: _Tasks) -> Iterator[tuple[str, Spending]]:
    """Models of a job's method and what each unfinished cell may cost."""
    try:
        if not Method(job.method, models=tasks.models).asks_models:
            return
        setup = tasks.of(job)
        for cell in job.cells():
            budget = parse_budget(cell.labels)
            method = setup.method(budget.widened(parse(cell.method)))
            if folder.finished(cell) != cell_fingerprint(setup, method, cell.rho, budget):
                yield from method.forecasts(setup.task.queries, setup.task.corpus_at(cell.rho))
    except ReadbenchError:  # its cells say so
        return
