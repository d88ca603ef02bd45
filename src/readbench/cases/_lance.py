"""A library in LanceDB tables: in one folder, or in an object store."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.cases import _journal as journal
from readbench.cases._ledger import LEDGER, FileDamage, FileLedger
from readbench.cases._store import (
    FORMAT,
    ListedContext,
    StoredArray,
    StoredContext,
    StoredTable,
    StoredWindows,
    advise,
    context_digests,
    find_new,
    join_contexts,
)
from readbench.common.deadlines import pause
from readbench.common.files import LOCK_WAIT_S, exclusive
from readbench.engine.context import Context
from readbench.engine.vectors import window_digests
from readbench.engine.windows import WindowSet
from readbench.errors import DamageError, DataError, StoreError, UsageError

OPTIMISE_EVERY = 64
"""Appends to a table after which its files are merged, if the last one was small."""
SMALL = 100
"""Rows of a small append."""
KEEP_FILES = timedelta(minutes=30)
"""Files that were merged into others stay so long, for readers that began before. The journal needs no old files."""
MOST_IN_FILTER = 5000
"""Digests looked up one by one; above it the whole table is read."""
_WINDOWS = pa.schema(
    [
        ("digest", pa.string()),
        ("values", pa.large_list(pa.float32())),
        ("length", pa.int32()),
        ("channels", pa.list_(pa.string())),
    ]
)
_CONTEXTS = pa.schema(
    [
        ("digest", pa.string()),
        ("before", pa.large_list(pa.float32())),
        ("length", pa.int32()),
        ("rate", pa.float64()),
        ("units", pa.list_(pa.string())),
        ("fact_names", pa.list_(pa.string())),
        ("facts", pa.list_(pa.float64())),
    ]
)
_VECTORS = pa.schema([("encoder", pa.string()), ("digest", pa.string()), ("vector", pa.large_list(pa.float32()))])
_NAMING = pa.schema([("order", pa.int64()), ("alias", pa.string()), ("name", pa.string()), ("unit", pa.string())])
_WRITER = pa.schema([("token", pa.string()), ("holder", pa.string())])
"""Who writes into an object store now."""
FULL = {
    28: "the disk is full",
    27: "a file would become too large",
    30: "it is read-only",
    13: "this user may not write there",
    122: "the quota of this user is used up",
}
"""What the system says where nothing can be written, by its number."""
SETTLED_S = 0.1
"""After so long, a folder that changes again has another time: clocks of file systems tick every few milliseconds."""
ASKED_AGAIN_S = 1.0
"""How long the times of folders are believed, which other machines may tell late."""
CLAIM_WAIT_S = 20.0
"""How long a writer into an object store waits for another."""
CLAIM_PAUSE_S = 0.2
TABLES = {
    "windows": _WINDOWS,
    "contexts": _CONTEXTS,
    "vectors": _VECTORS,
    "naming": _NAMING,
    "journal": journal.SCHEMA.with_metadata({"readbench": FORMAT}),
}


class LanceStore:
    """Tables `journal`, `windows`, `contexts`, `vectors` and `naming`; each append is one atomic commit.

    Older libraries have no table `contexts`, and lack columns in the journal (`readbench.cases._journal.LATER`): they
    are made when the first window comes that brings any of it.

    Args:
        where: a folder, or an address that LanceDB knows, such as `s3://bucket/library`.
        create: make a new library; refused where there is one.
    """

    def __init__(self, where: str, *, create: bool = False) -> None:
        self.where = where
        self.folder = None if "://" in where else Path(where)
        self._ledger = None if self.folder is None else FileLedger(self.folder)
        self._tables: dict[str, Any] = {}
        self._compared: set[str] = set()
        self._revision: tuple[tuple[int, ...] | None, float, int] = None, 0.0, 0
        if not create and self.folder is not None and not self.folder.is_dir():
            raise UsageError(f"There is no case library at {where}. Make one: readbench cases init {where}")
        self._database = connect(where)
        known = set(_names(self._database))
        if create and "journal" in known:
            raise UsageError(f"{where} already holds a case library. Open it, or choose another place.")
        if not create and "journal" not in known and not (self.folder and (self.folder / LEDGER).exists()):
            raise UsageError(f"{where} is no case library. Make one: readbench cases init {where}")
        for name, schema in TABLES.items():  # the journal last: with it the library exists
            if create and name not in known:
                with self._explain(name):
                    self._database.create_table(name, schema=schema)
                    self._enter(name)
        later = set() if create else {"contexts", "vectors"} - known
        opened = {name: self._open(name) for name in TABLES if name not in later}
        self._tables |= {name: table for name, table in opened.items() if table is not None}
        written = (self._tables["journal"].schema.metadata or {}).get(b"readbench", b"").decode()
        if written != FORMAT:
            raise DataError(f"{where} has format {written!r}, this version reads {FORMAT!r}. Export it and import it.")

    @property
    def address(self) -> str:
        """The address, or the whole path of the folder."""
        return self.where if self.folder is None else str(self.folder.resolve())

    def writing(self, wait_s: float | None = None) -> AbstractContextManager[None]:
        """Hold the lock of this folder, or the claim on this address.

        Args:
            wait_s: how long another writer is waited for; default the usual time of either.
        """
        if self.folder is None:
            return self._claim(CLAIM_WAIT_S if wait_s is None else wait_s)
        return self._lock(self.folder, LOCK_WAIT_S if wait_s is None else wait_s)

    def revision(self) -> int:
        """Versions of both tables, which only grow, together; LanceDB is asked only where a folder has changed."""
        look = self._look()  # before the versions: what is written in between is seen the next time
        seen, told, revision = self._revision
        if look is not None and look == seen and time.monotonic() - told < ASKED_AGAIN_S:
            return revision
        revision = int(self._latest("journal").version) + int(self._latest("naming").version)
        self._revision = look, time.monotonic(), revision
        return revision

    def _look(self) -> tuple[int, ...] | None:
        """When versions were last written; None where that is unknown, or so lately that its time may be another's."""
        if self.folder is None:
            return None
        try:
            found = [(self.folder / f"{name}.lance" / "_versions").stat() for name in ("journal", "naming")]
        except OSError:
            return None
        times = [own.st_mtime_ns for own in found]
        settled = max(times) + SETTLED_S * 1e9 < time.time_ns()
        return (*times, *(own.st_ino for own in found)) if settled else None

    def journal(self, first: int = 0) -> pa.Table:
        """All rows, or those from a step on."""
        table = self._sound("journal")
        with self._explain("journal"):
            return table.search().where(f"step >= {int(first)}").limit(None).to_arrow() if first else table.to_arrow()

    def append(self, rows: pa.Table) -> None:
        """One commit."""
        table = self._latest("journal")
        for column, filling in journal.LATER.items():
            if column in table.schema.names:
                continue
            if any(value and value == value for value in rows[column].to_pylist()):  # noqa: PLR0124 - NaN is not
                with self._explain("journal"):
                    table.add_columns({column: filling})
            else:
                rows = rows.drop_columns([column])
        self._add("journal", rows)

    def file_windows(self, windows: WindowSet) -> list[str]:
        """Keep those that are not kept yet."""
        windows = windows.with_context(None)  # a window is the same whatever it brings along
        digests = window_digests(windows)
        if new := self._find_new("windows", digests):
            self._add("windows", _window_rows(windows[new], [digests[i] for i in new]))
        return digests

    def file_contexts(self, windows: WindowSet) -> list[str]:
        """Keep those that are not kept yet."""
        context, digests = windows.context, context_digests(windows)
        if context is None:
            return digests
        if any(digests):
            self._require("contexts")
        if new := self._find_new("contexts", digests):
            self._add("contexts", _context_rows(context, new, digests))
        return digests

    def contexts(self, digests: Sequence[str]) -> Context:
        """Matrices that several windows share are shared again."""
        wanted = [digest for digest in dict.fromkeys(digests) if digest]
        found: dict[str, StoredContext] = {}
        if wanted and self._holds("contexts"):
            found = _read_contexts(self._rows("contexts", "digest", wanted, None).combine_chunks())
        with self._blame("contexts"):
            return join_contexts(found, digests, self.where)

    def windows(self, digests: Sequence[str]) -> WindowSet:
        """Values stay in the buffers that LanceDB filled."""
        table = self._rows("windows", "digest", digests, None).combine_chunks()
        with self._blame("windows"):
            return _read_windows(table).ordered(digests, self.where, self._compared)

    def list_contexts(self, digests: Sequence[str]) -> dict[str, ListedContext]:
        """Of the digests that are there."""
        wanted = [digest for digest in dict.fromkeys(digests) if digest]
        if not wanted or not self._holds("contexts"):
            return {}
        rows = self._rows("contexts", "digest", wanted, ["digest", "length", "rate", "fact_names", "facts"])
        return {
            row["digest"]: ListedContext(
                row["length"], row["rate"], dict(zip(row["fact_names"], row["facts"], strict=True))
            )
            for row in rows.to_pylist()
        }

    def vectors(self, encoder: str, digests: Sequence[str]) -> dict[str, StoredArray]:
        """Read by fingerprint, then by digest; vectors that are damaged are dropped, since they can be computed."""
        try:
            if not self._holds("vectors"):
                return {}
            self._sound("vectors")
            table = self._rows("vectors", "digest", digests, ["digest", "vector"], f"encoder = {_quote(encoder)}")
        except StoreError:
            with suppress(StoreError), self.writing(0.0):
                self._empty("vectors")
            return {}
        column = table["vector"].combine_chunks()
        flat, width = column.values.to_numpy(), len(column) and len(column[0])
        return dict(zip(table["digest"].to_pylist(), flat.reshape(len(column), width), strict=True))

    def file_vectors(self, encoder: str, digests: Sequence[str], vectors: StoredArray) -> None:
        """One commit; other processes may file the same ones at the same time."""
        count = len(digests)
        ends = np.arange(count + 1, dtype=np.int64) * vectors.shape[1]
        column = pa.LargeListArray.from_arrays(pa.array(ends), pa.array(np.ascontiguousarray(vectors).ravel()))
        self._require("vectors")
        self._add("vectors", pa.table([[encoder] * count, list(digests), column], schema=_VECTORS))

    def match_notes(self, text: str, limit: int) -> list[tuple[str, str]]:
        """Full-text search by BM25; rows that came after the index was made are searched as well."""
        table = self._latest("journal")
        with self._explain("journal"):
            if not table.count_rows():
                return []
            if not self._index_notes(table):
                return _scan_notes(table.search().select(["id", "notes"]).limit(None).to_arrow(), text, limit)
            query = import_module("lancedb.query").MatchQuery(text, "notes")
            found = table.search(query, query_type="fts").select(["id", "notes", "_score"]).limit(limit).to_arrow()
        return list(zip(found["id"].to_pylist(), found["notes"].to_pylist(), strict=True))

    def _index_notes(self, table: Any) -> bool:  # noqa: ANN401 - a LanceDB table
        """Whether notes have an index, which is made where it can be: reading needs no write."""
        if any(index.columns == ["notes"] for index in table.list_indices()):
            return True
        with suppress(StoreError), self.writing(0.0), self._explain("journal"):
            make_index(table, "notes")
            self._enter("journal")
            return True
        return False

    def naming(self) -> dict[str, dict[str, str]]:
        """The last entry of each alias."""
        own = self._sound("naming")
        with self._explain("naming"):
            table = own.to_arrow().sort_by("order")
        return {row["alias"]: {"name": row["name"], "unit": row["unit"]} for row in table.to_pylist()}

    def file_naming(self, entries: Iterable[tuple[str, str, str]]) -> None:
        """One commit."""
        first = self._latest("naming").count_rows()
        new = [
            {"order": first + i, "alias": alias, "name": name, "unit": unit}
            for i, (alias, name, unit) in enumerate(entries)
        ]
        if new:
            self._add("naming", pa.Table.from_pylist(new, schema=_NAMING))

    def optimise(self) -> None:
        """Merge files and update indices, table by table."""
        for name in self._tables:
            table = self._latest(name)
            with self._explain(name):
                if "digest" in table.schema.names and not any(i.columns == ["digest"] for i in table.list_indices()):
                    make_index(table, "digest")
                table.optimize(cleanup_older_than=KEEP_FILES)
                self._enter(name)
        if self._ledger:
            self._ledger.forget()

    def encoders(self) -> list[str]:
        """Each once."""
        if not self._holds("vectors"):
            return []
        with self._explain("vectors"):
            table = self._latest("vectors").search().select(["encoder"]).limit(None).to_arrow()
        return sorted(set(table["encoder"].to_pylist()))

    def discard(self, table: StoredTable, digests: Sequence[str]) -> None:
        """One commit."""
        texts = ", ".join(map(_quote, digests))
        with self._explain(table):
            self._latest(table).delete(f"digest IN ({texts})")
            self._enter(table)

    def release(self) -> bool:
        """Take away the name of a writer that was killed; a folder has a lock that ends with its holder."""
        if self.folder is not None or "writer" not in _names(self._database):
            return False
        return _update(self._database.open_table("writer"), "token <> ''", "", "")

    def size(self) -> int:
        """Bytes of all files in the folder."""
        files = [] if self.folder is None else self.folder.rglob("*")
        return sum(path.stat().st_size for path in files if path.is_file())

    @contextmanager
    def _lock(self, folder: Path, wait_s: float) -> Iterator[None]:
        with ExitStack() as held:
            try:
                held.enter_context(exclusive(folder / "writer.lock", wait_s))
            except OSError as error:
                reason = FULL.get(error.errno or 0, error.strerror)
                raise StoreError(
                    f"{self.where} cannot be written: {reason}. Nothing of this change is kept."
                ) from error
            yield

    @contextmanager
    def _claim(self, wait_s: float) -> Iterator[None]:
        """Write one's name where nobody's is: an object store has no locks, but of two such changes one fails."""
        claims = self._database.create_table("writer", schema=_WRITER, exist_ok=True)
        if not claims.count_rows():  # two rows, of two that came first at once, are claimed together
            claims.add(pa.Table.from_pylist([{"token": "", "holder": ""}], schema=_WRITER))
        token, holder = uuid4().hex, f"process {os.getpid()} on {socket.gethostname()}"
        deadline = time.monotonic() + wait_s
        while not _update(claims, "token = ''", token, holder):
            if time.monotonic() > deadline:
                known = next(iter(claims.to_arrow()["holder"].to_pylist()), "")
                raise StoreError(
                    f"{self.where} is being written by {known or 'another process'}. Try again when it is done; if it"
                    f" was killed, `readbench cases check {self.where} --repair` lets others write."
                )
            pause(CLAIM_PAUSE_S)
            claims.checkout_latest()
        try:
            yield
        finally:
            claims.checkout_latest()
            _update(claims, f"token = '{token}'", "", "")
            if claims.version % OPTIMISE_EVERY == 0:
                claims.optimize(cleanup_older_than=KEEP_FILES)

    def _add(self, name: str, rows: pa.Table) -> None:
        table = self._latest(name)
        with self._explain(name):
            table.add(rows)
            merged = len(rows) <= SMALL and table.version % OPTIMISE_EVERY == 0
            if merged:
                table.optimize(cleanup_older_than=KEEP_FILES)
            self._enter(name)
            if merged and self._ledger:
                self._ledger.forget()

    def _open(self, name: str) -> Any:  # noqa: ANN401 - a LanceDB table
        """A table; vectors that are damaged are dropped, or None where they cannot even be."""
        if name not in _names(self._database):
            raise StoreError(f"{name}.lance is missing from {self.where}. {advise(self.where)}")
        try:
            with self._explain(name):
                return self._database.open_table(name)
        except StoreError:
            if name != "vectors":
                raise
            with suppress(StoreError), self.writing(0.0):
                return self._empty(name)
        return None

    def _empty(self, name: str) -> Any:  # noqa: ANN401 - a LanceDB table
        """A new table in the place of another, which is gone then."""
        with self._explain(name):
            self._database.drop_table(name)
            table = self._tables[name] = self._database.create_table(name, schema=TABLES[name])
            if self._ledger:
                self._ledger.forget(name)
            self._enter(name)
        return table

    def _latest(self, name: str) -> Any:  # noqa: ANN401 - a LanceDB table
        table = self._tables[name]
        with self._explain(name):
            table.checkout_latest()
        return table

    def _sound(self, name: str) -> Any:  # noqa: ANN401 - a LanceDB table
        """The same, if its files are what they were when they were written; each is looked at once."""
        if self._ledger is None:
            return self._latest(name)
        self._ledger.refresh()  # before the table: what is entered is then there
        table = self._latest(name)
        if damage := self._find_damage(name, again=False):
            raise self._damaged(damage)
        return table

    def _find_damage(self, name: str, *, again: bool = True) -> FileDamage | None:
        """The first file of a table that is not what it was."""
        if self._ledger is None:
            return None
        version = int(self._tables[name].version) if name in self._tables else 0
        lost = self._ledger.find_lost_version(name, version) if version else None
        return lost or next(iter(self._ledger.find_damage(name, again=again)), None)

    @contextmanager
    def _blame(self, name: str) -> Iterator[None]:
        """Name the file that is to blame for what is damaged, where it is known."""
        try:
            yield
        except DamageError as error:
            if self._ledger:
                self._ledger.refresh()
            damage = self._find_damage(name)
            raise (DamageError(str(self._damaged(damage))) if damage else error) from None

    def _enter(self, name: str) -> None:
        """Enter what was written into the ledger."""
        if self._ledger:
            self._ledger.record(name)

    @contextmanager
    def _explain(self, name: str) -> Iterator[None]:
        """Say in one sentence which file of a table is damaged, or why it cannot be written."""
        try:
            yield
        except BaseException as error:
            if not is_failure(error):
                raise
            raise self._explained(name, str(error)) from error

    def _explained(self, name: str, said: str) -> StoreError:
        if reason := next((words for number, words in FULL.items() if f"os error {number})" in said), None):
            return StoreError(f"{self.where} cannot be written: {reason}. Nothing of this change is kept. Make room.")
        if self._ledger:
            self._ledger.refresh()
        if damage := self._find_damage(name):
            return self._damaged(damage)
        short = said.removeprefix("lance error: ").partition(", /")[0][:200]
        return StoreError(f"{name}.lance of {self.where} cannot be used: {short}. {advise(self.where)}")

    def _damaged(self, damage: FileDamage) -> StoreError:
        return StoreError(f"{self.where}/{damage.path} {damage.what}. {advise(self.where)}")

    def _holds(self, name: str) -> bool:
        """Whether there is a table; another process may have made it."""
        if name not in self._tables and name in _names(self._database):
            with self._explain(name):
                self._tables[name] = self._database.open_table(name)
        return name in self._tables

    def _require(self, name: str) -> None:
        """Make a table that is not there yet."""
        if not self._holds(name):
            with self._explain(name):
                self._tables[name] = self._database.create_table(name, schema=TABLES[name], exist_ok=True)

    def _find_new(self, name: str, digests: list[str]) -> list[int]:
        """A place of each digest that a table does not hold."""
        wanted = [digest for digest in digests if digest]
        known = self._rows(name, "digest", wanted, ["digest"])["digest"].to_pylist() if wanted else []
        return find_new(digests, known)

    def _rows(self, name: str, key: str, wanted: Sequence[str], columns: list[str] | None, where: str = "") -> pa.Table:
        """Rows whose key is wanted, and others where so many are wanted that reading all is simpler."""
        table = self._latest(name)
        conditions = [where] if where else []
        if len(wanted) <= MOST_IN_FILTER:
            texts = ", ".join(map(_quote, dict.fromkeys(wanted)))
            conditions.append(f"{key} IN ({texts})" if texts else "false")
        query = table.search().limit(None)
        if conditions:
            query = query.where(" AND ".join(conditions))
        with self._explain(name):
            return (query.select(columns) if columns else query).to_arrow()


