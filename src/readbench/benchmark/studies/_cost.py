"""What a method costs: seconds of a processor for one task, from nothing.

The times in the rows of a run cannot be compared: cells share vectors and scores, and other work runs beside them. Here
each method fits the corpus of one task and ranks its queries alone, on one thread, with an empty cache, after a small
task has compiled what it needs. Processor time counts, so other work on the machine hardly matters.
"""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from readbench.benchmark.protocol import Task, load_task
from readbench.benchmark.runs import fingerprint_of
from readbench.benchmark.studies._study import Failure, MethodCell, Rows, Study, measure_results
from readbench.common.files import cache_root, data_root, write_text
from readbench.common.progress import SILENT, Progress
from readbench.engine.method import Method
from readbench.engine.windows import WindowSet
from readbench.errors import RunError, UsageError

COSTS = "costs.csv"
"""Beside the rows of a run, or published ones, whose methods were measured."""
COST_TASK = "sim_ecg"
"""Ships with the package, so that anyone can measure."""
THINNED = 25
"""Of the small task before: every so many windows."""


@dataclass(frozen=True)
class MethodCost:
    """What one method costs.

    Args:
        method: canonical text.
        task: of what size, in words.
        cpu_s: seconds of a processor to fit the corpus and rank all queries.
    """

    method: str
    task: str
    cpu_s: float


def measure_costs(
    methods: Sequence[str],
    out: Path,
    dataset: str = COST_TASK,
    *,
    root: Path | None = None,
    progress: Progress = SILENT,
) -> tuple[list[MethodCost], Sequence[Failure]]:
    """Measure methods one after the other; finished ones in the folder are kept.

    Args:
        methods: canonical texts.
        out: folder of the study.
        dataset: its split of seed 0 without normals in the corpus is the task.
        root: data root.
        progress: told how far it has come.
    """
    data, cached = data_root(root), cache_root()
    cells = [MethodCell(dataset, method) for method in methods]
    study = Study(cells, partial(_identify, root=data, cache=cached), partial(_measure, root=data, cache=cached))
    return measure_results(study, lambda cell, row: MethodCost(cell.method, **row), out, None, progress)


def read_costs(folder: Path) -> dict[str, MethodCost]:
    """Method -> what it costs, as measured beside a run; empty where nothing was."""
    path = folder / COSTS
    if not path.exists():
        return {}
    try:
        rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
        return {row["method"]: MethodCost(row["method"], row["task"], float(row["cpu_s"])) for row in rows}
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path} is damaged ({error}). Remove it, and measure again: readbench cost {folder}") from error


def write_costs(folder: Path, costs: Iterable[MethodCost]) -> Path:
    """Write them beside a run; those of other methods stay, if they are of the same task."""
    own = list(costs)
    kept = [one for one in read_costs(folder).values() if all(one.task == other.task for other in own)]
    joined = {one.method: one for one in (*kept, *own)}
    text = io.StringIO()
    table = csv.DictWriter(text, [field.name for field in fields(MethodCost)], lineterminator="\n")
    table.writeheader()
    table.writerows(asdict(one) | {"cpu_s": f"{one.cpu_s:.4g}"} for one in joined.values())
    write_text(folder / COSTS, text.getvalue())
    return folder / COSTS


def _identify(cell: MethodCell, root: Path | None, cache: Path) -> str:
    method = Method(cell.method)
    if method.asks_models:
        raise UsageError(f"{cell.method} asks a language model: usage.csv of a run has its cost.")
    task = load_task(cell.dataset, 0, root, cache)
    return fingerprint_of(_spend, spec=method.spec, also=(task.fingerprint(), *method.content_keys))


def _measure(cell: MethodCell, progress: Progress, root: Path | None, cache: Path) -> Rows:  # noqa: ARG001
    """One row."""
    task = load_task(cell.dataset, 0, root, cache)
    corpus = task.corpus_at(0)
    with TemporaryDirectory() as empty, _variables(READBENCH_CACHE=empty, READBENCH_THREADS="1"):
        _spend(cell.method, corpus[::THINNED], task.normals[::THINNED], task.queries[::THINNED])
        began = time.process_time()
        _spend(cell.method, corpus, task.normals, task.queries)
        return [{"task": _tell_size(cell.dataset, task), "cpu_s": time.process_time() - began}]


def _spend(method: str, corpus: WindowSet, normals: WindowSet, queries: WindowSet) -> None:
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
