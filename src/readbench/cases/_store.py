"""Back ends of a library: their protocol, shared code, and stored vectors.

`_lance.py` stores a library in a folder or object store, `_postgres.py` in a database. Vectors of cases are computed
once and stored in the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.engine.context import Context
from readbench.engine.protocols import Encoder
from readbench.engine.vectors import Role, window_digests
from readbench.engine.windows import UNLABELLED, WindowSet, strings
from readbench.errors import DamageError, StoreError, UsageError

StoredArray = NDArray[np.float32]
StoredTable = Literal["windows", "contexts", "vectors"]
"""Tables whose rows are found by digest."""
FORMAT = "1"
"""Version of the tables; other versions are refused."""
POSTGRES = ("postgresql://", "postgres://")
"""Prefixes of database addresses."""


@dataclass(frozen=True)
class ListedContext:
    """Summary of a context: number of steps before, samples per second, and facts."""

    before: int
    rate: float
    facts: Mapping[str, float]


class Store(Protocol):
    """An append-only back end.

    The journal defines the contents of a library. Windows and vectors are stored by hash; rows that the journal does
    not name, as a killed writer leaves them, are ignored.
    """

    @property
    def where(self) -> str:
        """Folder or address for display, without a password."""
        ...

    @property
    def address(self) -> str:
        """Address that opens it from another process; may contain a password and is not displayed."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Hold the writer's lock."""
        ...

    def revision(self) -> int:
        """Number that changes with the journal and the channel names."""
        ...

    def journal(self, first: int = 0) -> pa.Table:
        """Rows of the journal from a step on."""
        ...

    def append(self, rows: pa.Table) -> None:
        """Append rows to the journal, all or none."""
        ...

    def file_windows(self, windows: WindowSet) -> list[str]:
        """Store values and channel names of windows; returns their digests."""
        ...

    def file_contexts(self, windows: WindowSet) -> list[str]:
        """Store the contexts of windows; returns their digests, "" without context."""
        ...

    def contexts(self, digests: Sequence[str]) -> Context:
        """Contexts of the digests, in this order; unknown for ""."""
        ...

    def list_contexts(self, digests: Sequence[str]) -> dict[str, ListedContext]:
        """Summaries of contexts by digest; does not read the steps before."""
        ...

    def windows(self, digests: Sequence[str]) -> WindowSet:
        """Windows of the digests, in this order, without facts."""
        ...

    def vectors(self, encoder: str, digests: Sequence[str]) -> dict[str, StoredArray]:
        """Stored vectors of windows by digest; `encoder` is a fingerprint."""
        ...

    def file_vectors(self, encoder: str, digests: Sequence[str], vectors: StoredArray) -> None:
        """Store vectors (N, D)."""
        ...

    def match_notes(self, text: str, limit: int) -> list[tuple[str, str]]:
        """Case and notes of journal rows, also replaced ones, whose notes match a text, best first."""
        ...

    def naming(self) -> dict[str, dict[str, str]]:
        """Channel names: alias -> `name` and `unit`."""
        ...

    def file_naming(self, entries: Iterable[tuple[str, str, str]]) -> None:
        """Store (alias, name, unit); a later entry replaces an earlier one of the same alias."""
        ...

    def optimise(self) -> None:
        """Merge small files and update indices; the contents stay the same."""
        ...

    def size(self) -> int:
        """Bytes on disk; 0 if unknown."""
        ...

    def encoders(self) -> list[str]:
        """Fingerprints of the encoders with stored vectors."""
        ...

    def discard(self, table: StoredTable, digests: Sequence[str]) -> None:
        """Delete damaged rows by digest; the journal is not changed."""
        ...

    def release(self) -> bool:
        """Release the lock of a killed writer; True if there was one."""
        ...


def open_store(where: str | Path, *, create: bool = False) -> Store:
    """Open or create the store at a folder or an address.

    Args:
        where: folder, address of LanceDB, or `postgresql://user@host/database?schema=plant`.
        create: create a new store.
    """
    if str(where).startswith("qdrant:"):
        raise UsageError(
            f"{where}: libraries are no longer kept on Qdrant. Run `readbench cases export {where} cases.parquet` with "
            "the version that wrote it, then `readbench cases init FOLDER` and `readbench cases import FOLDER "
            "cases.parquet` with this one."
        )
    module, name = ("_postgres", "PostgresStore") if str(where).startswith(POSTGRES) else ("_lance", "LanceStore")
    store: Store = getattr(import_module(f"readbench.cases.{module}"), name)(str(where), create=create)
    return store


