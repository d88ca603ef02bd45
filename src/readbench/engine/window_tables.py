"""Convert users' tables to windows and back.

`series_of` splits a table by the roles of its columns (`Roles`) into series: the rows of one case in order of time,
from the onset of the fault on. `window_set` makes a window of each.

`read_windows` and `write_windows` handle files of windows that are already cut: rows of a Parquet file, or arrays of
an NPZ archive.

```
Parquet column    NPZ array           meaning
values            values (N, C, T)    readings; in Parquet a list of C * T numbers, channel after channel
channels          channels (C,)       names of the channels; in Parquet a list per row
length            length (N,)         timesteps T of a window; in NPZ the steps after it are padding
label             label (N,)          fault, or the name of normal operation; empty if unknown
id or _id         id (N,)             unique name; default the number of the row
group             group (N,)          unit of splits, never divided; default the id
asset             asset (N,)          machine, well, patient ...
time              time (N,)           seconds
span_start, span_stop   (N,)          first and one past the last faulty step
before            before (N, C, T_b)  the time before a window, laid out as `values`; null or empty if unknown
before_length     before_length (N,)  its timesteps; 0 if unknown
rate              rate (N,) or ()     samples a second
units             units (C,)          of the channels; in Parquet a list per row
fact.NAME         fact.NAME (N,)      a known number, such as fact.speed
```

Only `values` and, in Parquet, `channels` are required. Other columns are ignored. The last five are the windows'
context (`readbench.engine.context`); they are written if any window has one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from readbench.common.files import write_atomically
from readbench.common.tables import Arrays, Given, Limits, Table, open_given, read_arrays, read_parquet, split_header
from readbench.common.times import SECONDS, TimeUnit
from readbench.engine.context import Context, Matrix, check_before
from readbench.engine.preparation import fill_gaps, is_reading
from readbench.engine.windows import UNLABELLED, WindowSet, strings
from readbench.errors import DataError, UsageError


@dataclass(frozen=True)
class Roles:
    """Roles of the columns of a table; "" if there is no such column.

    A wide table has a row per time and a column per channel. A long one has a row per reading: `channel` is the column
    with the channel's name, `value` the one with the reading.

    Args:
        time: seconds (or `time_unit`), or dates; sorts the rows. Without it rows are in order;
            `readbench.engine.signal_tables` looks for one first, unless it is "-".
        label: fault at each row; empty if unknown.
        group: unit of splits (run, incident ...), never divided; default the case.
        asset: machine, well, patient ...
        case: the rows of one series; default the group; without both, the whole table is one series.
        channels: channels to read; default all numeric columns without another role, or all of a long table.
        channel: of a long table, the column with the channel's name.
        value: of a long table, the column with the reading.
        time_unit: of numeric times; `auto` decides by header and size.
        onset: start of the fault: either a mark on rows from there on (true, 1 or any text; the first mark counts), or
            its time in all rows of a case. Earlier rows are the time before the window.
        facts: columns of known numbers, one number per case.
        rate: samples per second; default from the median step, if there are times.
        units: pairs of channel and unit; default the unit in the channel's name, as in `flow [m3/h]`.
        zone: of dates that name none: UTC, an offset such as +01:00, or a region such as Europe/Berlin.
    """

    time: str = ""
    label: str = ""
    group: str = ""
    asset: str = ""
    case: str = ""
    channels: tuple[str, ...] = ()
    channel: str = ""
    value: str = ""
    time_unit: TimeUnit = "auto"
    onset: str = ""
    facts: tuple[str, ...] = ()
    rate: float | None = None
    units: tuple[tuple[str, str], ...] = ()
    zone: str = ""

    def __post_init__(self) -> None:
        if bool(self.channel) != bool(self.value):
            raise UsageError("A long table needs both: the column of the channel's name, and that of the value.")
        if self.channel and not self.time:
            raise UsageError("A long table needs a time column: it says which readings stand together.")
        if taken := set(self.facts) & {self.time, self.label, self.group, self.asset, self.case, self.onset}:
            raise UsageError(f"Column {min(taken)!r} is no fact: it has another role, which methods never see.")
        if self.rate is not None and not 0 < self.rate < np.inf:
            raise UsageError(f"A rate is a positive number of samples a second. Got {self.rate}.")

    @property
    def named(self) -> tuple[str, ...]:
        """Columns with a role other than channel."""
        roles = (self.time, self.label, self.group, self.asset, self.case, self.channel, self.value, self.onset)
        return (*filter(None, roles), *self.facts)

    def unit_of(self, channel: str) -> str:
        """Given unit of a channel, or the one in square brackets after its name; "" if none.

        >>> Roles(units=(("flow", "m3/h"),)).unit_of("flow"), Roles().unit_of("heat [K]"), Roles().unit_of("pump (A)")
        ('m3/h', 'K', '')
        """
        written = split_header(channel)[1] if channel.rstrip().endswith("]") else ""
        return dict(self.units).get(channel, written)


@dataclass(frozen=True, eq=False)
class TableSeries:
    """Readings of one case.

    Args:
        id: name of the case in the table, or of the table.
        values: (C, T) readings from the onset on, NaN for gaps.
        channels: C names.
        labels: (T,) index into `names` at each step, -1 if unlabelled.
        names: label texts of the whole table.
        group: unit of splits, never divided.
        asset: "" if unknown.
        start: time of the first step in seconds, NaN if unknown.
        step: median seconds between steps; 1 if unknown.
        stop: time of the last step in seconds, NaN if unknown.
        before: (C, T_b) readings before the onset, NaN for gaps; None without an onset.
        rate: samples per second, NaN if unknown.
        units: of the channels, "" if unknown.
        facts: known numbers, by name.
    """

    id: str
    values: NDArray[np.float64]
    channels: tuple[str, ...]
    labels: NDArray[np.int32]
    names: tuple[str, ...]
    group: str
    asset: str
    start: float
    step: float
    stop: float = float("nan")
    before: NDArray[np.float64] | None = None
    rate: float = float("nan")
    units: tuple[str, ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The label shared by all its steps; "" if unlabelled."""
        found = np.unique(self.labels)
        if len(found) != 1:
            raise DataError(f"Case {self.id}: {len(found)} labels in one case. Give a case for each, or cut it first.")
        return "" if found[0] == UNLABELLED else self.names[found[0]]


