"""Haizhe: dives of a small underwater vehicle with four propellers, sound and with four faults.

Layout: `<train|test>/<state>/<state>_<n>.csv`, plain or gzipped, in `haizhe_auv/` or in folders below it, such as the
official `Dataset/`. Read here: all 1,225 dives. The split is the originators' random one and is not kept; numbers begin
at 0 in both parts and are in no order.

A file is a dive of about ten seconds at 20 Hz, with the fault from its first row on: there is no onset and no time
before it. Four things need care:

* States were recorded in blocks of time. Clock, pressure and voltage of the first row, with the motors off, tell the
  state far better than chance. So pressure and voltage are given relative to the first row, and all dives of a half
  hour of the clock are one group. Dates are not given, so that a half hour may be that of several days.
* Heading is arbitrary and jumps at 180 degrees: it is given without jumps and relative to the first row.
* Dives of about 296 rows are all normal. A window are the first 192 rows of a dive; shorter dives, 12 of them, are left
  out.
* The clock is hours, minutes and seconds in one number. One dive has 89 seconds; only hours and minutes are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Recording, read_info
from readbench.benchmark.sources import _files
from readbench.engine.preparation import is_reading
from readbench.engine.registry import SOURCES
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""

RATE = 20.0
LENGTH = 192
STATES = {
    "Normal": "normal",
    "AddWeight": "added weight",
    "PressureGain_constant": "constant added to the pressure",
    "PropellerDamage_bad": "bad propeller damage",
    "PropellerDamage_slight": "slight propeller damage",
}
"""Folders of the states, and what they are called here; normal first."""
LABELS = {state: label for label, state in enumerate(STATES)}
FACTS = read_info(__name__, "haizhe_auv", faults=tuple(STATES.values())[1:], length=LENGTH)
NAMES = tuple(channel.name for channel in FACTS.channels)
PRESS, VOLTAGE, YAW = (NAMES.index(name) for name in ("press", "voltage", "yaw"))


@SOURCES.register("haizhe_auv", title="Haizhe AUV")
@dataclass(eq=False)
class HaizheAuv:
    """Four faults of an underwater vehicle, one window of ten seconds a dive.

    Args:
        levels: give pressure, voltage and heading as they were read, not relative to the first row.
    """

    levels: bool = False

    info = FACTS

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents and places of all dives, and of how they are given."""
        dives = self._dives(root)
        return _files.fingerprint_files(dives.values(), "haizhe_auv", VERSION, self.levels, list(dives))

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the dives, state by state."""
        for name, path in self._dives(root).items():
            yield self._recording(name, path)

    def _dives(self, root: Path | None) -> dict[str, Path]:
        """The file of each dive by part and name; every state must be there, or a class is missing without a word."""
        patterns = ([f"**/{part}/{state}/*.csv" for part in ("train", "test")] for state in STATES)
        found = (path for own in patterns for path in _files.find_files(self.info, root, own))
        return _files.name_each(found, lambda path: f"{path.parent.parent.name}/{_files.short_name(path)}", "dive is")

    def _recording(self, name: str, path: Path) -> Recording:
        table = _files.read_csv(path, ("time", *NAMES))
        values = np.stack([table[channel] for channel in NAMES])
        read = is_reading(values)
        _files.check_rows(path, read.all(axis=0), lambda row: f"no reading of {NAMES[read[:, row].argmin()]!r}")
        hour, minute, second = read_clock(path, table["time"][0])
        values = values[:, :LENGTH]
        return Recording(
            id=name,
            values=values if self.levels else remove_levels(values),
            channels=NAMES,
            labels=np.full(values.shape[1], LABELS[path.parent.name], np.int32),
            group=f"{hour:02d}:{minute // 30 * 30:02d}",
            asset="haizhe",
            start=3600.0 * hour + 60.0 * minute + second,
            step=1 / RATE,
            rate=RATE,
        )


def read_clock(path: Path, time: float) -> tuple[int, int, int]:
    """Hours, minutes and seconds of a clock that writes them as one number; the file is named in errors.

    >>> read_clock(Path("dive.csv"), 202252.0)
    (20, 22, 52)
    """
    if not is_reading(np.array([time])).all() or not 0 <= time < 240000 or time // 100 % 100 > 59:
        raise DataError(f"{path}, row 1: {time:g} is no hour and minute of a clock (HHMMSS). Get the file again.")
    return int(time // 10000), int(time // 100 % 100), int(time % 100)


def remove_levels(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Readings (16, T) with pressure, voltage and heading relative to the first row, the heading without jumps.

    >>> dive = np.zeros((16, 3))
    >>> dive[YAW] = [170, 179, -179]
    >>> remove_levels(dive)[YAW].tolist()
    [0.0, 9.0, 11.0]
    """
    relative = values.copy()
    relative[YAW] = np.unwrap(values[YAW], period=360.0)
    for channel in (PRESS, VOLTAGE, YAW):
        relative[channel] -= relative[channel, 0]
    return relative
