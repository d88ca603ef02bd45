"""Forecast of the cost of language models, before a run starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from readbench.benchmark.protocol import build
from readbench.benchmark.runs._budget import parse_budget
from readbench.benchmark.runs._cells import Setup, cell_fingerprint
from readbench.benchmark.runs._execute import Setting, load_cell_task
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
    """The most that one model costs on one dataset without cached answers."""

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
    """The most that each language model costs on each dataset; finished cells cost nothing.

    Only datasets of methods that ask a model are built, with `progress`. `models` replaces settings of the profiles.
    Methods that cannot run are skipped; their cells report the error.
    """
    setting = Setting(Path(out), cache or cache_root(), data_root(root), plan.composition, models or ModelOptions())
    total: dict[tuple[str, str], Spending] = {}
    for job in shard.of(list(plan.jobs())):
        for model, most in _job_forecasts(job, setting, progress):
            total[model, job.dataset] = total.get((model, job.dataset), Spending()) + most
    return [Forecast(model, dataset, most) for (model, dataset), most in sorted(total.items())]


def _job_forecasts(job: Job, setting: Setting, progress: Progress) -> Iterator[tuple[str, Spending]]:
    """Models of a job's method and the most that each unfinished cell costs."""
    try:
        if not Method(job.method, models=setting.models).asks_models:
            return
        build(job.dataset, setting.root, setting.cache, progress)
        setup = Setup(*load_cell_task(job.dataset, job.seed, setting), setting.cache, setting.models)
        for cell in job.cells():
            budget = parse_budget(cell.labels)
            method = setup.method(budget.widened(parse(cell.method)))
            if RunFolder(setting.folder).finished(cell) != cell_fingerprint(setup, method, cell.rho, budget):
                yield from method.forecasts(setup.task.queries, setup.task.corpus_at(cell.rho))
    except ReadbenchError:  # its cells say so
        return
