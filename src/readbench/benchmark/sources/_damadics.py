"""DAMADICS: three control valves of a sugar factory in Lublin, with faults staged on them in November 2001.

Layout: `DDMMYYYY.txt`, one file a day, plain or gzipped, at any depth in `damadics/` (officially in
`Lublin_all_data/`, which four zip files make up together: unpack them all). 33 columns without header, tabs between
them: the second of the day, then 16, 6 and 10 readings around actuators 1, 2 and 3; missing readings are written `NaN`.
Not verified against the official files: read here was an excerpt of 2,818 seconds of four days in the same columns.

Nineteen faults were staged; what happened when is known from the published schedule, by second of the day, and is part
of this module. Each is a group of its own: a day is cut half way between each two faults. Where seconds are missing in
a file, the series is cut as well, so that no window reaches across a gap. A day without any scheduled fault is normal.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, CutSource, Recording, read_info
from readbench.benchmark.sources import _files
from readbench.benchmark.sources._episodes import Episode, stretches
from readbench.engine.registry import SOURCES
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""

DAY = 86_400
ACTUATORS = {
    1: (
        "P51_05 P51_06 T51_01 F51_01 LC51_03CV LC51_03X LC51_03PV TC51_05 T51_08 D51_01 D51_02 F51_02 PC51_01 T51_06 "
        "P51_03 T51_07"
    ),
    2: "P57_03 P57_04 T57_03 FC57_03PV FC57_03CV FC57_03X",
    3: "P74_00 P74_01 T74_00 F74_00 LC74_20CV LC74_20X LC74_20PV F74_30 P74_30 T74_30",
}
"""Columns 2 to 33 by the actuator they belong to."""
QUANTITIES = {"P": "pressure", "T": "temperature", "F": "flow", "D": "density", "L": "level loop"}
CHANNELS = tuple(
    Channel(name, description=f"{QUANTITIES[name[0]]} at actuator {actuator}")
    for actuator, names in ACTUATORS.items()
    for name in names.split()
)
NAMES = tuple(channel.name for channel in CHANNELS)

PRESSURE_DROP, PRESSURE_CHANGE, BYPASS, FLOW_SENSOR = range(1, 5)
SCHEDULE: dict[str, dict[int, tuple[int, int, int]]] = {
    "30102001": {14: (BYPASS, 57_340, 57_890), 1: (BYPASS, 58_800, 59_800)},
    "09112001": {
        2: (PRESSURE_DROP, 57_275, 57_550),
        4: (BYPASS, 58_520, 58_625),
        3: (BYPASS, 58_830, 58_930),
        15: (PRESSURE_DROP, 60_650, 60_700),
        16: (PRESSURE_DROP, 60_870, 60_960),
    },
    "17112001": {
        8: (PRESSURE_CHANGE, 53_780, 53_794),
        9: (PRESSURE_CHANGE, 54_193, 54_215),
        5: (BYPASS, 54_600, 54_700),
        10: (FLOW_SENSOR, 55_482, 55_517),
        11: (FLOW_SENSOR, 55_977, 56_015),
        6: (PRESSURE_DROP, 56_670, 56_770),
        12: (FLOW_SENSOR, 57_030, 57_072),
        17: (PRESSURE_DROP, 57_475, 57_530),
        18: (PRESSURE_DROP, 57_675, 57_800),
        19: (FLOW_SENSOR, 58_150, 58_325),
    },
    "20112001": {7: (PRESSURE_CHANGE, 37_780, 38_400), 13: (PRESSURE_CHANGE, 44_400, 86_399)},
}
"""Per day, in order of time: item of the schedule -> class, first and last second of the fault."""


@SOURCES.register("damadics", title="DAMADICS")
class Damadics(CutSource):
    """Nineteen staged faults of four kinds on three control valves, 32 channels once a second."""

    info = read_info(__name__, "damadics", channels=CHANNELS)

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents of all days."""
        return _files.fingerprint_files(self._days(root).values(), "damadics", VERSION)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the days in order of time, each as its unbroken stretches with at most one fault."""
        for day, path in self._days(root).items():
            yield from _recordings(day, path)

    def _days(self, root: Path | None) -> dict[str, Path]:
        """The file of each day, in order of time."""
        days = _files.name_each(_files.find_files(self.info, root, ["**/*2001.txt"]), _files.plain_stem, "day is")
        return {day: days[day] for day in sorted(days, key=_midnight)}


def _recordings(day: str, path: Path) -> Iterator[Recording]:
    seconds, values = _read(path)
    for first, last in pairwise([0, *np.flatnonzero(np.diff(seconds) > 1) + 1, len(seconds)]):
        begin = int(seconds[first])
        for part in stretches(last - first, episodes_of(day, begin, last - first)):
            yield Recording(
                id=f"{day}-{begin + part.start:05d}",
                values=values[:, first + part.start : first + part.stop],
                channels=NAMES,
                labels=part.labels(),
                group=part.episode.name if part.episode else day,
                start=_midnight(day) + begin + part.start,
                rate=1.0,
            )


def episodes_of(day: str, begin: int, steps: int) -> list[Episode]:
    """Scheduled faults of a day inside `steps` seconds from second `begin` on, as steps from there."""
    inside = []
    for item, (fault, first, last) in SCHEDULE.get(day, {}).items():
        start, stop = max(0, first - begin), min(steps, last + 1 - begin)
        if start < stop:
            inside.append(Episode(f"item-{item:02d}", fault, start, stop))
    return inside


def _read(path: Path) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Seconds of the day (T,), ascending, and readings (32, T)."""
    columns = ("second", *NAMES)
    table = _files.read_csv(path, columns, delimiter="\t", header=columns)
    seconds = table["second"]
    whole = (seconds >= 0) & (seconds < DAY) & (seconds % 1 == 0)
    _files.check_rows(
        path, whole, lambda row: f"{seconds[row]:g} in the first column is no second of the day (0 to 86399)"
    )
    _files.check_times(path, seconds)
    values = np.stack([table[name] for name in NAMES])
    _files.check_columns(path, values, NAMES)
    return seconds.astype(np.int64), values


def _midnight(day: str) -> float:
    """Begin of a day `DDMMYYYY` in seconds since 1970."""
    try:
        return datetime.strptime(day, "%d%m%Y").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise DataError(f"{day}.txt: files are named DDMMYYYY.txt by their day. Rename or remove the file.") from error
