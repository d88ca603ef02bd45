"""Exathlon: ten Spark streaming applications on a cluster, running undisturbed or disturbed on purpose.

Layout: `exathlon/data/raw/app<1..10>/<app>_<disturbance>_<rate>_<id>.zip`, one CSV table inside; large traces as an
archive in parts (`.z01`, ..., `.zip`) in a folder of their own; and `data/raw/ground_truth.zip`. `.csv` files, unpacked
at the same places, are read as well. Read here: the ground truth and five undisturbed traces. Never seen working: the
34 disturbed traces and archives in parts. Not verified against the official files as a whole.

Rows come once a second, with single seconds left out or repeated; they are put on a grid of seconds. A trace has 2,283
columns. The 51 channels are our own choice, because the benchmark's paper gives their number only: the 43 columns
behind the 19 features of Exathlon's own evaluation, the mean of each executor metric among them over the executors at
work (6), and the mean and the least idle processor share of the nodes (2).

An anomaly lasts from its root cause to the end of its effect, as the ground truth says. Anomalies of unknown kind are
not labelled: their windows are left out.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, CutSource, Recording, read_info
from readbench.benchmark.sources import _files
from readbench.engine.registry import SOURCES
from readbench.engine.windows import UNLABELLED
from readbench.errors import DataError

MISSING = -1.0
"""What the tables hold where there is no reading."""
LONGEST_GAP = 60
"""Seconds; a trace is cut where no row comes for longer."""

STREAMING = "driver_StreamingMetrics_streaming"
DRIVER = (
    f"{STREAMING}_lastCompletedBatch_processingDelay_value",
    f"{STREAMING}_lastCompletedBatch_schedulingDelay_value",
    f"{STREAMING}_lastCompletedBatch_totalDelay_value",
    f"{STREAMING}_totalCompletedBatches_value",
    f"{STREAMING}_totalProcessedRecords_value",
    f"{STREAMING}_totalReceivedRecords_value",
    f"{STREAMING}_lastReceivedBatch_records_value",
    "driver_BlockManager_memory_memUsed_MB_value",
    "driver_jvm_heap_used_value",
)
EXECUTOR_METRICS = (
    "executor_filesystem_hdfs_write_ops_value",
    "executor_cpuTime_count",
    "executor_runTime_count",
    "executor_shuffleRecordsRead_count",
    "executor_shuffleRecordsWritten_count",
    "jvm_heap_used_value",
)
EXECUTORS = tuple(f"{spot}_{metric}" for metric in EXECUTOR_METRICS for spot in range(1, 6))
NODES = tuple(f"node{number}_CPU_ALL_Idle%" for number in range(5, 9))
RAW = (*DRIVER, *EXECUTORS, *NODES)
"""Columns that are read, without the application's name."""
MEANS = tuple(f"executors_mean_{metric}" for metric in EXECUTOR_METRICS)
CHANNELS = (*RAW, *MEANS, "nodes_mean_CPU_ALL_Idle%", "nodes_min_CPU_ALL_Idle%")

DISTURBANCES = ("none", "bursty_input", "bursty_input_crash", "stalled_input", "cpu_contention", "process_failure")
"""Kinds of trace, by the second number of their name."""
ANOMALIES = (
    "bursty_input",
    "bursty_input_crash",
    "stalled_input",
    "cpu_contention",
    "driver_failure",
    "executor_failure",
)
"""Kinds of anomaly: classes 1 to 6."""
LABELS = {name: label for label, name in enumerate(ANOMALIES, start=1)} | {"unknown": UNLABELLED}

_APPLICATION = re.compile(r"^driver_.*__StreamingMetrics_")
_COLUMNS = ("trace_name", "trace_type", "anomaly_type", "root_cause_start", "root_cause_end", "extended_effect_end")


@dataclass(frozen=True)
class AnomalyInterval:
    """An anomaly: the kind of trace it is in, its label (-1 where its kind is unknown), first and last second."""

    disturbance: str
    label: int
    first: float
    last: float


