"""The study: every method on every size, one fresh process a cell, one file a finished cell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from readbench.errors import ReadbenchError, UsageError
from readbench.experiment.version import code_version
from readbench.processes import Tell, in_fresh_process
from readbench.scale.cell import Cell, Measured, measure, single_leg
from readbench.scale.two_stage import TwoStage, measure_two_stage
from readbench.scale.world import World
from readbench.spec import parse
from readbench.windows.disk import write_json

Rows = list[dict[str, Any]]
"""Fields of `Measured` or `TwoStage`."""
Work = Callable[[Cell, Tell], Rows]


@dataclass(frozen=True)
class Study:
    """What to measure.

    Args:
        world: corpus, queries and normals.
        sizes: windows of the corpora.
        methods: texts of one leg each.
        two_stage: text of the encoder that is measured together with DTW-I; "" for none.
        jobs: processes that simulate, and that encode.
    """

    world: World
    sizes: tuple[int, ...]
    methods: tuple[str, ...]
    two_stage: str = ""
    jobs: int = 1

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 100:
            raise UsageError("--sizes takes whole numbers from 100 on.")
        for method in (*self.methods, *self._shortlisting):
            single_leg(method)

    @property
    def windows(self) -> int:
        """Windows that all cells together search."""
        return sum(self.sizes) * (len(self.methods) + len(self._shortlisting))

    @property
    def _shortlisting(self) -> tuple[str, ...]:
        return (self.two_stage,) if self.two_stage else ()


@dataclass(frozen=True)
class Failure:
    """A cell without a result."""

    method: str
    size: int
    reason: str


@dataclass(frozen=True)
class Findings:
    """What a study found.

    Args:
        measured: one a size and method, in the order of the study.
        two_stage: one a size and length of the shortlist.
        failures: what has no result.
        build_s: seconds that building the largest corpus took.
    """

    measured: tuple[Measured, ...]
    two_stage: tuple[TwoStage, ...]
    failures: tuple[Failure, ...]
    build_s: float


class Listener:
    """Is told how a study goes; does nothing by itself."""

    def telling(self, what: str, done: int, total: int | None, /) -> None:
        """Something has come so far."""

    def begins(self, method: str, size: int) -> None:
        """A cell begins."""

    def ends(self, method: str, size: int) -> None:
        """A cell is done, or was already."""


def run_study(study: Study, out: Path, listener: Listener | None = None) -> Findings:
    """Measure what is not measured yet; a study that was killed goes on where it was.

    Args:
        study: what to measure.
        out: folder of the results. Vectors lie there too while they are needed.
        listener: told how it goes.
    """
    listener = listener or Listener()
    build_s = study.world.build(study.sizes, study.jobs, listener.telling)
    measured, paired, failures = [], [], []
    for task in _tasks(study, out):
        listener.begins(task.title, task.cell.size)
        try:
            rows = _kept(task, listener.telling)
        except ReadbenchError as error:
            failures.append(Failure(task.title, task.cell.size, str(error)))
            rows = []
        if task.work is _alone:
            measured += [Measured(**row) for row in rows]
        else:
            paired += [TwoStage(**row) for row in rows]
        listener.ends(task.title, task.cell.size)
    return Findings(tuple(measured), tuple(paired), tuple(failures), build_s)


@dataclass(frozen=True)
class _Task:
    """A cell, what is measured there, and the file of the result."""

    title: str
    cell: Cell
    work: Work
    file: Path


def _tasks(study: Study, out: Path) -> Iterator[_Task]:
    """All methods on one size after the other, then the encoder with DTW-I."""
    shortlisting = str(parse(study.two_stage)) if study.two_stage else ""
    for size in study.sizes:
        names = [str(parse(method)) for method in study.methods]
        for method in dict.fromkeys([*names, shortlisting]):
            cell = Cell(study.world, size, method, code_version(), out / "vectors", study.jobs)
            file = f"{re.sub(r'[^a-z0-9]+', '-', method).strip('-')}-{size}-{cell.key}.json"
            pair = out / "cells" / f"two-stage-{file}"
            if method in names:
                keep = method == shortlisting and not pair.exists()
                yield _Task(method, replace(cell, keep=keep), _alone, out / "cells" / file)
            if method and method == shortlisting:
                yield _Task(f"{method} with dtw-i", cell, _paired, pair)


def _kept(task: _Task, tell: Tell) -> Rows:
    """The result of a task: from its file, else measured in a fresh process."""
    if task.file.exists():
        rows: Rows = json.loads(task.file.read_text())
        return rows
    rows = in_fresh_process(task.work, task.cell, tell)
    task.file.parent.mkdir(parents=True, exist_ok=True)
    write_json(task.file, rows)
    return rows


def _alone(cell: Cell, tell: Tell) -> Rows:
    return [asdict(measure(cell, tell))]


def _paired(cell: Cell, tell: Tell) -> Rows:
    return [asdict(row) for row in measure_two_stage(cell, tell)]
