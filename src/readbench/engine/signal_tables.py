"""Interpret a user's table: find the time, channels, quality and units of its columns.

`understand_table` applies one set of rules for all inputs. It finds the time column, tables with a row per reading,
quality columns and units; converts times to seconds and bad readings to gaps; merges rows of the same time; and states
what it used, what it left out and why. Roles given by the user are kept.

The time is the first of these that can be read: a date and a time of day in two columns; a column with a usual name for
times (`readbench.common.times.TIME_NAMES`), dates before numbers; a column of dates; an unnamed first column that rises
in equal steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.common.tables import Table
from readbench.common.times import (
    DAY_S,
    ReadTimes,
    describe_span,
    find_clock,
    is_bare_date,
    is_date,
    is_time_name,
    is_time_of_day,
)
from readbench.engine.window_tables import Roles
from readbench.errors import DataError

NO_TIME = "-"
"""Name of the time column that means none: rows are in order."""
_TAG_NAMES_TEXT = (
    "tag|tagname|tag name|name|point|pointname|point name|signal|channel|sensor|variable|varname|metric|field|"
    "item|parameter|messstelle|kanal|tagpath|tag path|series|itemid|item id|measurement|tagid|node|nodeid|kks"
)
_TAG_NAMES = frozenset(_TAG_NAMES_TEXT.split("|"))
_VALUE_NAMES_TEXT = (
    "value|wert|val|reading|valeur|valor|waarde|varvalue|floatvalue|numvalue|vvalue|messwert|values|ip input value"
)
_VALUE_NAMES = frozenset(_VALUE_NAMES_TEXT.split("|"))
_QUALITY_NAMES_TEXT = (
    "quality|status|qual|opcquality|opc quality|quality code|qualitycode|dataintegrity|validity|isgood|is good|"
    "qualitydetail|quality detail|statuscode|status code|qualität|zustand|flag|questionable|ip input quality"
)
_QUALITY_NAMES = frozenset(_QUALITY_NAMES_TEXT.split("|"))
_BAD_QUALITY = re.compile(
    r"(?i)^(bad|schlecht|invalid|ungültig|no ?data|not ?good|i/?o timeout|comm|fail|stale|ungood)"
)
_OPC_GOOD = 192
_HOUR_S = 3600.0
_MIN_HOLE_STEPS = 10.0
"""A step is a hole if longer than this many median steps."""
_MIN_DATE_S = 1e8
_UNNAMED_COLUMNS = frozenset({"column 1", "Unnamed: 0", "__index_level_0__"})
_MAX_LISTED_NAMES = 8
_MAX_LISTED_TEXTS = 3
_MAX_UNTIMED_SHARE = 0.1
"""Maximum share of rows without a time that are left out; more raise an error."""


@dataclass(frozen=True, eq=False)
class SignalTable:
    """A table with interpreted columns.

    Args:
        table: times in seconds, numeric readings, one row per time of a case.
        roles: roles of the columns, including the channels.
        zone: time zone; "" if unknown.
        remarks: what was found, used and left out, in sentences.
    """

    table: Table
    roles: Roles
    zone: str
    remarks: tuple[str, ...]


def understand_table(table: Table, roles: Roles) -> SignalTable:
    r"""Interpret the columns of a table.

    Args:
        table: as read from a file.
        roles: known roles; `Roles(time="-")` for rows without times.

    >>> from readbench.common.tables import read_table
    >>> rows = b"Zeit;Tag;Wert;Status\n0,0;T1;1,5;Good\n0,5;T1;9;Bad\n0,0;p;3;Good\n0,5;p;4;Good\n"
    >>> found = understand_table(read_table(("a.csv", rows)), Roles())
    >>> found.roles.time, found.roles.channel, found.table.numbers("Wert").tolist()
    ('Zeit', 'Tag', [1.5, nan, 3.0, 4.0])
    """
    return _Understanding(table, roles).result()


class _Understanding:
    """State while a table is interpreted; each step replaces `table` and `roles` and adds remarks to `said`."""

    def __init__(self, table: Table, roles: Roles) -> None:
        self.table, self.roles = table, roles
        self.said: list[str] = []
        self.left_out: dict[str, str] = {}
        self.units: dict[str, str] = {}
        self.words: dict[str, list[str]] = {}
        self.times: ReadTimes | None = None
        self._read_numbers()

    def result(self) -> SignalTable:
        self._unpair()
        self._join_date_and_time()
        self._read_time()
        self._find_tall()
        quality = self._read_quality()
        self._choose_channels(quality)
        self._look_at_steps()
        self._merge_rows()
        self._name_units()
        remarks = (*self.table.remarks, self._describe_time(), *self.said, *self._describe_channels())
        return SignalTable(self.table, self.roles, self._zone, tuple(filter(None, remarks)))

    @property
    def _zone(self) -> str:
        return "" if self.times is None else self.times.zone

    # Steps

    def _read_numbers(self) -> None:
        """Convert texts to numbers where possible; columns that may hold names stay texts."""
        kept = {*self.roles.named, *(name for name in self.table.columns if _words(name) in _TAG_NAMES)}
        found: dict[str, NDArray[np.float64]] = {}
        for column in self.table.data.schema:
            if column.name in kept or not pa.types.is_string(column.type):
                continue
            read = self.table.readings(column.name)
            if read is not None:
                found[column.name], self.words[column.name], unit = read
                self.units |= {column.name: unit} if unit else {}
        self._replace(**found)

    def _unpair(self) -> None:
        """Convert a table with a time column before each signal to one with a row per reading."""
        names, roles = self.table.columns, self.roles
        if roles.time or roles.channel or roles.channels or len(names) < 4 or len(names) % 2:
            return
        times, values = names[::2], names[1::2]
        if not all(is_time_name(re.sub(r" \(\d+\)$", "", name)) or name.casefold().endswith(" time") for name in times):
            return
        read = [self.table.times(name, roles.time_unit, roles.zone) for name in times]
        if any(found is None for found in read) or not set(values) <= set(self.table.numeric):
            return
        seconds = np.concatenate([found.seconds for found in read if found is not None])
        channels = [re.sub(r"(?i)[ _](valuey|value|wert)$", "", name) for name in values]
        data = pa.table(
            {
                "time": seconds,
                "channel": np.repeat(channels, self.table.rows),
                "value": np.concatenate([self.table.numbers(name) for name in values]),
            }
        ).filter(pa.array(np.isfinite(seconds)))
        units = {to: unit for to, name in zip(channels, values, strict=True) if (unit := self.table.units.get(name))}
        self.table = replace(self.table, data=data, units=units)
        self.roles = replace(roles, time="time", channel="channel", value="value", time_unit="s")
        self.times = read[0]
        self.said.append("Each signal has its column of times.")

    def _join_date_and_time(self) -> None:
        """Join a date and a time of day in adjacent columns into one column with the date's name."""
        if self.roles.time:
            return
        names = self.table.columns
        for date, time in pairwise(names):
            first, second = (_first_text(self.table, name) for name in (date, time))
            if is_bare_date(first) and is_time_of_day(second):
                days, clock = self.table.times(date, zone="UTC"), self.table.times(time)
                if days is None or clock is None:
                    continue
                zone = self.roles.zone or self.table.zone
                moments = pa.array(np.round((days.seconds + clock.seconds % DAY_S) * 1e6).astype("datetime64[us]"))
                place = names.index(date)
                data = self.table.data.set_column(place, date, moments).drop_columns([time])
                self.table = replace(self.table, data=data, zone=zone)
                self.roles = replace(self.roles, time=date)
                self.said.append(f"The time is in two columns, {date!r} and {time!r}.")
                return

    def _read_time(self) -> None:
        """Find the time column and convert it, and a column of onset times, to seconds."""
        roles = self.roles
        if roles.time == NO_TIME:
            self.roles = replace(roles, time="")
            return
        if self.times is not None:
            return
        name = roles.time or self._find_time()
        if not name:
            return
        self.times = self.table.times(name, roles.time_unit, roles.zone)
        if self.times is None:
            if self.table.rows and name in self.table.columns:
                raise DataError(
                    f"{self.table.name}: column {name!r} holds no times: {_sample_times(self.table, name)}."
                )
            return
        self.roles = replace(roles, time=name, time_unit="s")
        if roles.onset and roles.onset in self.table.columns and self.table.marks(roles.onset) is None:
            onset = self.table.times(roles.onset, roles.time_unit, roles.zone)
            self._replace(**{roles.onset: self.table.seconds(roles.onset) if onset is None else onset.seconds})
        self._replace(**{name: self.times.seconds})
        self.said += self.times.remarks
        untimed = ~np.isfinite(self.times.seconds)
        if untimed.any() and untimed.mean() <= _MAX_UNTIMED_SHARE:
            self.table = replace(self.table, data=self.table.data.filter(pa.array(~untimed)))
            self.said.append(f"{untimed.sum()} of {len(untimed):,} rows without a time left out.")

    def _find_time(self) -> str:
        """Find the time column by the rules of the module; "" if there is none."""
        taken = set(self.roles.named) | set(self.roles.channels)
        names = [name for name in self.table.columns if name not in taken]
        called = [name for name in names if is_time_name(name)]
        numeric = set(self.table.numeric)
        for name in (*(name for name in called if name not in numeric), *(name for name in called if name in numeric)):
            if self._serves(name):
                return name
            self.left_out.setdefault(name, _sample_times(self.table, name))
        for name in names:
            if name not in numeric and self._serves(name):
                return name
        first = self.table.columns[0]
        return first if first in names and self._counts_rows(first) else ""

    def _counts_rows(self, name: str) -> bool:
        """Whether an unnamed column of numbers rises in equal steps."""
        if name not in _UNNAMED_COLUMNS or name not in self.table.numeric:
            return False
        numbers = self.table.numbers(name)
        steps = np.diff(numbers[np.isfinite(numbers)])
        return len(steps) == len(numbers) - 1 > 0 and bool((steps > 0).all() and np.ptp(steps) <= 0.01 * steps.mean())

    def _serves(self, name: str) -> bool:
        """Whether a column can be the time: it is readable, and its times do not start again and again."""
        found = self.table.times(name, self.roles.time_unit, self.roles.zone)
        if found is None or np.isfinite(found.seconds).mean() < 1 - _MAX_UNTIMED_SHARE:
            return False
        if self.roles.case or self.roles.group or self.roles.channel or self._tall_columns(name):
            return True
        known = found.seconds[np.isfinite(found.seconds)]
        counts = np.unique(known, return_counts=True)[1]
        if np.median(counts) > 1 and (np.diff(known) < 0).any():
            self.said.append(f"Column {name!r} begins again, so it is not the time. Name the column of the case.")
            self.left_out[name] = "times that begin again"
            return False
        return True

    def _tall_columns(self, time: str) -> tuple[str, str] | None:
        """Columns with the name and the reading of the signal, if a row is one reading."""
        if self.roles.channel or self.roles.channels or not time:
            return None
        free = [name for name in self.table.columns if name not in {*self.roles.named, time}]
        numeric = set(self.table.numeric)
        value = next((name for name in free if name in numeric and _words(name) in _VALUE_NAMES), "")
        tags = [name for name in free if name != value and _words(name) in _TAG_NAMES]
        tag = next((name for name in tags if name not in numeric), next(iter(tags), ""))
        return (tag, value) if tag and value else None

    def _find_tall(self) -> None:
        found = self._tall_columns(self.roles.time)
        if found:
            self.roles = replace(self.roles, channel=found[0], value=found[1])
            self.said.append(f"A row is one reading: signal {found[0]!r}, value {found[1]!r}.")

    def _read_quality(self) -> set[str]:
        """Set readings of bad quality to gaps; return the quality columns."""
        taken = {*self.roles.named, *self.roles.channels}
        found: dict[str, list[str]] = {}
        values = dict.fromkeys([self.roles.value] if self.roles.value else self.table.numeric)
        for name in self.table.columns:
            base = _without_quality(name)
            if name in taken:
                continue
            if _words(name) in _QUALITY_NAMES:
                found[name] = [value for value in values if value not in {self.roles.time, name}]
            elif base != name and base in values:
                found[name] = [base]
        used: set[str] = set()
        cleaned: dict[str, NDArray[np.float64]] = {}
        gaps = 0
        for name, targets in found.items():
            bad = _bad_rows(self.table, name)
            if bad is None:
                continue
            used.add(name)
            self.left_out[name] = "quality"
            for target in [other for other in targets if other not in found] if bad.any() else ():
                numbers = cleaned[target] if target in cleaned else self.table.numbers(target)
                gaps += int((bad & np.isfinite(numbers)).sum())
                cleaned[target] = np.where(bad, np.nan, numbers)
        self._replace(**cleaned)
        if gaps:
            self.said.append(f"{gaps:,} reading{'s' * (gaps > 1)} of bad quality taken as gaps.")
        return used

    def _choose_channels(self, quality: set[str]) -> None:
        """Choose the channels and convert them to numbers; note what is left out and why."""
        roles, table = self.roles, self.table
        if roles.channel:
            columns = [roles.value]
        else:
            columns = list(roles.channels) or [
                name for name in table.numeric if name not in {*roles.named, *quality, *self.left_out}
            ]
            if not roles.channels and roles.time:
                self.left_out |= {name: "another time" for name in columns if is_time_name(name)}
                self.left_out |= {name: "numbers of rows" for name in columns[:1] if self._counts_rows(name)}
                columns = [name for name in columns if name not in self.left_out]
            empty = [name for name in columns if not roles.channels and not np.isfinite(table.numbers(name)).any()]
            if len(empty) < len(columns):
                self.left_out |= dict.fromkeys(empty, "no readings")
                columns = [name for name in columns if name not in self.left_out]
            chosen = {*columns, *roles.named, *quality}
            rest = () if roles.channels else (name for name in table.columns if name not in chosen)
            self.left_out |= {name: _sample(table, name) for name in rest if name not in self.left_out}
            if not columns:
                why = self._describe_left_out()
                raise DataError(f"{table.name}: no column with numbers is left for channels. {why}")
        numeric = set(table.numeric)
        gaps: dict[str, list[str]] = {}
        for name in [column for column in columns if column in numeric]:
            if words := self.words.get(name) or (table.readings(name) or ((), []))[1]:
                gaps.setdefault(", ".join(words), []).append(repr(name))
        self.said += [f"Gaps in {_listed(names)}: {words}." for words, names in gaps.items()]
        self._replace(**{name: table.numbers(name) for name in columns if name in numeric})
        if not roles.channel and columns:
            self.roles = replace(roles, channels=tuple(columns))

    def _look_at_steps(self) -> None:
        """Remark on rows out of order and on long holes."""
        roles, table = self.roles, self.table
        if not roles.time:
            return
        times = table.numbers(roles.time)
        case, signal = (table.codes(name)[0] if name else None for name in (roles.case or roles.group, roles.channel))
        steps = _steps_within(np.arange(table.rows), times, case, signal)[1]
        if (steps < 0).any() and not (steps > 0).any():
            self.said.append("Rows stand with the newest first: they were turned round.")
        elif back := int((steps < 0).sum()):
            self.said.append(f"{back:,} of {table.rows:,} rows are older than the row above: rows were sorted by time.")
        places, steps = _steps_within(times, times, case)
        usual = float(np.median(steps[steps > 0])) if (steps > 0).any() else np.inf
        if count := int((steps > _MIN_HOLE_STEPS * usual).sum()):
            begun, longest = float(times[places[steps.argmax()]]), float(steps.max())
            clock = find_clock(begun, self._zone) if begun >= _MIN_DATE_S else None
            where = f"{begun:g} s" if clock is None else f"{clock:%Y-%m-%d %H:%M:%S}"
            what = f"A hole of {describe_span(longest)}" if count == 1 else f"{count:,} holes, the longest of"
            what += "" if count == 1 else f" {describe_span(longest)},"
            self.said.append(f"{what} after {where}: the rows on both sides are taken as neighbours.")

    def _merge_rows(self) -> None:
        """Merge rows of the same time and case: keep the last reading, or spread rows evenly if most times repeat."""
        roles, table = self.roles, self.table
        if not roles.time or not table.rows:
            return
        times = table.numbers(roles.time)
        keys = [table.codes(name)[0] for name in (roles.case or roles.group, roles.channel) if name]
        place = np.arange(table.rows)
        columns: list[NDArray[Any]] = [place, times, *keys]
        order = np.lexsort(columns)
        same = np.diff(times[order]) == 0
        for key in keys:
            same &= np.diff(key[order]) == 0
        if not same.any():
            return
        starts = np.flatnonzero(np.concatenate([[True], ~same]))
        counts = np.diff(np.append(starts, table.rows))
        if np.median(counts) == 1:
            self._keep_last(order, starts, counts)
            back = -np.diff(times)[np.diff(times) < 0]
            if not (keys or self._zone) and len(back) == 1 and 0.5 * _HOUR_S <= back[0] <= _HOUR_S:
                self.said.append("The times go back by up to an hour. If clocks were set back, name their zone.")
        elif not roles.channel and not keys and (np.diff(times) >= 0).all() and len(starts) > 1:
            gaps = np.append(np.diff(times[order[starts]]), np.median(np.diff(times[order[starts]])))
            within = place - np.repeat(starts, counts)
            self._replace(**{roles.time: times + np.repeat(gaps / counts, counts) * within})
            self.said.append(f"Times in {roles.time!r} repeat: rows of one time were spread evenly up to the next.")

    def _keep_last(self, order: NDArray[np.intp], starts: NDArray[np.intp], counts: NDArray[np.intp]) -> None:
        """Keep the last row of each time, with the last reading of each channel."""
        last = order[starts + counts - 1]
        rank = np.argsort(last)
        data = self.table.data.take(pa.array(last[rank]))
        readings: dict[str, NDArray[np.float64]] = {}
        for name in [self.roles.value] if self.roles.channel else self.roles.channels:
            numbers = self.table.numbers(name)
            latest = np.maximum.reduceat(np.where(np.isfinite(numbers[order]), np.arange(len(order)), -1), starts)
            merged = np.where(latest >= 0, numbers[order[np.maximum(latest, 0)]], np.nan)[rank]
            readings[name] = merged
        count = self.table.rows - len(last)
        rows = f"{count:,} row{'s' * (count > 1)}"
        self.said.append(f"{rows} of a time that was there already merged: the last reading counts.")
        self.table = replace(self.table, data=data)
        self._replace(**readings)

    def _name_units(self) -> None:
        """Take units from a row of units or from readings, unless the user named them."""
        given = dict(self.roles.units)
        channels = set(self.roles.channels)
        named = {**self.units, **self.table.units}
        found = {name: unit for name, unit in named.items() if name in channels or not channels}
        self.roles = replace(self.roles, units=tuple((found | given).items()))

    # Words

    def _describe_time(self) -> str:
        name, zone = self.roles.time, self._zone
        if not name:
            return "No column was taken as the time: rows are in order, and the rate is unknown."
        times = np.unique(self.table.numbers(name))
        times = times[np.isfinite(times)]
        step = float(np.median(np.diff(times))) if len(times) > 1 else np.nan
        rate = "" if not step > 0 else f", {1 / step:.6g} Hz" if step < 1 else f", a row every {step:.6g} s"
        dated = len(times) and times[0] >= _MIN_DATE_S
        where = f", zone {zone}" if zone else ", clock times without a zone" if dated else ""
        return f"Time: column {name!r}{rate}{where}."

    def _describe_channels(self) -> list[str]:
        if self.roles.channel:
            used = list(self.roles.channels) or list(self.table.codes(self.roles.channel)[1])
        else:
            used = list(self.roles.channels)
        said = [f"{len(used)} channel{'s' * (len(used) != 1)}: {_listed(used)}."] if used else []
        return [*said, self._describe_left_out()]

    def _describe_left_out(self) -> str:
        if not self.left_out or self.roles.channel:
            return ""
        return f"Left out: {_listed([f'{name} ({why})' for name, why in self.left_out.items()])}."

    def _replace(self, **columns: NDArray[np.float64]) -> None:
        data = self.table.data
        if columns:
            arrays = [pa.array(columns[name]) if name in columns else data[name] for name in data.column_names]
            self.table = replace(self.table, data=pa.table(arrays, names=data.column_names))


