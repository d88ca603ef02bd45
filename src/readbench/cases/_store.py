"""Where a library lives: what a back end must do, LanceDB in one folder or at an address, and vectors kept there.

Vectors of cases are computed once and kept in the library itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.cases import _journal as journal
from readbench.common.files import exclusive
from readbench.engine.protocols import Encoder
from readbench.engine.vectors import Role, window_digests
from readbench.engine.windows import UNLABELLED, WindowSet, strings
from readbench.errors import DataError, UsageError

StoredArray = NDArray[np.float32]


class Store(Protocol):
    """A back end: it appends, and finds what was appended.

    The journal decides what a library holds. Windows and vectors are filed under the hash of what they are, so that
    rows without a place in the journal, as a killed writer leaves them, mean nothing and harm nobody.
    """

    @property
    def where(self) -> str:
        """Its folder or address, as it was given."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Hold the one writer's lock."""
        ...

    def revision(self) -> int:
        """A number that differs after every change of the journal."""
        ...

    def journal(self, first: int = 0) -> pa.Table:
        """All rows of the journal, or those from a step on."""
        ...

    def append(self, rows: pa.Table) -> None:
        """Add rows to the journal: all of them or none."""
        ...

    def file_windows(self, windows: WindowSet) -> list[str]:
        """Keep the values of windows, and return their digests; nothing but values and channel names is kept."""
        ...

    def windows(self, digests: Sequence[str]) -> WindowSet:
        """The windows of these digests, in this order, without any fact about them."""
        ...

    def vectors(self, encoder: str, digests: Sequence[str]) -> dict[str, StoredArray]:
        """The vectors that are known of these windows, under an encoder's fingerprint."""
        ...

    def file_vectors(self, encoder: str, digests: Sequence[str], vectors: StoredArray) -> None:
        """Keep vectors (N, D)."""
        ...

    def match_notes(self, text: str, limit: int) -> list[tuple[str, str]]:
        """Case and notes of rows of the journal whose notes match a text, best first; rows of the past among them."""
        ...

    def naming(self) -> dict[str, dict[str, str]]:
        """What the site calls its channels: alias -> `name` and `unit`."""
        ...

    def file_naming(self, entries: Iterable[tuple[str, str, str]]) -> None:
        """Keep (alias, name, unit); a later entry of the same alias replaces an earlier one."""
        ...

    def optimise(self) -> None:
        """Merge small files and bring indices up to date; changes nothing that can be read."""
        ...

    def size(self) -> int:
        """Bytes on disk; 0 where they cannot be counted."""
        ...


def open_store(where: str | Path, *, create: bool = False) -> Store:
    """Open the store at a folder or an address; `create` makes one where there is none.

    Args:
        where: a folder or an address that LanceDB knows.
        create: make a new one.
    """
    if str(where).startswith("qdrant:"):
        raise UsageError(
            f"{where}: libraries are no longer kept on Qdrant. Run `readbench cases export {where} cases.parquet` with "
            "the version that wrote it, then `readbench cases init FOLDER` and `readbench cases import FOLDER "
            "cases.parquet` with this one."
        )
    return LanceStore(str(where), create=create)