@dataclass(frozen=True, eq=False)
class Piece:
    """An unbroken piece of a trace: its first second and its readings (51, T), one a second."""

    start: int
    values: NDArray[np.float64]

    def labels(self, intervals: list[AnomalyInterval]) -> NDArray[np.int32]:
        """(T,) class at each second; where anomalies overlap, a known kind goes before, then the later one."""
        seconds = self.start + np.arange(self.values.shape[1])
        labels = np.zeros(len(seconds), np.int32)
        for interval in sorted(intervals, key=lambda i: (i.label != UNLABELLED, i.first)):
            labels[(seconds >= interval.first) & (seconds <= interval.last)] = interval.label
        return labels


def read_trace(path: Path) -> Iterator[Piece]:
    """The pieces of a trace between gaps of more than a minute; inside, each second takes the last row up to it."""
    columns = _columns(path)
    table = _files.read_csv(path, ("t", *columns.values()))
    times = _times(path, table["t"])
    values = np.stack([table[columns[name]] for name in RAW])
    values[values == MISSING] = np.nan
    if np.isnan(values).all():
        raise DataError(f"{path}: none of the columns in use has a reading. Get the file again.")
    values = _with_summaries(values)
    for first, last in pairwise([0, *np.flatnonzero(np.diff(times) > LONGEST_GAP) + 1, len(times)]):
        grid = np.arange(times[first], times[last - 1] + 1)
        rows = np.searchsorted(times[:last], grid, side="right") - 1
        yield Piece(int(times[first]), values[:, rows])


def read_ground_truth(path: Path) -> dict[str, list[AnomalyInterval]]:
    """Anomalies of each disturbed trace, from the root cause to the end of its effect."""
    reader = csv.DictReader(_files.read_text(path).splitlines())
    lacking = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if lacking:
        raise DataError(f"{path}: no column {', '.join(lacking)} in the header. Get the file again.")
    found: dict[str, list[AnomalyInterval]] = {}
    for line, row in enumerate(reader, start=2):
        found.setdefault(row["trace_name"], []).append(_interval(path, line, row))
    if not found:
        raise DataError(f"{path}: no anomaly in it. The file is incomplete: get it again.")
    return found


def _columns(path: Path) -> dict[str, str]:
    """The column of each name in RAW; those of the driver's streaming metrics embed the application's name."""
    columns: dict[str, list[str]] = {}
    for name in _files.csv_columns(path):
        columns.setdefault(_APPLICATION.sub("driver_StreamingMetrics_", name), []).append(name)
    wrong = [name for name in RAW if len(columns.get(name, ())) != 1]
    if wrong:
        raise DataError(
            f"{path}: not one column for {', '.join(wrong[:3])}{' ...' * (len(wrong) > 3)}. The file is damaged or "
            "already processed: get the raw trace again."
        )
    return {name: columns[name][0] for name in RAW}


def _times(path: Path, times: NDArray[np.float64]) -> NDArray[np.int64]:
    steps = np.diff(times, prepend=times[0])
    whole = (steps >= 0) & (times % 1 == 0) & (np.abs(times) < 1e11)
    _files.check_rows(
        path, whole, lambda row: f"t is {times[row]:g}, expected whole seconds since 1970 that never go back"
    )
    return times.astype(np.int64)


