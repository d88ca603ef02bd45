"""From a table and the roles of its columns to series: the rows of one case together, in order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from readbench.errors import DataError, UsageError
from readbench.tables.table import Table
from readbench.windows import UNLABELLED, WindowSet

TimeUnit = Literal["s", "ms", "us", "ns"]
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Roles:
    """Which column means what; "" where a table has none.

    A wide table has a row per time and a column per channel. A long one has a row per reading: `channel` names the
    column with the channel's name, `value` the one with the reading.

    Args:
        time: seconds (or `time_unit`), or dates; rows are put in this order. Without it they are in order already.
        label: fault at each row; empty where nobody knows.
        group: what must not straddle a split (run, incident ...); default the case.
        asset: machine, well, patient ...
        case: whose rows make one series; default the group; without both, the whole table is one.
        channels: channels to read; default all columns with numbers that have no other role, or all of a long table.
        channel: of a long table, the column that names the channel.
        value: of a long table, the column with the reading.
        time_unit: of times that are numbers.
    """

    time: str = ""
    label: str = ""
    group: str = ""
    asset: str = ""
    case: str = ""
    channels: tuple[str, ...] = ()
    channel: str = ""
    value: str = ""
    time_unit: TimeUnit = "s"

    def __post_init__(self) -> None:
        if bool(self.channel) != bool(self.value):
            raise UsageError("A long table needs both: the column of the channel's name, and that of the value.")
        if self.channel and not self.time:
            raise UsageError("A long table needs a time column: it says which readings stand together.")

    @property
    def named(self) -> tuple[str, ...]:
        """Columns that have a role of their own."""
        roles = (self.time, self.label, self.group, self.asset, self.case, self.channel, self.value)
        return tuple(role for role in roles if role)


@dataclass(frozen=True, eq=False)
class Series:
    """One case as it was measured.

    Args:
        id: its name in the table, or the table's.
        values: (C, T) readings, NaN where there is none.
        channels: C names.
        labels: (T,) index into `names` at each step, -1 where unlabelled.
        names: the label texts of the whole table.
        group: what must not straddle a split.
        asset: "" where unknown.
        start: time of the first step in seconds, NaN where unknown.
        step: median seconds between steps; 1 where unknown.
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

    @property
    def label(self) -> str:
        """The one label of all its steps; "" where it has none."""
        found = np.unique(self.labels)
        if len(found) != 1:
            raise DataError(f"Case {self.id}: {len(found)} labels in one case. Give a case for each, or cut it first.")
        return "" if found[0] == UNLABELLED else self.names[found[0]]


def series_of(table: Table, roles: Roles) -> list[Series]:
    r"""The cases of a table.

    >>> from readbench.tables import read_table
    >>> table = read_table(("a.csv", b"t,run,speed,fault\n1,A,7,leak\n0,A,5,leak\n0,B,6,\n"))
    >>> [(s.id, s.label, s.values.tolist()) for s in series_of(table, Roles(time="t", case="run", label="fault"))]
    [('A', 'leak', [[5.0, 7.0]]), ('B', '', [[6.0]])]
    """
    return list(_Cases(table, roles))


def window_set(series: Sequence[Series], *, normal: str = "normal") -> WindowSet:
    """One window per series, with its one label; classes are `normal` and all other labels in alphabetical order."""
    faults = sorted({s.label for s in series} - {"", normal})
    classes = (normal, *faults)
    codes = {"": UNLABELLED} | {name: code for code, name in enumerate(classes)}
    return WindowSet.from_arrays(
        [s.values for s in series],
        channels=[s.channels for s in series],
        labels=[codes[s.label] for s in series],
        classes=classes,
        ids=[s.id for s in series],
        groups=[s.group for s in series],
        assets=[s.asset for s in series],
        times=[s.start for s in series],
    )


class _Cases:
    """One table being taken apart; `order` (rows,) sorts rows by case, then time, and `bounds` cuts it into cases."""

    def __init__(self, table: Table, roles: Roles) -> None:
        self.table, self.roles = table, roles
        codes, self.ids = self._cases()
        if roles.time:
            self.times = table.seconds(roles.time, _SECONDS[roles.time_unit])
            self._check(~np.isfinite(self.times), f"no time in column {roles.time!r}")
        else:
            self.times = np.full(table.rows, np.nan)
        self.order = np.lexsort((np.arange(table.rows) if not roles.time else self.times, codes))
        counts = np.bincount(codes, minlength=len(self.ids))
        self.bounds = np.concatenate([[0], np.cumsum(counts)])
        self.labels, self.names = self._texts(roles.label)
        self.groups = self._texts(roles.group)
        self.assets = self._texts(roles.asset)

    def __iter__(self) -> Iterator[Series]:
        blocks = self._long() if self.roles.channel else self._wide()
        for number, (rows, values, channels) in enumerate(blocks):
            name, times = self.ids[number], self.times[rows]
            yield Series(
                id=name,
                values=values,
                channels=channels,
                labels=self.labels[rows],
                names=self.names,
                group=self._same(self.groups, rows, self.roles.group) or name,
                asset=self._same(self.assets, rows, self.roles.asset),
                start=float(times[0]),
                step=float(np.median(np.diff(times))) if self.roles.time and len(times) > 1 else 1.0,
            )

    def _wide(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64], tuple[str, ...]]]:
        """Of each case its rows in order, its readings (C, T) and the channels."""
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
        """The same of a table with a row per reading; of the rows of one time the first stands for all."""
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
            self._check_rows(
                rows, self.labels[rows] != self.labels[rows[first]][step], "another label at the same time"
            )
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

    def _texts(self, column: str) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        return self.table.codes(column) if column else (np.full(self.table.rows, UNLABELLED, np.int32), ())

    def _same(self, texts: tuple[NDArray[np.int32], tuple[str, ...]], rows: NDArray[np.intp], column: str) -> str:
        codes, names = texts
        self._check_rows(rows, codes[rows] != codes[rows[0]], f"another text in column {column!r} within one case")
        return names[codes[rows[0]]] if codes[rows[0]] >= 0 else ""

    def _check(self, wrong: NDArray[np.bool_], what: str) -> None:
        self._check_rows(np.arange(self.table.rows), wrong, what)

    def _check_rows(self, rows: NDArray[np.intp], wrong: NDArray[np.bool_], what: str) -> None:
        if wrong.any():
            row = int(rows[np.flatnonzero(wrong)[0]]) + 1
            raise DataError(f"{self.table.name}, row {row}: {what}. Correct the table, or name other columns.")


def _repeated(cells: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which entries stand there for the second time or more."""
    _, first = np.unique(cells, return_index=True)
    again = np.ones(len(cells), bool)
    again[first] = False
    return again