def series_of(table: Table, roles: Roles, onset: float = float("nan")) -> list[TableSeries]:
    r"""Split a table into cases.

    Args:
        table: the table.
        roles: roles of its columns.
        onset: time of the fault's onset in every case, in seconds, or a number of rows without times; for tables
            without a column for it.

    >>> from readbench.common.tables import read_table
    >>> table = read_table(("a.csv", b"t,run,speed,fault\n1,A,7,leak\n0,A,5,leak\n0,B,6,\n"))
    >>> [(s.id, s.label, s.values.tolist()) for s in series_of(table, Roles(time="t", case="run", label="fault"))]
    [('A', 'leak', [[5.0, 7.0]]), ('B', '', [[6.0]])]
    """
    return list(_Cases(table, roles, onset))


def window_set(series: Sequence[TableSeries], *, normal: str = "normal") -> WindowSet:
    """One window per series, with its one label; classes are `normal` and all other labels in alphabetical order."""
    faults = sorted({s.label for s in series} - {"", normal})
    classes = (normal, *faults)
    codes = {"": UNLABELLED} | {name: code for code, name in enumerate(classes)}
    with np.errstate(over="ignore"):  # numbers beyond single precision become gaps
        return WindowSet.from_arrays(
            [s.values for s in series],
            channels=[s.channels for s in series],
            labels=[codes[s.label] for s in series],
            classes=classes,
            ids=[s.id for s in series],
            groups=[s.group for s in series],
            assets=[s.asset for s in series],
            times=[s.start for s in series],
            context=Context.of(
                len(series),
                befores=[None if s.before is None else fill_gaps(s.before, is_reading(s.before)) for s in series],
                rates=[s.rate for s in series],
                units=[s.units for s in series],
                facts=[s.facts for s in series],
            ),
        )


