"""ROAD: attacks on the CAN bus of a car on a dynamometer, and ordinary driving.

Two layouts are read, plain or gzipped, in `road/` or a folder below it.

* Official signal extractions, `signal_extractions/{attacks,ambient}/*.csv`, with `metadata.json` or
  `attacks/capture_metadata.json`. Written from their description, these files were never seen working, nor were
  ambient and accelerator captures in any form.
* Frames, where there are no extractions: `{attacks,ambient}/*.log`, and `attacks_untimed/*.csv`, copies of captures
  that have lost their times (`can.read_untimed`). Signals are decoded with `signal_extractions/DBC/anonymized.dbc`
  (never seen working) or else `signal_layout.csv`, which numbers the signals of an id by their start bit: channels of
  one numbering need not be those of the other.

Every id is put on a 100 Hz grid: its last value, before its first frame the first one. An id that is not on the bus
is an absent channel. `Road().missing(root)` lists what a partial copy lacks. Fuzzing captures are not used: they have
no extracted signals and are none of the six families.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from readbench.data.recording import Recording
from readbench.data.source import Channel, CutSource, Protocol, SourceInfo
from readbench.data.sources.files import find_files, fingerprint_files, folder_of
from readbench.data.sources.road.can import Frames, Layout, read_dbc, read_layout, read_log, read_untimed
from readbench.data.sources.road.captures import (
    FAMILIES,
    OFFICIAL,
    PATTERNS,
    WHOLE,
    Capture,
    choose_captures,
    read_metadata,
)
from readbench.data.sources.road.signals import CHANNELS, SIGNALS, Drive, decode_frames, read_extraction
from readbench.errors import DataError, SourceMissingError
from readbench.registry import SOURCES

VERSION = 1
"""Raise when the recordings change although the files do not."""
RATE = 100
"""Grid points per second."""
LENGTH = 256
PART = 64 * LENGTH
"""Steps of one recording: a long capture is given piece by piece, always whole windows."""
AMBIENT_CAPTURES = 12


@SOURCES.register("road", title="ROAD")
class Road(CutSource):
    """Masquerade and accelerator attacks on the CAN bus of a car, decoded into signals at 100 Hz."""

    info = SourceInfo(
        name="road",
        title="ROAD",
        domain="automotive intrusion",
        description=(
            "All traffic on the CAN bus of a passenger car, driven on a dynamometer and on roads. The 664 channels are "
            "the anonymised signals of 105 CAN ids, channel 0x0D0_3 being the third signal of id 0x0D0, sampled at "
            "100 Hz by their last value. In an attack capture, frames of one id are forged for "
            "tens of seconds, and those steps carry the attack's family: wheel speeds, coolant temperature, "
            "speedometer or reverse lights. In accelerator captures the car was compromised beforehand and the whole "
            "capture is abnormal. Of a capture published with and without the displaced genuine frames, the variant "
            "without them (masquerade) is used."
        ),
        channels=tuple(Channel(name, description=f"signal {name[6:]} of CAN id {name[:5]}") for name in CHANNELS),
        faults=tuple(f"{family.replace('_', ' ')} attack" for family in FAMILIES),
        protocol=Protocol(length=LENGTH, stride=LENGTH, label_rule="majority-or-coverage"),
        split_unit="capture",
        asset_unit="vehicle",
        licence="CC-BY-4.0",
        citation="Verma et al., PLoS ONE 19 (2024) e0296879",
        url="https://doi.org/10.5281/zenodo.10462796",
        size="33 attack and 12 ambient captures, 557 MB",
        verified=True,
        redistributable=True,
    )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the captures in use, their metadata and the layout of signals."""
        captures = [capture.path for capture in self._captures(root)]
        return fingerprint_files([*captures, *self._metadata(root), *self._layout_files(root)], VERSION)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """The captures in the order of their groups, each as one recording per 164 s."""
        captures = self._captures(root)
        decoded = any(capture.form != "signals" for capture in captures)
        layout = self._layout(root) if decoded else {}
        for capture in captures:
            if capture.form == "signals":
                drive = read_extraction(capture.path)
            else:
                drive = decode_frames(capture.path, _frames(capture), layout)
            yield from _recordings(capture, drive)

    def missing(self, root: Path | None) -> tuple[str, ...]:
        """What a partial copy lacks: attack captures by name, and how many of the ambient ones."""
        captures = self._captures(root)
        groups = {capture.group for capture in captures}
        lacking = [name for name in OFFICIAL if name not in groups]
        ambient = AMBIENT_CAPTURES - sum(not capture.family for capture in captures)
        return (*lacking, *([f"{ambient} ambient captures"] if ambient > 0 else []))

    def _captures(self, root: Path | None) -> list[Capture]:
        folder = folder_of(self.info, root)
        files = [(form, path) for form, patterns in PATTERNS.items() for path in self._optional(root, *patterns)]
        captures = choose_captures(files, read_metadata(self._metadata(root)))
        if not captures:
            raise SourceMissingError(
                f"road: no signal extraction or log of an attack or ambient capture in {folder}. "
                f"Get the files from {self.info.url}"
            )
        return captures

    def _metadata(self, root: Path | None) -> list[Path]:
        return [*self._optional(root, "**/metadata.json"), *self._optional(root, "**/capture_metadata.json")]

    def _layout_files(self, root: Path | None) -> list[Path]:
        dbc = self._optional(root, "**/anonymized.dbc")
        return dbc or self._optional(root, "**/signal_layout.csv")

    def _layout(self, root: Path | None) -> Layout:
        files = self._layout_files(root)
        if not files:
            raise SourceMissingError(
                "road: logs need signal_extractions/DBC/anonymized.dbc to be decoded, and it is not there. "
                f"Get it from {self.info.url}"
            )
        layout = read_dbc(files[0]) if ".dbc" in files[0].name else read_layout(files[0])
        for number in sorted(SIGNALS | layout):
            found, known = len(layout.get(number, ())), SIGNALS.get(number, 0)
            if found != known:
                raise DataError(f"{files[0]}: {found} signals on id 0x{number:03X}, but ROAD has {known} there.")
        return layout

    def _optional(self, root: Path | None, *patterns: str) -> list[Path]:
        try:
            return find_files(self.info, root, patterns)
        except SourceMissingError:
            return []


