"""Is the nearest series of the same class? Methods on the UCR archive's own train and test sides.

The question is older and plainer than the benchmark's: no faults, no normal operation, one channel. It tells how well a
method compares shapes, on data that no setting of the benchmark has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from readbench.benchmark.protocol import Recording
from readbench.benchmark.runs import Executor, fingerprint_of
from readbench.benchmark.sources import Ctsr
from readbench.benchmark.studies._study import Failure, MethodCell, Rows, Study, run_study
from readbench.common.files import cache_root, data_root
from readbench.common.progress import SILENT, Progress, within
from readbench.engine.method import Method
from readbench.engine.vectors import VectorFolder
from readbench.engine.windows import WindowSet


@dataclass(frozen=True, eq=False)
class ArchiveSet:
    """One dataset of the archive: its series, labelled, as the archive divides them."""

    name: str
    train: WindowSet
    test: WindowSet


def measure_archive(
    methods: Sequence[str],
    out: Path,
    *,
    root: Path | None = None,
    cache: Path | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> tuple[dict[str, list[float]], Sequence[Failure]]:
    """Accuracy of methods on every dataset of the archive that has both sides; finished cells are kept.

    Args:
        methods: canonical texts.
        out: folder of the study.
        root: data root.
        cache: cache root.
        executor: where cells are measured; in this process by default.
        progress: told how far it has come.

    Returns:
        Dataset -> accuracy of each method, NaN where it failed; and what failed.
    """
    data, kept = data_root(root), (cache or cache_root()).absolute()
    names = Ctsr().divided(data)
    cells = [MethodCell(name, method) for name in names for method in methods]
    study = Study(cells, partial(identify_cell, root=data), partial(measure_cell, root=data, cache=kept))
    found = run_study(study, out, executor, progress)
    values = {(cell.dataset, cell.method): row["accuracy"] for cell, rows in found.rows.items() for row in rows}
    return {name: [values.get((name, own), np.nan) for own in methods] for name in names}, found.failures


def identify_cell(cell: MethodCell, root: Path | None) -> str:
    """Fingerprint of the files of a dataset and of a method."""
    method = Method(cell.method)
    files = Ctsr().only(cell.dataset).fingerprint(root)
    return fingerprint_of(accuracy, read_archive_set, spec=method.spec, also=(files, *method.content_keys))


def measure_cell(cell: MethodCell, progress: Progress, root: Path | None, cache: Path) -> Rows:
    """In a worker: one row with the accuracy."""
    archive = read_archive_set(cell.dataset, root)
    return [{"accuracy": accuracy(cell.method, archive, cache, within(progress, "encoding"))}]


@lru_cache(maxsize=1)
def read_archive_set(name: str, root: Path | None) -> ArchiveSet:
    """One dataset below `root`; the last one stays in memory, for the other methods."""
    sides: dict[str, list[Recording]] = {"TRAIN": [], "TEST": []}
    for recording in Ctsr().only(name).recordings(root):
        sides[_side(recording)].append(recording)
    return ArchiveSet(name, _windows(sides["TRAIN"]), _windows(sides["TEST"]))


def accuracy(method: str, dataset: ArchiveSet, cache: Path | None, progress: Progress = SILENT) -> float:
    """Share of the test series whose best-scored train series has their label."""
    own = Method(method, vectors=VectorFolder(cache) if cache else None, progress=progress)
    best = own.fit(dataset.train).score(dataset.test).argmax(axis=1)
    return float(np.mean(dataset.train.labels[best] == dataset.test.labels))


def _windows(recordings: list[Recording]) -> WindowSet:
    return WindowSet.from_arrays(
        [recording.values.astype(np.float32) for recording in recordings],
        channels=recordings[0].channels,
        labels=np.array([recording.labels[0] for recording in recordings], np.int32),
    )


def _side(recording: Recording) -> str:
    """Side of a series, from its id."""
    return recording.id.rpartition(":")[0].rpartition("_")[2]
