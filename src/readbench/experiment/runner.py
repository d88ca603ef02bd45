"""Run a plan: build data, execute what is missing, write tables; start again to continue."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from readbench.data import build
from readbench.experiment.execute import CellReport, Executor, Setting, execute
from readbench.experiment.plan import Plan
from readbench.experiment.store import RunStore
from readbench.experiment.version import code_version
from readbench.paths import cache_root, data_root
from readbench.spec import build_source, parse

REFRESH_S = 2.0
"""Least time between two rewrites of the score tables while a run goes on."""


class Listener:
    """What a run tells its caller; override what you need."""

    def building(self, dataset: str, recordings: int, windows: int) -> None:
        """A dataset is being built: so many recordings and windows so far."""

    def encoding(self, leg: str, done: int, total: int) -> None:
        """A leg computes vectors: so many of the windows at hand have theirs."""

    def cell(self, report: CellReport) -> None:
        """A cell has ended."""


@dataclass
class Summary:
    """How a run ended."""

    folder: Path
    computed: int = 0
    reused: int = 0
    failures: list[CellReport] = field(default_factory=list)
    seconds: float = 0.0
    tasks: dict[str, str] = field(default_factory=dict)
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)


def run(
    plan: Plan,
    out: Path,
    *,
    executor: Executor = "local",
    workers: int = 1,
    root: Path | None = None,
    cache: Path | None = None,
    listener: Listener | None = None,
) -> Summary:
    """Run a plan into a folder.

    Cells that are already there and depend on the same data, method and code are kept, so a run that was killed
    continues where it was. A method that raises fails its own cells only.

    Args:
        plan: what to do.
        out: the run folder.
        executor: `local` or `processes`.
        workers: number of processes.
        root: data root.
        cache: cache root.
        listener: told about progress.
    """
    began = time.time()
    listener = listener or Listener()
    setting = Setting(Path(out), cache or cache_root(), data_root(root), plan.composition)
    store = RunStore(setting.folder)
    summary = Summary(setting.folder)
    _build_all(plan, setting, listener)
    refreshed = time.monotonic()
    try:
        for reports in execute(plan.jobs(), setting, executor, workers, listener.encoding):
            for report in reports:
                _count(summary, report)
                listener.cell(report)
            if time.monotonic() - refreshed > REFRESH_S:
                store.write_scores(plan)
                refreshed = time.monotonic()
    finally:
        store.write_tables(plan)
        summary.seconds = time.time() - began
        store.write_manifest(_manifest(plan, setting, executor, summary))
    return summary


def _build_all(plan: Plan, setting: Setting, listener: Listener) -> None:
    """Build all data before any worker needs them; a dataset that cannot be built fails its own cells later."""
    for dataset in plan.datasets:
        try:
            build(build_source(dataset), setting.root, setting.cache, _builder(listener, dataset))
        except Exception:  # noqa: BLE001, S112 - the same error comes back in each of its cells, with its reason
            continue


def _builder(listener: Listener, dataset: str) -> Callable[[int, int], None]:
    def tell(recordings: int, windows: int) -> None:
        listener.building(dataset, recordings, windows)

    return tell


def _count(summary: Summary, report: CellReport) -> None:
    if report.task:
        name = f"{report.cell.dataset}/seed-{report.cell.seed}"
        summary.tasks[name] = report.task
        if report.notes:
            summary.notes[name] = report.notes
    if report.failure:
        summary.failures.append(report)
    elif report.reused:
        summary.reused += 1
    else:
        summary.computed += 1


def _manifest(plan: Plan, setting: Setting, executor: Executor, summary: Summary) -> dict[str, Any]:
    return {
        "plan": asdict(plan),
        "simulated": [d for d in plan.datasets if build_source(d).info.simulated],
        "composition": asdict(setting.composition),
        "code": code_version(),
        "methods": {method: _method_facts(plan, method) for method in plan.methods},
        "tasks": dict(sorted(summary.tasks.items())),
        "notes": dict(sorted(summary.notes.items())),
        "versions": {name: version(name) for name in ("numpy", "scipy", "pyarrow")}
        | {"python": platform.python_version()},
        "machine": {"system": platform.system(), "processor": platform.machine()},
        "executor": executor,
        "cells": {"computed": summary.computed, "reused": summary.reused, "failed": len(summary.failures)},
        "wall_s": round(summary.seconds, 2),
    }


def _method_facts(plan: Plan, method: str) -> dict[str, Any]:
    spec = parse(method)
    return {
        "title": spec.title,
        "family": spec.entries()[0].family,
        "labels": plan.budgets[method],
        "fingerprint": spec.fingerprint(),
    }
