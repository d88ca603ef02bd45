"""LBNL air handlers: days of operation of air-handling units with a known fault from midnight to midnight.

Layout: `<system>.csv` and `<system>-faults.csv` for the four systems below, in `lbnl_ahu/` at any depth, plain or
gzipped; the second is the report's table of faults: type, intensity, date. Read here: all four, as published. Not read:
the other two systems of the inventory, MZVAV-1 and RTU.

* SZCAV and SZVAV: one and the same unit (FLEXLAB X3A) with constant and with variable fan speed; measured.
* MZVAV-2-1: a unit of the ERS laboratory in Iowa (AHU-A); measured. MZVAV-2-2: its simulated twin.

A row a minute. A recording is the time from 6:00 to 18:00 of one day, when the units are in use, with the eleven points
that all four systems have. Four things need care:

* Commands are what the controller wants, not where a stuck actuator stands.
* The class is that of the table. It must agree with the column `Fault Detection Ground Truth`, but for one day on which
  that column forgets a fault (`FORGOTTEN`).
* Real unit and twin were given the same faults in the same weather. What one building had on one date is one group.
* Nothing normal precedes a fault of the same day. Who knows when it began also has the records of normal days: the time
  before a window are the same minutes of that normal day of the system whose outdoor temperature is nearest. For the
  twin that is the same day without the fault.

How large a fault is belongs to the truth and is not read.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Cuts, CutSource, Recording, read_info, window_starts
from readbench.benchmark.sources import _files
from readbench.engine.preparation import fill_gaps, is_reading
from readbench.engine.registry import SOURCES
from readbench.engine.windows import NORMAL
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""


@dataclass(frozen=True)
class AirHandler:
    """The `unit` behind the files of a system, with its fan; its `building`; whether it is a simulated `twin`."""

    unit: str
    building: str
    twin: bool = False


SYSTEMS = {
    "MZVAV-2-1": AirHandler("AHU-A", "ERS"),
    "MZVAV-2-2": AirHandler("AHU-A", "ERS", twin=True),
    "SZCAV": AirHandler("X3A, constant fan", "FLEXLAB"),
    "SZVAV": AirHandler("X3A, variable fan", "FLEXLAB"),
}
"""Unit and twin are one asset: they had the same faults in the same weather."""
FAULTS = (
    "Stuck OA Damper",
    "Stuck Cooling Coil Valve",
    "Leakage of Heating Coil Valve",
    "Stuck Heating Coil Valve",
    "Leakage of Cooling Coil Valve",
    "Leakage of OA Damper",
)
"""Types as the tables call them; classes 1 to 6 in this order."""
FORGOTTEN = {("MZVAV-2-1", "2007-08-30")}
"""Days with a fault by table and report, on which the ground truth says 0 throughout."""

FACTS = read_info(__name__, "lbnl_ahu")
NAMES = tuple(channel.name for channel in FACTS.channels)
OUTDOOR = NAMES.index("Outdoor Air Temperature")
TIME, TRUTH = "Datetime", "Fault Detection Ground Truth"
TIME_FORMAT = "%m/%d/%Y %H:%M"
NO_READING = "#VALUE!"
FIRST_MINUTE, LAST_MINUTE = 6 * 60, 18 * 60
"""Of the day: when the units are in use."""
MINUTES = LAST_MINUTE - FIRST_MINUTE
STEP = 60.0  # s
DAY = 24 * 60 * STEP


@dataclass(frozen=True, eq=False)
class OperatedDay:
    """One day of a system.

    Args:
        date: as 2007-08-28.
        start: 6:00 in seconds since 1970.
        values: (11, 720) readings from 6:00 to 18:00, NaN where there is none.
        label: class index.
    """

    date: str
    start: float
    values: NDArray[np.float64]
    label: int


@SOURCES.register("lbnl_ahu", title="LBNL AHU")
@dataclass(eq=False)
class LbnlAhu(CutSource):
    """Six faults of air-handling units, two measured ones and the simulated twin of one of them.

    Args:
        twin: read the simulated twin, too.
    """

    twin: bool = True

    info = FACTS

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents of all tables, and of whether the twin is read."""
        files = [path for pair in self._files(root).values() for path in pair]
        return _files.fingerprint_files(files, "lbnl_ahu", VERSION, self.twin)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the days of each system in the order of their dates."""
        for system, (table, faults) in self._files(root).items():
            days = read_days(table, system, read_faults(faults))
            for day in days:
                yield self._recording(system, day, days)

    def _files(self, root: Path | None) -> dict[str, tuple[Path, Path]]:
        """Records and table of faults of each system; all must be there, or a class would be missing without a word."""
        systems = [name for name, unit in SYSTEMS.items() if self.twin or not unit.twin]
        return {name: (self._file(root, f"{name}.csv"), self._file(root, f"{name}-faults.csv")) for name in systems}

    def _file(self, root: Path | None, name: str) -> Path:
        return _files.find_one(self.info, root, f"**/{name}", "table is")

    def _recording(self, system: str, day: OperatedDay, days: Sequence[OperatedDay]) -> Recording:
        protocol, own = self.info.protocol, SYSTEMS[system]
        length = protocol.length or MINUTES
        stride = protocol.stride if day.label else protocol.normal_stride or protocol.stride
        starts = window_starts(MINUTES, length, stride or length)
        usual = nearest_normal(day, days) if protocol.before == "onset" else None
        befores = [None if usual is None else usual[:, s : s + length] for s in starts]
        return Recording(
            id=f"{system}/{day.date}",
            values=day.values,
            channels=NAMES,
            labels=np.full(MINUTES, day.label, np.int32),
            group=f"{own.building} {day.date}",
            asset=own.unit,
            start=day.start,
            step=STEP,
            rate=1 / STEP,
            cuts=Cuts(
                starts,
                np.full(len(starts), day.label, np.int32),
                befores=None if protocol.before == "preceding" else tuple(befores),
            ),
        )


def nearest_normal(day: OperatedDay, days: Sequence[OperatedDay]) -> NDArray[np.float32] | None:
    """(11, 720) readings of the other normal day of the nearest outdoor temperature; None where there is none."""
    others = [other for other in days if other.label == NORMAL and other.date != day.date]
    if not others:
        return None
    filled = [fill_gaps(other.values, is_reading(other.values)) for other in others]
    nearest = min(filled, key=lambda values: float(np.nansum((values[OUTDOOR] - day.values[OUTDOOR]) ** 2)))
    return nearest.astype(np.float32)


def read_faults(path: Path) -> dict[str, int]:
    """Class of each day with a fault, by its date."""
    faults: dict[str, int] = {}
    try:
        rows = list(csv.DictReader(_files.read_text(path, "utf-8-sig").splitlines(), strict=True))
    except csv.Error as error:
        raise DataError(f"{path}: {error}. The file is damaged: get it again.") from error
    for number, row in enumerate(rows, start=1):
        kind, date = (row.get("fault type") or "").strip(), (row.get("fault occurred time") or "").strip()
        if kind not in FAULTS:
            raise DataError(
                f"{path}, row {number}: fault type {kind[:40]!r} is none of {', '.join(FAULTS)}. Get the file again."
            )
        faults[_date(path, number, date)] = FAULTS.index(kind) + 1
    if not faults:
        raise DataError(f"{path}: no faults in it. The file is incomplete: get it again.")
    return faults


def _date(path: Path, number: int, text: str) -> str:
    """A date such as 3/18/17 or 8/28/2007 in ISO form."""
    for form in ("%m/%d/%Y", "%m/%d/%y"):
        try:
            return datetime.strptime(text, form).date().isoformat()  # noqa: DTZ007 - a local date, no point in time
        except ValueError:
            continue
    raise DataError(f"{path}, row {number}: {text[:40]!r} is no date such as 8/28/2007. Get the file again.")


def read_days(path: Path, system: str, faults: Mapping[str, int]) -> list[OperatedDay]:
    """The days of a system from its records, in the order of their dates."""
    named = {column.removeprefix("AHU: ").strip(): column for column in _files.csv_columns(path)}
    lacking = [name for name in (TIME, *NAMES, TRUTH) if name not in named]
    if lacking:
        raise DataError(f"{path}: no column {', '.join(lacking)}. Get the file again.")
    wanted = [named[name] for name in (*NAMES, TRUTH)]
    table = _files.read_csv(path, wanted, time=named[TIME], time_format=TIME_FORMAT, gaps=(NO_READING,))
    times, truth = table[named[TIME]], table[named[TRUTH]]
    rows = np.stack([table[named[name]] for name in NAMES])
    _files.check_rows(path, np.isfinite(times), "the time is missing")
    days = []
    for midnight in np.unique(times // DAY * DAY):
        inside = times // DAY * DAY == midnight
        _files.check_times(path, times[inside], first_row=int(np.argmax(inside)) + 1)
        date = str(np.datetime64(int(midnight), "s"))[:10]
        label = faults.get(date, NORMAL)
        if (truth[inside] != bool(label)).any() and (system, date) not in FORGOTTEN:
            raise DataError(
                f"{path}: on {date} the table of faults has {FAULTS[label - 1] if label else 'no fault'}, but "
                f"{TRUTH!r} says otherwise. One of the two files is damaged: get both again."
            )
        minutes = (times[inside] - midnight) / STEP
        used = (minutes >= FIRST_MINUTE) & (minutes < LAST_MINUTE)
        values = np.full((len(NAMES), MINUTES), np.nan)
        values[:, (minutes[used] - FIRST_MINUTE).astype(np.intp)] = rows[:, inside][:, used]
        if not is_reading(values).any(axis=1).all():
            name = NAMES[int(np.argmin(is_reading(values).any(axis=1)))]
            raise DataError(f"{path}: {name!r} has no reading from 6:00 to 18:00 on {date}. Get the file again.")
        days.append(OperatedDay(date, float(midnight + FIRST_MINUTE * STEP), values, label))
    absent = sorted(set(faults) - {day.date for day in days})
    if absent:
        raise DataError(f"{path}: the table of faults has {absent[0]}, but no row here is of that day. Get both again.")
    return days