class LibraryVectors:
    """The vectors of a library's cases, in its own store.

    Windows that are asked about are encoded and forgotten. Vectors of encoders that are fitted anew with every case are
    never kept: they would be of no use again.

    Args:
        store: of the library.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.encoded = 0

    def keeps(self, encoder: Encoder, role: Role) -> bool:
        """Whether vectors are looked up and kept."""
        return role == "corpus" and not encoder.corpus_dependent

    def key_of(self, encoder: Encoder) -> str:
        """Its fingerprint: a library outlives versions of the package, and is not encoded anew with each."""
        return encoder.fingerprint()

    def read(self, encoder: str, digests: Sequence[str]) -> dict[str, StoredArray]:
        """Known vectors."""
        return self.store.vectors(encoder, digests)

    def write(self, encoder: str, digests: Sequence[str], vectors: StoredArray) -> None:
        """Keep vectors; `encoded` counts those that had to be computed so far."""
        self.store.file_vectors(encoder, digests, vectors)
        self.encoded += len(digests)


FORMAT = "1"
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
_VECTORS = pa.schema([("encoder", pa.string()), ("digest", pa.string()), ("vector", pa.large_list(pa.float32()))])
_NAMING = pa.schema([("order", pa.int64()), ("alias", pa.string()), ("name", pa.string()), ("unit", pa.string())])
_TABLES = {
    "windows": _WINDOWS,
    "vectors": _VECTORS,
    "naming": _NAMING,
    "journal": journal.SCHEMA.with_metadata({"readbench": FORMAT}),
}


class LanceStore:
    """Tables `journal`, `windows`, `vectors` and `naming`; each append is one atomic commit.

    Args:
        where: a folder, or an address that LanceDB knows, such as `s3://bucket/library`.
        create: make a new library; refused where there is one.
    """

    def __init__(self, where: str, *, create: bool = False) -> None:
        self.where = where
        self.folder = None if "://" in where else Path(where)
        if not create and self.folder is not None and not self.folder.is_dir():
            raise UsageError(f"There is no case library at {where}. Make one: readbench cases init {where}")
        database = _package().connect(where)
        known = set(_names(database))
        if create and "journal" in known:
            raise UsageError(f"{where} already holds a case library. Open it, or choose another place.")
        if not create and "journal" not in known:
            raise UsageError(f"{where} is no case library. Make one: readbench cases init {where}")
        for name, schema in _TABLES.items():  # the journal last: with it the library exists
            if create and name not in known:
                database.create_table(name, schema=schema)
        self._tables = {name: database.open_table(name) for name in _TABLES}
        written = (self._tables["journal"].schema.metadata or {}).get(b"readbench", b"").decode()
        if written != FORMAT:
            raise DataError(f"{where} has format {written!r}, this version reads {FORMAT!r}. Export it and import it.")

    def writing(self) -> AbstractContextManager[None]:
        """Hold the lock of this folder; in an object store the site sees to it that one process writes."""
        return nullcontext() if self.folder is None else exclusive(self.folder / "writer.lock")

    def revision(self) -> int:
        """Version of the journal's table."""
        return int(self._latest("journal").version)

    def journal(self, first: int = 0) -> pa.Table:
        """All rows, or those from a step on."""
        table = self._latest("journal")
        return table.search().where(f"step >= {int(first)}").limit(None).to_arrow() if first else table.to_arrow()

    def append(self, rows: pa.Table) -> None:
        """One commit."""
        self._add("journal", rows)

    def file_windows(self, windows: WindowSet) -> list[str]:
        """Keep those that are not kept yet."""
        digests = window_digests(windows)
        known = set(self._rows("windows", "digest", digests, ["digest"])["digest"].to_pylist())
        new = list({digest: i for i, digest in enumerate(digests) if digest not in known}.values())
        if new:
            self._add("windows", _window_rows(windows[new], [digests[i] for i in new]))
        return digests

    def windows(self, digests: Sequence[str]) -> WindowSet:
        """Values stay in the buffers that LanceDB filled."""
        table = self._rows("windows", "digest", digests, None).combine_chunks()
        place = {digest: row for row, digest in enumerate(table["digest"].to_pylist())}
        if missing := next((digest for digest in digests if digest not in place), None):
            raise DataError(f"The window {missing} is missing from {self.where}. Restore the folder from a copy.")
        order = np.array([place[digest] for digest in digests], np.intp)
        return _window_set(table)[order] if len(order) else WindowSet.from_arrays([])

    def vectors(self, encoder: str, digests: Sequence[str]) -> dict[str, StoredArray]:
        """Read by fingerprint, then by digest."""
        table = self._rows("vectors", "digest", digests, ["digest", "vector"], f"encoder = {_quote(encoder)}")
        column = table["vector"].combine_chunks()
        flat, width = column.values.to_numpy(), len(column) and len(column[0])
        return dict(zip(table["digest"].to_pylist(), flat.reshape(len(column), width), strict=True))

    def file_vectors(self, encoder: str, digests: Sequence[str], vectors: StoredArray) -> None:
        """One commit; other processes may file the same ones at the same time."""
        count = len(digests)
        ends = np.arange(count + 1, dtype=np.int64) * vectors.shape[1]
        column = pa.LargeListArray.from_arrays(pa.array(ends), pa.array(np.ascontiguousarray(vectors).ravel()))
        self._add("vectors", pa.table([[encoder] * count, list(digests), column], schema=_VECTORS))

    def match_notes(self, text: str, limit: int) -> list[tuple[str, str]]:
        """Full-text search by BM25; rows that came after the index was made are searched as well."""
        table = self._latest("journal")
        if not table.count_rows():
            return []
        if not any(index.columns == ["notes"] for index in table.list_indices()):
            with self.writing():
                self._index_notes()
        query = import_module("lancedb.query").MatchQuery(text, "notes")
        found = table.search(query, query_type="fts").select(["id", "notes", "_score"]).limit(limit).to_arrow()
        return list(zip(found["id"].to_pylist(), found["notes"].to_pylist(), strict=True))

    def naming(self) -> dict[str, dict[str, str]]:
        """The last entry of each alias."""
        table = self._latest("naming").to_arrow().sort_by("order")
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
        for name in _TABLES:
            table = self._latest(name)
            if "digest" in table.schema.names and not any(i.columns == ["digest"] for i in table.list_indices()):
                table.create_index("digest", config=import_module("lancedb.index").BTree())
            table.optimize(cleanup_older_than=KEEP_FILES)

    def size(self) -> int:
        """Bytes of all files in the folder."""
        files = [] if self.folder is None else self.folder.rglob("*")
        return sum(path.stat().st_size for path in files if path.is_file())

    def _add(self, name: str, rows: pa.Table) -> None:
        table = self._latest(name)
        table.add(rows)
        if len(rows) <= SMALL and table.version % OPTIMISE_EVERY == 0:
            table.optimize(cleanup_older_than=KEEP_FILES)

    def _latest(self, name: str) -> Any:  # noqa: ANN401 - a LanceDB table
        table = self._tables[name]
        table.checkout_latest()
        return table

    def _index_notes(self) -> None:
        fts = import_module("lancedb.index").FTS
        self._tables["journal"].create_index("notes", config=fts(), replace=True)

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
        return (query.select(columns) if columns else query).to_arrow()


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


