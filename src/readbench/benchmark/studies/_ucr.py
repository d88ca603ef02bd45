"""Is the nearest series of the same class? Methods on the UCR archive's own train and test sides.

The question is older and plainer than the benchmark's: no faults, no normal operation, one channel. It tells how well a
method compares shapes, on data that no setting of the benchmark has seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from readbench.benchmark.protocol import Recording
from readbench.benchmark.sources import Ctsr
from readbench.engine.method import Method
from readbench.engine.vectors import VectorFolder
from readbench.engine.windows import WindowSet


@dataclass(frozen=True, eq=False)
class ArchiveSet:
    """One dataset of the archive: its series, labelled, as the archive divides them."""

    name: str
    train: WindowSet
    test: WindowSet


def archive_sets(root: Path | None) -> Iterator[ArchiveSet]:
    """Datasets below `root` that have both sides, by name."""
    for name, recordings in groupby(Ctsr().recordings(root), key=lambda recording: _side(recording)[0]):
        sides: dict[str, list[Recording]] = {"TRAIN": [], "TEST": []}
        for recording in recordings:
            sides[_side(recording)[1]].append(recording)
        if all(sides.values()):
            yield ArchiveSet(name, _windows(sides["TRAIN"]), _windows(sides["TEST"]))


def accuracy(method: str, dataset: ArchiveSet, cache: Path | None) -> float:
    """Share of the test series whose best-scored train series has their label."""
    fitted = Method(method, vectors=VectorFolder(cache) if cache else None).fit(dataset.train)
    best = fitted.score(dataset.test).argmax(axis=1)
    return float(np.mean(dataset.train.labels[best] == dataset.test.labels))


def _windows(recordings: list[Recording]) -> WindowSet:
    return WindowSet.from_arrays(
        [recording.values.astype(np.float32) for recording in recordings],
        channels=recordings[0].channels,
        labels=np.array([recording.labels[0] for recording in recordings], np.int32),
    )


def _side(recording: Recording) -> tuple[str, str]:
    """Dataset and side of a series."""
    name, _, side = recording.id.rpartition(":")[0].rpartition("_")
    return name, side
