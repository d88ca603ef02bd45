"""ITSC: phase currents of an induction motor whose winding is shorted between turns.

Layout: `Data_ITSC.mat` of the official repository, at any depth in `itsc_motor/`, plain or gzipped. Its struct `itsc`
has a field for each condition (`ITSC_A10` to `ITSC_C40`: phase and shorted share of the winding in percent; `ITSC_HLT`:
healthy), with a field for each repetition: (1000, 3) phase currents in A, one second. The authors cut this second out
of five and filtered it; `RAWData_ITSC.mat` was never seen by us and is not read.

Two traps of these files are avoided unless parameters ask for them (docs/datasets.md): the authors began each faulty
second at the same angle of its faulty phase, and five recordings do not show what their names say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, Cuts, Recording, read_info
from readbench.benchmark.sources._files import find_one, fingerprint_files
from readbench.benchmark.sources._matlab import MatValue, number_array, read_mat
from readbench.engine.registry import SOURCES
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""
RATE = 1000.0
LENGTH = 250
"""Steps of a window: 15 periods of the mains, so that windows end to end begin at one angle."""
WINDOWS, HEALTHY_WINDOWS = 4, 24
"""Windows of a recording; more of a healthy one, so that enough normals stay outside the corpus."""
PHASES, SHARES = "ABC", (10, 20, 30, 40)
CONDITIONS = ("HLT", *(f"{phase}{share}" for phase in PHASES for share in SHARES))
"""By class, healthy first."""
DOUBTFUL = {("A10", 2), ("A10", 5), ("B10", 5), ("B20", 2), ("B20", 5)}
"""Condition and repetition of recordings that look healthy (both of repetition 2), or have a further imbalance."""
FACTS = {"load": 0.0, "supply_frequency": 60.0}
_REPETITION = re.compile(r"Repetition(\d\d)")
Currents = NDArray[np.float64]


@SOURCES.register("itsc_motor", title="ITSC motor")
@dataclass(eq=False)
class ItscMotor:
    """Inter-turn short circuits in the three phases of one motor.

    Args:
        starts: `random` begins windows at random samples; `crop` end to end from the point where the authors cut, which
            tells the faulty phase.
        doubtful: the recordings that do not show what their names say: `left-out` or `kept`.
        group: what never straddles a split: a `recording`, or all recordings of a `repetition`.
    """

    starts: Literal["random", "crop"] = "random"
    doubtful: Literal["left-out", "kept"] = "left-out"
    group: Literal["recording", "repetition"] = "recording"

    info = read_info(
        __name__,
        "itsc_motor",
        faults=tuple(f"phase {phase}, {share} % shorted" for phase in PHASES for share in SHARES),
        channels=tuple(Channel(f"phase_{phase.lower()}", "A", f"current of phase {phase}") for phase in PHASES),
        length=LENGTH,
    )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the file and of how it is read."""
        return fingerprint_files([self._file(root)], "itsc_motor", VERSION, self.starts, self.doubtful, self.group)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the recordings by condition and repetition, healthy ones first."""
        path = self._file(root)
        for condition, repetition, currents in read_currents(path):
            if self.doubtful == "kept" or (condition, repetition) not in DOUBTFUL:
                yield self._recording(path, condition, repetition, currents)

    def _recording(self, path: Path, condition: str, repetition: int, currents: Currents) -> Recording:
        steps, fault = currents.shape[1], CONDITIONS.index(condition)
        if steps < WINDOWS * LENGTH:
            raise DataError(
                f"{path}: {condition}, repetition {repetition} has {steps} samples, fewer than {WINDOWS * LENGTH}. "
                "Get the file again."
            )
        starts = self._starts(fault, repetition, steps)
        return Recording(
            id=f"{condition}/{repetition}",
            values=currents,
            channels=tuple(channel.name for channel in self.info.channels),
            labels=np.full(steps, fault, np.int32),
            group=f"{condition}/{repetition}" if self.group == "recording" else f"repetition-{repetition}",
            asset="motor",
            start=0.0,
            step=1 / RATE,
            cuts=Cuts(starts, np.full(len(starts), fault, np.int32)),
            rate=RATE,
            facts=FACTS,
        )

    def _starts(self, fault: int, repetition: int, steps: int) -> NDArray[np.intp]:
        """First steps of the windows of a recording, ascending; the draw is the recording's own."""
        if self.starts == "crop":
            return np.arange(0, steps - LENGTH + 1, LENGTH, dtype=np.intp)
        rng = np.random.default_rng([fault, repetition])
        count = WINDOWS if fault else HEALTHY_WINDOWS
        return np.sort(rng.choice(steps - LENGTH + 1, count, replace=False)).astype(np.intp)

    def _file(self, root: Path | None) -> Path:
        return find_one(self.info, root, "**/Data_ITSC.mat", "file is")


def read_currents(path: Path) -> Iterator[tuple[str, int, Currents]]:
    """Condition, repetition and (3, T) currents of all recordings of a file; every condition must be there."""
    conditions = read_mat(path).get("itsc")
    if not isinstance(conditions, dict):
        raise DataError(f"{path}: there is no struct 'itsc' in it. Get the file again.")
    expected = {f"ITSC_{condition}": condition for condition in CONDITIONS}
    if odd := sorted(expected.keys() ^ conditions.keys()):
        raise DataError(f"{path}: condition {odd[0]} is missing, or not one of this motor's. Get the file again.")
    for field, condition in expected.items():
        for name, repetition in sorted(_repetitions(path, field, conditions[field]).items()):
            where = f"{path}: {field}, repetition {name}"
            currents = number_array(where, repetition, 2)
            if currents.shape[1] != len(PHASES):
                raise DataError(f"{where} has {currents.shape[1]} columns, not one for each phase. Get the file again.")
            yield condition, name, currents.T


def _repetitions(path: Path, field: str, value: MatValue) -> dict[int, MatValue]:
    """The recordings of a condition, by number."""
    if not isinstance(value, dict) or not value:
        raise DataError(f"{path}: {field} has no repetitions. Get the file again.")
    numbered = {_REPETITION.fullmatch(name): repetition for name, repetition in value.items()}
    if None in numbered:
        raise DataError(f"{path}: {field} has a field that is not called Repetition01 or so. Get the file again.")
    return {int(found[1]): repetition for found, repetition in numbered.items() if found}
