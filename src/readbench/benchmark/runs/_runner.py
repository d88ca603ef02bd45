"""Run a plan: build data, execute what is missing, write tables; start again to continue."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from readbench.benchmark.exchange import status_of
from readbench.benchmark.protocol import build, builders_of, find_copies, find_origin, find_source
from readbench.benchmark.runs._cells import provenance_of_cells
from readbench.benchmark.runs._execute import CellReport, Setting, give_up, run_job
from readbench.benchmark.runs._executors import Executor, Local, LostItem
from readbench.benchmark.runs._fingerprint import provenance_of
from readbench.benchmark.runs._folder import RunFolder
from readbench.benchmark.runs._plan import WHOLE, Plan, Shard
from readbench.common.progress import SILENT, Progress, within
from readbench.engine.llm import ModelOptions
from readbench.engine.method import Method
from readbench.engine.spec import parse
from readbench.errors import ReadbenchError
from readbench.version import __version__

REFRESH_S = 2.0
"""Shortest time between two rewrites of the score tables during a run, in seconds."""
REFRESH_SHARE = 20
"""Shortest time between rewrites over the duration of the last one."""


@dataclass
class RunSummary:
    """Result of a run."""

    folder: Path
    computed: int = 0
    reused: int = 0
    failures: list[CellReport] = field(default_factory=list)
    seconds: float = 0.0
    tasks: dict[str, str] = field(default_factory=dict)
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sizes: dict[str, dict[str, Any]] = field(default_factory=dict)


def run(  # noqa: PLR0913 - what a run may be told
    plan: Plan,
    out: Path,
    *,
    executor: Executor | None = None,
    shard: Shard = WHOLE,
    root: Path | None = None,
    cache: Path | None = None,
    models: ModelOptions | None = None,
    progress: Progress = SILENT,
) -> RunSummary:
    """Run a plan into a folder.

    Finished cells with the same data, method and code are kept, so a killed run continues when started again. A method
    that raises fails only its cells.

    Args:
        plan: what to run.
        out: run folder.
        executor: where jobs run; in this process by default. All workers must see the folder.
        shard: part of the plan to run; see `merge`.
        root: data root.
        cache: cache root.
        models: settings that replace those of the profiles of language models.
        progress: called for finished cells, built data and encodings.
    """
    began = time.time()
    executor = executor or Local()
    setting = Setting.of(plan, out, root, cache, models)
    folder = RunFolder(setting.folder)
    summary = RunSummary(Path(out))
    build_first((job.dataset for job in shard.of(list(plan.jobs()))), setting, progress)
    plan = take_once(plan, setting)
    summary.notes |= tell_copies(plan)
    jobs = shard.of(list(plan.jobs()))
    ended, count = 0, sum(len(job.cells()) for job in jobs)
    progress("cells", ended, count)
    due = time.monotonic() + REFRESH_S
    try:
        for job, result in executor.map(partial(run_job, setting=setting), jobs, within(progress, "encoding")):
            for report in give_up(job, setting, result.reason) if isinstance(result, LostItem) else result:
                _count(summary, report)
                ended += 1
                progress("cells", ended, count)
            if (now := time.monotonic()) > due:
                folder.write_scores(plan)
                due = time.monotonic() + max(REFRESH_S, REFRESH_SHARE * (time.monotonic() - now))
    finally:
        folder.write_tables(plan)
        summary.seconds = time.time() - began
        folder.write_manifest(_manifest(plan, executor, shard, setting.root, setting.models, summary))
    return summary


def build_first(datasets: Iterable[str], setting: Setting, progress: Progress) -> None:
    """Build all data before any worker needs them; a dataset that cannot be built fails its cells later."""
    for dataset in dict.fromkeys(datasets):
        try:
            build(dataset, setting.root, setting.cache, progress)
        except Exception:  # noqa: BLE001, S112 - the same error comes back in each of its cells, with its reason
            continue


def take_once(plan: Plan, setting: Setting) -> Plan:
    """The plan without repeated splits; data must be built."""
    found = []
    for dataset in plan.datasets if len(plan.seeds) > 1 else ():
        try:
            built = build(dataset, setting.root, setting.cache)
            copies = find_copies(built, plan.seeds, plan.composition)
        except Exception:  # noqa: BLE001, S112 - the same error comes back in each of its cells, with its reason
            continue
        found += [(dataset, seed, earlier) for seed, earlier in copies.items()]
    return replace(plan, copies=tuple(found))


def tell_copies(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Notes of `run.json` on repeated splits."""
    return {
        f"{dataset}/seed-{seed}": (f"holds out the same as split seed {earlier}, and is taken once",)
        for dataset, seed, earlier in plan.copies
    }


