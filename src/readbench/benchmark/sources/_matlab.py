"""MATLAB files of version 5 (MATLAB 5 to 7), as far as sources use them: arrays of numbers, text and single structs.

The format is that of "MAT-File Format" (The MathWorks): a header of 128 bytes, then elements, each a tag of kind and
size with its content. A matrix is an element of elements: flags, dimensions, name and content; it may be packed.

The reader is our own, with `scipy.io.loadmat` as the oracle of its tests: a damaged file makes scipy 1.17 crash the
interpreter.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.sources._files import open_binary
from readbench.engine.preparation import is_reading
from readbench.errors import DataError

MatValue: TypeAlias = "NDArray[np.generic] | str | dict[str, MatValue] | None"
"""An array with its dimensions, text, the fields of a struct; None for what is not read (cells, objects)."""

_HEADER, _ORDERS, _VERSION = 128, {b"IM": "<", b"MI": ">"}, 0x01
_NUMBERS = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
_TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16"}
_MATRIX, _PACKED = 14, 15
_STRUCT, _CHAR, _FIRST_NUMERIC, _LAST_NUMERIC = 2, 4, 6, 15
_COMPLEX = 0x800
_DEEPEST = 8
"""Structs inside structs; deeper ones are damage."""


@dataclass(frozen=True)
class Element:
    """One element of a file: its kind and content, in the byte order (`<` or `>`) of the file."""

    kind: int
    content: memoryview
    order: str

    def numbers(self) -> NDArray[np.generic]:
        """(n,) what it holds, if that is numbers."""
        if self.kind not in _NUMBERS:
            raise ValueError(f"an element of kind {self.kind} in the place of numbers")
        return np.frombuffer(self.content, f"{self.order}{_NUMBERS[self.kind]}")

    def text(self) -> str:
        """What it holds, if that is text."""
        if self.kind not in _TEXTS:
            raise ValueError(f"an element of kind {self.kind} in the place of text")
        end = {"<": "-le", ">": "-be"}[self.order] if _TEXTS[self.kind] == "utf-16" else ""
        return bytes(self.content).decode(_TEXTS[self.kind] + end)

    def parts(self) -> Iterator[Element]:
        """The elements inside it."""
        return _elements(self.content, self.order)


def read_mat(path: Path) -> dict[str, MatValue]:
    """The variables of a file, plain or gzipped, by name."""
    with open_binary(path) as file:
        content = file.read()
    order = _ORDERS.get(content[_HEADER - 2 : _HEADER])
    if len(content) < _HEADER or order is None or content[_HEADER - 3 if order == "<" else _HEADER - 4] != _VERSION:
        raise DataError(f"{path}: no MATLAB file of version 5 to 7. Get it again, or save it with -v7.")
    try:
        return dict(_variable(element, 0) for element in _elements(memoryview(content)[_HEADER:], order))
    except (ValueError, IndexError, struct.error, zlib.error) as error:
        raise DataError(f"{path}: {error}. The file is damaged or incomplete: get it again.") from error


def number_array(where: str, value: MatValue, dimensions: int) -> NDArray[np.float64]:
    """A variable that has to be a vector (1) or a matrix (2) of numbers, with no gap.

    >>> number_array("file", np.ones((3, 1)), 1).tolist()
    [1.0, 1.0, 1.0]
    """
    numeric = isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.ndim == 2 and value.size > 0
    if not isinstance(value, np.ndarray) or not numeric or (dimensions == 1 and 1 not in value.shape):
        raise DataError(f"{where} is no {('vector', 'matrix')[dimensions - 1]} of numbers. Get the file again.")
    numbers = value.astype(np.float64)
    if not is_reading(numbers).all():
        raise DataError(f"{where} has numbers that are not finite, or too large for a reading. Get the file again.")
    return numbers.ravel() if dimensions == 1 else numbers


def _elements(content: memoryview, order: str) -> Iterator[Element]:
    """Element by element, packed ones unpacked."""
    place = 0
    while place < len(content):
        kind, size = struct.unpack_from(f"{order}2I", content, place)
        begin = place + 8
        if kind >> 16:  # a small element: kind, size and up to 4 bytes of content in the room of a tag
            kind, size, begin = kind & 0xFFFF, kind >> 16, place + 4
        end = begin + size
        if end > len(content) or (begin == place + 4 and size > 4):
            raise ValueError(f"an element of {size} bytes where {len(content) - begin} are left")
        if kind == _PACKED:
            yield from _elements(memoryview(zlib.decompress(content[begin:end])), order)
            place = end
        else:
            yield Element(kind, content[begin:end], order)
            place = place + 8 if begin == place + 4 else begin + -(-size // 8) * 8


def _take(parts: Iterator[Element]) -> Element:
    """The next of the elements that make a matrix."""
    part = next(parts, None)
    if part is None:
        raise ValueError("a matrix ends too soon")
    return part


def _variable(element: Element, depth: int) -> tuple[str, MatValue]:
    """Name and value of a matrix."""
    if element.kind != _MATRIX or depth > _DEEPEST:
        raise ValueError(f"an element of kind {element.kind} in the place of a matrix, {depth} structs deep")
    parts = element.parts()
    flags, dimensions, name = int(_take(parts).numbers()[0]), _take(parts).numbers(), _take(parts).text()
    kind, shape = flags & 0xFF, tuple(int(size) for size in dimensions)
    if min(shape, default=-1) < 0 or dimensions.dtype.kind not in "iu":
        raise ValueError(f"{name or 'a matrix'} has the dimensions {shape}")
    if kind == _STRUCT and math.prod(shape) == 1:
        return name, _fields(parts, depth)
    if kind == _CHAR:
        return name, _take(parts).text()
    if _FIRST_NUMERIC <= kind <= _LAST_NUMERIC and not flags & _COMPLEX:
        return name, _take(parts).numbers().reshape(shape, order="F")
    return name, None


def _fields(parts: Iterator[Element], depth: int) -> dict[str, MatValue]:
    """The fields of a struct, by name."""
    width, names = int(_take(parts).numbers()[0]), _take(parts).text()
    if width < 1:
        raise ValueError(f"names of fields that take {width} letters")
    fields = [names[begin : begin + width].split("\0")[0] for begin in range(0, len(names), width)]
    return {field: _variable(_take(parts), depth + 1)[1] for field in fields}