def _window_set(table: pa.Table) -> WindowSet:
    """The rows of one contiguous table as windows."""
    column = table["values"].combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    names = [tuple(own) for own in table["channels"].to_pylist()]
    sets = {own: number for number, own in enumerate(dict.fromkeys(names))}
    count = len(table)
    return WindowSet(
        chunks=(column.values.to_numpy(),),
        chunk=np.zeros(count, np.int32),
        offset=column.offsets.to_numpy()[:-1].astype(np.int64),
        lengths=table["length"].to_numpy(),
        channel_set=np.array([sets[own] for own in names], np.int32),
        channel_sets=tuple(sets),
        labels=np.full(count, UNLABELLED, np.int32),
        classes=(),
        ids=strings(table["digest"].to_pylist(), count),
        groups=strings(table["digest"].to_pylist(), count),
        assets=strings([""] * count, count),
        times=np.full(count, np.nan),
        spans=np.zeros((count, 2), np.int32),
    )


def _quote(text: str) -> str:
    """A text as a literal of the filter language."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _names(database: Any) -> list[str]:  # noqa: ANN401 - a LanceDB connection
    listed = database.list_tables()
    return list(getattr(listed, "tables", listed))


def _package() -> Any:  # noqa: ANN401 - an optional package
    try:
        return import_module("lancedb")
    except ImportError as error:
        raise UsageError("The case library needs LanceDB: pip install 'readbench[cases]'") from error
