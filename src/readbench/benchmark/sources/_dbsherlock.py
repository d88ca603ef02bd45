"""DBSherlock: a MySQL server under the TPC-C workload, with performance anomalies that were brought about on purpose.

Layout: `dbsherlock_dataset_tpcc_16w.mat` (MATLAB 5), plain or gzipped, in `dbsherlock/` or in folders below it, such as
`datasets/` of the official repository. Read here: this file, whole. The repository's files of two other workloads,
`tpcc_500w` and `tpce_3000`, were never seen and are not read.

A run is a table with a row a second and 94 columns, and the numbers (from 1) of its abnormal rows. Five things need
care:

* Rows that the originators call neither normal nor abnormal have no label; only runs of "Poor Physical Design" have
  them. So have the first nine rows, in which the workload starts up, two rows before the anomaly and eight after it.
* Eleven columns are levels that drift from run to run. They tell when a run was recorded, and the eleven runs of a
  cause were recorded together: they are left out unless asked for. `Epoch` is the number of the row and always left
  out.
* Windows begin where the anomaly begins, then every 16 s. Where in its run a window lies and how long the run is tell
  the cause, so neither is passed on. For the same reason the time before is 16 rows, which all but four runs have.
* Runs with two or three causes at once are no part of the task: nothing in the corpus is relevant to them as a whole.
  They are read on request, as classes of their own.
* "Network Saturation" in the names of compound causes is "Network Congestion" among the single ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import BeforeSource, Channel, Cuts, Recording, read_info
from readbench.benchmark.sources._episodes import runs
from readbench.benchmark.sources._files import find_one, fingerprint_files
from readbench.benchmark.sources._matlab import MatValue, number_array, read_mat
from readbench.engine.registry import SOURCES
from readbench.engine.windows import NORMAL, UNLABELLED
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""

FILE = "dbsherlock_dataset_tpcc_16w.mat"
START_UP = 9
"""First rows of a run: the workload starts, latency is 0."""
LEAD, TRAIL = 2, 8
"""Rows before and after an anomaly that count as neither."""
LENGTH, STRIDE = 32, 16
LEAST_ABNORMAL = 22
"""Fewest abnormal rows of an abnormal window: the shortest anomaly has as many."""
BEFORE = 16
"""Normal rows before an anomaly that nearly every run has; more would tell by their number where it began."""

CAUSES = {
    "Poorly Written Query": "poorly written query",
    "Poor Physical Design": "poor physical design",
    "Workload Spike": "workload spike",
    "I/O Saturation": "I/O saturation",
    "DB Backup": "database backup",
    "Table Restore": "table restore",
    "CPU Saturation": "CPU saturation",
    "Flush Log/Table": "flush of log or tables",
    "Network Congestion": "network congestion",
    "Lock Contention": "lock contention",
}
"""Causes as the file names them, and what they are called here."""
COMPOUND_CAUSES = {
    "CPU,IO,Network Saturation": ("CPU Saturation", "I/O Saturation", "Network Congestion"),
    "Workload Spike + Flush Log/Table": ("Workload Spike", "Flush Log/Table"),
    "Workload Spike + Table Restore": ("Workload Spike", "Table Restore"),
    "Workload Spike + CPU Saturation": ("Workload Spike", "CPU Saturation"),
    "Workload Spike + I/O Saturation": ("Workload Spike", "I/O Saturation"),
    "Workload Spike + Network Saturation": ("Workload Spike", "Network Congestion"),
}
"""Compound causes as the file names them, and the causes that they are made of."""
FAULTS = tuple(CAUSES.values())
COMPOUND_FAULTS = tuple(" + ".join(CAUSES[part] for part in parts) for parts in COMPOUND_CAUSES.values())
LABELS = {cause: label for label, cause in enumerate((*CAUSES, *COMPOUND_CAUSES), start=1)}

ROW_NUMBER = "Epoch"
LEVELS = (
    "osAllocatedFileHandlers", "osAllocatedINodes", "osCountOfInterruptsServicedSinceBootTime",
    "osNumberOfAllocatedPage", "osNumberOfFreePages", "dbmsCumChangedRows", "dbmsCumFlushedPages", "dbmsDataPages",
    "dbmsFreePages", "dbmsTotalPages", "dbmsTotalWritesMB",
)  # fmt: skip
"""Columns whose level drifts from run to run."""
COLUMNS = (
    ROW_NUMBER, "Combined Avg Latency",
    *(f"cpu_{kind} (core #{core})" for kind in ("usr", "sys", "idl") for core in range(1, 5)),
    "AvgCpuUser", "AvgCpuSys", "AvgCpuIdle", "AvgCpuWai", "AvgCpuHiq", "AvgCpuSiq", "osAsynchronousIO",
    "osNumberOfContextSwitches", "osNumberOfSectorReads", "osNumberOfSectorWrites", "osAllocatedFileHandlers",
    "osAllocatedINodes", "osCountOfInterruptsServicedSinceBootTime", "osNumberOfInterrupt", "osInterruptCount1",
    "osInterruptCount2", "osInterruptCount3", "osNumberOfReadsIssued", "osNumberOfWritesCompleted",
    "osNumberOfSwapInSinceLastBoot", "osNumberOfSwapOutSinceLastBoot", "osNumberOfProcessesCreated",
    "osNumberOfProcessesCurrentlyRunning", "osDiskUtilization", "osFreeSwapSpace", "osUsedSwapSpace",
    "osNumberOfAllocatedPage", "osNumberOfFreePages", "osNumberOfMajorPageFaults", "osNumberOfMinorPageFaults",
    "osNetworkSendKB", "osNetworkRecvKB", "dbmsMeasuredCPU", "dbmsChangedRows", "dbmsCumChangedRows",
    "dbmsCumFlushedPages", "dbmsFlushedPages", "dbmsCurrentDirtyPages", "dbmsDirtyPages", "dbmsDataPages",
    "dbmsFreePages", "dbmsTotalPages", "dbmsThreadsRunning", "dbmsTotalWritesMB", "dbmsLogWritesMB",
    "dbmsNumberOfPhysicalLogWrites", "dbmsNumberOfDataReads", "dbmsNumberOfDataWrites",
    "dbmsNumberOfLogWriteRequests", "dbmsNumberOfFysncLogWrites", "dbmsNumberOfPendingLogWrites",
    "dbmsNumberOfPendingLogFsyncs", "dbmsNumberOfNextRowReadRequests", "dbmsNumberOfRowInsertRequests",
    "dbmsNumberOfFirstEntryReadRequests", "dbmsNumberOfKeyBasedReadRequests", "dbmsNumberOfNextKeyBasedReadRequests",
    "dbmsNumberOfPrevKeyBasedReadRequests", "dbmsNumberOfRowReadRequests", "dbmsPageWritesMB",
    "dbmsDoublePageWritesMB", "dbmsDoubleWritesOperations", "dbmsNumberOfPendingWrites", "dbmsNumberOfPendingReads",
    "dbmsBufferPoolWrites", "dbmsRandomReadAheads", "dbmsSequentialReadAheads", "dbmsNumberOfLogicalReadRequests",
    "dbmsNumberOfLogicalReadsFromDisk", "dbmsNumberOfWaitsForFlush", "dbmsCommittedCommands",
    "dbmsRolledbackCommands", "dbmsRollbackHandler", "dbmsCurrentLockWaits", "dbmsLockWaits", "dbmsLockWaitTime",
    "dbmsReadRequests", "dbmsReads", "dbmsPhysicalReadsMB", "dbmsPageSize",
)  # fmt: skip
"""All columns of a run, in their order."""


def _unit(column: str) -> str:
    """Of a column, where its name tells."""
    if column.startswith(("cpu_", "AvgCpu")) or column == "osDiskUtilization":
        return "%"
    return next((unit for unit in ("KB", "MB") if column.endswith(unit)), "")


CHANNELS = tuple(Channel(name, _unit(name)) for name in COLUMNS if name not in (ROW_NUMBER, *LEVELS))
CHANNELS_AND_LEVELS = tuple(Channel(name, _unit(name)) for name in COLUMNS if name != ROW_NUMBER)


@SOURCES.register("dbsherlock", title="DBSherlock")
@dataclass(eq=False)
class DbSherlock(BeforeSource):
    """Ten causes of bad performance of a database server, eleven runs each, counters once a second.

    Args:
        compound: also read the runs with two or three causes at once, as classes of their own whose names join those
            of the causes by " + ".
        levels: also read the eleven columns whose level drifts from run to run.
    """

    compound: bool = False
    levels: bool = False

    info = read_info(__name__, "dbsherlock", faults=FAULTS, channels=CHANNELS, length=LENGTH, before_steps=BEFORE)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.info = replace(
            self.info,
            channels=CHANNELS_AND_LEVELS if self.levels else CHANNELS,
            faults=FAULTS + COMPOUND_FAULTS if self.compound else FAULTS,
        )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the file, and of what is read of it."""
        return fingerprint_files([self._file(root)], "dbsherlock", VERSION, self.compound, self.levels)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the runs, cause by cause, compound causes last."""
        names = tuple(channel.name for channel in self.info.channels)
        wanted = [COLUMNS.index(name) for name in names]
        for run in read_runs(self._file(root), compound=self.compound):
            yield Recording(
                id=run.id,
                values=np.ascontiguousarray(run.rows[:, wanted].T),
                channels=names,
                labels=run.labels,
                group=run.id,
                asset="server",
                cuts=cut_run(run.labels),
                rate=1.0,
            )

    def _file(self, root: Path | None) -> Path:
        return find_one(self.info, root, f"**/{FILE}", "runs are")


@dataclass(frozen=True, eq=False)
class ServerRun:
    """A run: its name, rows (T, 94) and the label of each row."""

    id: str
    rows: NDArray[np.float64]
    labels: NDArray[np.int32]


def read_runs(path: Path, *, compound: bool = False) -> Iterator[ServerRun]:
    """All runs of a file; with `compound` also those with several causes."""
    content = read_mat(path)
    yield from _read_kind(path, content, "causes", "test_datasets", "")
    if compound:
        yield from _read_kind(path, content, "compound_causes", "compound_datasets", "_compound")


def cut_run(labels: NDArray[np.int32]) -> Cuts:
    """Windows from the onset on, and windows without overlap in each stretch of normal rows.

    >>> labels = np.repeat(np.array([-1, 0, 3, -1, 0], np.int32), [9, 40, 48, 8, 30])
    >>> cuts = cut_run(labels)
    >>> cuts.starts.tolist(), cuts.labels.tolist()
    ([9, 49, 65], [0, 3, 3])
    """
    starts: list[int] = []
    found: list[int] = []
    for label in np.unique(labels[labels != UNLABELLED]):
        for first, stop in runs(labels == label):
            last = stop - (LENGTH if label == NORMAL else LEAST_ABNORMAL)
            own = range(first, min(last, len(labels) - LENGTH) + 1, LENGTH if label == NORMAL else STRIDE)
            starts += own
            found += [label] * len(own)
    return Cuts(np.array(starts, np.intp), np.array(found, np.int32))


def _read_kind(path: Path, content: dict[str, MatValue], causes: str, tables: str, ending: str) -> Iterator[ServerRun]:
    """The runs of single causes, or of compound ones."""
    names = _texts(f"{path}: {causes}", _cells(path, content, causes))
    cells = _cells(path, content, tables)
    abnormal, normal = (_cells(path, content, f"{kind}_regions{ending}") for kind in ("abnormal", "normal"))
    known = COMPOUND_CAUSES if ending else CAUSES
    if unknown := [name for name in names if name not in known]:
        raise DataError(
            f"{path}: {causes} has {unknown[0]!r}, which is none of {', '.join(known)}. Get the file again."
        )
    if not cells.size or not len(names) == len(cells) or not cells.shape == abnormal.shape == normal.shape:
        raise DataError(
            f"{path}: {len(names)} names in {causes}, but {tables} has shape {cells.shape} and its regions "
            f"{abnormal.shape} and {normal.shape}. The file is damaged: get it again."
        )
    for place in np.ndindex(cells.shape):
        where = f"{path}: {tables}{{{place[0] + 1},{place[1] + 1}}}"
        rows = _rows(where, cells[place])
        faulty, usual = (_region(where, regions[place], len(rows)) for regions in (abnormal, normal))
        name = names[place[0]]
        yield ServerRun(f"{name}/{place[1] + 1:02d}", rows, label_rows(where, faulty, usual, LABELS[name]))


def label_rows(where: str, faulty: NDArray[np.bool_], usual: NDArray[np.bool_], label: int) -> NDArray[np.int32]:
    """(T,) the label of each row of a run; where no row is marked as usual, all but the faulty ones are."""
    stretches = runs(faulty)
    if len(stretches) != 1:
        raise DataError(f"{where} has {len(stretches)} abnormal stretches, expected one. Get the file again.")
    start, stop = stretches[0]
    labels = np.where(usual if usual.any() else ~faulty, NORMAL, UNLABELLED).astype(np.int32)
    labels[:START_UP] = UNLABELLED
    labels[max(0, start - LEAD) : stop + TRAIL] = UNLABELLED
    labels[start:stop] = label
    return labels


def _cells(path: Path, content: dict[str, MatValue], name: str) -> NDArray[np.generic]:
    cells = content.get(name)
    if not isinstance(cells, np.ndarray) or cells.dtype != object or cells.ndim != 2:
        raise DataError(f"{path}: {name} is missing or no table of cells. Is it {FILE}? Get the file again.")
    return cells


def _texts(where: str, cells: object) -> list[str]:
    values = cells.ravel().tolist() if isinstance(cells, np.ndarray) else [cells]
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(values):
        raise DataError(f"{where} has a cell without text. The file is damaged: get it again.")
    return texts


def _rows(where: str, run: object) -> NDArray[np.float64]:
    """(T, 94) the rows of a run whose columns are the known ones."""
    if not isinstance(run, dict) or not {"data", "field_names"} <= set(run):
        raise DataError(f"{where} is no structure of data and field_names. Get the file again.")
    columns = _texts(f"{where}.field_names", run["field_names"])
    if columns != list(COLUMNS):
        pairs = zip(columns, COLUMNS, strict=False)
        found, wanted = next(((a, b) for a, b in pairs if a != b), (f"{len(columns)} columns", f"{len(COLUMNS)}"))
        raise DataError(f"{where} has {found!r} where {wanted!r} should be. It is of another version: get {FILE}.")
    rows = number_array(f"{where}.data", run["data"], 2)
    if rows.shape[1] != len(COLUMNS):
        raise DataError(f"{where}.data has {rows.shape[1]} columns, not {len(COLUMNS)}. Get the file again.")
    return rows


def _region(where: str, numbers: object, count: int) -> NDArray[np.bool_]:
    """(T,) which rows a list of row numbers, from 1, names."""
    if not isinstance(numbers, np.ndarray) or numbers.dtype.kind not in "fiu":
        raise DataError(f"{where} has a region that is no list of row numbers. Get the file again.")
    if numbers.size and not (numbers.min() >= 1 and numbers.max() <= count):
        raise DataError(
            f"{where} has {count} rows, but a region from row {numbers.min():g} to {numbers.max():g}. "
            "Get the file again."
        )
    inside = np.zeros(count, bool)
    inside[numbers.ravel().astype(np.intp) - 1] = True
    return inside
