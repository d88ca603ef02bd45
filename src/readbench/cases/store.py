"""Where a library lives: what a back end must do, and how one is opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.errors import UsageError
from readbench.windows import WindowSet

Vectors = NDArray[np.float32]


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

    def vectors(self, encoder: str, digests: Sequence[str]) -> dict[str, Vectors]:
        """The vectors that are known of these windows, under an encoder's fingerprint."""
        ...

    def file_vectors(self, encoder: str, digests: Sequence[str], vectors: Vectors) -> None:
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
    from readbench.cases.lance import LanceStore  # noqa: PLC0415 - optional package

    return LanceStore(str(where), create=create)
