"""Read the numbers of a data frame from an R workspace (`.RData`), in bounded memory.

The format is R's own serialisation, versions 2 and 3, in XDR byte order ("R Internals", section "Serialization
Formats"), compressed by gzip, bzip2 or xz, or not at all. A data frame stores column after column, and the names of
the columns last. So every vector of numbers goes to a temporary file as it comes, and the wanted ones are read back
from there. Only what a data frame of numbers needs is understood: numbers, strings, lists, symbols, and the wrapped or
computed vectors of newer versions of R (of the latter no numbers).
"""

from __future__ import annotations

import bz2
import lzma
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from readbench.data.sources.files import open_binary
from readbench.errors import DataError

SYMBOL, PAIRS, TEXT = 1, 2, 9
LOGICALS, INTEGERS, REALS, TEXTS, ITEMS, POINTER = 10, 13, 14, 16, 19, 22
ALTERNATIVE, NOTHING, REFERENCE = 238, 254, 255
"""Type codes of the format that are understood."""
HAS_ATTRIBUTES, HAS_TAG = 0x200, 0x400
Dtype = np.dtype[np.int32] | np.dtype[np.float64]
DTYPES: dict[int, Dtype] = {LOGICALS: np.dtype(">i4"), INTEGERS: np.dtype(">i4"), REALS: np.dtype(">f8")}
NO_INTEGER = -(2**31)
CHUNK = 1 << 16
DEEPEST = 32


def frame_blocks(path: Path, columns: tuple[str, ...], rows: int = CHUNK) -> Iterator[NDArray[np.float32]]:
    """Stream a data frame: blocks (at most `rows`, len(columns)), NaN where R has NA.

    It is the first data frame in the workspace that has all the columns, whatever it is called there. Needs a
    temporary file of 4 bytes per number of the whole workspace, and memory for one block.
    """
    with tempfile.TemporaryFile() as spool:
        with _unpacked(path) as stream:
            vectors = _Workspace(path, stream, spool).columns(columns)
        for first in range(0, vectors[0].length, rows):
            yield np.stack([_part(spool, vector, first, rows) for vector in vectors], axis=1)


def _part(spool: IO[bytes], vector: Vector, first: int, rows: int) -> NDArray[np.float32]:
    spool.seek(4 * (vector.start + first))
    return np.frombuffer(spool.read(4 * min(rows, vector.length - first)), np.float32)


@dataclass(frozen=True)
class Vector:
    """Numbers in the temporary file: the place of the first, and how many."""

    start: int
    length: int


@dataclass(frozen=True)
class Listed:
    """An R list; a data frame is one whose items are its columns."""

    items: list[object]
    names: list[str]


@contextmanager
def _unpacked(path: Path) -> Iterator[IO[bytes]]:
    with open_binary(path) as file:
        start = file.read(6)
        file.seek(0)
        try:
            with ExitStack() as stack:
                if start.startswith(b"BZh"):
                    yield stack.enter_context(bz2.BZ2File(file))
                elif start == b"\xfd7zXZ\0":
                    yield stack.enter_context(lzma.LZMAFile(file))
                else:
                    yield file
        except lzma.LZMAError as error:
            raise DataError(f"{path}: cannot be unpacked ({error}). The file is damaged: get it again.") from error


