"""NPPAD: accidents of a pressurised water reactor, run through a training simulator (PCTRAN) at graded severities.

Layout: `Operation_csv_data/<type>/<severity>.csv`, also without the first folder, tables plain or gzipped. Read here:
all runs of the complete dataset, and a copy with odd severities and 150 rows a run.

A run has a row every 10 s from 100 % power on. Rows 0 to 10 are before the accident, row 11 is the first of it. As by
the dataset's own loader, 150 rows are used. Of ten types with odd severities: runs of neighbouring severity are near
copies, and the even ones hold a file under two types. Five things need care:

* Moderator dilution (MD) and steam line break outside containment (SLBOC) have no effect in these rows, nor have ATWS
  and SP. As classes they would be found by anything. MD/1 is read as what it shows: undisturbed power.
* There is hardly any normal operation: that one trajectory, and a planned power reduction (`Normal`).
* Twelve channels (`nppad/channels.csv`) name the accident, such as the flow out of a break. A plant does not measure
  them; they are left out unless asked for.
* The state before the accident differs a little by type. It is the time before a window and never part of it.
* Rod insertions from 83 % on end with row 10 and give no window.

Severity is part of the truth. Whole tens of it are held out together, so that no near copy of a query is in the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from readbench.benchmark.protocol import Channel, CutSource, Recording, read_info, read_shipped_rows
from readbench.benchmark.sources import _files
from readbench.engine.registry import SOURCES
from readbench.engine.windows import NORMAL
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""

ACCIDENTS = {
    "LOCA": "loss of coolant from the hot leg",
    "LOCAC": "loss of coolant from the cold leg",
    "SLBIC": "steam line break inside containment",
    "SGATR": "tube rupture in steam generator A",
    "SGBTR": "tube rupture in steam generator B",
    "FLB": "feedwater line break",
    "RW": "rod withdrawal",
    "RI": "rod insertion",
    "LR": "load rejection",
    "LLB": "letdown line break",
}
"""Types by their folders; classes 1 to 10 in this order."""
UNDISTURBED = ("MD/1.csv", "Normal/1.csv")
NORMAL_OPERATION = "normal operation"
ONSET, ROWS = 11, 150
STEP = 10.0  # s

_TABLE = read_shipped_rows(__name__, "nppad/channels.csv")
EVERY_CHANNEL = tuple(Channel(row["name"], row["unit"], row["description"]) for row in _TABLE)
PLANT_CHANNELS = tuple(
    channel for channel, row in zip(EVERY_CHANNEL, _TABLE, strict=True) if row["names_accident"] == "no"
)


@SOURCES.register("nppad", title="NPPAD")
@dataclass(eq=False)
class Nppad(CutSource):
    """Ten kinds of accidents in a nuclear power plant, 84 variables every ten seconds.

    Args:
        channels: `plant`, or `every`: with the twelve that name the accident.
    """

    channels: Literal["plant", "every"] = "plant"

    info = read_info(
        __name__,
        "nppad",
        faults=tuple(ACCIDENTS.values()),
        channels=PLANT_CHANNELS,
        before_steps=ONSET,
        before_least=ONSET - 3,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.channels == "every":
            self.info = replace(self.info, channels=EVERY_CHANNEL)

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents and places of the runs that are read, and of the choice of channels."""
        runs = self._runs(root)
        return _files.fingerprint_files(
            runs, "nppad", VERSION, self.channels, [_files.short_name(path) for path in runs]
        )

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the runs by type and severity from their eleventh row on, then normal operation."""
        for path in self._runs(root):
            recording = self._recording(path)
            if recording is not None:
                yield recording

    def _runs(self, root: Path | None) -> list[Path]:
        """Files of all types, odd severities; every type must be there, or a class would be missing without a word."""
        runs: list[Path] = []
        for kind in ACCIDENTS:
            paths = _files.find_files(self.info, root, (f"Operation_csv_data/{kind}/*.csv", f"{kind}/*.csv"))
            runs += sorted((path for path in paths if _severity(path) % 2), key=_severity)
        for name in UNDISTURBED:
            runs += _files.find_files(self.info, root, (f"Operation_csv_data/{name}", name))
        _files.check_unique(runs)
        return runs

    def _recording(self, path: Path) -> Recording | None:
        """One run; None where it ends before its accident begins."""
        names = tuple(channel.name for channel in self.info.channels)
        table = _files.read_csv(path, ("TIME", *names))
        _files.check_times(path, table["TIME"])
        rows = np.stack([table[name] for name in names])[:, :ROWS]
        if rows.shape[1] <= ONSET:
            return None
        _files.check_complete(path, rows, ROWS)
        kind = path.parent.name
        label = list(ACCIDENTS).index(kind) + 1 if kind in ACCIDENTS else NORMAL
        ten = 10 * (_severity(path) // 10)
        return Recording(
            id=_files.short_name(path),
            values=rows[:, ONSET:],
            channels=names,
            labels=np.full(ROWS - ONSET, label, np.int32),
            group=f"{kind} {ten}" if label else NORMAL_OPERATION,
            asset=f"severity {ten} to {ten + 9}" if label else NORMAL_OPERATION,
            start=float(table["TIME"][ONSET]),
            step=STEP,
            rate=1 / STEP,
            before=rows[:, :ONSET],
        )


def _severity(path: Path) -> int:
    """Size of the accident in percent, by the name of the file; rods that go in are counted below zero."""
    name = _files.plain_stem(path)
    if not name.removeprefix("-").isdecimal():
        raise DataError(f"{path}: runs are named by their severity, as 25.csv. Rename or remove the file.")
    return abs(int(name))
