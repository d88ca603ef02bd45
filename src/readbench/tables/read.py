"""From a file to a table: CSV, Parquet or NPZ, by the ending of its name."""

from __future__ import annotations

import csv
from pathlib import PurePath

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from readbench.errors import DataError
from readbench.tables.arrays import read_arrays
from readbench.tables.limits import Given, Limits, open_given
from readbench.tables.table import Table

DELIMITERS = ",;\t|"
TABLE_ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".npz")
LONGEST_HEADER = 2**20  # bytes


def read_table(given: Given, limits: Limits | None = None) -> Table:
    r"""The table in a file.

    CSV needs a header; the delimiter is a comma, semicolon, tab or bar, whichever the header has most of. Parquet has
    flat columns. NPZ has one array (rows,) per column. Any of them may be gzipped.

    Args:
        given: path, or name and content.
        limits: most bytes, rows and columns.

    >>> read_table(("a.csv", b"time;speed\n0;1.5\n1;\n")).numbers("speed").tolist()
    [1.5, nan]
    """
    limits = limits or Limits()
    name, file = open_given(given, limits)
    ending = PurePath(name).suffix.lower()
    if ending in {".csv", ".tsv", ".txt"}:
        data = _read_csv(name, file, limits)
    elif ending == ".parquet":
        data = read_parquet(name, file, limits)
    elif ending == ".npz":
        data = _read_npz(name, file, limits)
    else:
        raise DataError(f"{name}: tables are read from {', '.join(TABLE_ENDINGS)}. Save it as one of these.")
    limits.check_rows(name, data.num_rows)
    if not data.num_rows:
        raise DataError(f"{name}: no rows. The file is empty or incomplete.")
    return Table(name, data)


def read_parquet(name: str, file: pa.NativeFile, limits: Limits) -> pa.Table:
    """A whole Parquet file; texts stay dictionaries, so that a repeated long text cannot fill the memory."""
    try:
        meta = pyarrow.parquet.read_metadata(file)
        limits.check_rows(name, meta.num_rows)
        limits.check_columns(name, meta.num_columns)
        chunks = [meta.row_group(g).column(c) for g in range(meta.num_row_groups) for c in range(meta.num_columns)]
        limits.check_bytes(name, sum(max(chunk.total_uncompressed_size, 8 * chunk.num_values) for chunk in chunks))
        schema = meta.schema.to_arrow_schema()
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        _check_names(name, schema.names)
        return pyarrow.parquet.read_table(file, read_dictionary=texts)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name}: no Parquet that can be read ({error}). The file is damaged: get it again.") from error


def _read_csv(name: str, file: pa.NativeFile, limits: Limits) -> pa.Table:
    names, delimiter = _header(name, file)
    limits.check_columns(name, len(names))
    file.seek(0)
    try:
        return pyarrow.csv.read_csv(
            file,
            # Without threads, so that errors name the row.
            read_options=pyarrow.csv.ReadOptions(use_threads=False, column_names=names, skip_rows=1),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter),
        )
    except pa.ArrowException as error:
        raise DataError(f"{name}: {str(error).replace('Row #', 'line ').strip()}. Correct the file.") from error


def _header(name: str, file: pa.NativeFile) -> tuple[list[str], str]:
    """Names of the columns and the delimiter, from the first line."""
    line = file.read(LONGEST_HEADER).split(b"\n", 1)[0]
    try:
        text = line.decode("utf-8-sig").rstrip("\r")
        delimiter = max(DELIMITERS, key=text.count)
        fields = next(csv.reader([text], delimiter=delimiter), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{name}: the header is no UTF-8 text ({error}). Save the file as UTF-8.") from error
    if not any(fields):
        raise DataError(f"{name}: no header. The first line must name the columns.")
    names = [field.strip() or f"column {number}" for number, field in enumerate(fields, start=1)]
    _check_names(name, names)
    return names, delimiter


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
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise DataError(f"{name}: two columns have the name {twice[0]!r}. Rename one.")
