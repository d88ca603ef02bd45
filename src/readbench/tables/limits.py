"""How much of a user's file is read, and opening it within that."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pyarrow as pa

from readbench.errors import DataError

Given = Path | tuple[str, bytes]
"""A file, or the name and content of one that was sent."""


@dataclass(frozen=True)
class Limits:
    """Most bytes (unpacked), rows and columns of one file; what is larger is refused before it fills the memory."""

    max_bytes: int = 4 * 2**30
    max_rows: int = 50_000_000
    max_columns: int = 10_000

    def check_bytes(self, name: str, size: int) -> None:
        """Raise `DataError` where a file is larger than this, unpacked."""
        self._check(name, size, self.max_bytes, "bytes")

    def check_rows(self, name: str, rows: int) -> None:
        """Raise `DataError` where a table has more rows than this."""
        self._check(name, rows, self.max_rows, "rows")

    def check_columns(self, name: str, columns: int) -> None:
        """Raise `DataError` where a table has more columns than this."""
        self._check(name, columns, self.max_columns, "columns")

    @staticmethod
    def _check(name: str, found: int, most: int, what: str) -> None:
        if found > most:
            raise DataError(f"{name}: {found:,} {what}, more than the {most:,} that are read. Split the file.")


def open_given(given: Given, limits: Limits) -> tuple[str, pa.NativeFile]:
    """The name of a file without `.gz`, and the file unpacked and opened for reading.

    >>> name, file = open_given(("a.csv.gz", gzip.compress(b"x")), Limits())
    >>> name, file.read()
    ('a.csv', b'x')
    """
    name = given.name if isinstance(given, Path) else given[0]
    file = _open(given, limits)
    if not name.lower().endswith(".gz"):
        return name, file
    return name[: -len(".gz")], pa.BufferReader(_unpacked(name, file, limits))


def _open(given: Given, limits: Limits) -> pa.NativeFile:
    if not isinstance(given, Path):
        name, content = given
        limits.check_bytes(name, len(content))
        return pa.BufferReader(content)
    try:
        size = given.stat().st_size
        limits.check_bytes(str(given), size)
        return pa.memory_map(str(given)) if size else pa.BufferReader(b"")
    except OSError as error:
        raise DataError(f"{given}: cannot be opened ({error.strerror or error}). Check the path.") from error


def _unpacked(name: str, file: pa.NativeFile, limits: Limits) -> bytes:
    """At most one byte more than the limit is ever unpacked."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(file.read())) as unpacker:
            content = unpacker.read(limits.max_bytes + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{name}: cannot be unpacked ({error}). The file is damaged: get it again.") from error
    limits.check_bytes(name, len(content))
    return content