def _recordings(capture: Capture, drive: Drive) -> Iterator[Recording]:
    """The capture on its grid, labelled, in parts of whole windows."""
    steps = int(round(drive.elapsed * RATE, 4)) + 1
    label, (begin, end) = _attack(capture, drive)
    for number, first in enumerate(range(0, steps, PART)):
        grid = np.arange(first, min(first + PART, steps)) / RATE
        yield Recording(
            id=capture.name if steps <= PART else f"{capture.name}-{number:02d}",
            values=drive.at(grid),
            channels=CHANNELS,
            labels=np.where((grid >= begin) & (grid <= end), label, 0).astype(np.int32),
            group=capture.group,
            asset="vehicle",
            start=first / RATE,
            step=1 / RATE,
        )


def _attack(capture: Capture, drive: Drive) -> tuple[int, tuple[float, float]]:
    """Class of the attack, its begin and its end in seconds."""
    if not capture.family:
        return 0, (0.0, 0.0)
    label = FAMILIES.index(capture.family) + 1
    if capture.family == WHOLE:
        return label, (0.0, drive.elapsed)
    interval = capture.interval or drive.injected
    if interval is None:
        raise DataError(f"{capture.path}: no injection_interval for {capture.name}. Add capture_metadata.json to it.")
    if interval[0] > drive.elapsed:
        raise DataError(
            f"{capture.path}: the attack begins at {interval[0]} s, after the end at {drive.elapsed:.3f} s."
        )
    return label, interval


def _frames(capture: Capture) -> Frames:
    if capture.form == "log":
        return read_log(capture.path)
    if capture.interval is None or capture.elapsed is None or not capture.interval[1] <= capture.elapsed:
        raise DataError(
            f"{capture.path}: without times it needs elapsed_sec and, inside it, injection_interval of {capture.name} "
            "in capture_metadata.json."
        )
    return read_untimed(capture.path, capture.interval, capture.elapsed)
