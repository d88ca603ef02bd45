"""Where a library lives: what a back end must do, what all of them share, and vectors kept there.

`_lance.py` keeps a library in a folder or an object store, `_postgres.py` in a database. Vectors of cases are computed
once and kept in the library itself.
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
"""What is kept under digests."""
FORMAT = "1"
"""Of the tables; a library of another format is refused."""
POSTGRES = ("postgresql://", "postgres://")
"""How addresses of databases begin."""


@dataclass(frozen=True)
class ListedContext:
    """Context in short: steps of the time before, samples a second, and facts."""

    before: int
    rate: float
    facts: Mapping[str, float]


class Store(Protocol):
    """A back end: it appends, and finds what was appended.

    The journal decides what a library holds. Windows and vectors are filed under the hash of what they are, so that
    rows without a place in the journal, as a killed writer leaves them, mean nothing and harm nobody.
    """

    @property
    def where(self) -> str:
        """Its folder or address, as it may be shown: without a password."""
        ...

    @property
    def address(self) -> str:
        """What opens it in another process or folder; it may hold a password, and is shown nowhere."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Hold the one writer's lock."""
        ...

    def revision(self) -> int:
        """A number that differs after every change of the journal or of the names of channels."""
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

    def file_contexts(self, windows: WindowSet) -> list[str]:
        """Keep what windows bring along, and return its digests; "" for a window that brings nothing."""
        ...

    def contexts(self, digests: Sequence[str]) -> Context:
        """The context of these digests, in this order; of "" nothing is known."""
        ...

    def list_contexts(self, digests: Sequence[str]) -> dict[str, ListedContext]:
        """The same in short, by digest, without reading any time before."""
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

    def encoders(self) -> list[str]:
        """Fingerprints of the encoders whose vectors are kept."""
        ...

    def discard(self, table: StoredTable, digests: Sequence[str]) -> None:
        """Drop what is kept under digests, since it is damaged; the journal stays."""
        ...

    def release(self) -> bool:
        """End the claim of a writer that was killed, where there is one; whether there was."""
        ...


def open_store(where: str | Path, *, create: bool = False) -> Store:
    """Open the store at a folder or an address; `create` makes one where there is none.

    Args:
        where: a folder, an address that LanceDB knows, or `postgresql://user@host/database?schema=plant`.
        create: make a new one.
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
    """The vectors of a library's cases, in its own store.

    Windows that are asked about are encoded and forgotten. Vectors of encoders that are fitted anew with every case are
    never kept: they would be of no use again.

    Args:
        store: of the library.
        files: keep vectors that had to be computed; else another process does.
    """

    def __init__(self, store: Store, *, files: bool = True) -> None:
        self.store = store
        self.files = files
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
        """Keep vectors; `encoded` counts those that had to be computed so far.

        Where they cannot be kept, as on a full disk, the next search computes them again: reading needs no write.
        """
        if self.files:
            with suppress(StoreError):
                self.store.file_vectors(encoder, digests, vectors)
        self.encoded += len(digests)


@dataclass(frozen=True, eq=False)
class StoredContext:
    """What one window brings along, as it is kept."""

    before: StoredArray | None = None
    rate: float = float("nan")
    units: tuple[str, ...] = ()
    facts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class StoredWindows:
    """N windows as they are kept: one after the other in flat chunks.

    Args:
        chunks: readings.
        chunk: (N,) which chunk each window is in.
        offset: (N,) where it begins there.
        lengths: (N,) steps.
        channels: of each.
        digests: under which they are kept.
    """

    chunks: tuple[StoredArray, ...]
    chunk: NDArray[np.int32]
    offset: NDArray[np.int64]
    lengths: NDArray[np.int32]
    channels: list[tuple[str, ...]]
    digests: list[str]

    def ordered(self, wanted: Sequence[str], where: str, sound: set[str]) -> WindowSet:
        """The windows of these digests, in this order, each with the readings that its digest says.

        Args:
            wanted: digests.
            where: the library, for errors.
            sound: digests that were compared before; those of now are added.
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
    """What is kept under these digests, in this order; of "" nothing is known, and what is shared stays shared."""
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
    """Hashes of what windows bring along; "" of those that bring nothing."""
    context = windows.context
    if context is None:
        return [""] * len(windows)
    return [context.digest_of(i).hex() for i in range(len(windows))]


def find_new(digests: Sequence[str], known: Iterable[str]) -> list[int]:
    """A place of each digest that is not known; "" always is."""
    held = {"", *known}
    return list({digest: i for i, digest in enumerate(digests) if digest not in held}.values())


def _require_all(what: str, wanted: Sequence[str], found: Mapping[str, object], where: str) -> None:
    if missing := next((digest for digest in wanted if digest not in found), None):
        raise DamageError(f"The {what} {missing} is missing from {where}. {advise(where)}")


def _require_same(what: str, digest: str, found: str, where: str) -> None:
    if found != digest:
        raise DamageError(f"The {what} {digest} of {where} is damaged. {advise(where)}")


def advise(where: str) -> str:
    """What to do about damage.

    >>> advise("plant")
    '`readbench cases check plant` lists what is damaged, and `--repair` keeps the rest.'
    """
    return f"`readbench cases check {quote(where)}` lists what is damaged, and `--repair` keeps the rest."