class _Cases:
    """Splits a table; `order` (rows,) sorts rows by case, then time, and `bounds` delimits the cases."""

    def __init__(self, table: Table, roles: Roles, onset: float) -> None:
        self.table, self.roles = table, roles
        codes, self.ids = self._cases()
        if roles.time:
            self.times = table.seconds(roles.time, SECONDS.get(roles.time_unit, 1.0))
            self._check(~np.isfinite(self.times), f"no time in column {roles.time!r}")
        else:
            self.times = np.full(table.rows, np.nan)
        self.order = np.lexsort((np.arange(table.rows) if not roles.time else self.times, codes))
        counts = np.bincount(codes, minlength=len(self.ids))
        self.bounds = np.concatenate([[0], np.cumsum(counts)])
        self.labels, self.names = self._texts(roles.label)
        self.groups = self._texts(roles.group)
        self.assets = self._texts(roles.asset)
        self.facts = {name: table.numbers(name) for name in roles.facts}
        self.begun = self._begun(codes, onset)

    def __iter__(self) -> Iterator[TableSeries]:
        blocks = self._long() if self.roles.channel else self._wide()
        for number, (rows, values, channels) in enumerate(blocks):
            name, times = self.ids[number], self.times[rows]
            onset = int(np.argmax(self.begun[rows]))  # 0 without an onset: the window is the whole case
            step = float(np.median(np.diff(times))) if self.roles.time and len(times) > 1 else np.nan
            yield TableSeries(
                id=name,
                values=values[:, onset:],
                channels=channels,
                labels=self.labels[rows[onset:]],
                names=self.names,
                group=self._same(self.groups, rows, self.roles.group) or name,
                asset=self._same(self.assets, rows, self.roles.asset),
                start=float(times[onset]),
                step=1.0 if np.isnan(step) else step,
                stop=float(times[-1]),
                before=values[:, :onset] if onset else None,
                rate=self.roles.rate or float(f"{1 / step:.6g}"),  # further digits are rounding of the times
                units=tuple(map(self.roles.unit_of, channels)),
                facts={fact: self._same_number(column, rows, fact) for fact, column in self.facts.items()},
            )

    def _wide(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64], tuple[str, ...]]]:
        """Yield rows in order, readings (C, T) and channels of each case."""
        table, roles = self.table, self.roles
        channels = roles.channels or tuple(name for name in table.numeric if name not in roles.named)
        if not channels:
            raise DataError(f"{table.name}: no column with numbers is left for channels. Columns: {table.columns}.")
        columns = [table.numbers(name) for name in channels]
        for start, stop in pairwise(self.bounds.tolist()):
            rows = self.order[start:stop]
            if roles.time:
                self._check_rows(rows[1:], np.diff(self.times[rows]) <= 0, "the time of another row of the same case")
            yield rows, np.stack([column[rows] for column in columns]), channels

    def _long(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64], tuple[str, ...]]]:
        """Yield the same for a table with a row per reading; the first row of each time stands for all."""
        codes, found = self.table.codes(self.roles.channel)
        self._check(codes < 0, f"no channel in column {self.roles.channel!r}")
        channels = self.roles.channels or found
        if absent := [name for name in channels if name not in found]:
            raise DataError(f"{self.table.name}: channel {absent[0]!r} is not in column {self.roles.channel!r}.")
        places = np.array([channels.index(name) if name in channels else -1 for name in found])[codes]
        readings = self.table.numbers(self.roles.value)
        for start, stop in pairwise(self.bounds.tolist()):
            rows = self.order[start:stop]
            _, first, step = np.unique(self.times[rows], return_index=True, return_inverse=True)
            for column, what in ((self.labels, "label"), (self.begun, "onset")):
                self._check_rows(rows, column[rows] != column[rows[first]][step], f"another {what} at the same time")
            wanted = places[rows] >= 0
            cells = places[rows[wanted]] * len(first) + step[wanted]
            self._check_rows(rows[wanted], _repeated(cells), "a second reading of the same channel and time")
            values = np.full(len(channels) * len(first), np.nan)
            values[cells] = readings[rows[wanted]]
            yield rows[first], values.reshape(len(channels), len(first)), channels

    def _cases(self) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        column = self.roles.case or self.roles.group
        if not column:
            return np.zeros(self.table.rows, np.int32), (self.table.name.rpartition(".")[0] or self.table.name,)
        codes, names = self.table.codes(column)
        self._check(codes < 0, f"no name of the case in column {column!r}")
        return codes, names

    def _begun(self, codes: NDArray[np.int32], onset: float) -> NDArray[np.bool_]:
        """(rows,) True from the onset of the fault on."""
        table, roles = self.table, self.roles
        if roles.onset and (marks := table.marks(roles.onset)) is not None:
            return marks
        if not roles.onset:
            onsets = np.full(table.rows, onset)
        elif roles.time:
            onsets = table.seconds(roles.onset, SECONDS.get(roles.time_unit, 1.0))
        else:
            raise DataError(
                f"{table.name}: column {roles.onset!r} holds no marks. Mark the rows from the onset on with 1, those "
                "before with 0, or name the time column."
            )
        first = self.order[self.bounds[:-1]][codes]
        same = (onsets == onsets[first]) | (np.isnan(onsets) & np.isnan(onsets[first]))
        self._check(~same, f"another time in column {roles.onset!r} within one case")
        begun = (self.times if roles.time else self._places(codes)) >= onsets
        never = np.isfinite(onsets) & ~np.isin(codes, codes[begun])
        self._check(never, "the fault begins after the last row of its case")
        return begun

    def _places(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """(rows,) position of each row in its case, from 0."""
        places = np.empty(self.table.rows)
        places[self.order] = np.arange(self.table.rows) - self.bounds[codes[self.order]]
        return places

    def _texts(self, column: str) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        return self.table.codes(column) if column else (np.full(self.table.rows, UNLABELLED, np.int32), ())

    def _same(self, texts: tuple[NDArray[np.int32], tuple[str, ...]], rows: NDArray[np.intp], column: str) -> str:
        codes, names = texts
        self._check_rows(rows, codes[rows] != codes[rows[0]], f"another text in column {column!r} within one case")
        return names[codes[rows[0]]] if codes[rows[0]] >= 0 else ""

    def _same_number(self, column: NDArray[np.float64], rows: NDArray[np.intp], name: str) -> float:
        known = rows[np.isfinite(column[rows])]
        self._check_rows(
            known, column[known] != column[known[:1]], f"another number in column {name!r} within one case"
        )
        return float(column[known[0]]) if len(known) else np.nan

    def _check(self, wrong: NDArray[np.bool_], what: str) -> None:
        self._check_rows(np.arange(self.table.rows), wrong, what)

    def _check_rows(self, rows: NDArray[np.intp], wrong: NDArray[np.bool_], what: str) -> None:
        if wrong.any():
            row = int(rows[np.flatnonzero(wrong)[0]]) + 1
            raise DataError(f"{self.table.name}, row {row}: {what}. Correct the table, or name other columns.")


def _repeated(cells: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Mask of entries that occurred before."""
    _, first = np.unique(cells, return_index=True)
    again = np.ones(len(cells), bool)
    again[first] = False
    return again


ROW_GROUP = 256
"""Windows per Parquet row group."""
FACT_PREFIX = "fact."
"""Prefix of fact columns."""


@dataclass(frozen=True, eq=False)
class Packed:
    """Windows of a file, and a table of its flat columns with a row per window."""

    windows: WindowSet
    table: Table


def read_windows(
    given: Given, *, part: str = "", normal: str = "normal", classes: Sequence[str] = (), limits: Limits | None = None
) -> WindowSet:
    """Read the windows of a Parquet or NPZ file in the layout of this module.

    Args:
        given: path, or name and content.
        part: prefix of the arrays of this set in an archive of several (`corpus_`), and of ids made from row numbers.
        normal: label of normal operation.
        classes: class names, normal first, if known; default `normal` and the sorted labels of the file.
        limits: maximum bytes, rows and columns.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, values=np.zeros((2, 3, 4)), label=["leak", "normal"])
    >>> windows = read_windows(("a.npz", file.getvalue()))
    >>> windows.classes, windows.labels.tolist(), windows.values(0).shape
    (('normal', 'leak'), [1, 0], (3, 4))
    """
    return read_packed(given, part=part, normal=normal, classes=classes, limits=limits).windows


def read_packed(
    given: Given, *, part: str = "", normal: str = "normal", classes: Sequence[str] = (), limits: Limits | None = None
) -> Packed:
    """Read windows and the flat columns beside them."""
    limits = limits or Limits()
    name, file = open_given(given, limits)
    ending = PurePath(name).suffix.lower()
    if ending == ".parquet":
        return _Rows(name, read_parquet(name, file, limits), part).packed(normal, classes)
    if ending == ".npz":
        arrays = read_arrays(name, file, limits, (part, "channels", "units") if part else ("",))
        return _Arrays(name, arrays, part).packed(normal, classes)
    raise DataError(f"{name}: windows are read from .parquet and .npz. Save them as one of these.")


def write_windows(
    windows: WindowSet, path: Path, *, about: Mapping[str, str] | None = None, **columns: pa.Array
) -> None:
    """Write a Parquet file in the layout of this module, with further columns (N,), atomically.

    `about` is stored as metadata of the file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "w.parquet"
    >>> write_windows(WindowSet.from_arrays([np.ones((1, 3))]), path)
    >>> read_windows(path)[0].values.tolist()
    [[1.0, 1.0, 1.0]]
    """
    if windows.context is not None:
        windows = replace(windows, context=windows.context.without_lent())
    schema = _schema(windows.context, columns).with_metadata(dict(about) if about else None)
    with (
        write_atomically(path) as partial,
        pyarrow.parquet.ParquetWriter(partial, schema, compression="zstd") as writer,
    ):
        for start in range(0, len(windows), ROW_GROUP):
            block = windows[start : start + ROW_GROUP]
            further = [column[start : start + ROW_GROUP] for column in columns.values()]
            writer.write_table(pa.table([*_columns(block), *further], schema=schema))


def _schema(context: Context | None, columns: dict[str, pa.Array]) -> pa.Schema:
    """Schema of all rows; has context columns if the set has a context, even if a block lacks it."""
    return pa.schema(
        [
            ("_id", pa.string()),
            ("values", pa.list_(pa.float32())),
            ("channels", pa.list_(pa.string())),
            ("length", pa.int32()),
            ("label", pa.string()),
            ("group", pa.string()),
            ("asset", pa.string()),
            ("time", pa.float64()),
            ("span_start", pa.int32()),
            ("span_stop", pa.int32()),
            *(_context_fields(context) if context is not None else ()),
            *((name, column.type) for name, column in columns.items()),
        ]
    )


def _context_fields(context: Context) -> list[tuple[str, pa.DataType]]:
    return [
        ("before", pa.list_(pa.float32())),
        ("before_length", pa.int32()),
        ("rate", pa.float64()),
        ("units", pa.list_(pa.string())),
        *((FACT_PREFIX + name, pa.float64()) for name in context.fact_names),
    ]


def _columns(windows: WindowSet) -> list[pa.Array]:
    copied = windows.compact()
    ends = np.append(copied.offset, copied.chunks[0].size)
    labels = [windows.classes[label] if label != UNLABELLED else None for label in windows.labels]
    return [
        pa.array(windows.ids.tolist(), pa.string()),
        pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(copied.chunks[0])),
        pa.array([windows.channels(i) for i in range(len(windows))], pa.list_(pa.string())),
        pa.array(windows.lengths, pa.int32()),
        pa.array(labels, pa.string()),
        pa.array(windows.groups.tolist(), pa.string()),
        pa.array(windows.assets.tolist(), pa.string()),
        pa.array(windows.times, pa.float64()),
        pa.array(windows.spans[:, 0], pa.int32()),
        pa.array(windows.spans[:, 1], pa.int32()),
        *(_context_columns(windows.context) if windows.context is not None else ()),
    ]


def _context_columns(context: Context) -> list[pa.Array]:
    befores = [context.before_of(i) for i in range(len(context))]
    return [
        pa.array([None if before is None else before.ravel() for before in befores], pa.list_(pa.float32())),
        pa.array([0 if before is None else before.shape[1] for before in befores], pa.int32()),
        pa.array(context.rates, pa.float64(), mask=np.isnan(context.rates)),
        pa.array([context.units_of(i) or None for i in range(len(context))], pa.list_(pa.string())),
        *(pa.array(column, pa.float64(), mask=np.isnan(column)) for column in context.facts.T),
    ]


@dataclass(frozen=True, eq=False)
class _Values:
    """Values of all windows and their offsets, as in `WindowSet`."""

    flat: NDArray[np.float32]
    offset: NDArray[np.int64]
    lengths: NDArray[np.int32]
    channel_set: NDArray[np.int32]
    channel_sets: tuple[tuple[str, ...], ...]


class _Rows:
    """A Parquet file with a row per window."""

    def __init__(self, name: str, data: pa.Table, part: str) -> None:
        self.name, self.data, self.part = name, data, part

    def packed(self, normal: str, classes: Sequence[str]) -> Packed:
        values, channels = self._lists("values"), self._lists("channels")
        offsets = values.offsets.to_numpy().astype(np.int64)
        names = [tuple(row) for row in channels.to_pylist()]
        sets = tuple(dict.fromkeys(names))
        position = {channel_set: i for i, channel_set in enumerate(sets)}
        flat = [field.name for field in self.data.schema if not pa.types.is_nested(field.type)]
        table = Table(self.name, self.data.select(flat))
        counts = np.array([len(row) for row in names], np.int64)
        lengths = self._lengths(table, np.diff(offsets), counts)
        if wrong := next((o for o in sets if len(set(o)) != len(o) or not all(isinstance(c, str) for c in o)), None):
            raise DataError(f"{self.name}: the channels of a window need distinct names. Got {wrong}.")
        laid = _Values(
            flat=self._floats(values.values, "values"),
            offset=offsets[:-1],
            lengths=lengths,
            channel_set=np.array([position[row] for row in names], np.int32),
            channel_sets=sets,
        )
        windows = _windows(table, laid, _ids(table, self.part), _vocabulary(table, normal, classes))
        context = _context(table, _share(self._befores(table, windows)), self._units(names))
        return Packed(windows.with_context(context), table)

    def _befores(self, table: Table, windows: WindowSet) -> Iterator[Matrix | None]:
        """Yield the checked time before each window; nothing without such a column."""
        if "before" not in self.data.column_names:
            return
        lengths = table.numbers("before_length") if "before_length" in table.columns else np.full(table.rows, np.nan)
        for row, values in enumerate(self._flat_befores()):
            channels = windows.channels(row)
            if not values.size or lengths[row] == 0:
                yield None
                continue
            steps = len(values) // len(channels)
            if steps * len(channels) != len(values) or not (np.isnan(lengths[row]) or lengths[row] == steps):
                raise DataError(
                    f"{self.name}, row {row + 1}: the time before has {len(values)} values, no whole number of steps "
                    f"of the window's {len(channels)} channels, or not its length. Give the same channels for both."
                )
            yield check_before(values.reshape(len(channels), steps), channels, f"row {row + 1} of {self.name}")

    def _flat_befores(self) -> Iterator[NDArray[np.float32]]:
        found = self.data["before"]
        if not _is_list(found.type):
            raise DataError(f"{self.name}: column 'before' must hold lists of numbers, or null. Got {found.type}.")
        for chunk in found.chunks:
            flat, there = self._floats(chunk.values, "before"), chunk.is_valid().to_numpy(zero_copy_only=False)
            for (start, stop), given in zip(pairwise(chunk.offsets.to_numpy().tolist()), there, strict=True):
                yield flat[start : stop if given else start]

    def _units(self, names: list[tuple[str, ...]]) -> list[tuple[str, ...]] | None:
        if "units" not in self.data.column_names:
            return None
        found = self.data["units"]
        if not _is_list(found.type) or not pa.types.is_string(found.type.value_type):
            raise DataError(f"{self.name}: column 'units' must hold a list of texts in a row, or null.")
        units = [tuple(unit or "" for unit in listed or ()) for listed in found.to_pylist()]
        for row, (given, channels) in enumerate(zip(units, names, strict=True)):
            if given and len(given) != len(channels):
                raise DataError(
                    f"{self.name}, row {row + 1}: {len(given)} units for {len(channels)} channels. Give one each, or "
                    "null."
                )
        return units

    def _lists(self, column: str) -> Any:  # noqa: ANN401 - pyarrow has no types
        found = self.data[column] if column in self.data.column_names else None
        if found is None or not _is_list(found.type) or found.null_count:
            raise DataError(
                f"{self.name}: windows need a column {column!r} with a list in every row. Columns: "
                f"{', '.join(self.data.column_names)[:300]}."
            )
        whole = found.combine_chunks()
        return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole

    def _floats(self, values: pa.Array, column: str) -> NDArray[np.float32]:
        try:
            return np.asarray(values.cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False), np.float32)
        except pa.ArrowException as error:
            raise DataError(f"{self.name}: {column!r} holds no numbers ({error}).") from error

    def _lengths(self, table: Table, sizes: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int32]:
        given = table.numbers("length") if "length" in table.columns else sizes / np.maximum(counts, 1)
        wrong = np.flatnonzero((np.floor(given) * counts != sizes) | (sizes == 0))
        if wrong.size:
            row = wrong[0]
            raise DataError(
                f"{self.name}, row {row + 1}: {sizes[row]} values are no whole number of steps of {counts[row]} "
                "channels, or not its length."
            )
        return given.astype(np.int32)


class _Arrays:
    """An NPZ archive with an array per column."""

    def __init__(self, name: str, arrays: Arrays, part: str) -> None:
        self.name, self.part = name, part
        self.own = {key.removeprefix(part): array for key, array in arrays.items() if key.startswith(part)}
        self.channels = self.own.pop("channels", arrays.get("channels"))
        self.units = self.own.pop("units", arrays.get("units"))
        self.before = self.own.pop("before", None)
        if "values" not in self.own:
            raise DataError(f"{name}: no array {part}values. Arrays: {', '.join(arrays)[:300] or 'none'}.")
        self.values = self.own.pop("values")

    def packed(self, normal: str, classes: Sequence[str]) -> Packed:
        values = self._cube()
        n, count, steps = values.shape
        table = self._table(n)
        lengths = table.numbers("length") if "length" in table.columns else np.full(n, steps)
        if not ((lengths >= 1) & (lengths <= steps) & (lengths == np.floor(lengths))).all():
            raise DataError(f"{self.name}: 'length' must be whole numbers from 1 to {steps}.")
        flat = [window[:, : int(length)].ravel() for window, length in zip(values, lengths, strict=True)]
        laid = _Values(
            flat=np.concatenate(flat).astype(np.float32),
            offset=np.concatenate([[0], np.cumsum(lengths * count)[:-1]]).astype(np.int64),
            lengths=lengths.astype(np.int32),
            channel_set=np.zeros(n, np.int32),
            channel_sets=(self._channels(count),),
        )
        windows = _windows(table, laid, _ids(table, self.part), _vocabulary(table, normal, classes))
        context = _context(table, _share(self._befores(table, windows)), self._unit_rows(n, count))
        return Packed(windows.with_context(context), table)

    def _cube(self) -> NDArray[Any]:
        values = _three_axes(self.values)
        if values.ndim != 3 or 0 in values.shape or values.dtype.kind not in "fiub":
            raise DataError(
                f"{self.name}: 'values' must be numbers of shape (windows, channels, steps). Got {self.values.dtype} "
                f"of shape {self.values.shape}."
            )
        return values

    def _befores(self, table: Table, windows: WindowSet) -> Iterator[Matrix | None]:
        if self.before is None:
            return
        before, count = _three_axes(self.before), len(windows.channel_sets[0])
        if before.ndim != 3 or before.shape[:2] != (table.rows, count) or before.dtype.kind not in "fiub":
            raise DataError(
                f"{self.name}: 'before' must be numbers of shape ({table.rows}, {count}, steps), the windows and "
                f"channels of 'values'. Got {self.before.dtype} of shape {self.before.shape}."
            )
        steps = before.shape[2]
        lengths = table.numbers("before_length") if "before_length" in table.columns else np.full(table.rows, steps)
        if not ((lengths >= 0) & (lengths <= steps) & (lengths == np.floor(lengths))).all():
            raise DataError(f"{self.name}: 'before_length' must be whole numbers from 0 to {steps}.")
        for row, (matrix, length) in enumerate(zip(before, lengths.astype(int).tolist(), strict=True)):
            where = f"window {row} of {self.name}"
            yield check_before(matrix[:, :length], windows.channels(row), where) if length else None

    def _unit_rows(self, n: int, count: int) -> list[tuple[str, ...]] | None:
        if self.units is None:
            return None
        if self.units.shape != (count,):
            raise DataError(f"{self.name}: 'units' has shape {self.units.shape}, but there are {count} channels.")
        return [tuple(str(unit) for unit in self.units)] * n

    def _table(self, n: int) -> Table:
        if "rate" in self.own and not self.own["rate"].ndim:
            self.own["rate"] = np.full(n, self.own["rate"])
        wrong = next((key for key, array in self.own.items() if array.shape != (n,)), None)
        if wrong is not None:
            raise DataError(f"{self.name}: {wrong!r} has shape {self.own[wrong].shape}, but there are {n} windows.")
        try:
            columns = {key: pa.array(array) for key, array in self.own.items()}
        except (pa.ArrowException, ValueError) as error:
            raise DataError(f"{self.name}: cannot be read as columns ({error}). Use numbers and texts.") from error
        return Table(self.name, pa.table(columns or {"row": pa.array(np.arange(n))}))

    def _channels(self, count: int) -> tuple[str, ...]:
        names = [f"ch{c}" for c in range(count)] if self.channels is None else [str(c) for c in self.channels.ravel()]
        if len(names) != count or len(set(names)) != count:
            raise DataError(f"{self.name}: {count} channels need as many distinct names. Got {names[:10]}.")
        return tuple(names)


def _is_list(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _three_axes(values: NDArray[Any]) -> NDArray[Any]:
    """Add the axis of a single channel."""
    return values[:, None, :] if values.ndim == 2 else values


def _share(befores: Iterable[Matrix | None]) -> list[Matrix | None]:
    """Copy matrices into new memory, equal ones only once."""
    kept: dict[tuple[tuple[int, ...], bytes], Matrix] = {}
    shared: list[Matrix | None] = []
    for before in befores:
        if before is None:
            shared.append(None)
            continue
        content = before.tobytes()
        key = (before.shape, hashlib.blake2b(content, digest_size=16).digest())
        if key not in kept:
            kept[key] = np.frombuffer(content, np.float32).reshape(before.shape)
        shared.append(kept[key])
    return shared


def _context(table: Table, befores: list[Matrix | None], units: Sequence[Sequence[str]] | None) -> Context:
    """Context of the windows; `befores` is empty if the file has none."""
    facts = {
        name.removeprefix(FACT_PREFIX): table.numbers(name) for name in table.columns if name.startswith(FACT_PREFIX)
    }
    rates = table.numbers("rate") if "rate" in table.columns else np.full(table.rows, np.nan)
    wrong = np.flatnonzero((rates <= 0) | np.isinf(rates))
    if wrong.size:
        raise DataError(
            f"{table.name}, row {wrong[0] + 1}: a rate is a positive number of samples a second. Got {rates[wrong[0]]}."
        )
    return Context.of(
        table.rows,
        befores=befores or None,
        rates=rates,
        units=units,
        facts=[{name: float(column[row]) for name, column in facts.items()} for row in range(table.rows)],
    )


def _vocabulary(table: Table, normal: str, classes: Sequence[str]) -> tuple[str, ...]:
    if classes:
        return tuple(classes)
    names = table.codes("label")[1] if "label" in table.columns else ()
    return (normal, *sorted(set(names) - {normal}))


def _windows(table: Table, values: _Values, ids: list[str], vocabulary: tuple[str, ...]) -> WindowSet:
    n = table.rows
    if len(set(ids)) != n or "" in ids:
        raise DataError(f"{table.name}: some ids are empty or repeated. Give every window a unique id.")
    groups = _texts(table, "group")
    return WindowSet(
        chunks=(values.flat,),
        chunk=np.zeros(n, np.int32),
        offset=values.offset,
        lengths=values.lengths,
        channel_set=values.channel_set,
        channel_sets=values.channel_sets,
        labels=_labels(table, vocabulary),
        classes=vocabulary,
        ids=strings(ids, n),
        groups=strings([group or id_ for group, id_ in zip(groups, ids, strict=True)], n),
        assets=strings(_texts(table, "asset"), n),
        times=table.seconds("time") if "time" in table.columns else np.full(n, np.nan),
        spans=np.column_stack([_steps(table, "span_start"), _steps(table, "span_stop")]),
    )


def _ids(table: Table, part: str) -> list[str]:
    name = next((column for column in ("id", "_id") if column in table.columns), "")
    return _texts(table, name) if name else [f"{part}{i}" for i in range(table.rows)]


def _labels(table: Table, classes: tuple[str, ...]) -> NDArray[np.int32]:
    if "label" not in table.columns:
        return np.full(table.rows, UNLABELLED, np.int32)
    codes, names = table.codes("label")
    unknown = [name for name in names if name not in classes]
    if unknown:
        raise DataError(f"{table.name}: label {unknown[0]!r} is not one of the classes {', '.join(classes)[:300]}.")
    places = np.array([*(classes.index(name) for name in names), UNLABELLED], np.int32)  # code -1 is UNLABELLED
    return places[codes]


def _texts(table: Table, column: str) -> list[str]:
    """A column of texts, "" if missing."""
    if column not in table.columns:
        return [""] * table.rows
    codes, names = table.codes(column)
    return [names[code] if code >= 0 else "" for code in codes]


def _steps(table: Table, column: str) -> NDArray[np.int32]:
    if column not in table.columns:
        return np.zeros(table.rows, np.int32)
    steps = table.numbers(column)
    if not (np.isfinite(steps) & (np.abs(steps) < 2**31)).all():
        raise DataError(f"{table.name}: column {column!r} must hold steps in every row.")
    return steps.astype(np.int32)
