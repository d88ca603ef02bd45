"""Export of a library into one Parquet file, and import of it; with or without the history of changes.

A row is a window, with the facts of its case in flat columns. Channel names, and the journal if exported, are JSON in
the metadata of the file. Exporting an imported export gives the same bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa

from readbench.cases import _journal as journal
from readbench.cases._channels import ChannelNames, check_unit
from readbench.cases._intake import check_case, facts_of, prepare_windows
from readbench.cases._models import Case
from readbench.cases.limits import MAX_READING
from readbench.cases.roles import Deed, check_deed
from readbench.common.tables import Given, Limits, Table
from readbench.engine.window_tables import Packed, read_packed, write_windows
from readbench.engine.windows import UNLABELLED, concatenate
from readbench.errors import DataError, UsageError

if TYPE_CHECKING:
    from readbench.cases._library import Library

LISTS = ("tags", "links", "rejected")
"""Fields of a case that are stored as JSON lists."""
NAMING = "readbench.naming"
"""Metadata key of the channel names."""
JOURNAL = "readbench.journal"
"""Metadata key of the journal."""
STORE_BATCH = 1000
"""Windows of a history that are stored together."""


def export_library(library: Library, path: Path, *, history: bool = False) -> int:
    """Write all normal windows and cases to a Parquet file, atomically; returns their number.

    Args:
        library: library to export.
        path: file to write.
        history: also write deleted windows and all changes.
    """
    check_deed(Deed.EXPORT)
    if history:
        return _export_history(library, path)
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
        "end": pa.array([case.end for case in cases], pa.float64()),
        "zone": pa.array([case.zone for case in cases], pa.string()),
        **{name: pa.array([json.dumps(getattr(case, name)) for case in cases], pa.string()) for name in LISTS},
    }
    about = {NAMING: json.dumps(library.store.naming())}
    write_windows(concatenate([part for part in parts if len(part)]), path, about=about, **columns)
    return len(entries)


def import_library(library: Library, given: Given, limits: Limits | None = None) -> int:
    """Add all windows of an exported file in one change, all or none; returns their number.

    A file with a history needs an empty library, and is imported with its changes.
    """
    packed = read_packed(given, limits=limits)
    windows, table = packed.windows, packed.table
    naming, rows = _read_naming(table), _read_about(table, JOURNAL, list)
    if rows is not None:
        return _import_history(library, packed, naming, rows)
    normal = _flags(table, len(windows))
    facts = [_with_texts(case, table, row) for row, case in enumerate(facts_of(windows))]
    known = library.snapshot().state
    if all(case.id not in known.cases and case.id not in known.normals for case in facts):  # else `add` says which
        _name_channels(library, naming, table.name)
    return len(library.add(windows, facts, normal.tolist()))


def _export_history(library: Library, path: Path) -> int:
    """Write the journal and its windows, each once, under their original channel names."""
    store = library.store
    rows = store.journal().sort_by("step").to_pylist()
    named = list(dict.fromkeys((row["digest"], row.get("context") or "") for row in rows if row["digest"]))
    if not named:
        raise DataError("The library is empty: there is nothing to export.")
    windows = store.windows([digest for digest, _ in named])
    if any(context for _, context in named):
        windows = windows.with_context(store.contexts([context for _, context in named]))
    about = {NAMING: json.dumps(store.naming()), JOURNAL: json.dumps(rows)}
    write_windows(windows, path, about=about)
    return len(named)


def _import_history(library: Library, packed: Packed, naming: Mapping[str, Mapping[str, str]], rows: list[Any]) -> int:
    """Store all windows, then append the journal in one step."""
    name, windows, store = packed.table.name, packed.windows, library.store
    found = _read_journal(rows, name)
    if prepare_windows(windows) is not windows:
        raise DataError(
            f"{name}: a window of its history has gaps, or readings of {MAX_READING:g} and more. Export the library"
            " without its history, and import that: it fills them."
        )
    with store.writing():
        if store.journal().num_rows:
            raise UsageError(
                f"{name} holds a history, which goes into an empty library: `readbench cases init NEW`, then import it"
                " there."
            )
        held: set[str] = {""}
        for start in range(0, len(windows), STORE_BATCH):
            part = windows[start : start + STORE_BATCH]
            held |= {*store.file_windows(part), *store.file_contexts(part)}
        if lost := {*found["digest"].to_pylist(), *found["context"].to_pylist()} - held:
            raise DataError(f"{name}: its history names a window {min(lost)} that is not in it. Get the file again.")
        store.file_naming(_entries(naming))
        store.append(found)
    return len(windows)


def _read_journal(rows: list[Any], name: str) -> pa.Table:
    """Journal rows as a table, checked; columns added in later versions are filled."""
    try:
        filled = [{"context": "", "end": math.nan, "zone": "", "author": ""} | row for row in rows]
        found = pa.Table.from_pylist(filled, schema=journal.SCHEMA)
        state = journal.fold(found)
    except (pa.ArrowException, TypeError, ValueError, KeyError) as error:
        raise DataError(f"{name}: its history cannot be read ({error}). Get the file again.") from error
    if unknown := set(found["what"].to_pylist()) - set(get_args(journal.What)):
        raise DataError(f"{name}: its history holds a change {min(unknown)[:40]!r}, which there is not. Get it again.")
    if any(column.null_count for column in found.columns) or found["step"].to_pylist() != list(range(len(found))):
        raise DataError(f"{name}: its history has gaps. Get the file again.")
    for entry in (*state.cases.values(), *state.normals.values()):
        check_case(entry.case)
    return found


def _read_naming(table: Table) -> dict[str, dict[str, str]]:
    """Channel names of the exporting library: alias -> name and unit."""
    found: dict[str, Any] = _read_about(table, NAMING, dict) or {}
    for alias, known in found.items():
        if not isinstance(known, dict) or not all(isinstance(known.get(key), str) for key in ("name", "unit")):
            raise DataError(f"{table.name}: the name of channel {alias[:40]!r} cannot be read. Get the file again.")
        check_unit(known["unit"])
    return found


def _read_about(table: Table, key: str, kind: type) -> Any:  # noqa: ANN401 - JSON
    """JSON value of a metadata key; None if absent."""
    text = (table.data.schema.metadata or {}).get(key.encode())
    try:
        value = None if text is None else json.loads(text)
    except ValueError as error:
        raise DataError(f"{table.name}: its metadata {key!r} is no JSON ({error}). Get the file again.") from error
    if value is not None and not isinstance(value, kind):
        raise DataError(f"{table.name}: its metadata {key!r} is no {kind.__name__}. Get the file again.")
    return value


def _name_channels(library: Library, naming: Mapping[str, Mapping[str, str]], name: str) -> None:
    """Adopt the channel names of a file; raise before anything is imported if an alias means something else here."""
    theirs, ours = ChannelNames.of(naming).aliases, library.naming().aliases
    for alias, their in theirs.items():
        if ours.get(alias, their) != their:
            raise UsageError(
                f"{name}: channel {alias!r} is {their.name!r} in {their.unit or 'no unit'} there, but here it is"
                f" {ours[alias].name!r} in {ours[alias].unit or 'no unit'}. Import it into an empty library."
            )
    if any(alias not in ours for alias in theirs):
        with library.store.writing():
            library.store.file_naming(_entries(naming))


def _entries(naming: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str, str]]:
    return [(alias, known["name"], known["unit"]) for alias, known in naming.items()]


def _flags(table: Table, count: int) -> np.ndarray:
    return table.numbers("normal") > 0 if "normal" in table.columns else np.zeros(count, bool)


def _with_texts(case: Case, table: Table, row: int) -> Case:
    """The case with the texts, end and lists from the flat columns of its row."""
    update: dict[str, object] = {}
    if "_id" in table.columns:  # a name that is only digits, such as the number of a work order, is one if it was given
        update["id"] = _text(table, "_id", row)
    for name in ("notes", "zone"):
        if name in table.columns:
            update[name] = _text(table, name, row)
    if "end" in table.columns:
        end = table.data["end"][row].as_py()
        update["end"] = float(end) if isinstance(end, int | float) and math.isfinite(end) else None
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
