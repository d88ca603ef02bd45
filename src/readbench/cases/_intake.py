"""What comes in and goes out: windows of files, arrays and tables, checked and without gaps; a library as one file.

Windows come from what an engineer has: a file, a table in memory, or an interval of a longer recording. What cannot be
used is refused whole, and so is what lies outside `readbench.cases.limits`: nothing else comes into the store. The file
of a library is for keeping, sending, and loading into another one; nothing in it names a path.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, TypeGuard
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import ArrayLike, NDArray

from readbench.cases._models import UNLIKE, Case
from readbench.cases.limits import (
    MAX_CHANNEL_NAME,
    MAX_CHANNELS,
    MAX_FACTS,
    MAX_LINK,
    MAX_LINKS,
    MAX_NAME,
    MAX_RATE,
    MAX_READING,
    MAX_READINGS,
    MAX_REJECTED,
    MAX_TAGS,
    MAX_TEXT,
    MAX_UNITS,
    MIN_RATE,
)
from readbench.common.tables import Given, Limits, Table, open_given, read_table
from readbench.common.times import DAY_S, check_moment, check_zone, find_clock, find_shift, is_zone, parse_date
from readbench.engine.context import Context, Facts, Matrix, check_before, find_still
from readbench.engine.preparation import fill_gaps
from readbench.engine.signal_tables import SignalTable, understand_table
from readbench.engine.window_tables import Roles, read_windows, series_of, window_set
from readbench.engine.windows import UNLABELLED, Window, WindowSet
from readbench.errors import ConflictError, DataError, UsageError

Moment = float | str | None
"""A time in seconds, a date as text, by the clock of the recording, or none."""
Interval = tuple[Moment, Moment]
"""First and last time that belong to a window; without a time column, numbers of rows."""


@dataclass(frozen=True, eq=False)
class ReadRecording:
    """The windows of a file, and what was understood of it.

    Args:
        windows: N of them.
        ends: (N,) times of their last steps in seconds, NaN where unknown.
        zone: of their clock; "" where unknown.
        remarks: which column is the time, which channels were used, what was left out and why, in sentences.
    """

    windows: WindowSet
    ends: NDArray[np.float64]
    zone: str = ""
    remarks: tuple[str, ...] = ()

    def facts(self) -> list[Case]:
        """What the file says of its cases, with their times."""
        return [
            case if math.isnan(end) else case.model_copy(update={"end": end, "zone": self.zone})
            for case, end in zip(facts_of(self.windows), self.ends.tolist(), strict=True)
        ]

    def dates(self) -> dict[str, Any]:
        """When the first window began and ended, where that is a date: fields of a case."""
        start, end = float(self.windows.times[0]), float(self.ends[0])
        dated = start >= FIRST_DATE
        return {"time": start, "end": None if math.isnan(end) else end, "zone": self.zone} if dated else {}


GivenWindows = (
    ReadRecording | WindowSet | Window | Sequence[Window] | str | Path | NDArray[np.floating[Any]] | Sequence[ArrayLike]
)
"""Windows as users have them."""


def to_windows(given: GivenWindows, channels: Sequence[str] | None = None) -> WindowSet:
    """Windows as a set.

    Args:
        given: a set; what was read of a file; a window, or a list of them; an array (C, T), which is one window, or
            (N, C, T); a list of arrays (C, T); the path of a file.
        channels: C names, of arrays.

    >>> to_windows(np.zeros((2, 5)), ("flow", "speed")).channels(0), len(to_windows(np.zeros((3, 2, 5))))
    (('flow', 'speed'), 3)
    """
    given = given.windows if isinstance(given, ReadRecording) else given
    named = isinstance(given, WindowSet | Window | str | Path) or _are_windows(given)
    if named and channels is not None:
        raise UsageError("A window, a set or a file names its channels itself: `channels` is for arrays.")
    if isinstance(given, WindowSet | Window) or _are_windows(given):
        return WindowSet.of(given)
    if isinstance(given, str | Path):
        return windows_from(given)
    if not isinstance(given, Sequence | np.ndarray):
        raise UsageError(
            f"Give windows as a WindowSet, an array (C, T) or (N, C, T), a list of arrays (C, T), or a path; "
            f"got {type(given).__name__}."
        )
    arrays: Any = [given] if isinstance(given, np.ndarray) and given.ndim == 2 else given
    with np.errstate(over="ignore"):  # what single precision cannot hold is no reading, as infinity is none
        return WindowSet.from_arrays(arrays, channels=None if channels is None else tuple(channels))


def _are_windows(given: object) -> TypeGuard[Sequence[Window]]:
    return isinstance(given, list | tuple) and bool(given) and all(isinstance(own, Window) for own in given)


def attach_context(
    windows: WindowSet,
    *,
    before: ArrayLike | None = None,
    rate: float | None = None,
    units: Sequence[str] | None = None,
    facts: Facts | None = None,
) -> WindowSet:
    """Windows that bring along what is known of them all, instead of what they brought of it.

    Args:
        windows: N windows.
        before: (C, T_b) readings of the same asset in the time before.
        rate: samples a second.
        units: of the C channels.
        facts: numbers that are known beforehand, by name.

    >>> attach_context(to_windows(np.ones((1, 3))), before=[[0.0, 0.5]], facts={"speed": 29.5})[0].facts
    {'speed': 29.5}
    """
    if before is None and rate is None and units is None and facts is None:
        return windows
    if rate is not None:
        check_rate(rate)
    _check_counts(len(facts or ()), len(units or ()))
    for name, number in (facts or {}).items():
        _check_fact(name, number)
    count, known = len(windows), windows.context or Context.unknown(len(windows))
    with np.errstate(over="ignore"):  # likewise
        context = Context.of(
            count,
            befores=[known.before_of(i) for i in range(count)] if before is None else [before] * count,
            rates=known.rates if rate is None else [rate] * count,
            units=[known.units_of(i) for i in range(count)] if units is None else [tuple(units)] * count,
            facts=[known.facts_of(i) for i in range(count)] if facts is None else [facts] * count,
        )
    return windows.with_context(context)


@dataclass(frozen=True)
class ToldContext:
    """What is told of the windows of a file beside it.

    Args:
        onset: when it began, as `parse_onset` reads it: rows before are the time before the window.
        before: another file with the time before, of one window.
        rate: samples a second.
        facts: numbers that are known beforehand, by name.
    """

    onset: str = ""
    before: Given | None = None
    rate: float | None = None
    facts: Facts | None = None


NOTHING_TOLD = ToldContext()


def windows_from(
    source: Given | Any,  # noqa: ANN401 - any data frame that speaks Arrow
    roles: Roles | None = None,
    interval: Interval = (None, None),
    limits: Limits | None = None,
    told: ToldContext = NOTHING_TOLD,
) -> WindowSet:
    r"""Windows of a file or a data frame; arguments as of `read_recording`.

    >>> table = ("a.csv", b"t,speed\n0,1\n1,2\n2,4\n")
    >>> windows_from(table, Roles(time="t"), (1, None)).values(0).tolist()
    [[2.0, 4.0]]
    >>> windows_from(table, Roles(time="t"), told=ToldContext(onset="2"))[0].before.tolist()
    [[1.0, 2.0]]
    """
    return read_recording(source, roles, interval, limits, told).windows


def read_recording(
    source: Given | Any,  # noqa: ANN401 - any data frame that speaks Arrow
    roles: Roles | None = None,
    interval: Interval = (None, None),
    limits: Limits | None = None,
    told: ToldContext = NOTHING_TOLD,
) -> ReadRecording:
    r"""Windows of a file or a data frame, and what was understood of it.

    A Parquet or NPZ file with `values` holds windows that are already cut. Everything else is a table: all its rows,
    or those of each case where `roles` name one, are one window.

    Args:
        source: path, or name and content, or a data frame (pandas, polars, Arrow).
        roles: which column means what; the time is looked for where they name none.
        interval: only the rows of this time; the ends belong to it.
        limits: most bytes, rows and columns.
        told: of all its windows.

    >>> read_recording(("a.csv", b"Time;p [bar];state\n0;1,5;on\n1;Bad;on\n")).remarks[-1]
    'Left out: state (texts: on).'
    """
    limits = limits or Limits()
    source = Path(source) if isinstance(source, str) else source
    is_file, chosen = isinstance(source, tuple | Path), roles or Roles()
    if is_file and _holds_windows(source, limits):
        if interval != (None, None) or told.onset:
            raise DataError("The file holds windows that are already cut: an interval and an onset are for tables.")
        windows = read_windows(source, limits=limits)
        found = ReadRecording(windows, _ends(windows))
    else:
        table = read_table(source, limits) if is_file else Table("the data frame", _arrow(source))
        found = _read_signals(_check_spread(understand_table(table, chosen)), interval, told.onset)
    before = None if told.before is None else _read_before(told.before, chosen, found.windows, limits)
    return replace(found, windows=attach_context(found.windows, before=before, rate=told.rate, facts=told.facts))


def _check_spread(found: SignalTable) -> SignalTable:
    """A table with a row per reading, if it does not become far too large with a row per time and all its signals."""
    roles = found.roles
    if not roles.channel or not roles.time or roles.case or roles.group:
        return found
    signals = len(found.table.codes(roles.channel)[1])
    times = len(np.unique(found.table.numbers(roles.time)))
    if signals * times > MAX_READINGS:
        raise DataError(
            f"{found.table.name}: {signals:,} signals at {times:,} times are {signals * times:,} numbers in one window,"
            f" more than {MAX_READINGS:,}. Give fewer signals, or a shorter part."
        )
    return found


def _ends(windows: WindowSet) -> NDArray[np.float64]:
    """(N,) when windows end, by their rates; NaN where that is unknown."""
    rates = np.full(len(windows), np.nan) if windows.context is None else windows.context.rates
    return np.asarray(windows.times + (windows.lengths - 1) / rates, np.float64)


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


def _cut(table: Table, roles: Roles, interval: Interval, zone: str) -> Table:
    """The rows of an interval."""
    first, last = (parse_time(end, zone) if isinstance(end, str) else end for end in interval)
    if first is None and last is None:
        return table
    times = _times(table, roles)
    inside = (times >= (-np.inf if first is None else first)) & (times <= (np.inf if last is None else last))
    if not inside.any():
        ends = [
            f"{end:.15g}" if end is not None and end < FIRST_DATE else format_time(end, zone) for end in (first, last)
        ]
        raise DataError(
            f"{table.name}: no row lies between {ends[0] or 'the beginning'} and {ends[1] or 'the end'}; it has"
            f" {format_time(float(times.min()), zone)} to {format_time(float(times.max()), zone)}."
        )
    return replace(table, data=table.data.filter(pa.array(inside)))


def _times(table: Table, roles: Roles) -> NDArray[np.float64]:
    """(rows,) seconds, or numbers of rows where there is no time."""
    return table.numbers(roles.time) if roles.time else np.arange(table.rows, dtype=np.float64)


def _read_signals(found: SignalTable, interval: Interval, onset: str) -> ReadRecording:
    """The windows of a table, from the onset on; an onset that nothing comes before is refused."""
    roles, table = found.roles, _cut(found.table, found.roles, interval, found.zone)
    times = _times(table, roles)
    start = parse_onset(onset, float(times.min()), found.zone)
    if onset and not times.min() < start <= times.max():
        ends = [
            format_time(float(end), found.zone) if roles.time else f"row {end:g}" for end in (times.min(), times.max())
        ]
        raise DataError(
            f"{table.name}: the time before is empty, or the window is: the onset {onset.strip()} is not within"
            f" {ends[0]} to {ends[1]}. Give another onset, or none."
        )
    series = series_of(table, roles, start)
    windows = window_set(series)
    has = np.zeros(len(windows), bool) if windows.context is None else windows.context.has_before
    if onset and not has.all():
        late = windows.ids[int(np.argmin(has))]
        raise DataError(f"{table.name}: the time before case {late!s} is empty: it begins after the onset {onset}.")
    if roles.onset and not has.any():
        raise DataError(
            f"{table.name}: the time before is empty: column {roles.onset!r} marks no row, or the first one. Mark the"
            " row where it began, or leave the onset out."
        )
    return ReadRecording(windows, np.array([own.stop for own in series]), found.zone, found.remarks)


def _read_before(given: Given, roles: Roles, windows: WindowSet, limits: Limits) -> NDArray[np.float64]:
    """(C, T_b) the time before one window, from a file of its own."""
    if len(windows) != 1:
        raise UsageError(f"A file of the time before is for one case; got {len(windows)}.")
    if windows.context is not None and windows.context.has_before.any():
        raise UsageError("Give an onset or a file of the time before, not both.")
    channels = windows.channels(0)
    bare = replace(roles, label="", group="", asset="", case="", onset="", facts=())
    read = understand_table(read_table(given, limits), bare)
    table, found = read.table, series_of(read.table, read.roles)[0]
    if set(found.channels) != set(channels):
        raise DataError(
            f"{table.name}: the time before has channels {', '.join(found.channels)}, the window {', '.join(channels)}."
            " Give the same channels for both."
        )
    if found.stop >= windows.times[0]:
        raise DataError(
            f"{table.name}: the time before overlaps the window: it ends at {format_time(found.stop)}, and the window"
            f" begins at {format_time(float(windows.times[0]))}. Give only rows before that."
        )
    return found.values[[found.channels.index(name) for name in channels]]


def describe_context(before: int, rate: float, facts: Facts) -> str:
    """What a window brings along, in a few words; "" where that is nothing.

    >>> describe_context(512, 10.0, {"speed": 29.5})
    '512 steps before, 10 Hz, speed = 29.5'
    """
    steps = [f"{before} steps before"] if before else []
    hertz = [] if math.isnan(rate) else [f"{rate:g} Hz"]
    return ", ".join([*steps, *hertz, *(f"{name} = {number:g}" for name, number in facts.items())])


def describe_still(windows: WindowSet) -> list[str]:
    """What the reader must know of a time before in which channels never move; a sentence, or nothing."""
    names = dict.fromkeys(
        name for own in windows if own.before is not None for name in find_still(own.before, own.channels)
    )
    if not names:
        return []
    listed = ", ".join(list(names)[:MOST_LISTED]) + (", ..." if len(names) > MOST_LISTED else "")
    return [f"In the time before, {listed} never moved: the spread among the cases stands in."]


FIRST_DATE = 1e8
"""Seconds since 1970 below which a time is no date, but counted from the beginning of a recording."""


def format_time(time: float | None, zone: str = "") -> str:
    """A date by the clock of a zone, or seconds where the recording only counts from its beginning; it never fails.

    >>> format_time(1.7e9), format_time(1.7e9, "+01:00"), format_time(64.0), format_time(None)
    ('2023-11-14 22:13', '2023-11-14 23:13 +01:00', '64 s', '')
    >>> format_time(1e18), format_time(1.7e9, "+99:99")
    ('outside the calendar (1e+18 s)', "2023-11-14 22:13 UTC (there is no zone '+99:99')")
    """
    if time is None:
        return ""
    clock = find_clock(time, zone)
    if clock is None:
        return f"outside the calendar ({time:g} s)"
    if time < FIRST_DATE:
        return f"{time:g} s"
    named = zone if is_zone(zone) else f"UTC (there is no zone {_quote(zone)})"
    return f"{clock:%Y-%m-%d %H:%M} {named}".strip()


def parse_time(text: str, zone: str = "") -> float | None:
    """Seconds, or a date as seconds since 1970, by the clock of a zone unless it says otherwise; None for "".

    >>> parse_time("12.5"), parse_time("1970-01-02"), parse_time("2.1.1970 01:00", "+01:00"), parse_time("")
    (12.5, 86400.0, 86400.0, None)
    """
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        pass
    time = parse_date(text, zone)
    if time is None:
        raise UsageError(f"{text[:40]!r} is no time: give seconds, or a date such as 2024-05-01T12:00.")
    return time


_CLOCK = re.compile(r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(:(?P<second>[0-5]\d(\.\d+)?))?")


def parse_onset(text: str, first: float, zone: str = "") -> float:
    """When it began: a time as `parse_time` reads it, or a time of day on or after the recording's first; NaN for "".

    Args:
        text: such as `1234.5`, `2024-05-01T14:02` or `14:02`.
        first: time of the recording's first row.
        zone: of its clock.

    >>> parse_onset("1234.5", 0.0), parse_onset("01:00", 1.7e9) - 1.7e9, parse_onset("01:00", 1.7e9, "+01:00") - 1.7e9
    (1234.5, 10000.0, 6400.0)
    """
    clock = _CLOCK.fullmatch(text.strip())
    if clock is None:
        time = parse_time(text, zone)
        return math.nan if time is None else time
    if not first >= FIRST_DATE:
        raise UsageError(f"{text.strip()} is a time of day, and the recording has no dates. Give seconds, or a row.")
    seconds = 3600 * int(clock["hour"]) + 60 * int(clock["minute"]) + float(clock["second"] or 0)
    return first + (seconds - find_shift(first, zone) - first) % DAY_S


def parse_facts(texts: Sequence[str]) -> dict[str, float]:
    """Numbers that are known beforehand, from texts such as `speed=29.5`.

    >>> parse_facts(["speed=29.5", "load = 0.8"])
    {'speed': 29.5, 'load': 0.8}
    """
    facts = {}
    for text in texts:
        name, _, number = text.partition("=")
        try:
            facts[name.strip()] = float(number)
        except ValueError as error:
            raise UsageError(f"A fact is NAME=NUMBER, such as speed=29.5. Got {text[:60]!r}.") from error
        if not name.strip():
            raise UsageError(f"A fact is NAME=NUMBER, such as speed=29.5. Got {text[:60]!r}.")
    return facts


MOST_LISTED = 5
"""Channels that a sentence names."""
MOST_QUOTED = 80
"""Characters of a text that a sentence repeats."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""What no name holds: control characters, and halves of characters, which no file can be written with."""
_UNWRITABLE = re.compile(r"[\x00\ud800-\udfff]")
"""What no text holds."""


