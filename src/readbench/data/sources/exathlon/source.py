"""Exathlon: ten Spark streaming applications on a cluster, running undisturbed or disturbed on purpose.

Layout: `exathlon/data/raw/app<1..10>/<app>_<disturbance>_<rate>_<id>.zip`, one CSV table inside; large traces as an
archive in parts (`.z01`, ..., `.zip`) in a folder of their own; and `data/raw/ground_truth.zip`. `.csv` files, unpacked
at the same places, are read as well. Read here: the ground truth and five undisturbed traces. Never seen working: the
34 disturbed traces and archives in parts. Not verified against the official files as a whole.

Rows come once a second, with single seconds left out or repeated; they are put on a grid of seconds. What the 51
channels are is told in `traces.py`. An anomaly lasts from its root cause to the end of its effect. Anomalies of unknown
kind are not labelled: their windows are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from readbench.data.recording import Recording
from readbench.data.source import Channel, CutSource, Protocol, SourceInfo
from readbench.data.sources.exathlon.traces import (
    ANOMALIES,
    CHANNELS,
    DISTURBANCES,
    Interval,
    Piece,
    read_ground_truth,
    read_trace,
)
from readbench.data.sources.files import find_files, fingerprint_files, plain_name
from readbench.data.sources.zips import is_zip, parts_of
from readbench.errors import DataError
from readbench.registry import SOURCES

VERSION = 1
"""Raise when the same files give other recordings."""

_TRACE = re.compile(r"(?P<app>\d+)_(?P<disturbance>[0-5])_\d+_\d+")


@SOURCES.register("exathlon", title="Exathlon")
class Exathlon(CutSource):
    """Six kinds of anomalies in streaming applications, 51 channels of driver, executors and nodes."""

    info = SourceInfo(
        name="exathlon",
        title="Exathlon",
        domain="microservice and telecom operations",
        description=(
            "Spark streaming applications on a cluster of four nodes, each trace one run of one application. The "
            "channels are delays and counts of the driver, counts and memory of up to five executors, idle processor "
            "shares of the nodes, and means over executors and nodes, once a second. Disturbances were staged: bursts "
            "or stalls of the input, processor contention, killed drivers and executors. An anomaly is labelled from "
            "its root cause to the end of its effect. Not verified against the official files."
        ),
        channels=tuple(Channel(name) for name in CHANNELS),
        faults=tuple(name.replace("_", " ") for name in ANOMALIES),
        protocol=Protocol(length=256, stride=64, normal_stride=256, label_rule="majority-or-coverage"),
        split_unit="trace",
        asset_unit="application",
        licence="CC-BY-NC-SA-4.0",
        citation=(
            "Jacob et al. 2021, Exathlon: a benchmark for explainable anomaly detection over time series, PVLDB 14(11)"
        ),
        url="https://github.com/exathlonbenchmark/exathlon",
        size="93 traces",
        redistributable=True,
    )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of all traces, with all their parts, and of the ground truth."""
        traces = [part for path in self._traces(root).values() for part in (parts_of(path) if is_zip(path) else [path])]
        return fingerprint_files([*traces, self._ground_truth(root)], "exathlon", VERSION)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the traces by name; one that pauses for more than a minute is several recordings."""
        truth = self._ground_truth(root)
        intervals = read_ground_truth(truth)
        for name, path in self._traces(root).items():
            own = intervals.get(name, [])
            _check_disturbance(truth, name, path, own)
            pieces = list(read_trace(path))
            _check_times(path, pieces, own)
            for piece in pieces:
                yield _recording(name, piece, own)

    def _traces(self, root: Path | None) -> dict[str, Path]:
        """The file of each trace (the last part of an archive in parts), by name."""
        traces: dict[str, Path] = {}
        places = ("**/app*/*", "**/app*/*/*")
        for path in find_files(self.info, root, [f"{place}.{kind}" for place in places for kind in ("zip", "csv")]):
            name = Path(plain_name(path.name)).stem
            if not _TRACE.fullmatch(name):
                raise DataError(
                    f"{path}: traces are named <application>_<disturbance 0 to 5>_<rate>_<number>. "
                    "Rename or remove the file."
                )
            if (other := traces.setdefault(name, path)) != path:
                raise DataError(f"{path}: the same trace is in {other}. Keep one of the two.")
        return {name: traces[name] for name in sorted(traces)}

    def _ground_truth(self, root: Path | None) -> Path:
        return find_files(self.info, root, ["**/ground_truth.csv", "**/ground_truth.zip"])[0]


def _recording(name: str, piece: Piece, intervals: list[Interval]) -> Recording:
    return Recording(
        id=f"{name}-{piece.start}",
        values=piece.values,
        channels=CHANNELS,
        labels=piece.labels(intervals),
        group=name,
        asset=f"app{name.partition('_')[0]}",
        start=float(piece.start),
    )


def _check_disturbance(truth: Path, name: str, path: Path, intervals: list[Interval]) -> None:
    """A disturbed trace has anomalies of its own kind of disturbance, an undisturbed one has none."""
    match = _TRACE.fullmatch(name)
    expected = DISTURBANCES[int(match["disturbance"])] if match else ""
    found = {interval.disturbance for interval in intervals} or {DISTURBANCES[0]}
    if found != {expected}:
        raise DataError(
            f"{path}: by its name the trace is of kind {expected}, but {truth} says {', '.join(sorted(found))}. "
            "Get both again."
        )


def _check_times(path: Path, pieces: list[Piece], intervals: list[Interval]) -> None:
    """Every anomaly lies in the trace at least in part."""
    spans = [(piece.start, piece.start + piece.values.shape[1] - 1) for piece in pieces]
    for interval in intervals:
        if not any(first <= interval.last and interval.first <= last for first, last in spans):
            raise DataError(
                f"{path}: the anomaly at {interval.first:.0f} to {interval.last:.0f} is outside the trace, "
                f"{spans[0][0]} to {spans[-1][1]}. The trace is incomplete or of another name: get it again."
            )
