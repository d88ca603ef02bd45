"""Read users' tables: CSV, Excel, Parquet and NPZ, from a file or from bytes, within limits of size.

A `Table` holds named columns as the user's file has them, with the number style, units and time zone found by
`readbench.common.layouts`. `Limits` bounds what is read of a file. NPZ archives are read array by array: sizes are
checked before anything is unpacked, and pickled objects are refused.
"""

from __future__ import annotations

import gzip
import math
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path, PurePath
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from numpy.typing import NDArray

from readbench.common.layouts import DECIMAL_DOT, DELIMITERS, MAX_NAME_LENGTH, NumberStyle, read_text
from readbench.common.times import ReadTimes, TimeUnit, read_times
from readbench.common.workbooks import read_workbook
from readbench.errors import DataError, UnknownNameError

FALSE_TEXTS = ("", "0", "false", "no")
"""Texts that count as false in a column of marks."""


@dataclass(frozen=True, eq=False)
class Table:
    """A user's table.

    Args:
        name: name of its file, for errors.
        data: an Arrow table.
        style: number style of its text columns.
        units: units from a row of the file, by column.
        zone: time zone of times that name none; "" if unknown.
        remarks: decisions made while reading, in sentences.

    >>> table = Table("a.csv", pa.table({"speed": [1, None], "fault": ["leak", ""]}))
    >>> table.numbers("speed").tolist(), table.codes("fault")[1]
    ([1.0, nan], ('leak',))
    """

    name: str
    data: pa.Table
    style: NumberStyle = DECIMAL_DOT
    units: Mapping[str, str] = field(default_factory=dict)
    zone: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.data.column_names)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.data.num_rows)

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """Names of the columns of numbers, or without any value; words in place of readings are gaps."""
        return tuple(name for name in self.columns if self._is_numeric(name))

    def numbers(self, column: str) -> NDArray[np.float64]:
        """(rows,) a column as numbers, NaN for gaps; a text in it raises an error that names the row."""
        values = self._column(column)
        if _is_number(values.type):
            return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
        texts = _texts(values)
        found = self.style.read(texts)
        if found is not None:
            return found[0]
        read, wrong, _ = self.style.parse(texts)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{self.name}, row {row + 1}: {texts[row].as_py()[:40]!r} in column {column!r} is no number. Correct "
                "it, or leave the column out."
            )
        return read

    def readings(self, column: str) -> tuple[NDArray[np.float64], list[str], str] | None:
        """A text column as (numbers, gap words, unit); None for a numeric column or one of texts."""
        values = self._column(column)
        return None if _is_number(values.type) else self.style.read(_texts(values))

    def times(self, column: str, unit: TimeUnit = "auto", zone: str = "") -> ReadTimes | None:
        """A column as times, or None if it holds none.

        Args:
            column: its name.
            unit: unit of numeric times.
            zone: zone of dates that name none; by default the table's.
        """
        values = self._column(column)
        found = read_times(values, column, unit, zone or self.zone)
        if found is None and not _is_number(values.type) and self._is_numeric(column):
            found = read_times(pa.chunked_array([self.numbers(column)]), column, unit, zone or self.zone)
        return found

    def seconds(self, column: str, unit: float = 1.0) -> NDArray[np.float64]:
        """(rows,) a column of times in seconds: numbers times `unit`, or dates as seconds since 1970."""
        values = self._column(column)
        found = None if self._is_numeric(column) else read_times(values, column, "s", self.zone)
        return self.numbers(column) * unit if found is None else found.seconds

    def _is_numeric(self, column: str) -> bool:
        values = self.data[column]
        if pa.types.is_string(values.type) or pa.types.is_dictionary(values.type):
            return self.style.read(_texts(values)) is not None
        return _is_number(values.type)

    def marks(self, column: str) -> NDArray[np.bool_] | None:
        """(rows,) the rows marked by true, 1 or any other text; None for a column of other numbers or dates."""
        values = self._column(column)
        if _is_number(values.type):
            numbers = np.nan_to_num(self.numbers(column))
            return numbers == 1 if np.isin(numbers, (0, 1)).all() else None
        if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
            return None
        codes, names = self.codes(column)
        marked = np.array([*(name.casefold() not in FALSE_TEXTS for name in names), False])  # code -1 is not marked
        return np.asarray(marked[codes], bool)

    def codes(self, column: str) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        """A column as codes: (rows,) index of each row's text, -1 if empty, and the texts in order of appearance.

        Whole numbers lose their decimals, so that `1.0` and `1` are one text.
        """
        values = self._column(column)
        if not pa.types.is_dictionary(values.type):
            values = pc.dictionary_encode(_texts(values))
        encoded = values.unify_dictionaries().combine_chunks()
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
        texts = _texts(encoded.dictionary).to_pylist()
        used, first = np.unique(indices, return_index=True)
        present = [texts[code] for code in used[np.argsort(first)] if code >= 0 and texts[code] is not None]
        names = tuple(dict.fromkeys(present))
        position = {name: code for code, name in enumerate(names)}
        codes = np.array([*(position.get(text, -1) for text in texts), -1], np.int32)  # code -1 stays -1
        return codes[indices], names

    def _column(self, column: str) -> pa.ChunkedArray:
        if self.data.schema.get_field_index(column) < 0:  # `column_names` would build a list for each column
            raise UnknownNameError(f"column of {self.name}", column, self.columns)
        return self.data[column]


