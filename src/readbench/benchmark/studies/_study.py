"""A study: cells that are measured one by one, each finished one kept in a file of its own.

```
cells/NAME.json     written whole as soon as the cell ends: its name, the fingerprint of what it depends on, its rows
```

Started again with the same folder, a study keeps what is finished and depends on the same data, method and code. A cell
that fails says why and does not stop the others.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from readbench.benchmark.runs import Executor, Local, LostItem
from readbench.common.files import write_json
from readbench.common.progress import SILENT, Progress, within
from readbench.common.sharing import one_thread_for_products
from readbench.errors import ReadbenchError

CellType = TypeVar("CellType", bound=Hashable)
ResultType = TypeVar("ResultType")
Rows = list[dict[str, Any]]
"""What was found in a cell, as plain JSON."""
Identify = Callable[[CellType], str]
Measure = Callable[[CellType, Progress], Rows]


@dataclass(frozen=True)
class MethodCell:
    """A method at one place of a study; both name the cell."""

    dataset: str
    method: str

    @property
    def place(self) -> str:
        """Where it is measured."""
        return self.dataset

    def __str__(self) -> str:
        return f"{self.place} {self.method}"


@dataclass(frozen=True)
class SeededCell(MethodCell):
    """A method on one split of a dataset."""

    seed: int

    @property
    def place(self) -> str:
        """The dataset and the seed of its split."""
        return f"{self.dataset} seed {self.seed}"


@dataclass(frozen=True)
class Study(Generic[CellType]):
    """What is measured, and how.

    Args:
        cells: in the order of the results. The text of a cell names it, and no other.
        identify: fingerprint of all that the rows of a cell depend on.
        measure: the rows of a cell. Both are functions of a module, or partial ones, so that other processes find them.
    """

    cells: Sequence[CellType]
    identify: Identify[CellType]
    measure: Measure[CellType]


@dataclass(frozen=True)
class Failure:
    """A cell without a result."""

    cell: str
    reason: str


@dataclass(frozen=True, eq=False)
class StudyResult(Generic[CellType]):
    """What a study found.

    Args:
        rows: by cell, in the order of the study.
        failures: what has no result.
        reused: how many cells were there already.
    """

    rows: dict[CellType, Rows]
    failures: tuple[Failure, ...]
    reused: int


def run_study(
    study: Study[CellType], out: Path, executor: Executor | None = None, progress: Progress = SILENT
) -> StudyResult[CellType]:
    """Measure what is not measured yet; a study that was killed goes on where it was.

    Args:
        study: what to measure.
        out: folder of the study; all workers must see it.
        executor: where cells are measured; in this process by default.
        progress: told of cells that have ended, and of what each is at.
    """
    finish = partial(finish_cell, folder=out.absolute() / "cells", identify=study.identify, measure=study.measure)
    found: dict[CellType, Rows] = {}
    failures: dict[CellType, Failure] = {}
    reused = 0
    progress("cells", 0, len(study.cells))
    for cell, ended in (executor or Local()).map(finish, study.cells, progress):
        if isinstance(ended, LostItem):
            failures[cell] = Failure(str(cell), ended.reason)
        elif ended.failure:
            failures[cell] = Failure(str(cell), ended.failure)
        else:
            found[cell] = ended.rows
            reused += ended.reused
        progress("cells", len(found) + len(failures), len(study.cells))
    return StudyResult(
        {cell: found[cell] for cell in study.cells if cell in found},
        tuple(failures[cell] for cell in study.cells if cell in failures),
        reused,
    )


def measure_results(
    study: Study[CellType],
    read: Callable[[CellType, dict[str, Any]], ResultType],
    out: Path,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> tuple[list[ResultType], tuple[Failure, ...]]:
    """What a study found as results, and what failed; `read` makes one of a cell and each of its rows."""
    found = run_study(study, out, executor, progress)
    return [read(cell, row) for cell, rows in found.rows.items() for row in rows], found.failures


@dataclass(frozen=True)
class EndedCell:
    """What became of a cell; `failure` is empty where it has rows."""

    rows: Rows
    reused: bool = False
    failure: str = ""


def finish_cell(
    cell: CellType, progress: Progress, folder: Path, identify: Identify[CellType], measure: Measure[CellType]
) -> EndedCell:
    """In a worker: read a cell from its file, or measure it and write that.

    One linear-algebra thread, as in a run: results then do not depend on how many cells are measured beside it.
    """
    path = folder / f"{name_file(str(cell))}.json"
    try:
        fingerprint = identify(cell)
        if (kept := _read(path, fingerprint)) is not None:
            return EndedCell(kept, reused=True)
        with one_thread_for_products():
            rows = measure(cell, within(progress, str(cell)))
        write_json(path, {"cell": str(cell), "fingerprint": fingerprint, "rows": rows})
    except ReadbenchError as error:
        return EndedCell([], failure=str(error))
    except Exception as error:  # noqa: BLE001 - named with its reason, the other cells go on
        return EndedCell([], failure=" ".join(f"{type(error).__name__}: {error}".split()))
    return EndedCell(rows)


def name_file(text: str) -> str:
    """A name that a file may have, of no other text.

    >>> name_file("sonde+nr at 1,000")
    'sonde-nr-at-1-000-967cb734'
    """
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:80]
    return f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _read(path: Path, fingerprint: str) -> Rows | None:
    """The rows of a finished cell; None where there is none, or one that depends on something else."""
    try:
        kept: dict[str, Any] = json.loads(path.read_text())
        rows: Rows = kept["rows"]
        return rows if kept["fingerprint"] == fingerprint else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