def _scan_notes(rows: pa.Table, text: str, limit: int) -> list[tuple[str, str]]:
    """Case and notes of rows whose notes have words of a text, those with most of them first."""
    words = set(re.findall(r"\w+", text.casefold()))
    found = []
    for case, notes in zip(rows["id"].to_pylist(), rows["notes"].to_pylist(), strict=True):
        if common := len(words & set(re.findall(r"\w+", notes.casefold()))):
            found.append((-common, case, notes))
    return [(case, notes) for _, case, notes in sorted(found, key=lambda own: own[0])[:limit]]


def make_index(table: Any, column: str) -> None:  # noqa: ANN401 - a LanceDB table
    """Index digests to find them, notes to search them."""
    kinds = import_module("lancedb.index")
    table.create_index(column, config=kinds.FTS() if column == "notes" else kinds.BTree(), replace=True)


def is_failure(error: BaseException) -> bool:
    """Whether LanceDB failed; broken bytes can make it panic, which is no plain exception."""
    return isinstance(error, OSError | RuntimeError | ValueError) or type(error).__name__ == "PanicException"


def _window_rows(windows: WindowSet, digests: list[str]) -> pa.Table:
    own = windows.compact()
    ends = np.append(own.offset, own.chunks[0].size)
    columns = [
        pa.array(digests, pa.string()),
        pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), pa.array(own.chunks[0])),
        pa.array(own.lengths, pa.int32()),
        pa.array([list(own.channels(i)) for i in range(len(own))], pa.list_(pa.string())),
    ]
    return pa.table(columns, schema=_WINDOWS)