def split_header(header: str) -> tuple[str, str]:
    """Split a header into name and unit; the unit is "" if there is none.

    >>> split_header("Flow rate [m3/h]"), split_header("Flow rate")
    (('Flow rate', 'm3/h'), ('Flow rate', ''))
    """
    text = header.strip()
    opened = max(text.rfind("["), text.rfind("("))
    name, unit = text[: max(opened, 0)].rstrip(), text[opened + 1 : -1].strip()
    closed = text.endswith(("]", ")")) and not {"]", ")"} & set(unit)
    return (name, unit) if name and unit and closed else (header, "")


def _is_number(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    return any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
    )


def _texts(values: Any) -> Any:  # noqa: ANN401 - an Arrow array, whole or in chunks
    """Convert to trimmed texts, null where empty."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
        whole = pc.all(pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), 2.0**53))).as_py()
        values = values.cast(pa.int64()) if whole else values
    try:
        texts = pc.utf8_trim_whitespace(values.cast(pa.string()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"A column of {values.type} cannot be read as text ({error}).") from error
    return pc.if_else(pc.equal(texts, ""), None, texts)


MAX_EXTRA_LINES = 10_000
"""Lines of text allowed above a table and between its rows, beyond the limit of rows."""
MAX_UNPACK_RATIO = 100
"""Maximum ratio of unpacked to packed bytes; recordings have 3 to 30."""
MIN_CHECKED_BYTES = 64 * 2**20
"""Unpacked bytes up to which any ratio is accepted."""
Given = Path | str | tuple[str, bytes]
"""A path, or the name and content of an uploaded file."""


@dataclass(frozen=True)
class Limits:
    """Maximum unpacked bytes, rows, columns and cells of one file.

    Reading a cell of text takes about ten times its bytes.
    """

    max_bytes: int = 4 * 2**30
    max_rows: int = 50_000_000
    max_columns: int = 10_000
    max_cells: int = 500_000_000

    def check_bytes(self, name: str, size: int) -> None:
        """Raise `DataError` if a file is larger, unpacked."""
        self._check(name, size, self.max_bytes, "bytes")

    def check_rows(self, name: str, rows: int) -> None:
        """Raise `DataError` if a table has more rows."""
        self._check(name, rows, self.max_rows, "rows")

    def check_columns(self, name: str, columns: int) -> None:
        """Raise `DataError` if a table has more columns."""
        self._check(name, columns, self.max_columns, "columns")

    def check_text(self, name: str, content: bytes) -> None:
        """Raise `DataError` if a text has more lines or cells; counts marks without parsing."""
        lines = max(content.count(b"\n"), content.count(b"\r"))
        self.check_rows(name, lines - MAX_EXTRA_LINES)
        marks = max(content.count(mark.encode()) for mark in f"{DELIMITERS} ")
        self._check(name, marks + lines, self.max_cells, "cells")

    def check_ratio(self, name: str, packed: int, unpacked: int) -> None:
        """Raise `DataError` if a packed file unpacks to implausibly many bytes."""
        if unpacked > max(MIN_CHECKED_BYTES, MAX_UNPACK_RATIO * packed):
            raise DataError(
                f"{name}: {packed:,} bytes unpack to {unpacked:,} or more, over {MAX_UNPACK_RATIO} times as many. If"
                " that is right, unpack the file yourself and give what it holds."
            )

    @staticmethod
    def _check(name: str, found: int, most: int, what: str) -> None:
        if found > most:
            raise DataError(f"{name}: {found:,} {what}, more than the {most:,} that are read. Split the file.")


def open_given(given: Given, limits: Limits) -> tuple[str, pa.NativeFile]:
    """Open a file, unpacked; return its name without `.gz` and the stream.

    >>> name, file = open_given(("a.csv.gz", gzip.compress(b"x")), Limits())
    >>> name, file.read()
    ('a.csv', b'x')
    """
    given = Path(given) if isinstance(given, str) else given
    name = given.name if isinstance(given, Path) else given[0]
    file = _open(given, limits)
    if not name.lower().endswith(".gz"):
        return name, file
    return name[: -len(".gz")], pa.BufferReader(_unpacked(name, file.read(), limits))


def _open(given: Path | tuple[str, bytes], limits: Limits) -> pa.NativeFile:
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


def _unpacked(name: str, packed: bytes, limits: Limits) -> bytes:
    """Unpack gzip; never more than one byte above the limits."""
    most = min(limits.max_bytes, max(MIN_CHECKED_BYTES, MAX_UNPACK_RATIO * len(packed)))
    try:
        with gzip.GzipFile(fileobj=BytesIO(packed)) as unpacker:
            content = unpacker.read(most + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{name}: cannot be unpacked ({error}). The file is damaged: get it again.") from error
    limits.check_bytes(name, len(content))
    limits.check_ratio(name, len(packed), len(content))
    return content


Arrays = dict[str, NDArray[Any]]


def read_arrays(name: str, file: pa.NativeFile, limits: Limits, prefixes: tuple[str, ...] = ("",)) -> Arrays:
    """Read the arrays of an NPZ archive whose names begin with one of the prefixes, by name."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [member for member in archive.infolist() if member.filename.startswith(prefixes)]
            limits.check_columns(name, len(members))
            limits.check_bytes(name, sum(member.file_size for member in members))
            return {member.filename.removesuffix(".npy"): _read_member(name, archive, member) for member in members}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise DataError(f"{name}: no NPZ that can be read ({error}). Write it again with numpy.savez.") from error