def prepare_windows(windows: WindowSet) -> WindowSet:
    """Windows without gaps, or an error.

    Missing readings (NaN, infinity, or `MAX_READING` and more) take the last reading before them, at the beginning the
    next one, as in the benchmark (`readbench.engine.preparation`). A channel without any reading is left out, of the
    time before, too.

    >>> nan = float("nan")
    >>> given = WindowSet.from_arrays([[[nan, 1.0, nan, 3.0], [nan, nan, nan, nan]]], channels=("a", "b"))
    >>> own = prepare_windows(given)
    >>> own.values(0).tolist(), own.channels(0)
    ([[1.0, 1.0, 1.0, 3.0]], ('a',))
    """
    sizes = windows.channel_counts.astype(np.int64) * windows.lengths
    if sizes.max(initial=0) > MAX_READINGS:
        raise DataError(f"A window holds {sizes.max():,} numbers, more than {MAX_READINGS:,}. Give a shorter interval.")
    for names in windows.channel_sets:
        _check_channels(names)
    _check_context(windows)
    if not any(_has_gap(windows, i) for i in range(len(windows))):
        return windows
    own = [_fill_window(window) for window in windows]
    filled = WindowSet.of(own)
    return replace(
        filled,
        labels=windows.labels,
        classes=windows.classes,
        ids=windows.ids,
        groups=windows.groups,
        assets=windows.assets,
        times=windows.times,
        spans=windows.spans,
    )


