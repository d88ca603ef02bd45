"""Bearings: vibration of seeded bearing faults on four test rigs of three laboratories.

Layout: the files of three publications, at any depth in `bearings/`, plain or gzipped. What a file is follows from its
name and, for the two rigs of HIT, from the name of its folder:

* HIT (Harbin): `Self-built dataset/` and `SpectraQuest MFS dataset/` with `IR2_600.mat` to `OR8_1200.mat` and
  `Normal_600.mat` to `Normal_1200.mat`: place of the fault, degrees of the raceway that it takes, rpm. A file has one
  variable, of any name, sampled at 51.2 kHz.
* UESTC (Chengdu): `N_800_1.mat` to `B_1400_5.mat`: normal, inner, outer or ball; rpm; part of one long recording.
* MFPT: `baseline_1.mat`, `InnerRaceFault_vload_1.mat`, `OuterRaceFault_vload_1.mat`, `OuterRaceFault_1.mat` and so on,
  with a struct `bearing` each. The three recordings of machines in the field carry no documented fault, and are not
  read.

Every recording is brought to 20 kHz. Its level is removed (mean and deviation): units differ from rig to rig, and the
gain is that of the session, not of the fault (docs/datasets.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import CutSource, Recording, read_info
from readbench.benchmark.sources._files import find_files, fingerprint_files, name_each, plain_stem
from readbench.benchmark.sources._matlab import MatValue, number_array, read_mat
from readbench.engine.registry import SOURCES
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""
RATE = 20_000
"""Samples a second that every recording is brought to: the lowest among the rigs."""
RATIOS = {51_200: (25, 64), 20_000: (1, 1), 48_828: (256, 625), 97_656: (128, 625)}
"""Native rate -> up and down to `RATE`; 48,828 and 97,656 are 50 MHz over 1024 and 512."""
POUND = 4.448222
"""Newtons of a pound of force."""
NORMAL, INNER, OUTER, BALL = range(4)
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Vibration:
    """What a file holds: readings (T,), their native rate, and the facts that it states."""

    readings: Array
    rate: float
    facts: dict[str, float]


@dataclass(frozen=True)
class Rig:
    """One test rig and its files.

    Args:
        name: of the asset.
        patterns: where files lie.
        names: what their names are made of: `recording`, `bearing` and `rpm`, where it is said.
        example: of such names, for the error.
        classes: class of each bearing, by its first letter.
        read: takes path and variables of a file.
        facts: what is known of all recordings. Of HIT's own rig and of UESTC's the number of rolling elements is not
            stated; the lines in their spectra are those of 9 and 8.
    """

    name: str
    patterns: tuple[str, ...]
    names: re.Pattern[str]
    example: str
    classes: dict[str, int]
    read: Callable[[Path, dict[str, MatValue]], Vibration]
    facts: dict[str, float]


@dataclass(frozen=True)
class BearingFile:
    """A file and what its name says.

    Args:
        path: where it lies.
        rig: what it was recorded on.
        recording: what it belongs to; parts of one recording never straddle a split.
        bearing: what was mounted.
        rpm: nominal speed; None where the name does not say it.
    """

    path: Path
    rig: Rig
    recording: str
    bearing: str
    rpm: int | None

    @property
    def fault(self) -> int:
        """Class of the bearing."""
        return self.rig.classes[self.bearing[0]]

    @property
    def id(self) -> str:
        """Unique among the files."""
        return f"{self.rig.name}/{plain_stem(self.path)}"


def read_hit(path: Path, variables: dict[str, MatValue]) -> Vibration:
    """A file of HIT: one variable, whatever it is called."""
    if len(variables) != 1:
        raise DataError(f"{path}: {len(variables)} variables, expected one. Get the file again.")
    name, value = next(iter(variables.items()))
    return Vibration(number_array(f"{path}: variable {name!r}", value, 1), 51_200, {})


def read_uestc(path: Path, variables: dict[str, MatValue]) -> Vibration:
    """A file of UESTC: `Data` at `SampleFrequency`; nothing loads the shaft."""
    readings = number_array(f"{path}: variable 'Data'", variables.get("Data"), 1)
    return Vibration(readings, _number(path, "SampleFrequency", variables.get("SampleFrequency")), {"load": 0.0})


def read_mfpt(path: Path, variables: dict[str, MatValue]) -> Vibration:
    """A file of MFPT: readings `gs` at `sr` Hz, shaft speed `rate` in Hz, `load` in pounds."""
    bearing = variables.get("bearing")
    if not isinstance(bearing, dict):
        raise DataError(f"{path}: there is no struct 'bearing' in it. Get the file again.")
    readings = number_array(f"{path}: field 'gs'", bearing.get("gs"), 1)
    speed, load, rate = (_number(path, name, bearing.get(name)) for name in ("rate", "load", "sr"))
    if speed == 0:
        raise DataError(f"{path}: the shaft stands still ('rate' is 0). Get the file again.")
    return Vibration(readings, rate, {"speed": speed, "load": load * POUND})


RIGS = (
    *(
        Rig(
            name=name,
            patterns=(f"**/{folder}/*.mat",),
            names=re.compile(r"(?P<recording>(?P<bearing>[IO]R[258]|Normal)_(?P<rpm>600|900|1200))"),
            example="IR2_600.mat, OR8_1200.mat or Normal_900.mat",
            classes={"N": NORMAL, "I": INNER, "O": OUTER},
            read=read_hit,
            facts={"rolling_elements": 9},
        )
        for name, folder in (("HIT-self", "Self-built dataset"), ("HIT-MFS", "SpectraQuest MFS dataset"))
    ),
    Rig(
        name="UESTC",
        patterns=("**/[NIOB]_*_*.mat",),
        names=re.compile(r"(?P<recording>(?P<bearing>[NIOB])_(?P<rpm>[1-9]\d{2,3}))_\d"),
        example="N_800_1.mat or B_1400_5.mat",
        classes={"N": NORMAL, "I": INNER, "O": OUTER, "B": BALL},
        read=read_uestc,
        facts={"rolling_elements": 8},
    ),
    Rig(
        name="MFPT",
        patterns=("**/baseline_*.mat", "**/InnerRaceFault_*.mat", "**/OuterRaceFault_*.mat"),
        # Normal ones are one recording: in some copies they are pieces of one.
        names=re.compile(r"(?P<recording>(?P<bearing>(?:Inner|Outer)RaceFault)(?:_vload)?_\d|baseline(?=_))(?:_\d)?"),
        example="baseline_1.mat or InnerRaceFault_vload_7.mat",
        classes={"b": NORMAL, "I": INNER, "O": OUTER},
        read=read_mfpt,
        facts={"rolling_elements": 8},
    ),
)


@SOURCES.register("bearings", title="Bearings")
@dataclass(eq=False)
class Bearings(CutSource):
    """Bearing faults on four test rigs.

    Args:
        level: `removed` centres and scales every recording; `kept` leaves readings in the units of their rig.
        group: what never straddles a split: a `recording`, or all recordings of a `bearing`.
    """

    level: Literal["removed", "kept"] = "removed"
    group: Literal["recording", "bearing"] = "recording"

    info = read_info(__name__, "bearings")

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents of all files and of what each is."""
        files = self._files(root)
        settings = VERSION, self.level, self.group
        return fingerprint_files([file.path for file in files], "bearings", *settings, [file.id for file in files])

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the recordings rig by rig, normal ones first, then by bearing, speed and part."""
        usual: dict[tuple[str, int | None], Array] = {}
        for file in self._files(root):
            vibration = file.rig.read(file.path, read_mat(file.path))
            readings = self._prepare(file.path, vibration)
            speed = file.rig.name, file.rpm
            if file.fault == NORMAL:
                usual.setdefault(speed, readings)
            known = file.fault != NORMAL and self.info.protocol.before == "onset"
            yield self._recording(file, vibration.facts, readings, usual.get(speed) if known else None)

    def _recording(
        self, file: BearingFile, facts: dict[str, float], readings: Array, before: Array | None
    ) -> Recording:
        nominal = {} if file.rpm is None else {"speed": file.rpm / 60}
        return Recording(
            id=file.id,
            values=readings[None],
            channels=tuple(channel.name for channel in self.info.channels),
            labels=np.full(len(readings), file.fault, np.int32),
            group=f"{file.rig.name}/{file.recording if self.group == 'recording' else file.bearing}",
            asset=file.rig.name,
            step=1 / RATE,
            rate=RATE,
            before=None if before is None else before[None],
            facts={**nominal, **file.rig.facts, **facts},
        )

    def _files(self, root: Path | None) -> list[BearingFile]:
        """All files; every rig must be there, or the task would be another one without a word."""
        files = []
        for rig in RIGS:
            paths = name_each(find_files(self.info, root, rig.patterns), plain_stem).values()
            found = (_parse(path, rig) for path in paths)
            files += sorted(found, key=lambda file: (file.fault, file.bearing, file.rpm or 0, file.id))
        return files

    def _prepare(self, path: Path, vibration: Vibration) -> Array:
        """(T,) readings at the common rate; without their level, where it is removed."""
        if vibration.rate not in RATIOS:
            raise DataError(
                f"{path}: sampled at {vibration.rate:g} Hz, but files of these rigs are sampled at "
                f"{', '.join(map(str, RATIOS))} Hz. Get the file again."
            )
        if np.ptp(vibration.readings) == 0:
            raise DataError(f"{path}: the readings never move. Get the file again.")
        readings = resample_to_common(vibration.readings, int(vibration.rate))
        return readings if self.level == "kept" else (readings - readings.mean()) / readings.std()


def resample_to_common(readings: Array, rate: int) -> Array:
    """(T,) readings at one of the native rates, brought to `RATE` without aliases.

    >>> len(resample_to_common(np.ones(51_200), 51_200))
    20000
    """
    from scipy.signal import resample_poly  # noqa: PLC0415 - slow to import

    up, down = RATIOS[rate]
    return readings if up == down else np.asarray(resample_poly(readings, up, down), np.float64)


def _parse(path: Path, rig: Rig) -> BearingFile:
    found = rig.names.fullmatch(plain_stem(path))
    if not found:
        raise DataError(
            f"{path}: files of {rig.name} are called {rig.example}. Remove the file, or give it its name again."
        )
    said = found.groupdict()
    recording, rpm = said["recording"], said.get("rpm")
    return BearingFile(path, rig, recording, said["bearing"] or recording, int(rpm) if rpm else None)


def _number(path: Path, name: str, value: MatValue) -> float:
    """A number that a file states, as such or as text; never negative."""
    said = str(value.item()) if isinstance(value, np.ndarray) and value.size == 1 else str(value)
    try:
        number = float(said)
    except ValueError:
        number = float("nan")
    if not 0 <= number < np.inf:
        raise DataError(f"{path}: {name!r} is {said[:40]!r}, no number of zero or more. Get the file again.")
    return number
