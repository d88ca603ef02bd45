"""Windows from what an engineer has: a file, a table in memory, or an interval of a longer recording."""

from __future__ import annotations

import zipfile
from pathlib import PurePath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from readbench.errors import DataError
from readbench.tables import Given, Limits, Roles, Table, read_table, read_windows, series_of, window_set
from readbench.tables.limits import open_given
from readbench.windows import WindowSet

Interval = tuple[float | None, float | None]
"""First and last time that belong to a window, in seconds; without a time column, numbers of rows."""


def windows_from(
    source: Given | Any,  # noqa: ANN401 - any data frame that speaks Arrow
    roles: Roles | None = None,
    interval: Interval = (None, None),
    limits: Limits | None = None,
) -> WindowSet:
    r"""Windows of a file or a data frame.

    A Parquet or NPZ file with `values` holds windows that are already cut. Everything else is a table: all its rows,
    or those of each case where `roles` name one, are one window.

    Args:
        source: path, or name and content, or a data frame (pandas, polars, Arrow).
        roles: which column means what.
        interval: only the rows of this time; the ends belong to it.
        limits: most bytes, rows and columns.

    >>> windows_from(("a.csv", b"t,speed\n0,1\n1,2\n2,4\n"), Roles(time="t"), (1, None)).values(0).tolist()
    [[2.0, 4.0]]
    """
    limits = limits or Limits()
    is_file = isinstance(source, tuple) or hasattr(source, "open")
    if is_file and _holds_windows(source, limits):
        if interval != (None, None):
            raise DataError("The file holds windows that are already cut: an interval is for tables.")
        return read_windows(source, limits=limits)
    table = read_table(source, limits) if is_file else Table("the data frame", _arrow(source))
    chosen = roles or Roles()
    return window_set(series_of(_cut(table, chosen, interval), chosen))


def _holds_windows(given: Given, limits: Limits) -> bool:
    """Whether a file is in the layout of cut windows rather than a table."""
    name, file = open_given(given, limits)
    ending = PurePath(name).suffix.lower()
    try:
        if ending == ".npz":
            return "values.npy" in zipfile.ZipFile(file).namelist()
        if ending == ".parquet":
            return {"values", "channels"} <= set(pyarrow.parquet.read_schema(file).names)
    except (zipfile.BadZipFile, pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{name}: cannot be read ({error}). The file is damaged: get it again.") from error
    return False


def _arrow(frame: Any) -> pa.Table:  # noqa: ANN401 - any data frame that speaks Arrow
    try:
        return pa.table(frame)
    except (TypeError, pa.ArrowException) as error:
        raise DataError(f"Give a path or a data frame; got {type(frame).__name__} ({error}).") from error


def _cut(table: Table, roles: Roles, interval: Interval) -> Table:
    """The rows of an interval."""
    first, last = interval
    if first is None and last is None:
        return table
    if roles.time:
        times = table.seconds(roles.time, {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[roles.time_unit])
    else:
        times = np.arange(table.rows, dtype=np.float64)
    inside = (times >= (-np.inf if first is None else first)) & (times <= (np.inf if last is None else last))
    if not inside.any():
        raise DataError(f"{table.name}: no row lies between {first} and {last}; it has {times.min()} to {times.max()}.")
    return Table(table.name, table.data.filter(pa.array(inside)))
