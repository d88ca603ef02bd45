"""R workspaces, byte by byte as R's save() writes them ("R Internals", section "Serialization Formats")."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

NOTHING = struct.pack(">i", 254)
NO_INTEGER = -(2**31)


def integers(values: ArrayLike, kind: int = 13) -> bytes:
    numbers = np.asarray(values, ">i4")
    return struct.pack(">ii", kind, numbers.size) + numbers.tobytes()


def reals(values: ArrayLike) -> bytes:
    numbers = np.asarray(values, ">f8")
    return struct.pack(">ii", 14, numbers.size) + numbers.tobytes()


def long_reals(values: ArrayLike) -> bytes:
    """As R writes vectors of 2^31 numbers and more."""
    numbers = np.asarray(values, ">f8")
    return struct.pack(">iiii", 14, -1, 0, numbers.size) + numbers.tobytes()


def text(value: str) -> bytes:
    return struct.pack(">ii", 0x00040009, len(value)) + value.encode("ascii")


def texts(values: list[str]) -> bytes:
    return struct.pack(">ii", 16, len(values)) + b"".join(map(text, values))


class Workspace:
    """Writes named objects; a symbol that was used before is written as a reference to it."""

    def __init__(self, version: int = 2) -> None:
        self._symbols: list[str] = []
        self._objects: list[bytes] = []
        self._version = version

    def symbol(self, name: str) -> bytes:
        if name in self._symbols:
            return struct.pack(">i", (self._symbols.index(name) + 1) << 8 | 255)
        self._symbols.append(name)
        return struct.pack(">i", 1) + text(name)

    def pair(self, name: str, value: bytes) -> bytes:
        return struct.pack(">i", 0x402) + self.symbol(name) + value

    def frame(self, columns: Mapping[str, bytes], rows: int) -> bytes:
        """A data frame: columns first, then their names and the compact form of the row names."""
        content = struct.pack(">ii", 0x313, len(columns)) + b"".join(columns.values())
        names = self.pair("names", texts(list(columns)))
        kind = self.pair("class", texts(["data.frame"]))
        return content + names + kind + self.pair("row.names", integers([NO_INTEGER, -rows])) + NOTHING

    def wrapped(self, vector: bytes, form: str = "wrap_real") -> bytes:
        """A vector in an alternative form, as R 3.5 and later write some."""
        plain = struct.pack(">i", 2)
        about = plain + self.symbol(form) + plain + self.symbol("base") + plain + integers([14]) + NOTHING
        state = struct.pack(">ii", 19, 2) + vector + integers([NO_INTEGER, 0])
        return struct.pack(">i", 238) + about + state + NOTHING

    def pointer(self) -> bytes:
        """An external pointer; data tables hold one to themselves."""
        self._symbols.append("")
        return struct.pack(">i", 22) + NOTHING + NOTHING

    def save(self, name: str, make: Callable[[Workspace], bytes]) -> Workspace:
        """Add an object; its name is known to the references inside it."""
        self._objects.append(struct.pack(">i", 0x402) + self.symbol(name) + make(self))
        return self

    def content(self) -> bytes:
        header = struct.pack(">iii", self._version, 0x00040202, 0x00020300)
        if self._version == 3:
            header += struct.pack(">i", 5) + b"UTF-8"
        return b"RDX%d\nX\n" % self._version + header + b"".join(self._objects) + NOTHING