def _check_channels(names: tuple[str, ...]) -> None:
    if len(names) > MAX_CHANNELS:
        raise DataError(f"A window has {len(names):,} channels: at most {MAX_CHANNELS:,} are taken.")
    for name in names:
        if len(name) > MAX_CHANNEL_NAME or _UNWRITABLE.search(name):
            raise DataError(
                f"The channel {name[:40]!r} has more than {MAX_CHANNEL_NAME} characters, or some that no file can"
                " hold. Give it another name."
            )


def _check_context(windows: WindowSet) -> None:
    """Refuse a context that does not fit its windows; of a time before that windows share, the first is looked at."""
    context = windows.context
    if context is None:
        return
    _check_counts(len(context.fact_names), max(map(len, context.unit_sets), default=0))
    for rate in np.unique(context.rates[~np.isnan(context.rates)]).tolist():
        check_rate(rate)
    for name, numbers in zip(context.fact_names, context.facts.T, strict=True):
        _check_fact(name, float(np.abs(numbers[~np.isnan(numbers)]).max(initial=0.0)))
    pairs = np.column_stack([context.before, context.unit_set, windows.channel_set])
    for i in np.unique(pairs, axis=0, return_index=True)[1].tolist():
        channels, before, units = windows.channels(i), context.before_of(i), context.units_of(i)
        if units and len(units) != len(channels):
            raise DataError(f"Window {windows.ids[i]!s} has {len(channels)} channels, but units of {len(units)}.")
        for unit in units:
            _check_text("unit", unit)
        if before is not None:
            check_before(np.where(holds_reading(before), before, 0.0), channels, f"window {windows.ids[i]!s}")
            if before.size > MAX_READINGS:
                raise DataError(
                    f"The time before window {windows.ids[i]!s} holds {before.size:,} numbers, more than"
                    f" {MAX_READINGS:,}. Give less of it."
                )