def _read_member(name: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]
        shape, fortran, kind = _read_header(file, version)
        if kind.hasobject:
            raise DataError(
                f"{name}: {member.filename} holds Python objects, which are never read. Write numbers or texts with a "
                "fixed width (dtype 'U')."
            )
        size = math.prod(shape) * kind.itemsize
        if size > member.file_size:  # before memory is allocated
            raise ValueError(f"{member.filename} is shorter than its shape {shape} says")
        content = file.read(size)
    array = np.frombuffer(content, kind, math.prod(shape))
    return array.reshape(shape, order="F" if fortran else "C")


def _read_header(file: IO[bytes], version: tuple[int, int]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)  # type: ignore[no-untyped-call,no-any-return]


TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".dat", ".lvm", ".asc")
TABLE_ENDINGS = (*TEXT_ENDINGS, ".xlsx", ".parquet", ".npz")


def read_table(given: Given, limits: Limits | None = None) -> Table:
    r"""Read a table from a CSV, Excel, Parquet or NPZ file, gzipped or not.

    Text may have any delimiter, encoding and decimal sign, with or without a header and lines above it (see
    `readbench.common.layouts`). Of an Excel workbook the largest sheet is read. Parquet must have flat columns, NPZ one
    array (rows,) per column.

    Args:
        given: path, or name and content.
        limits: maximum bytes, rows, columns and cells.

    >>> read_table(("a.csv", b"time;speed\n0;1.5\n1;\n")).numbers("speed").tolist()
    [1.5, nan]
    """
    limits = limits or Limits()
    name, file = open_given(given, limits)
    ending = PurePath(name).suffix.lower()
    if ending in TEXT_ENDINGS:
        table = _read_text(name, file.read(), limits)
    elif ending == ".xlsx":
        most = limits.max_bytes, limits.max_rows, limits.max_columns, limits.max_cells
        table = _read_text(name, read_workbook(name, file, *most).encode(), limits)
    elif ending == ".parquet":
        table = Table(name, read_parquet(name, file, limits))
    elif ending == ".npz":
        table = Table(name, _read_npz(name, file, limits))
    else:
        raise DataError(f"{name}: tables are read from {', '.join(TABLE_ENDINGS)}. Save it as one of these.")
    limits.check_rows(name, table.rows)
    if not table.rows:
        raise DataError(f"{name}: no rows. The file is empty or incomplete.")
    return table