def _steps_within(
    order: NDArray[Any], times: NDArray[np.float64], *keys: NDArray[Any] | None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Steps between consecutive rows of a case, in this order: index of the first row, and length.

    >>> _steps_within(np.arange(4), np.array([0.0, 5.0, 1.0, 4.0]), np.array([0, 1, 0, 1]))
    (array([0, 1]), array([ 1., -1.]))
    """
    known = [key for key in keys if key is not None]
    rows = np.lexsort([order, *known])
    same = np.isfinite(times[rows[1:]]) & np.isfinite(times[rows[:-1]])
    for key in known:
        same &= np.diff(key[rows]) == 0
    return rows[:-1][same], np.diff(times[rows])[same]


def _bad_rows(table: Table, column: str) -> NDArray[np.bool_] | None:
    """(rows,) readings that a quality column marks as bad; None if it holds no quality."""
    if column in table.numeric:
        numbers = table.numbers(column)
        known = numbers[np.isfinite(numbers)]
        if len(known) and known.max() >= _OPC_GOOD and known.min() >= 0:
            return numbers < _OPC_GOOD / 3  # OPC quality: 64 and above uncertain, 192 and above good
        if len(known) and np.isin(known, (0, 1)).all() and known.max() == 1 and _words(column) != "questionable":
            return numbers == 0
        return numbers == 1 if _words(column) == "questionable" and len(known) else None
    codes, names = table.codes(column)
    if not any(re.match(r"(?i)good|gut|ok|bad|schlecht|valid|invalid|uncertain", name) for name in names):
        return None
    bad = np.array([*(bool(_BAD_QUALITY.match(name)) for name in names), False])  # code -1 is not bad
    return np.asarray(bad[codes], bool)


def _first_text(table: Table, column: str) -> str:
    """First cell of a column of texts, dates or times of day as text; "" for other columns."""
    values = table.data[column]
    kind = values.type
    if not (pa.types.is_string(kind) or pa.types.is_date(kind) or pa.types.is_time(kind)):
        return ""
    return next((str(cell) for cell in values.slice(0, 20).to_pylist() if cell not in {None, ""}), "").strip()


def _sample(table: Table, column: str) -> str:
    """Why a column holds no readings: empty, or its first texts."""
    if table.data[column].null_count == table.rows:
        return "empty"
    names = [name[:20] for name in table.codes(column)[1][:_MAX_LISTED_TEXTS]]
    return f"texts: {', '.join(names)}" if names else "empty"


def _sample_times(table: Table, column: str) -> str:
    """Why a column with a name for times holds none."""
    if column in table.numeric and np.isfinite(table.numbers(column)).any():
        return "numbers outside the years 1900 to 2199"
    first = _first_text(table, column)
    return f"no dates of the years 1900 to 2199: {first}" if is_date(first) else _sample(table, column)


def _without_quality(name: str) -> str:
    """Name of the channel whose quality a column holds, or the unchanged name.

    >>> _without_quality("flow.Quality"), _without_quality("flow")
    ('flow', 'flow')
    """
    found = re.search(r"(?i)(quality|status|qual|validity)$", name)
    return name[: found.start()].rstrip(" _.:/-") if found else name


def _words(name: str) -> str:
    return re.sub(r"[\W_]+", " ", name).strip().casefold()


def _listed(names: list[str]) -> str:
    more = len(names) - _MAX_LISTED_NAMES
    return ", ".join(names[:_MAX_LISTED_NAMES]) + (f" and {more} more" if more > 0 else "")
