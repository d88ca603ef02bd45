"""A library in one Parquet file: to keep, to send, to load into another one. Nothing in it names a path."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from readbench.cases._library import CaseLibrary, facts_of
from readbench.cases._models import Case
from readbench.common.tables import Given, Limits, Table
from readbench.engine.window_tables import read_packed, write_windows
from readbench.engine.windows import UNLABELLED, concatenate
from readbench.errors import DataError

LISTS = ("tags", "links", "rejected")
"""Fields of a case that stand in the file as JSON lists."""


def export_library(library: CaseLibrary, path: Path) -> int:
    """Write all normal windows and cases, in their order; returns how many. The file appears whole or not at all."""
    snapshot = library.snapshot()
    entries = [*snapshot.state.normals.values(), *snapshot.entries]
    if not entries:
        raise DataError("The library is empty: there is nothing to export.")
    parts = [snapshot.normals, snapshot.windows(range(len(snapshot)))]
    parts[0] = replace(parts[0], classes=parts[1].classes, labels=np.full(len(parts[0]), UNLABELLED, np.int32))
    cases = [entry.case for entry in entries]
    columns = {
        "normal": pa.array([entry.normal for entry in entries]),
        "notes": pa.array([case.notes for case in cases], pa.string()),
        **{name: pa.array([json.dumps(getattr(case, name)) for case in cases], pa.string()) for name in LISTS},
    }
    write_windows(concatenate([part for part in parts if len(part)]), path, **columns)
    return len(entries)


def import_library(library: CaseLibrary, given: Given, limits: Limits | None = None) -> int:
    """Add all windows of a file that `export_library`, or anybody else, wrote in that layout; returns how many.

    They are one change: where one of them cannot be taken, none is.
    """
    packed = read_packed(given, limits=limits)
    windows, table = packed.windows, packed.table
    normal = _flags(table, len(windows))
    facts = [_with_texts(case, table, row) for row, case in enumerate(facts_of(windows))]
    return len(library.add(windows, facts, normal.tolist()))


def _flags(table: Table, count: int) -> np.ndarray:
    return table.numbers("normal") > 0 if "normal" in table.columns else np.zeros(count, bool)


def _with_texts(case: Case, table: Table, row: int) -> Case:
    """The case with what the flat columns of the file say; JSON is all that is ever read from them."""
    update: dict[str, object] = {}
    if "notes" in table.columns:
        update["notes"] = _text(table, "notes", row)
    for name in LISTS:
        if name in table.columns:
            update[name] = _strings(_text(table, name, row), f"{table.name}, row {row + 1}, column {name!r}")
    return case.model_copy(update=update)


def _text(table: Table, column: str, row: int) -> str:
    value = table.data[column][row].as_py()
    return "" if value is None else str(value)


def _strings(text: str, where: str) -> tuple[str, ...]:
    try:
        values = json.loads(text or "[]")
    except ValueError as error:
        raise DataError(f"{where}: {text[:40]!r} is no JSON list ({error}).") from error
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise DataError(f"{where}: {text[:40]!r} is no JSON list of texts.")
    return tuple(values)
