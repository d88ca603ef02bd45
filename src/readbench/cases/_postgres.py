"""A library in a schema of a PostgreSQL database: many machines read and write it.

The server keeps order: a writer holds an advisory lock of its session, which ends with its connection however that
ends, and every append counts the revision up in the same transaction. A connection that was lost is replaced at the
next request. Passwords are given to libpq (which reads `PGPASSWORD` and `~/.pgpass`, too) and shown nowhere.
"""

from __future__ import annotations

import os
import re
import shlex
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Self, TypeVar
from urllib.parse import quote, unquote
from weakref import finalize

import numpy as np
import pyarrow as pa

from readbench.cases import _journal as journal
from readbench.cases._store import (
    FORMAT,
    ListedContext,
    StoredArray,
    StoredContext,
    StoredTable,
    StoredWindows,
    context_digests,
    find_new,
    join_contexts,
)
from readbench.common.deadlines import seconds_left
from readbench.engine.context import Context
from readbench.engine.vectors import window_digests
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, ReadbenchError, StoreError, UsageError

R = TypeVar("R")
Connection = Any
"""Of psycopg, an optional package."""
SCHEMA = "readbench"
"""Where a library is kept whose address names no schema."""
STATEMENT_S = 120
"""Longest statement."""
WRITER_S = 600
"""How long a writer waits for another."""
KEPT = 4
"""Connections that are kept for the next request."""
READ_AT_ONCE = 2048
"""Windows or vectors of one statement."""
NUMBER = np.dtype("<f4")
"""How readings and vectors are kept."""
DEFAULTS = {
    "application_name": "readbench",
    "connect_timeout": "10",
    # A peer that is gone is found out within a minute, not after two hours.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Of libpq; an address may say otherwise."""
_SETTINGS = (
    f"-c statement_timeout={STATEMENT_S}s"
    " -c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
)
_SECRET = ("password", "sslpassword")
_TYPES = {
    pa.int64(): "bigint",
    pa.string(): "text",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.list_(pa.string()): "text[]",
}
_JOURNAL = {own.name: _TYPES[own.type] for own in journal.SCHEMA}
_TABLES = f"""
CREATE TABLE library (format text NOT NULL, revision bigint NOT NULL);
INSERT INTO library VALUES ('{FORMAT}', 0);
CREATE TABLE windows (
  digest text PRIMARY KEY, readings bytea NOT NULL, length integer NOT NULL, channels text[] NOT NULL
);
CREATE TABLE contexts (
  digest text PRIMARY KEY, before bytea NOT NULL, length integer NOT NULL, rate double precision NOT NULL,
  units text[] NOT NULL, fact_names text[] NOT NULL, facts double precision[] NOT NULL
);
CREATE TABLE vectors (encoder text, digest text, vector bytea NOT NULL, PRIMARY KEY (encoder, digest));
CREATE TABLE naming (place bigint PRIMARY KEY, alias text NOT NULL, name text NOT NULL, unit text NOT NULL);
CREATE TABLE journal ({", ".join(f'"{name}" {kind} NOT NULL' for name, kind in _JOURNAL.items())}, PRIMARY KEY (step));
CREATE INDEX journal_notes ON journal USING gin (to_tsvector('english', notes));
"""  # noqa: S608 - constants


class PostgresStore:
    """Tables `journal`, `windows`, `contexts`, `vectors` and `naming`, and one row `library` with the revision.

    Args:
        where: `postgresql://user@host/database?schema=plant`, with any parameter of libpq.
        create: make a new library, and its schema where there is none; refused where there is a library.
    """

    def __init__(self, where: str, *, create: bool = False) -> None:
        self._place = _Place.parse(where)
        self._connections = _Connections(self._place)
        self._compared: set[str] = set()
        finalize(self, self._connections.close)
        if create:
            self._connections.do(self._create)
        else:
            self._connections.do(self._require)

    @property
    def where(self) -> str:
        """The address without its password."""
        return self._place.shown

    @property
    def address(self) -> str:
        """The address as it was given."""
        return self._place.given

    def writing(self) -> AbstractContextManager[None]:
        """Hold the lock of this schema, with one connection for all that this thread does meanwhile."""
        return self._connections.hold(self._lock, self._unlock)

    def revision(self) -> int:
        """The count of changes; it grows by one with each, and is the same for everybody."""
        return int(self._connections.read("SELECT revision FROM library")[0][0])

    def journal(self, first: int = 0) -> pa.Table:
        """All rows, or those from a step on, in order."""
        names = [name for name in _JOURNAL if name in self._columns()]
        rows = self._connections.read(
            f"SELECT {_list(names)} FROM journal WHERE step >= %s ORDER BY step",  # noqa: S608 - names of ours
            [int(first)],
        )
        schema = pa.schema([journal.SCHEMA.field(name) for name in names])
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        return pa.table([pa.array(own, kind.type) for own, kind in zip(columns, schema, strict=True)], schema=schema)

    def append(self, rows: pa.Table) -> None:
        """One transaction; refused where somebody wrote the same steps."""
        values = [tuple(row[name] for name in _JOURNAL) for row in rows.to_pylist()]
        missing = [name for name in journal.LATER if name not in self._columns()]

        def write(connection: Connection) -> None:
            with connection.transaction():
                for name in missing:
                    filling = journal.LATER[name].replace("as double)", "as double precision)")
                    connection.execute(
                        f'ALTER TABLE journal ADD COLUMN IF NOT EXISTS "{name}" {_JOURNAL[name]} NOT NULL'
                        f" DEFAULT {filling}"
                    )
                _count_up(connection)  # holds its row until the end, so that appends come one after the other
                (expected,) = connection.execute("SELECT coalesce(max(step) + 1, 0) FROM journal").fetchone()
                if values and values[0][0] != expected:
                    raise StoreError(f"Somebody else has written into {self.where} meanwhile. Do it again.")
                with connection.cursor() as cursor:
                    cursor.executemany(_insert("journal", list(_JOURNAL)), values)

        self._connections.do(write, again=False)

    def file_windows(self, windows: WindowSet) -> list[str]:
        """Keep those that are not kept yet."""
        windows = windows.with_context(None)  # a window is the same whatever it brings along
        digests = window_digests(windows)
        self._file(
            "windows",
            ["digest", "readings", "length", "channels"],
            digests,
            lambda i: (_pack(windows.values(i)), int(windows.lengths[i]), list(windows.channels(i))),
        )
        return digests

    def file_contexts(self, windows: WindowSet) -> list[str]:
        """Keep those that are not kept yet."""
        context, digests = windows.context, context_digests(windows)
        if context is None:
            return digests

        def row(i: int) -> tuple[object, ...]:
            before, facts = context.before_of(i), context.facts_of(i)
            packed, length = (b"", 0) if before is None else (_pack(before), before.shape[1])
            rate, units = float(context.rates[i]), list(context.units_of(i))
            return packed, length, rate, units, list(facts), [float(fact) for fact in facts.values()]

        columns = ["digest", "before", "length", "rate", "units", "fact_names", "facts"]
        self._file("contexts", columns, digests, row)
        return digests

    def contexts(self, digests: Sequence[str]) -> Context:
        """Matrices that several windows share are shared again."""
        columns = ["digest", "before", "length", "rate", "units", "fact_names", "facts"]
        found = {
            digest: StoredContext(
                np.frombuffer(before, NUMBER).reshape(-1, length) if length else None,
                rate,
                tuple(units),
                dict(zip(names, facts, strict=True)),
            )
            for digest, before, length, rate, units, names, facts in self._rows("contexts", columns, digests)
        }
        return join_contexts(found, digests, self.where)

    def list_contexts(self, digests: Sequence[str]) -> dict[str, ListedContext]:
        """Of the digests that are there."""
        columns = ["digest", "length", "rate", "fact_names", "facts"]
        return {
            digest: ListedContext(length, rate, dict(zip(names, facts, strict=True)))
            for digest, length, rate, names, facts in self._rows("contexts", columns, digests)
        }

    def windows(self, digests: Sequence[str]) -> WindowSet:
        """The readings of each statement become one chunk."""
        chunks: list[StoredArray] = []
        chunk, offset, lengths = list[int](), list[int](), list[int]()
        channels, found = list[tuple[str, ...]](), list[str]()
        for rows in self._blocks("windows", ["digest", "readings", "length", "channels"], digests):
            ends = np.cumsum([0, *(len(row[1]) // NUMBER.itemsize for row in rows)])
            chunks.append(np.frombuffer(b"".join(row[1] for row in rows), NUMBER))
            chunk += [len(chunks) - 1] * len(rows)
            offset += ends[:-1].tolist()
            lengths += [row[2] for row in rows]
            channels += [tuple(row[3]) for row in rows]
            found += [row[0] for row in rows]
        stored = StoredWindows(
            tuple(chunks),
            np.array(chunk, np.int32),
            np.array(offset, np.int64),
            np.array(lengths, np.int32),
            channels,
            found,
        )
        return stored.ordered(digests, self.where, self._compared)

    def vectors(self, encoder: str, digests: Sequence[str]) -> dict[str, StoredArray]:
        """Read by fingerprint and digest; those that are damaged count as unknown, since they can be computed."""
        rows = self._rows("vectors", ["digest", "vector"], digests, "encoder = %s AND", [encoder])
        return {digest: np.frombuffer(vector[:-4], NUMBER) for digest, vector in rows if _is_sound(vector)}

    def file_vectors(self, encoder: str, digests: Sequence[str], vectors: StoredArray) -> None:
        """One transaction; other processes may file the same ones at the same time."""
        # Sorted: two that file the same rows in another order would wait for each other for ever.
        rows = sorted((encoder, digest, _seal(_pack(vector))) for digest, vector in zip(digests, vectors, strict=True))
        again = "ON CONFLICT (encoder, digest) DO UPDATE SET vector = excluded.vector"
        self._insert("vectors", ["encoder", "digest", "vector"], rows, again)

    def match_notes(self, text: str, limit: int) -> list[tuple[str, str]]:
        """Full-text search for any of the words, in the forms that English gives them."""
        return self._connections.read(
            "WITH asked AS (SELECT replace(plainto_tsquery('english', %s)::text, ' & ', ' | ')::tsquery AS words)"
            " SELECT id, notes FROM journal, asked WHERE to_tsvector('english', notes) @@ words"
            " ORDER BY ts_rank(to_tsvector('english', notes), words) DESC, step DESC LIMIT %s",
            [text.replace("\x00", " "), limit],
        )

    def naming(self) -> dict[str, dict[str, str]]:
        """The last entry of each alias."""
        rows = self._connections.read("SELECT alias, name, unit FROM naming ORDER BY place")
        return {alias: {"name": name, "unit": unit} for alias, name, unit in rows}

    def file_naming(self, entries: Iterable[tuple[str, str, str]]) -> None:
        """One transaction."""
        new = list(entries)

        def write(connection: Connection) -> None:
            with connection.transaction():
                _count_up(connection)
                (first,) = connection.execute("SELECT coalesce(max(place) + 1, 0) FROM naming").fetchone()
                with connection.cursor() as cursor:
                    rows = [(first + i, *entry) for i, entry in enumerate(new)]
                    cursor.executemany(_insert("naming", ["place", "alias", "name", "unit"]), rows)

        if new:
            self._connections.do(write, again=False)

    def optimise(self) -> None:
        """Let the server clean its tables and look at what is in them."""

        def clean(connection: Connection) -> None:
            connection.execute("SET statement_timeout = 0")
            try:
                connection.execute("VACUUM (ANALYZE) library, windows, contexts, vectors, naming, journal")
            finally:
                connection.execute(f"SET statement_timeout = '{STATEMENT_S}s'")

        self._connections.do(clean)

    def size(self) -> int:
        """Bytes of all tables and indices of the schema."""
        query = (
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = to_regnamespace(%s)"
        )
        return int(self._connections.read(query, [self._place.schema])[0][0])

    def encoders(self) -> list[str]:
        """Each once."""
        return [str(row[0]) for row in self._connections.read("SELECT DISTINCT encoder FROM vectors ORDER BY 1")]

    def discard(self, table: StoredTable, digests: Sequence[str]) -> None:
        """One transaction."""
        query = f"DELETE FROM {table} WHERE digest = ANY(%s)"  # noqa: S608 - a name of ours
        self._connections.do(lambda connection: connection.execute(query, [list(digests)]))

    def release(self) -> bool:
        """Never needed: the lock of a writer ends with its connection."""
        return False

    def close(self) -> None:
        """End all connections that are kept; the next request makes a new one."""
        self._connections.close()

    def _create(self, connection: Connection) -> None:
        with connection.transaction():
            connection.execute(_LOCK.replace("_lock", "_xact_lock"), [self._place.schema])
            if self._format(connection) is not None:
                raise UsageError(f"{self.where} already holds a case library. Open it, or choose another schema.")
            (known,) = connection.execute("SELECT to_regnamespace(%s)", [self._place.schema]).fetchone()
            if known is None:
                connection.execute(f'CREATE SCHEMA "{self._place.schema}"')
            connection.execute(_TABLES)

    def _require(self, connection: Connection) -> None:
        found = self._format(connection)
        if found is None:
            raise UsageError(
                f"There is no case library at {self.where}. Make one: readbench cases init {shlex.quote(self.where)}"
            )
        if found != FORMAT:
            raise DataError(
                f"{self.where} has format {found!r}, this version reads {FORMAT!r}. Export it and import it."
            )

    def _format(self, connection: Connection) -> str | None:
        """Of the library in this schema; None where there is none."""
        query = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'library'"
        if connection.execute(query, [self._place.schema]).fetchone() is None:
            return None
        row = connection.execute("SELECT format FROM library").fetchone()
        return None if row is None else str(row[0])

    def _lock(self, connection: Connection) -> None:
        with connection.transaction():  # the settings end with it, the lock does not
            wait_ms = max(1, round(1000 * min(WRITER_S, seconds_left())))
            connection.execute(f"SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {wait_ms}")
            connection.execute(_LOCK, [self._place.schema])

    def _unlock(self, connection: Connection) -> None:
        connection.execute(_LOCK.replace("_lock", "_unlock"), [self._place.schema])

    def _columns(self) -> set[str]:
        """Of the journal; one that an older version made lacks what came later."""
        query = "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = 'journal'"
        return {str(row[0]) for row in self._connections.read(query, [self._place.schema])}

    def _file(
        self, table: str, columns: list[str], digests: list[str], row: Callable[[int], tuple[object, ...]]
    ) -> None:
        """Keep rows whose digests are not kept yet."""
        known = [str(own[0]) for own in self._rows(table, ["digest"], digests)]
        new = sorted(find_new(digests, known), key=digests.__getitem__)
        for start in range(0, len(new), READ_AT_ONCE):
            self._insert(table, columns, [(digests[i], *row(i)) for i in new[start : start + READ_AT_ONCE]])

    def _insert(
        self, table: str, columns: list[str], rows: list[tuple[Any, ...]], again: str = "ON CONFLICT DO NOTHING"
    ) -> None:
        """In one transaction; `again` says what becomes of rows that are there, so that it may be done twice."""

        def write(connection: Connection) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(f"{_insert(table, columns)} {again}", rows)

        if rows:
            self._connections.do(write)

    def _rows(
        self, table: str, columns: list[str], digests: Sequence[str], condition: str = "", given: Sequence[Any] = ()
    ) -> list[tuple[Any, ...]]:
        return [row for rows in self._blocks(table, columns, digests, condition, given) for row in rows]

    def _blocks(
        self, table: str, columns: list[str], digests: Sequence[str], condition: str = "", given: Sequence[Any] = ()
    ) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of some digests, each once, a block at a time."""
        wanted = [digest for digest in dict.fromkeys(digests) if digest]
        query = f"SELECT {_list(columns)} FROM {table} WHERE {condition} digest = ANY(%s)"  # noqa: S608 - names of ours
        for start in range(0, len(wanted), READ_AT_ONCE):
            yield self._connections.read(query, [*given, wanted[start : start + READ_AT_ONCE]])


_LOCK = "SELECT pg_advisory_lock(hashtextextended('readbench ' || %s, 0))"


def _count_up(connection: Connection) -> None:
    connection.execute("UPDATE library SET revision = revision + 1")


def _list(columns: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({_list(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"  # noqa: S608


def _pack(values: StoredArray) -> bytes:
    return np.ascontiguousarray(values, NUMBER).tobytes()


def _seal(packed: bytes) -> bytes:
    """With a sum at the end: nothing else says what a vector should be."""
    return packed + zlib.crc32(packed).to_bytes(4, "little")


def _is_sound(sealed: bytes) -> bool:
    return _seal(sealed[:-4]) == sealed and not len(sealed) % NUMBER.itemsize


@dataclass(frozen=True)
class _Place:
    """An address, taken apart.

    Args:
        given: as it was given.
        shown: the same without a password.
        schema: of the library.
        conninfo: for libpq.
        secrets: texts that are shown nowhere.
    """

    given: str = field(repr=False)
    shown: str
    schema: str
    conninfo: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def parse(cls, where: str) -> Self:
        """Of an address."""
        head, _, query = where.partition("?")
        pairs = [pair for pair in query.split("&") if pair]
        schemas = [unquote(pair.partition("=")[2]) for pair in pairs if pair.startswith("schema=")]
        others = [pair for pair in pairs if not pair.startswith("schema=")]
        schema = schemas[-1] if schemas else SCHEMA
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema) or schema.startswith("pg_"):
            raise UsageError(f"{schema!r} is no name of a schema. Use small letters, digits and _: ?schema=plant")
        package = _package()
        try:
            given = package.conninfo.conninfo_to_dict("?".join([head, "&".join(others)] if others else [head]))
        except package.Error:  # what libpq says may quote the password
            raise UsageError(
                "The address of the database cannot be read. Write it as postgresql://user@host:5432/database?schema="
                f"{schema}, with %40 for an @ in a name or password."
            ) from None
        secrets = tuple(str(given[name]) for name in _SECRET if given.get(name))
        options = f"-c search_path={schema} {_SETTINGS} {given.get('options') or ''}".strip()
        conninfo = package.conninfo.make_conninfo(**(DEFAULTS | given | {"options": options}))
        return cls(where, _show(given, schema) if secrets else where, schema, conninfo, secrets)

    def hide(self, text: str) -> str:
        """A text without secrets, in one line."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return " ".join(text.split())


def _show(given: dict[str, Any], schema: str) -> str:
    """An address that had a password."""
    parts = {name: quote(str(given.get(name) or ""), safe=",") for name in ("user", "host", "port", "dbname")}
    port = f":{parts['port']}" if parts["port"] else ""
    return f"postgresql://{parts['user']}:***@{parts['host']}{port}/{parts['dbname']}?schema={schema}"


class _Connections:
    """Connections of this process to one place: each serves one thread at a time and is kept for the next.

    Args:
        place: where to.
    """

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._kept: list[Any] = []
        self._owner = os.getpid()
        self._guard = threading.Lock()
        self._held = threading.local()

    def read(self, query: str, given: Sequence[Any] = ()) -> list[Any]:
        """The rows of a query."""

        def ask(connection: Connection) -> list[Any]:
            with connection.cursor(binary=True) as cursor:
                return list(cursor.execute(query, given).fetchall())

        return self.do(ask)

    def do(self, work: Callable[[Connection], R], *, again: bool = True) -> R:
        """Work with a connection: in `hold` with that one, else with any.

        Args:
            work: what is done.
            again: a connection that was kept and is found dead is replaced by a new one, since the work may be
                repeated.
        """
        with self._explain():
            held = getattr(self._held, "connection", None)
            if held is not None:
                return work(held)
            connection, result = self._begin(work, again=again)
            self._keep(connection)
            return result

    @contextmanager
    def hold(self, prepare: Callable[[Connection], None], finish: Callable[[Connection], None]) -> Iterator[None]:
        """One connection for all that this thread does meanwhile; where it is lost, so is what `prepare` did."""
        with self._explain():
            connection, _ = self._begin(prepare, again=True)
        self._held.connection = connection
        try:
            yield
        finally:
            self._held.connection = None
            try:
                finish(connection)
            except _package().Error:  # lost: then the server has finished it already
                connection.close()
            else:
                self._keep(connection)

    def close(self) -> None:
        """End those that are kept."""
        with self._guard:
            kept, self._kept = self._kept, []
        if self._owner == os.getpid():  # those of a process that this one was forked from are not ours
            for connection in kept:
                connection.close()

    def _begin(self, work: Callable[[Connection], R], *, again: bool) -> tuple[Connection, R]:
        """A connection, and what work with it gave."""
        kept = self._take()
        if kept is not None:
            try:
                return kept, _use(kept, work)
            except _package().OperationalError:
                if not (again and kept.broken):
                    raise
                self.close()  # the others are of the same age
        connection = _package().connect(self._place.conninfo, autocommit=True)
        return connection, _use(connection, work)

    def _take(self) -> Connection | None:
        if self._owner != os.getpid():
            self._kept, self._owner, self._guard = [], os.getpid(), threading.Lock()
        with self._guard:
            return self._kept.pop() if self._kept else None

    def _keep(self, connection: Connection) -> None:
        with self._guard:
            if len(self._kept) < KEPT and not connection.closed:
                self._kept.append(connection)
                return
        connection.close()

    @contextmanager
    def _explain(self) -> Iterator[None]:
        """Say in one sentence what the server or the way to it refused; what they say may hold secrets."""
        package = _package()
        try:
            yield
        except package.Error as error:
            raise self._explained(error, package.errors) from None

    def _explained(self, error: Any, errors: Any) -> ReadbenchError:  # noqa: ANN401 - of psycopg
        where, said, code = self._place.shown, self._place.hide(str(error)), error.sqlstate or ""
        if isinstance(error, errors.DataError):
            return UsageError(f"{where} cannot keep this text: {said}. Leave that character out.")
        sentence = f"{where} refused: {said}"
        if code == errors.LockNotAvailable.sqlstate:
            sentence = f"Another process has been writing into {where} for too long. Try again later."
        elif code == errors.QueryCanceled.sqlstate:
            sentence = f"{where} did not answer within {STATEMENT_S} s. Try again when it has less to do."
        elif code.startswith("53"):
            sentence = f"{where} has run out of something: {said}. Nothing was written. Make room there."
        elif not code and said.startswith("connection "):  # was never made
            sentence = f"{where} cannot be reached: {said}"
        elif not code or code.startswith(("57P", "08")):
            sentence = (
                f"The connection to {where} was lost. Ask again: the next request makes a new one. A change that was"
                " being written is there whole or not at all; `readbench cases history` lists the changes."
            )
        return StoreError(sentence)


def _use(connection: Connection, work: Callable[[Connection], R]) -> R:
    """The result of work; after an error the connection is ended, unless it has ended itself."""
    try:
        return work(connection)
    except BaseException:
        if not connection.closed:
            connection.close()
        raise


def _package() -> Any:  # noqa: ANN401 - an optional package
    try:
        package = import_module("psycopg")
        import_module("psycopg.conninfo")
    except ImportError as error:
        raise UsageError("A library in PostgreSQL needs psycopg: pip install 'readbench[postgres]'") from error
    return package