def _read_text(name: str, content: bytes, limits: Limits) -> Table:
    limits.check_text(name, content)
    found = read_text(name, content, limits.max_columns)
    return Table(name, found.data, found.style, found.units, found.zone, found.remarks)


def read_parquet(name: str, file: pa.NativeFile, limits: Limits) -> pa.Table:
    """Read a Parquet file; texts stay dictionary-encoded, so that a repeated text is in memory once.

    The file may store a long text once and repeat it, so repeated bytes are counted before the columns are read.
    """
    try:
        meta = pyarrow.parquet.read_metadata(file)
        limits.check_rows(name, meta.num_rows)
        limits.check_columns(name, meta.num_columns)
        leaves = [meta.schema.column(c) for c in range(meta.num_columns)]
        chunks = [
            (meta.row_group(g).column(c), leaf) for g in range(meta.num_row_groups) for c, leaf in enumerate(leaves)
        ]
        sizes = [max(chunk.total_uncompressed_size, max(8, leaf.length) * chunk.num_values) for chunk, leaf in chunks]
        limits.check_bytes(name, sum(sizes))
        schema = meta.schema.to_arrow_schema()
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        _check_names(name, schema.names)
        repeated = [
            leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and leaf.converted_type != "DECIMAL"
        ]
        packed = pyarrow.parquet.ParquetFile(file, read_dictionary=repeated)
        size = 0
        # One thread: an Arrow thread that still holds the bytes when Python ends would abort the process.
        for group in range(meta.num_row_groups) if repeated else ():
            read = packed.read_row_group(group, columns=repeated, use_threads=False)
            size += sum(_count_bytes(chunk) for column in read.columns for chunk in column.chunks)
            limits.check_bytes(name, size)
        return pyarrow.parquet.ParquetFile(file, read_dictionary=texts).read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name}: no Parquet that can be read ({error}). The file is damaged: get it again.") from error


def _count_bytes(array: pa.Array) -> int:
    """Bytes of the texts in an array, with repetitions."""
    kind = array.type
    if pa.types.is_struct(kind):
        return sum(_count_bytes(array.field(i)) for i in range(kind.num_fields))
    if pa.types.is_nested(kind):
        return _count_bytes(array.values)
    if not pa.types.is_dictionary(kind):
        return 0
    lengths = pc.binary_length(array.dictionary.cast(pa.large_binary()))
    return int(pc.sum(lengths.take(array.indices)).as_py() or 0)


def _read_npz(name: str, file: pa.NativeFile, limits: Limits) -> pa.Table:
    columns = read_arrays(name, file, limits)
    limits.check_columns(name, len(columns))
    _check_names(name, list(columns))
    wrong = next((key for key, array in columns.items() if array.ndim != 1), None)
    if wrong is not None or len({len(array) for array in columns.values()}) > 1:
        shapes = ", ".join(f"{key} {array.shape}" for key, array in columns.items())
        raise DataError(f"{name}: a table has one array (rows,) per column, all of one length. Got {shapes[:300]}.")
    try:
        return pa.table({key: pa.array(array) for key, array in columns.items()})
    except (pa.ArrowException, ValueError) as error:
        raise DataError(f"{name}: cannot be read as columns ({error}). Use numbers, texts and dates.") from error


def _check_names(name: str, columns: list[str]) -> None:
    if long := next((column for column in columns if len(column) > MAX_NAME_LENGTH), None):
        raise DataError(
            f"{name}: a column has a name of {len(long):,} characters. Give it one of {MAX_NAME_LENGTH} at most."
        )
    counts = Counter(columns)
    if twice := next((column for column in columns if counts[column] > 1), None):
        raise DataError(f"{name}: two columns have the name {twice!r}. Rename one.")
