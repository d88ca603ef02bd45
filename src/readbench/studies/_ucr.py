"""Is the nearest series of the same class? Methods on the UCR archive's own train and test sides.

The question is older and plainer than the benchmark's: no faults, no normal operation, one channel. It tells how well a
method compares shapes, on data that no setting of the benchmark has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from readbench.benchmark.protocol import Recording
from readbench.benchmark.report import ReportTable
from readbench.benchmark.sources import Ctsr
from readbench.common.progress import Progress
from readbench.engine.method import Method
from readbench.engine.windows import WindowSet
from readbench.studies._study import STUDIES, Grid, Measured, Row, Study, StudyCell, group_by, once


@dataclass(frozen=True)
class ArchiveResult(Measured):
    """Accuracy of a method on the set that is the part of a cell."""

    accuracy: float


def cells_of_archive(dataset: str, method: str, grid: Grid) -> list[StudyCell]:
    """A cell a set of the archive that has both sides."""
    return [StudyCell(dataset, method, part=name) for name in Ctsr().divided(grid.setting().root)]


def depends_on(cell: StudyCell, grid: Grid) -> object:
    """The files of a set."""
    return Ctsr().only(cell.part).fingerprint(grid.setting().root)


def measure_cell(cell: StudyCell, progress: Progress, grid: Grid) -> list[Row]:
    """One row with the accuracy."""
    return [{"accuracy": accuracy(grid.method(cell, progress), *read_archive_set(cell.part, grid.setting().root))}]


@lru_cache(maxsize=1)
def read_archive_set(name: str, root: Path | None) -> tuple[WindowSet, WindowSet]:
    """The train and test series of a dataset below `root`; the last one stays in memory, for the other methods."""
    sides = group_by(_side, Ctsr().only(name).recordings(root))
    return _windows(sides["TRAIN"]), _windows(sides["TEST"])


def accuracy(method: Method, train: WindowSet, test: WindowSet) -> float:
    """Share of the test series whose best-scored train series has their label."""
    best = method.fit(train).score(test).argmax(axis=1)
    return float(np.mean(train.labels[best] == test.labels))


def _windows(recordings: list[Recording]) -> WindowSet:
    return WindowSet.from_arrays(
        [recording.values.astype(np.float32) for recording in recordings],
        channels=recordings[0].channels,
        labels=np.array([recording.labels[0] for recording in recordings], np.int32),
    )


def _side(recording: Recording) -> str:
    """Side of a series, from its id."""
    return recording.id.rpartition(":")[0].rpartition("_")[2]


def mean_table(measured: Sequence[ArchiveResult]) -> ReportTable:
    """One row a method."""
    by_method = group_by(lambda one: one.cell.method, measured).items()
    rows = [[method, f"{np.mean([one.accuracy for one in own]):.3f}", str(len(own))] for method, own in by_method]
    return ReportTable("ucr-mean", "1-NN accuracy, UCR archive", ["Method", "Mean", "Datasets"], rows, labels=1)


def set_table(measured: Sequence[ArchiveResult]) -> ReportTable:
    """One row a set of the archive, one column a method."""
    methods = once(one.cell.method for one in measured)
    values = {(one.cell.part, one.cell.method): f"{one.accuracy:.6f}" for one in measured}
    sets = once(one.cell.part for one in measured)
    rows = [[name, *(values.get((name, own), "") for own in methods)] for name in sets]
    return ReportTable("ucr", "1-NN accuracy on each set of the UCR archive", ["dataset", *methods], rows, labels=1)


STUDIES.register(
    Study(
        name="ucr",
        summary="Nearest-neighbour accuracy on the UCR archive's train and test sides, where its files are at hand.",
        measure=measure_cell,
        depends=depends_on,
        cells=cells_of_archive,
        result=ArchiveResult,
        tables=(mean_table, set_table),
        shown=(mean_table,),
        datasets=("ctsr",),
        axes=("methods",),
        builds=False,
    )
)