def _read_contexts(table: pa.Table) -> dict[str, StoredContext]:
    """The rows of one contiguous table by digest; matrices stay in the buffers that LanceDB filled."""
    flat, ends = _flatten(table["before"])
    found = {}
    for place, row in enumerate(table.drop_columns(["before"]).to_pylist()):
        values, length = flat[ends[place] : ends[place + 1]], row["length"]
        facts = dict(zip(row["fact_names"], row["facts"], strict=True))
        before = values.reshape(-1, length) if length else None
        found[row["digest"]] = StoredContext(before, row["rate"], tuple(row["units"]), facts)
    return found


def _context_rows(context: Context, places: list[int], digests: list[str]) -> pa.Table:
    befores = [context.before_of(i) for i in places]
    sizes = [0 if before is None else before.size for before in befores]
    given = [before.ravel() for before in befores if before is not None]
    flat = np.concatenate(given) if given else np.empty(0, np.float32)
    facts = [context.facts_of(i) for i in places]
    columns = [
        pa.array([digests[i] for i in places], pa.string()),
        pa.LargeListArray.from_arrays(pa.array(np.cumsum([0, *sizes]), pa.int64()), pa.array(flat)),
        pa.array([0 if before is None else before.shape[1] for before in befores], pa.int32()),
        pa.array(context.rates[places], pa.float64()),
        pa.array([list(context.units_of(i)) for i in places], pa.list_(pa.string())),
        pa.array([list(own) for own in facts], pa.list_(pa.string())),
        pa.array([list(own.values()) for own in facts], pa.list_(pa.float64())),
    ]
    return pa.table(columns, schema=_CONTEXTS)


