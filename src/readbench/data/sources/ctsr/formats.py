"""Text files of labelled univariate series: the UCR archive's `.tsv` and `.txt`, and the `.ts` of aeon and sktime.

* `.tsv` and `.txt`: one series per line, its label (an integer) first, tabs or spaces between; `NaN` pads short series
  at the end and marks gaps inside, so that all lines of a file have as many fields.
* `.ts`: comments (`#`) and directives (`@`), then `@data` and per line `value,value,...:label`; `?` or `NaN` is a gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.data.sources.files import plain_name, read_text
from readbench.errors import DataError
from readbench.windows.gaps import is_reading

SUFFIXES = (".tsv", ".ts", ".txt")
"""Preferred first, where a set of series is there in several forms."""

Row = tuple[int, str, str]
"""Line number from 1, label, values as text."""


@dataclass(frozen=True, eq=False)
class Series:
    """One line of a file: its number (from 1), its label, its values (T,), which may have gaps but not at the end."""

    line: int
    label: str
    values: NDArray[np.float64]


def read_labels(path: Path) -> set[str]:
    """All labels of a file, without its values."""
    return {label for _, label, _ in _rows(path)}


def read_series(path: Path) -> Iterator[Series]:
    """The series of a file, in its order."""
    separator = _separator(path)
    width = 0
    for line, label, text in _rows(path):
        values = _values(path, line, text.split(separator))
        if separator != "," and len(values) != (width := width or len(values)):
            raise DataError(
                f"{path}: line {line} has {len(values)} values, the first one {width}. Short series are padded with "
                "NaN: the file is incomplete or of another kind, get it again."
            )
        read = np.flatnonzero(is_reading(values))
        if not read.size:
            raise DataError(f"{path}: the series in line {line} has no value. Remove the line, or get the file again.")
        yield Series(line, label, values[: read[-1] + 1])


def label_order(label: str) -> tuple[float, str]:
    """Sorts labels as numbers, and those that are none after them by name.

    >>> sorted(["10", "2", "-1", "walking"], key=label_order)
    ['-1', '2', '10', 'walking']
    """
    try:
        return int(label), ""
    except ValueError:
        return float("inf"), label


def _rows(path: Path) -> Iterator[Row]:
    """Every line that holds a series; at least one."""
    lines = enumerate(read_text(path).splitlines(), start=1)
    filled = ((number, line.strip()) for number, line in lines)
    filled = ((number, line) for number, line in filled if line)
    row = None
    for row in _ts_rows(path, filled) if _separator(path) == "," else _table_rows(path, filled):
        yield row
    if row is None:
        raise DataError(f"{path}: no series in it. The file is empty or incomplete: get it again.")


def _table_rows(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[Row]:
    separator = _separator(path)
    for number, line in lines:
        label, text = (*line.split(separator, 1), "")[:2]
        integer = _integer(label)
        if integer is None:
            raise DataError(
                f"{path}: line {number} starts with {label[:40]!r}, but an integer class label must be there."
            )
        yield number, integer, text


def _ts_rows(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[Row]:
    for _, line in lines:
        if line.lower() == "@data":
            break
        if not line.startswith(("#", "@")):
            raise DataError(f"{path}: {line[:40]!r} stands before the line @data. This is no .ts file.")
    for number, line in lines:
        text, colon, label = line.rpartition(":")
        label = label.strip()
        if not colon or not label or ":" in text:
            raise DataError(
                f"{path}: line {number} should read value,value,...:label. Files without labels or with several "
                "channels cannot be used here."
            )
        yield number, _integer(label) or label, text


def _separator(path: Path) -> str | None:
    """What stands between values; None for any white space."""
    return {".ts": ",", ".tsv": "\t"}.get(Path(plain_name(path.name)).suffix)


def _integer(label: str) -> str | None:
    """A label that is an integer, in its shortest form; None for any other."""
    try:
        number = float(label)
    except ValueError:
        return None
    return str(int(number)) if number.is_integer() else None


def _values(path: Path, line: int, fields: list[str]) -> NDArray[np.float64]:
    try:
        return np.array([float(field) for field in fields])
    except ValueError:
        return np.array([_value(path, line, column, field) for column, field in enumerate(fields, start=1)])


def _value(path: Path, line: int, column: int, field: str) -> float:
    if field.strip() == "?":
        return float("nan")
    try:
        return float(field)
    except ValueError as error:
        raise DataError(
            f"{path}: value {column} of line {line} is {field[:40]!r}, which is no number. Get the file again."
        ) from error