class LibraryVectors:
    """Vectors of a library's cases in its store.

    Vectors of queries are not stored, nor those of encoders that are refitted with every case.

    Args:
        store: store of the library.
        files: store computed vectors; False if another process does.
    """

    def __init__(self, store: Store, *, files: bool = True) -> None:
        self.store = store
        self.files = files
        self.encoded = 0

    def keeps(self, encoder: Encoder, role: Role) -> bool:
        """True if vectors are looked up and stored."""
        return role == "corpus" and not encoder.corpus_dependent

    def key_of(self, encoder: Encoder) -> str:
        """Fingerprint of the encoder, which does not depend on the package version."""
        return encoder.fingerprint()

    def read(self, encoder: str, digests: Sequence[str]) -> dict[str, StoredArray]:
        """Stored vectors by digest."""
        return self.store.vectors(encoder, digests)

    def write(self, encoder: str, digests: Sequence[str], vectors: StoredArray) -> None:
        """Store vectors, and count them in `encoded`.

        If storing fails, as on a full disk, the next search computes them again.
        """
        if self.files:
            with suppress(StoreError):
                self.store.file_vectors(encoder, digests, vectors)
        self.encoded += len(digests)


@dataclass(frozen=True, eq=False)
class StoredContext:
    """Stored form of the context of one window."""

    before: StoredArray | None = None
    rate: float = float("nan")
    units: tuple[str, ...] = ()
    facts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class StoredWindows:
    """Stored form of N windows, in flat chunks.

    Args:
        chunks: readings.
        chunk: (N,) number of the chunk of each window.
        offset: (N,) start of the window in its chunk.
        lengths: (N,) steps.
        channels: (N,) channel names.
        digests: (N,) digests.
    """

    chunks: tuple[StoredArray, ...]
    chunk: NDArray[np.int32]
    offset: NDArray[np.int64]
    lengths: NDArray[np.int32]
    channels: list[tuple[str, ...]]
    digests: list[str]

    def ordered(self, wanted: Sequence[str], where: str, sound: set[str]) -> WindowSet:
        """Windows of the digests, in this order; raises if readings do not match their digest.

        Args:
            wanted: digests.
            where: name of the library in errors.
            sound: digests verified before; extended by those verified now.
        """
        place = {digest: row for row, digest in enumerate(self.digests)}
        _require_all("window", wanted, place, where)
        if not wanted:
            return WindowSet.from_arrays([])
        windows = self._windows()
        new = [digest for digest in dict.fromkeys(wanted) if digest not in sound]
        for digest, found in zip(new, window_digests(windows[[place[digest] for digest in new]]), strict=True):
            _require_same("window", digest, found, where)
        sound.update(new)
        return windows[np.array([place[digest] for digest in wanted], np.intp)]

    def _windows(self) -> WindowSet:
        sets = {channel_set: number for number, channel_set in enumerate(dict.fromkeys(self.channels))}
        count = len(self.digests)
        return WindowSet(
            chunks=self.chunks,
            chunk=self.chunk,
            offset=self.offset,
            lengths=self.lengths,
            channel_set=np.array([sets[channel_set] for channel_set in self.channels], np.int32),
            channel_sets=tuple(sets),
            labels=np.full(count, UNLABELLED, np.int32),
            classes=(),
            ids=strings(self.digests, count),
            groups=strings(self.digests, count),
            assets=strings([""] * count, count),
            times=np.full(count, np.nan),
            spans=np.zeros((count, 2), np.int32),
        )


def join_contexts(found: Mapping[str, StoredContext], wanted: Sequence[str], where: str) -> Context:
    """Join stored contexts in the order of the digests; unknown for ""; shared arrays stay shared."""
    named = [digest for digest in dict.fromkeys(wanted) if digest]
    _require_all("context", named, found, where)
    known = {"": StoredContext(), **found}
    rows = [known[digest] for digest in wanted]
    context = Context.of(
        len(rows),
        befores=[row.before for row in rows],
        rates=[row.rate for row in rows],
        units=[row.units for row in rows],
        facts=[row.facts for row in rows],
    )
    first = {digest: place for place, digest in reversed(list(enumerate(wanted)))}
    for digest in named:
        _require_same("context", digest, context.digest_of(first[digest]).hex(), where)
    return context


def context_digests(windows: WindowSet) -> list[str]:
    """Hashes of the contexts of windows; "" without context."""
    context = windows.context
    if context is None:
        return [""] * len(windows)
    return [context.digest_of(i).hex() for i in range(len(windows))]


def find_new(digests: Sequence[str], known: Iterable[str]) -> list[int]:
    """One position of each unknown digest; "" counts as known."""
    held = {"", *known}
    return list({digest: i for i, digest in enumerate(digests) if digest not in held}.values())


def _require_all(what: str, wanted: Sequence[str], found: Mapping[str, object], where: str) -> None:
    if missing := next((digest for digest in wanted if digest not in found), None):
        raise DamageError(f"The {what} {missing} is missing from {where}. {advise(where)}")


def _require_same(what: str, digest: str, found: str, where: str) -> None:
    if found != digest:
        raise DamageError(f"The {what} {digest} of {where} is damaged. {advise(where)}")


def advise(where: str) -> str:
    """Remedy for damage, as a sentence.

    >>> advise("plant")
    '`readbench cases check plant` lists what is damaged, and `--repair` keeps the rest.'
    """
    return f"`readbench cases check {quote(where)}` lists what is damaged, and `--repair` keeps the rest."