def _count(summary: RunSummary, report: CellReport) -> None:
    if report.task:
        name = f"{report.cell.dataset}/seed-{report.cell.seed}"
        summary.tasks[name] = report.task
        summary.sizes[name] = report.sizes
        if report.notes:
            summary.notes[name] = report.notes
    if report.failure:
        summary.failures.append(report)
    elif report.reused:
        summary.reused += 1
    else:
        summary.computed += 1


def _manifest(
    plan: Plan, executor: Executor, shard: Shard, root: Path | None, models: ModelOptions, summary: RunSummary
) -> dict[str, Any]:
    computed = {job.method: _computed_by(job.method, models) for job in shard.of(list(plan.jobs()))}
    return {
        "plan": asdict(plan),
        "datasets": {dataset: _dataset_facts(dataset, root) for dataset in plan.datasets},
        "composition": asdict(plan.composition),
        "code": _code_version(plan),
        "methods": {method: describe_method(plan, method) for method in plan.methods},
        "computed_by": computed,
        "tasks": dict(sorted(summary.tasks.items())),
        "notes": dict(sorted(summary.notes.items())),
        "sizes": dict(sorted(summary.sizes.items())),
        "versions": _versions(plan, computed),
        "machine": {"system": platform.system(), "processor": platform.machine()},
        "executor": executor.name,
        "shard": str(shard),
        "cells": {"computed": summary.computed, "reused": summary.reused, "failed": len(summary.failures)},
        "wall_s": round(summary.seconds, 2),
    }


def _dataset_facts(dataset: str, root: Path | None) -> dict[str, str]:
    """Facts about a source and the state of its official files."""
    info = find_source(dataset).info
    names = ("title", "domain", "description", "licence", "citation", "url", "split_unit", "asset_unit")
    facts = {name: getattr(info, name) for name in names}
    return facts | {"data_origin": find_origin(dataset, root), "files": status_of(info, root).state}


def describe_method(plan: Plan, method: str) -> dict[str, Any]:
    """Facts about a method in `run.json`."""
    spec = parse(method)
    return {
        "title": spec.title,
        "family": spec.entries()[0].family,
        "labels": plan.budgets[method],
        "fingerprint": spec.fingerprint(),
    }


def _computed_by(method: str, models: ModelOptions) -> dict[str, Any]:
    """Provenance of a method's numbers: code, packages, weights and language models."""
    made_by = provenance_of_cells(parse(method))
    found = {"code": made_by.code.digest, "packages": dict(made_by.packages), "weights": _weights(method)}
    asked = _models(method, models)
    return found | ({"models": asked} if asked else {})


def _models(method: str, models: ModelOptions) -> list[dict[str, Any]]:
    """Language models of a method; empty if they are not configured."""
    try:
        return Method(method, models=models).brief("").model_facts
    except ReadbenchError:
        return []


def _weights(method: str) -> dict[str, str]:
    """Hashes of weight files by encoder; empty if they are not available."""
    try:
        return Method(method).weights
    except Exception:  # noqa: BLE001 - an encoder may fail in any way; its cells say how
        return {}


def _code_version(plan: Plan) -> str:
    """Package version and hash of the code of all methods; equal for parts of a run that may be merged."""
    digests = [provenance_of_cells(parse(method)).code.digest for method in plan.methods]
    return f"{__version__}+{hashlib.sha256(' '.join(digests).encode()).hexdigest()[:12]}"


def _versions(plan: Plan, computed: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Versions of all packages that computed numbers or windows, and of those of every run."""
    found = {"python": platform.python_version(), "pyarrow": version("pyarrow")}
    for dataset in plan.datasets:
        found |= provenance_of(builders_of(find_source(dataset))).packages
    for made_by in computed.values():
        found |= made_by["packages"]
    return dict(sorted(found.items()))
