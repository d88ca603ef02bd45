"""SKAB: a water circulation test bench with a pump and valves, one anomaly per experiment.

Layout: `skab/valve1/*.csv`, `skab/valve2/*.csv`, `skab/other/*.csv` and `skab/anomaly-free/anomaly-free.csv`, or the
same four folders inside `skab/data/` as in the official repository; each file plain or gzipped. Read here: all 35
files of version 0.9.

Rows come about once a second; single seconds are missing, and six files have pauses of 16 to 247 seconds. The series
is taken row by row: a window may reach across a pause.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import CutSource, Recording, read_info
from readbench.benchmark.sources import _files
from readbench.engine.registry import SOURCES
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""

OUTLET_VALVE, INLET_VALVE, FLUID, IMBALANCE, WATER, CAVITATION, HOT_WATER = range(1, 8)
FAULT_FOLDERS = {"valve1": OUTLET_VALVE, "valve2": INLET_VALVE}
FAULT_EXPERIMENTS = {
    **dict.fromkeys(range(1, 5), FLUID),
    **dict.fromkeys(range(5, 10), IMBALANCE),
    **dict.fromkeys(range(10, 12), WATER),
    **dict.fromkeys(range(12, 14), CAVITATION),
    14: HOT_WATER,
}
"""Class of each numbered file of the folder `other`, as the official readme lists them."""
NORMAL_FOLDER = "anomaly-free"
FOLDERS = (NORMAL_FOLDER, "other", *FAULT_FOLDERS)


@SOURCES.register("skab", title="SKAB")
class Skab(CutSource):
    """Skoltech Anomaly Benchmark: 34 experiments with one anomaly each, and one without."""

    info = read_info(__name__, "skab")

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents and places of all files."""
        files = self._files(root)
        return _files.fingerprint_files(files, "skab", VERSION, [_files.short_name(path) for path in files])

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the experiments, one file each, by folder and number."""
        for path in self._files(root):
            yield self._recording(path)

    def _files(self, root: Path | None) -> list[Path]:
        """All files; every folder must be there, or a class would be missing without a word."""
        files = [
            path
            for folder in FOLDERS
            for path in _files.find_files(self.info, root, (f"{folder}/*.csv", f"data/{folder}/*.csv"))
        ]
        _files.check_unique(files)
        return files

    def _recording(self, path: Path) -> Recording:
        fault = _fault(path)
        names = tuple(channel.name for channel in self.info.channels)
        columns = names if fault is None else (*names, "anomaly")
        table = _files.read_csv(path, columns, time="datetime", delimiter=";")
        values = np.stack([table[name] for name in names])
        _files.check_times(path, table["datetime"])
        _files.check_columns(path, values, names)
        experiment = _files.short_name(path)
        return Recording(
            id=experiment,
            values=values,
            channels=names,
            labels=np.zeros(values.shape[1], np.int32) if fault is None else _labels(path, table["anomaly"], fault),
            group=experiment,
            asset="testbed",
            start=float(table["datetime"][0]),
            rate=1.0,
        )


def _fault(path: Path) -> int | None:
    """Class of the anomaly in a file, by its place; None where there is no anomaly."""
    folder, _, number = _files.short_name(path).partition("/")
    if folder == NORMAL_FOLDER:
        return None
    if folder in FAULT_FOLDERS:
        return FAULT_FOLDERS[folder]
    if not number.isdecimal() or int(number) not in FAULT_EXPERIMENTS:
        raise DataError(
            f"{path}: the kind of anomaly is known for other/1.csv to other/14.csv only. Remove the file, or get the "
            "files of version 0.9."
        )
    return FAULT_EXPERIMENTS[int(number)]


def _labels(path: Path, anomaly: NDArray[np.float64], fault: int) -> NDArray[np.int32]:
    """(T,) the fault where the file marks an anomaly."""
    known = np.isin(anomaly, (0.0, 1.0))
    _files.check_rows(path, known, lambda row: f"'anomaly' is {anomaly[row]:g}, but only 0 and 1 have a meaning")
    return np.where(anomaly == 1.0, fault, 0).astype(np.int32)
