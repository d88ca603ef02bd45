"""What a library needs of its storage, and vectors that are kept there.

Where a library lives: what a back end must do, and how one is opened.

Vectors of cases are computed once and kept in the library itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.engine.protocols import Encoder
from readbench.engine.vectors import Role
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError

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

    def matching(self, text: str, limit: int) -> list[tuple[str, str]]:
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
    from readbench.cases._lance import LanceStore  # noqa: PLC0415 - optional package

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

    def read(self, encoder: str, digests: Sequence[str]) -> dict[str, StoredArray]:
        """Known vectors."""
        return self.store.vectors(encoder, digests)

    def write(self, encoder: str, digests: Sequence[str], vectors: StoredArray) -> None:
        """Keep vectors; `encoded` counts those that had to be computed so far."""
        self.store.file_vectors(encoder, digests, vectors)
        self.encoded += len(digests)
