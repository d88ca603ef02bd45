"""Reading what users give: tables, arrays, data frames and times.

Windows from what an engineer has: a file, a table in memory, or an interval of a longer recording.

Times as people read and write them.
"""

from __future__ import annotations

import zipfile
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from readbench.common.tables import Given, Limits, Table, open_given, read_table
from readbench.engine.window_tables import Roles, read_windows, series_of, window_set
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, UsageError

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


FIRST_DATE = 1e8
"""Seconds since 1970 below which a time is no date, but counted from the beginning of a recording."""
LAST_DATE = 253402300799.0


def format_time(time: float | None) -> str:
    """A date, or seconds where the recording only counts from its beginning.

    >>> format_time(1.7e9), format_time(64.0), format_time(None)
    ('2023-11-14 22:13', '64 s', '')
    """
    if time is None:
        return ""
    if not FIRST_DATE <= time <= LAST_DATE:
        return f"{time:g} s"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def parse_time(text: str) -> float | None:
    """Seconds, or a date as seconds since 1970 (UTC unless it says otherwise); None for "".

    >>> parse_time("12.5"), parse_time("1970-01-02"), parse_time("")
    (12.5, 86400.0, None)
    """
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise UsageError(f"{text[:40]!r} is no time: give seconds, or a date such as 2024-05-01T12:00.") from error
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