def _with_summaries(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The 51 channels (51, T) from the 43 columns (43, T)."""
    spots = len(EXECUTORS) // len(EXECUTOR_METRICS)
    executors = values[len(DRIVER) : len(DRIVER) + len(EXECUTORS)].reshape(len(EXECUTOR_METRICS), spots, -1)
    nodes = values[-len(NODES) :]
    return np.concatenate([values, _mean(executors), _mean(nodes[None]), np.fmin.reduce(nodes)[None]])


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(K, T) mean over the second axis of (K, S, T) without the missing; NaN where all are."""
    there = ~np.isnan(values)
    total = np.where(there, values, 0.0).sum(axis=1)
    return np.where(there.any(axis=1), total / np.maximum(there.sum(axis=1), 1), np.nan)


def _interval(path: Path, line: int, row: dict[str, str]) -> AnomalyInterval:
    try:
        first, last = float(row["root_cause_start"]), float(row["root_cause_end"])
        last = max(last, float(row["extended_effect_end"] or last))
        label = LABELS[row["anomaly_type"]]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: line {line} is no anomaly ({error}). Get the file again.") from error
    if not first <= last:
        raise DataError(f"{path}: the anomaly in line {line} ends before it begins. Get the file again.")
    return AnomalyInterval(row["trace_type"], label, first, last)


VERSION = 1
"""Raise when the same files give other recordings."""

_TRACE = re.compile(r"(?P<app>\d+)_(?P<disturbance>[0-5])_\d+_\d+")


@SOURCES.register("exathlon", title="Exathlon")
class Exathlon(CutSource):
    """Six kinds of anomalies in streaming applications, 51 channels of driver, executors and nodes."""

    info = read_info(
        __name__,
        "exathlon",
        faults=tuple(name.replace("_", " ") for name in ANOMALIES),
        channels=tuple(Channel(name) for name in CHANNELS),
    )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of all traces, with all their parts, and of the ground truth."""
        traces = [
            part
            for path in self._traces(root).values()
            for part in (_files.parts_of(path) if _files.is_zip(path) else [path])
        ]
        return _files.fingerprint_files([*traces, self._ground_truth(root)], "exathlon", VERSION)

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
        places = ("**/app*/*", "**/app*/*/*")
        found = _files.find_files(self.info, root, [f"{place}.{kind}" for place in places for kind in ("zip", "csv")])
        return dict(sorted(_files.name_each(found, _trace_name, "trace is").items()))

    def _ground_truth(self, root: Path | None) -> Path:
        return _files.find_files(self.info, root, ["**/ground_truth.csv", "**/ground_truth.zip"])[0]


def _trace_name(path: Path) -> str:
    name = _files.plain_stem(path)
    if not _TRACE.fullmatch(name):
        raise DataError(
            f"{path}: traces are named <application>_<disturbance 0 to 5>_<rate>_<number>. Rename or remove the file."
        )
    return name


def _recording(name: str, piece: Piece, intervals: list[AnomalyInterval]) -> Recording:
    return Recording(
        id=f"{name}-{piece.start}",
        values=piece.values,
        channels=CHANNELS,
        labels=piece.labels(intervals),
        group=name,
        asset=f"app{name.partition('_')[0]}",
        start=float(piece.start),
        rate=1.0,
    )


def _check_disturbance(truth: Path, name: str, path: Path, intervals: list[AnomalyInterval]) -> None:
    """A disturbed trace has anomalies of its own kind of disturbance, an undisturbed one has none."""
    match = _TRACE.fullmatch(name)
    expected = DISTURBANCES[int(match["disturbance"])] if match else ""
    found = {interval.disturbance for interval in intervals} or {DISTURBANCES[0]}
    if found != {expected}:
        raise DataError(
            f"{path}: by its name the trace is of kind {expected}, but {truth} says {', '.join(sorted(found))}. "
            "Get both again."
        )


def _check_times(path: Path, pieces: list[Piece], intervals: list[AnomalyInterval]) -> None:
    """Every anomaly lies in the trace at least in part."""
    spans = [(piece.start, piece.start + piece.values.shape[1] - 1) for piece in pieces]
    for interval in intervals:
        if not any(first <= interval.last and interval.first <= last for first, last in spans):
            raise DataError(
                f"{path}: the anomaly at {interval.first:.0f} to {interval.last:.0f} is outside the trace, "
                f"{spans[0][0]} to {spans[-1][1]}. The trace is incomplete or of another name: get it again."
            )
