"""`readbench cases demo` and `readbench cases bench`: a library to try, and one to measure."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from readbench.bench.library import measure_library
from readbench.cases import DEFAULT_METHOD, CaseLibrary
from readbench.cases.library import facts_of
from readbench.cli.options import Root, output
from readbench.data import Task, load_task
from readbench.data.compose import Composition
from readbench.errors import UsageError
from readbench.paths import cache_root, data_root
from readbench.spec import build_source
from readbench.windows import WindowSet

NEW = 5
"""Windows that a demo leaves beside the library."""


def demo_command(
    where: Annotated[str, typer.Argument(metavar="LIBRARY", help="Where to make the library.")],
    dataset: Annotated[str, typer.Option(help="Any dataset: its train side becomes the library.")] = "sim_tanks",
    cases: Annotated[int, typer.Option(min=1, help="Most cases.")] = 60,
    normals: Annotated[int, typer.Option(min=0, help="Most normal windows.")] = 60,
    new: Annotated[Path, typer.Option(help="Folder for windows of the test side, as CSV.")] = Path("new"),
    root: Root = None,
) -> None:
    """Make a library of simulated or real cases, and new windows to ask it about.

    Example: `readbench cases demo plant --dataset sim_tanks --cases 60`
    """
    if new.exists() and any(new.iterdir()):
        raise UsageError(f"{new} is not empty. Give another folder: --new FOLDER")
    settings = Composition(corpus_cap=cases, query_cap=100, normals_cap=max(1, normals))
    task = load_task(build_source(dataset), seed=0, root=data_root(root), cache=cache_root(), settings=settings)
    library = CaseLibrary.create(where)
    library.add_normals(task.normals[:normals])
    corpus = task.corpus_at(0)
    library.add(corpus, [fact.model_copy(update={"notes": f"From {fact.group}."}) for fact in facts_of(corpus)])
    truths = write_new(task, new)
    output().print(
        f"{where}: {len(corpus)} cases, {min(normals, len(task.normals))} normal windows; {len(truths)} new windows in"
        f" {new}; what they are is in {new / 'truth.json'}",
        highlight=False,
        soft_wrap=True,
    )


def write_new(task: Task, folder: Path) -> dict[str, dict[str, str]]:
    """A window of each of the first faults of the test side as CSV, and what they are as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    _, first = np.unique(task.queries.labels, return_index=True)
    truths = {}
    for number, i in enumerate(np.sort(first)[:NEW].tolist(), start=1):
        name = f"{number}.csv"
        write_csv(task.queries[i : i + 1], folder / name)
        fault, asset = task.queries.classes[task.queries.labels[i]], str(task.queries.assets[i])
        truths[name] = {"fault": fault, "asset": asset}
    (folder / "truth.json").write_text(json.dumps(truths, indent=1))
    return truths


def write_csv(window: WindowSet, path: Path) -> None:
    """One window as a table: a row per step, a column per channel."""
    header = ",".join(["step", *(f'"{name}"' for name in window.channels(0))])
    rows = np.column_stack([np.arange(window.lengths[0]), window.values(0).T])
    np.savetxt(path, rows, fmt="%.7g", delimiter=",", header=header, comments="", encoding="utf-8")


def bench_command(
    cases: Annotated[int, typer.Option(min=1, help="Cases of 8 channels of 256 steps.")] = 100_000,
    queries: Annotated[int, typer.Option(min=1, help="Searches.")] = 20,
    method: Annotated[str, typer.Option(help="Any method of the grammar.")] = DEFAULT_METHOD,
) -> None:
    """Measure a library of synthetic cases: ingest, search, memory, disk. It is made in the cache and removed.

    Example: `readbench cases bench --cases 100000`
    """
    where = cache_root() / "bench-library"
    if where.exists():
        raise UsageError(f"{where} is left from a measurement that was interrupted. Remove it first.")
    print(json.dumps(asdict(measure_library(where, cases, method, queries=queries)), indent=1))  # noqa: T201 - output