def _read_windows(table: pa.Table) -> StoredWindows:
    """The rows of one contiguous table."""
    flat, ends = _flatten(table["values"])
    return StoredWindows(
        chunks=(flat,),
        chunk=np.zeros(len(table), np.int32),
        offset=ends[:-1],
        lengths=table["length"].to_numpy(),
        channels=[tuple(own) for own in table["channels"].to_pylist()],
        digests=table["digest"].to_pylist(),
    )


def _flatten(lists: pa.ChunkedArray) -> tuple[StoredArray, NDArray[np.int64]]:
    """All numbers of a column of lists, and where each list ends, a zero first."""
    column = lists.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    return column.values.to_numpy(), column.offsets.to_numpy().astype(np.int64)


def _update(claims: Any, where: str, token: str, holder: str) -> bool:  # noqa: ANN401 - a LanceDB table
    """Whether this very call changed the claims; one that others got ahead of did not."""
    try:
        return bool(claims.update(where=where, values={"token": token, "holder": holder}).rows_updated)
    except (OSError, RuntimeError) as error:
        if "conflict" not in str(error).lower():
            raise
        return False


def _quote(text: str) -> str:
    """A text as a literal of the filter language."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _names(database: Any) -> list[str]:  # noqa: ANN401 - a LanceDB connection
    listed = database.list_tables()
    return list(getattr(listed, "tables", listed))


def connect(where: str) -> Any:  # noqa: ANN401 - a LanceDB connection
    """All tables at a place."""
    try:
        return import_module("lancedb").connect(where)
    except ImportError as error:
        raise UsageError("The case library needs LanceDB: pip install 'readbench[cases]'") from error
