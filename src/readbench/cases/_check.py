"""Integrity check and repair of a library.

First the files of a folder are compared with their ledger: small files are restored from copies, indices and vectors
rebuilt, and of a damaged table the readable rows are kept. Then the contents are checked: the order of the journal,
windows and contexts by their hashes, vectors. A case whose window is lost is deleted by a separate change. Replaced
files are kept in the folder `damaged` of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pyarrow as pa

from readbench.cases import _journal as journal
from readbench.cases._journal import DELETE, EDIT, JournalEntry, What, sign_changes
from readbench.cases._lance import TABLES, connect, is_failure, make_index
from readbench.cases._ledger import FileDamage, FileLedger
from readbench.cases._library import Library
from readbench.cases._store import Store
from readbench.common.files import exclusive
from readbench.common.progress import SILENT, Progress
from readbench.errors import DamageError, StoreError

DAMAGED_FOLDER = "damaged"
"""Folder for replaced files."""
READ_BATCH = 512
MAX_LISTED_NAMES = 5
MAX_REPAIR_ROUNDS = 4
"""Checks of one table: restoring its description may reveal damaged data."""
AUTHOR = "cases check --repair"


@dataclass(frozen=True)
class DamageFound:
    """A damage: `what` is damaged, and what was `done`, "" if nothing."""

    what: str
    done: str = ""


@dataclass(frozen=True)
class LibraryCheck:
    """Result of an integrity check.

    Args:
        where: folder or address of the library.
        changes: number of rows of the journal.
        windows: number of windows in the journal.
        contexts: number of contexts in the journal.
        vectors: number of stored vectors.
        findings: damage found.
    """

    where: str
    changes: int
    windows: int
    contexts: int
    vectors: int
    findings: tuple[DamageFound, ...]


def check_library(where: str | Path, *, repair: bool = False, progress: Progress = SILENT) -> LibraryCheck:
    """Check the files and contents of a library.

    Args:
        where: folder or address of the library.
        repair: repair the damage; stop services that use the library first.
        progress: called with the number of checked windows.
    """
    place = str(where)
    folder = None if "://" in place else Path(place)
    found = _check_files(folder, repair=repair) if folder and folder.is_dir() else []
    try:
        library = Library.open(where)
        if repair and library.store.release():
            found.append(DamageFound("A killed writer left its lock.", "Removed it; others can write again."))
        return _check_content(library, found, progress, repair=repair)
    except StoreError as error:
        if all(finding.done for finding in found):
            found.append(DamageFound(str(error)))
        return LibraryCheck(place, 0, 0, 0, 0, tuple(found))


def _check_files(folder: Path, *, repair: bool) -> list[DamageFound]:
    """Damaged files of all tables."""
    found = []
    with exclusive(folder / "writer.lock") if repair else nullcontext():
        ledger = FileLedger(folder)
        for table in TABLES:
            for _ in range(MAX_REPAIR_ROUNDS if repair else 1):
                ledger.refresh()
                damages = ledger.find_damage(table)
                found += [
                    DamageFound(f"{damage.path} {damage.what}.", _repair(folder, ledger, damage) if repair else "")
                    for damage in damages
                ]
                if not damages:
                    break
            if not damages and not _can_be_read(folder, table):
                done = "{} of {} rows are kept.".format(*_rebuild(folder, ledger, table)) if repair else ""
                found.append(DamageFound(f"{table}.lance cannot be read.", done))
    return found


def _can_be_read(folder: Path, name: str) -> bool:
    """True if all rows of a table can be read; a missing table is reported when the library is opened."""
    try:
        database = connect(str(folder))
        if not (folder / f"{name}.lance").is_dir():
            return True
        table = database.open_table(name)
        for start in range(0, (count := int(table.count_rows())), READ_BATCH):
            table.take_offsets(list(range(start, min(start + READ_BATCH, count)))).to_arrow()
    except BaseException as error:
        if not is_failure(error):
            raise
        return False
    return True


def _repair(folder: Path, ledger: FileLedger, damage: FileDamage) -> str:
    """Repair a file, or its table without it; returns what was done."""
    if not _find(ledger, damage):
        return "Repaired with another file of its table."
    if ledger.restore(damage, folder / DAMAGED_FOLDER):
        return "Restored from its copy."
    if damage.kind == "_versions":
        _set_aside(folder, damage.path)
        ledger.forget()
        ledger.accept(damage.table)
        return f"{damage.table} is back at the change before."
    if damage.kind == "_indices":
        table, index = connect(str(folder)).open_table(damage.table), Path(damage.path).parts[2]
        for index_info in table.list_indices():
            if str(index_info.index_uuid) == index:
                table.drop_index(index_info.name)
                make_index(table, index_info.columns[0])
        ledger.record(damage.table)
        return "The index was rebuilt."
    kept, count = _rebuild(folder, ledger, damage.table)
    if damage.table == "vectors":
        return f"{kept} of {count} vectors are kept; searches compute the others again."
    return f"{kept} of {count} rows of {damage.table} are kept."


def _find(ledger: FileLedger, damage: FileDamage) -> bool:
    return any(still.path == damage.path for still in ledger.find_damage(damage.table))


def _rebuild(folder: Path, ledger: FileLedger, name: str) -> tuple[int, int]:
    """Replace a table by its readable rows; returns their number and the number before.

    No vectors are kept, since they have no checksum.
    """
    old = connect(str(folder)).open_table(name)
    count = int(old.count_rows())
    rows = old.schema.empty_table() if name == "vectors" else _salvage(old, count)
    fresh = folder / DAMAGED_FOLDER / "new"
    rmtree(fresh, ignore_errors=True)
    table = connect(str(fresh)).create_table(name, schema=old.schema)
    if len(rows):
        table.add(rows)
    _set_aside(folder, f"{name}.lance")
    (fresh / f"{name}.lance").rename(folder / f"{name}.lance")
    fresh.rmdir()
    ledger.forget(name)
    ledger.record(name)
    return len(rows), count


def _salvage(table: Any, count: int) -> pa.Table:  # noqa: ANN401 - a LanceDB table
    """Readable rows of a table."""
    parts = [table.schema.empty_table()]
    pending = [range(start, min(start + READ_BATCH, count)) for start in range(0, count, READ_BATCH)]
    while pending:
        some = pending.pop(0)
        try:
            parts.append(table.take_offsets(list(some)).to_arrow().cast(table.schema))
        except BaseException as error:
            if not is_failure(error):
                raise
            middle = len(some) // 2
            pending = [part for part in (some[:middle], some[middle:]) if middle] + pending
    return pa.concat_tables(parts)


def _set_aside(folder: Path, name: str) -> None:
    """Move a file or folder into `DAMAGED_FOLDER`."""
    path = folder / name
    if not path.exists():
        return
    number = 0
    while (target := folder / DAMAGED_FOLDER / f"{name}.{number}").exists():
        number += 1
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)


def _check_content(library: Library, found: list[DamageFound], progress: Progress, *, repair: bool) -> LibraryCheck:
    """Check journal, windows, contexts and vectors."""
    store, state = library.store, library.snapshot().state
    rows = store.journal()
    found += _check_order(sorted(rows["step"].to_pylist()), store.where)
    windows = [digest for digest in dict.fromkeys(rows["digest"].to_pylist()) if digest]
    named = rows["context"].to_pylist() if "context" in rows.column_names else []
    contexts = [digest for digest in dict.fromkeys(named) if digest]
    entries = [*state.cases.values(), *state.normals.values()]
    for what, digests, read in (("windows", windows, store.windows), ("contexts", contexts, store.contexts)):
        lost = _find_bad(read, digests, progress, f"looking at {what}")
        if not lost:
            continue
        affected = [entry for entry in entries if (entry.digest if what == "windows" else entry.context) in lost]
        entries = [entry for entry in entries if entry not in affected]
        done = "" if affected else "Only earlier states of the library use them."
        if repair:
            done = _let_go(library, what, affected) if affected else done
            with store.writing():
                store.discard("windows" if what == "windows" else "contexts", sorted(lost))
        found.append(DamageFound(_describe_lost(what, lost, affected, store.where), done))
    vectors, bad = _check_vectors(store, windows)
    if bad:
        found.append(DamageFound(f"{len(bad)} vectors of {store.where} are damaged.", "Dropped." if repair else ""))
        if repair:
            store.discard("vectors", sorted(bad))
    return LibraryCheck(store.where, len(rows), len(windows), len(contexts), vectors, tuple(found))


def _check_order(steps: list[int], where: str) -> list[DamageFound]:
    """Missing and duplicate steps of the journal."""
    missing = sorted(set(range(steps[-1] + 1 if steps else 0)) - set(steps))
    twice = sorted({one for one, other in pairwise(steps) if one == other})
    return [
        DamageFound(
            f"The journal of {where} {what} {_name_some([str(step) for step in steps])}. Compare it with a backup."
        )
        for what, steps in (("lacks steps", missing), ("has more than one row of steps", twice))
        if steps
    ]


def _find_bad(read: Callable[[Sequence[str]], object], digests: list[str], progress: Progress, doing: str) -> set[str]:
    """Digests of missing or damaged windows or contexts; halves a batch that fails until single rows remain."""
    bad: set[str] = set()
    pending = [digests[start : start + READ_BATCH] for start in range(0, len(digests), READ_BATCH)]
    done = 0
    while pending:
        some = pending.pop(0)
        progress(doing, done, len(digests))
        try:
            read(some)
        except DamageError:
            middle = len(some) // 2
            if middle:
                pending = [some[:middle], some[middle:], *pending]
                continue
            bad.add(some[0])
        done += len(some)
    progress(doing, len(digests), len(digests))
    return bad


def _check_vectors(store: Store, digests: list[str]) -> tuple[int, set[str]]:
    """Number of vectors, and keys of those of wrong length or with non-finite values."""
    count, bad = 0, set[str]()
    for encoder in store.encoders():
        found = store.vectors(encoder, digests)
        widths = [len(vector) for vector in found.values()]
        usual = max(set(widths), key=widths.count, default=0)
        count += len(found)
        bad |= {name for name, vector in found.items() if len(vector) != usual or not np.isfinite(vector).all()}
    return count, bad


def _describe_lost(what: str, lost: set[str], entries: list[JournalEntry], where: str) -> str:
    cases = f" Cases: {_name_some([entry.case.id for entry in entries])}." if entries else ""
    return f"{len(lost)} {what} of {where} are lost or damaged.{cases}"


def _let_go(library: Library, what: str, entries: list[JournalEntry]) -> str:
    """Delete the cases whose windows are lost, or drop the lost contexts of cases."""
    if what == "windows":
        _write(library, entries, DELETE)
        return f"{len(entries)} are deleted: import them again from a backup, or `undo` this once the file is back."
    _write(library, [replace(entry, context="") for entry in entries], EDIT)
    return f"{len(entries)} are kept without their context."


def _write(library: Library, entries: list[JournalEntry], what: What) -> None:
    with sign_changes(AUTHOR), library.store.writing():
        state = library.snapshot().state
        rows = journal.journal_rows(entries, what, state.change + 1, state.steps, state.next_stamp())
        library.store.append(rows)


def _name_some(names: list[str]) -> str:
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return ", ".join(names[:MAX_LISTED_NAMES]) + more