def _check_counts(facts: int, units: int) -> None:
    for what, found, allowed in (("facts", facts, MAX_FACTS), ("units", units, MAX_UNITS)):
        if found > allowed:
            raise DataError(f"{found:,} {what} on a window: at most {allowed:,} are kept.")


def check_rate(rate: float) -> float:
    """A rate that may be stored, in samples a second, or an error."""
    if not MIN_RATE <= rate <= MAX_RATE:
        raise DataError(
            f"A rate is a positive number of samples a second, from {MIN_RATE:g} to {MAX_RATE:g}. Got {rate:g}."
        )
    return float(rate)


def _check_fact(name: str, number: float) -> None:
    _check_text("fact", name)
    if not name.strip():
        raise UsageError("A fact has no name. Give one, such as speed.")
    if not abs(number) < MAX_READING:
        raise DataError(
            f"The fact {name[:40]!r} is no finite number below {MAX_READING:g}. Leave it out where it is unknown."
        )


def holds_reading(values: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Where there is a reading: a number below `MAX_READING` either way. Anything else is a gap.

    >>> holds_reading(np.array([1.0, np.nan, -3e38, np.inf, 9e29])).tolist()
    [True, False, False, False, True]
    """
    readings: NDArray[np.bool_] = np.abs(values) < MAX_READING
    return readings


def _has_gap(windows: WindowSet, i: int) -> bool:
    before = None if windows.context is None else windows.context.before_of(i)
    return not (holds_reading(windows.values(i)).all() and (before is None or holds_reading(before).all()))


def _fill_window(window: Window) -> Window:
    """A window of the channels that have a reading, without gaps, nor any in the time before."""
    readings = holds_reading(window.values)
    kept: NDArray[np.bool_] = np.asarray(readings.any(axis=1), np.bool_)
    if not kept.any():
        missing, size = int(np.isnan(window.values).sum()), window.values.size
        if missing == size:
            raise DataError(f"Window {window.id} holds no reading at all: all {size:,} are missing.")
        raise DataError(
            f"Window {window.id} holds no reading: {missing:,} of {size:,} are missing, and {size - missing:,} are"
            f" infinite or {MAX_READING:g} and more. Check how it was exported, and its units."
        )
    channels = tuple(name for name, keep in zip(window.channels, kept, strict=True) if keep)
    return replace(
        window,
        values=fill_gaps(window.values[kept], readings[kept]).astype(np.float32, copy=False),
        channels=channels,
        before=None if window.before is None else _fill_before(window.before[kept], channels, window.id),
        units=tuple(unit for unit, keep in zip(window.units, kept, strict=False) if keep),
    )


def _fill_before(before: Matrix, channels: tuple[str, ...], window: str) -> Matrix:
    readings = holds_reading(before)
    if (empty := np.flatnonzero(~readings.any(axis=1))).size:
        raise DataError(
            f"The time before window {window} has no reading of channel {channels[empty[0]]!r}. Leave that channel out,"
            " or the time before."
        )
    return fill_gaps(before, readings).astype(np.float32, copy=False)


def new_id() -> str:
    """A name for a case that has none."""
    return f"case-{uuid4().hex[:12]}"


UNSEEN = -1.0
"""In place of what a writer saw of a case: nothing that is known of it may be replaced."""
_REPLACED = ("label", "asset", "time", "end", "zone", "group", "notes", "tags", "links", "rejected")


def check_seen(old: Case, new: Case | None, seen: float | None) -> None:
    """Refuse to replace what the writer did not see.

    Args:
        old: the case as it is.
        new: as it would be; None where it would be taken out.
        seen: `changed` of the case as the writer saw it, `UNSEEN`, or None for whatever it was.
    """
    if seen is None or seen == old.changed:
        return
    if new is None:
        said = ["it would be taken out"]
    else:
        changes = [(name, getattr(old, name), getattr(new, name)) for name in _REPLACED]
        given = [(name, was, now) for name, was, now in changes if was != now]
        lost = [own for own in given if not _extends(own[1], own[2])]
        if not given or (seen == UNSEEN and not lost):
            return
        said = [f"{name} is {_quote(was)}, and would become {_quote(now)}" for name, was, now in lost or given]
    what = "says something already" if seen == UNSEEN else "was changed since you saw it"
    raise ConflictError(
        old.id, f"Case {old.id!r} {what}: {'; '.join(said)}. Look at it again, then write.", seen=seen != UNSEEN
    )


def _extends(old: Any, new: Any) -> bool:  # noqa: ANN401 - the value of any field
    """Whether nothing of an old value is lost in a new one."""
    return old in {None, "", ()} or (isinstance(old, tuple) and set(old) <= set(new))


def _quote(value: object) -> str:
    text = ", ".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
    return repr(text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}…") if text else "empty"


def check_case(case: Case, was: Case | None = None) -> Case:
    """The case, if all that is known of it may be stored, with its zone in the one form.

    Args:
        case: as it shall be.
        was: as it is stored. What stays as it was is not looked at: an older version may have taken more.
    """
    for name, check in _CHECKS.items():
        if was is None or getattr(case, name) != getattr(was, name):
            check(case)
    if was is not None and case.zone == was.zone:
        return case
    return case.model_copy(update={"zone": check_zone(case.zone)})


def _check_id(case: Case) -> None:
    if not case.id:
        raise UsageError("A case needs a name.")
    _check_text("name", case.id)


def _check_label(label: str) -> None:
    _check_text("label", label)
    if label == UNLIKE or not label.strip():
        raise UsageError(f"{label!r} is no name of a fault. Give another.")


def _check_notes(case: Case) -> None:
    if len(case.notes) > MAX_TEXT:
        raise UsageError(f"Notes of {len(case.notes):,} characters: at most {MAX_TEXT:,} are kept.")
    if found := _UNWRITABLE.search(case.notes):
        raise UsageError(f"The notes hold {found[0]!r}, which no file can hold. Take it out.")


def _check_list(name: str, allowed: int, check: Callable[[str], None]) -> Callable[[Case], None]:
    """A check of how many texts a field of a case holds, and of each."""

    def check_texts(case: Case) -> None:
        texts: tuple[str, ...] = getattr(case, name)
        if len(texts) > allowed:
            raise UsageError(f"Case {case.id!r} has {len(texts):,} {name}: at most {allowed:,} are kept.")
        for text in texts:
            check(text)

    return check_texts


def _check_text(what: str, text: str, longest: int = MAX_NAME) -> None:
    if len(text) > longest or _CONTROL.search(text):
        raise UsageError(f"The {what} {text[:40]!r} is longer than {longest} characters or holds control characters.")


def _check_link(link: str) -> None:
    _check_text("link", link, MAX_LINK)
    if not link.startswith(("https://", "http://", "file://")):
        raise UsageError(f"The link {link[:80]!r} must begin with https://, http:// or file://.")


_CHECKS: Mapping[str, Callable[[Case], object]] = {
    "id": _check_id,
    "label": lambda case: None if case.label is None else _check_label(case.label),
    "rejected": _check_list("rejected", MAX_REJECTED, _check_label),
    "asset": lambda case: _check_text("asset", case.asset),
    "group": lambda case: _check_text("group", case.group),
    "tags": _check_list("tags", MAX_TAGS, lambda tag: _check_text("tag", tag)),
    "links": _check_list("links", MAX_LINKS, _check_link),
    "notes": _check_notes,
    "time": lambda case: None if case.time is None else check_moment(case.time, f"time of case {case.id!r}"),
    "end": lambda case: None if case.end is None else check_moment(case.end, f"end of case {case.id!r}"),
}


def facts_of(windows: WindowSet) -> list[Case]:
    """What a set knows of its windows; ids that are only numbers are no names, and a group of its own is none."""
    if windows.labels.max(initial=UNLABELLED) >= len(windows.classes):
        raise UsageError("The windows have labels, but no names for them: give `classes`, normal first.")
    return [
        Case(
            id="" if window.id.isdigit() else window.id,
            label=None if window.label == UNLABELLED else windows.classes[window.label],
            asset=window.asset,
            time=None if np.isnan(window.time) else window.time,
            end=None if np.isnan(end) else end,
            group="" if window.group == window.id else window.group,
        )
        for window, end in zip(windows, _ends(windows).tolist(), strict=True)
    ]