class _Workspace:
    """Reads one workspace from front to back."""

    def __init__(self, path: Path, stream: IO[bytes], spool: IO[bytes]) -> None:
        self._path, self._stream, self._spool = path, stream, spool
        self._spooled = 0
        self._depth = 0
        self._symbols: list[str] = []

    def columns(self, names: tuple[str, ...]) -> list[Vector]:
        """The named columns, all of one length, of the first data frame that has them."""
        self._header()
        saved = self._item()
        frames = [value for _, value in saved if isinstance(value, Listed)] if isinstance(saved, list) else []
        for frame in frames:
            found = dict(zip(frame.names, frame.items, strict=False))
            if set(names) <= set(found):
                vectors = [item for name in names if isinstance(item := found[name], Vector)]
                if len(vectors) < len(names) or len({vector.length for vector in vectors}) > 1:
                    raise self._broken("the columns of the data frame are not all numbers of one length")
                return vectors
        raise self._broken(f"no data frame with the columns {names[0]}, {names[1]} ... {names[-1]}")

    def _header(self) -> None:
        magic = self._read(7)
        if magic not in (b"RDX2\nX\n", b"RDX3\nX\n"):
            raise self._broken("not a binary R workspace as R's save() writes it")
        version, _, _ = self._integer(), self._integer(), self._integer()
        if version not in (2, 3):
            raise self._broken(f"version {version} of the format is not known")
        if version == 3:
            self._read(self._length())  # name of the text encoding

    def _item(self) -> object:
        return self._value(self._integer())

    def _value(self, flags: int) -> object:
        """The item that these flags announce, with its attributes."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._broken("lists are nested too deeply")
        value = self._pairs(flags) if flags & 0xFF == PAIRS else self._bare(flags)
        self._depth -= 1
        return value

    def _bare(self, flags: int) -> object:
        kind = flags & 0xFF
        if kind == NOTHING:
            return None
        if kind == SYMBOL:
            self._symbols.append(str(self._item()))
            return self._symbols[-1]
        if kind == REFERENCE:
            return self._referred((flags >> 8) or self._integer())
        if kind == TEXT:
            length = self._integer()
            return self._read(length).decode("utf-8", "replace") if length >= 0 else ""
        if kind == ALTERNATIVE:
            return self._alternative()
        value = self._content(kind)
        names = self._names() if flags & HAS_ATTRIBUTES else []
        return Listed(value, names) if isinstance(value, list) else value

    def _content(self, kind: int) -> Vector | list[object] | None:
        if kind in DTYPES:
            return self._numbers(DTYPES[kind])
        if kind in (TEXTS, ITEMS):
            return [self._item() for _ in range(self._length())]
        if kind == POINTER:  # data tables carry one to themselves
            self._symbols.append("")
            self._item()
            self._item()
            return None
        raise self._broken(f"holds an R object of type {kind}, which no data frame of numbers has")

    def _names(self) -> list[str]:
        """The attribute `names`; other attributes are read over."""
        attributes = self._item()
        for tag, value in attributes if isinstance(attributes, list) else ():
            if tag == "names" and isinstance(value, Listed):
                return [str(name) for name in value.items]
        return []

    def _pairs(self, flags: int) -> list[tuple[str, object]]:
        """Tags and values of a pair list, which may end in something else than nothing."""
        pairs: list[tuple[str, object]] = []
        while flags & 0xFF == PAIRS:
            if flags & HAS_ATTRIBUTES:
                self._item()
            tag = str(self._item()) if flags & HAS_TAG else ""
            pairs.append((tag, self._item()))
            flags = self._integer()
        if flags & 0xFF != NOTHING:
            pairs.append(("", self._value(flags)))
        return pairs

    def _alternative(self) -> object:
        """A vector in one of R's alternative forms: wrapped ones are opened, computed ones have no numbers to read."""
        form, state, _ = self._item(), self._item(), self._item()
        name = str(form[0][1]) if isinstance(form, list) and form else ""
        if not name.startswith("wrap_"):
            return None
        if isinstance(state, Listed) and state.items:
            return state.items[0]
        return state[0][1] if isinstance(state, list) and state else None

    def _numbers(self, dtype: Dtype) -> Vector:
        """Copy a vector to the temporary file as float32."""
        start, length = self._spooled, self._length()
        for first in range(0, length, CHUNK):
            count = min(CHUNK, length - first)
            raw = np.frombuffer(self._read(count * dtype.itemsize), dtype)
            with np.errstate(over="ignore", invalid="ignore"):  # what float32 cannot hold is infinite
                numbers = raw.astype(np.float32)
            if dtype.kind == "i":
                numbers[raw == NO_INTEGER] = np.nan
            self._store(numbers.tobytes())
        self._spooled += length
        return Vector(start, length)

    def _store(self, content: bytes) -> None:
        try:
            self._spool.write(content)
            self._spool.flush()
        except OSError as error:
            raise DataError(
                f"{self._path}: no room for its numbers in {tempfile.gettempdir()} ({error}). "
                "Set TMPDIR to a folder with more."
            ) from error

    def _referred(self, number: int) -> str:
        if not 1 <= number <= len(self._symbols):
            raise self._broken(f"refers to symbol {number} of {len(self._symbols)}")
        return self._symbols[number - 1]

    def _length(self) -> int:
        length = self._integer()
        if length == -1:  # a long vector
            length = (self._integer() << 32) + (self._integer() & 0xFFFFFFFF)
        if length < 0:
            raise self._broken(f"a vector of length {length}")
        return length

    def _integer(self) -> int:
        return int.from_bytes(self._read(4), "big", signed=True)

    def _read(self, count: int) -> bytes:
        content = self._stream.read(count)
        if len(content) < count:
            raise self._broken("ends too early")
        return content

    def _broken(self, what: str) -> DataError:
        return DataError(f"{self._path}: {what}. The file is incomplete, damaged or of another kind: get it again.")
