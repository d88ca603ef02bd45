"""A case library of any size: how fast it takes cases in, how long a search lasts, what it needs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from readbench.cases import Answer, Library
from readbench.common.processes import MemoryWatch
from readbench.engine.windows import WindowSet

FAULTS = 20
PER_CALL = 10_000
LABELLED = 0.5
"""Share of the cases that have a label."""


@dataclass(frozen=True)
class LibraryResult:
    """What was measured; processor time changes little on a busy machine, wall time much.

    Args:
        cases: in the library.
        shape: channels and steps of a case.
        method: that was searched with.
        ingest_per_s: cases added in a second.
        ingest_cpu_per_s: cases added in a second of processor time.
        open_s: opening the library and reading what is known of all cases.
        open_cpu_s: processor time of that.
        first_search_s: the first one, which encodes what has to be.
        first_search_cpu_s: processor time of that.
        search_p50_s: median over the queries, the first time each is asked.
        search_p95_s: 95th percentile, likewise.
        search_cpu_s: median processor time of those.
        again_p50_s: median of the same queries asked again, when all vectors are there.
        again_p95_s: 95th percentile, likewise.
        again_cpu_s: median processor time of those.
        reopened_s: opening the library again and the first search then, when vectors are filed.
        reopened_cpu_s: processor time of that.
        compared: cases that the method compared.
        right: share of queries whose most likely fault is theirs.
        peak_gigabytes: most memory of the process while it searched.
        disk_gigabytes: the library's folder.
    """

    cases: int
    shape: tuple[int, int]
    method: str
    ingest_per_s: float
    ingest_cpu_per_s: float
    open_s: float
    open_cpu_s: float
    first_search_s: float
    first_search_cpu_s: float
    search_p50_s: float
    search_p95_s: float
    search_cpu_s: float
    again_p50_s: float
    again_p95_s: float
    again_cpu_s: float
    reopened_s: float
    reopened_cpu_s: float
    compared: int
    right: float
    peak_gigabytes: float
    disk_gigabytes: float


def measure_library(
    where: Path, cases: int, method: str, *, queries: int = 20, shape: tuple[int, int] = (8, 256)
) -> LibraryResult:
    """Make a library of synthetic faults at a folder that does not exist yet, search it, and remove it."""
    library = Library.create(where)
    taken = Clock()
    for block in synthetic(cases, shape):
        with taken:
            library.add(block)
    library.add_normals(next(synthetic(200, shape, seed=1, fault=False)))
    asked = next(synthetic(queries + 1, shape, seed=2))
    opened, first, once, again, reopened = Clock(), Clock(), Clock(), Clock(), Clock()
    with MemoryWatch() as memory:
        with opened:
            library = Library.open(where)
            len(library)
        _searched(library, asked[:1], method, first)
        answers = _searched(library, asked[1:], method, once)
        _searched(library, asked[1:], method, again)
        with reopened:
            Library.open(where).search(asked[1:2], method=method)
    disk = library.store.size()
    shutil.rmtree(where)
    right = [answer.faults[0].label == name for answer, name in zip(answers, _names(asked[1:]), strict=True)]
    return LibraryResult(
        cases=cases,
        shape=shape,
        method=method,
        ingest_per_s=cases / sum(taken.wall),
        ingest_cpu_per_s=cases / sum(taken.cpu),
        open_s=opened.wall[0],
        open_cpu_s=opened.cpu[0],
        first_search_s=first.wall[0],
        first_search_cpu_s=first.cpu[0],
        search_p50_s=float(np.median(once.wall)),
        search_p95_s=float(np.quantile(once.wall, 0.95)),
        search_cpu_s=float(np.median(once.cpu)),
        again_p50_s=float(np.median(again.wall)),
        again_p95_s=float(np.quantile(again.wall, 0.95)),
        again_cpu_s=float(np.median(again.cpu)),
        reopened_s=reopened.wall[0],
        reopened_cpu_s=reopened.cpu[0],
        compared=answers[0].compared,
        right=float(np.mean(right)),
        peak_gigabytes=memory.peak / 1e9,
        disk_gigabytes=disk / 1e9,
    )


class Clock:
    """Wall and processor seconds of each `with` block."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def __enter__(self) -> Self:
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall.append(time.perf_counter() - self._began[0])
        self.cpu.append(time.process_time() - self._began[1])


def synthetic(count: int, shape: tuple[int, int], *, seed: int = 0, fault: bool = True) -> Iterator[WindowSet]:
    """Blocks of windows: noise with memory, and for each fault its own movement of a few channels, at some strength."""
    shapes = np.random.default_rng(7).normal(size=(FAULTS, *shape)).cumsum(axis=2) / np.sqrt(shape[1])
    shapes *= np.random.default_rng(8).random((FAULTS, shape[0], 1)) < 0.4
    rng = np.random.default_rng(seed)
    for start in range(0, count, PER_CALL):
        own = min(PER_CALL, count - start)
        types = rng.integers(0, FAULTS, own)
        values = rng.normal(size=(own, *shape)).astype(np.float32)
        values[:, :, 1:] += 0.7 * values[:, :, :-1]
        if fault:
            values += rng.uniform(2, 6, (own, 1, 1)) * shapes[types]
        known = rng.random(own) < (LABELLED if seed == 0 else 1.0)
        yield WindowSet.from_arrays(
            values,
            channels=tuple(f"sensor {c}" for c in range(shape[0])),
            labels=np.where(known, types + 1, -1) if fault else np.zeros(own, np.int32),
            classes=("normal", *(f"fault {t}" for t in range(FAULTS))),
            ids=[f"{seed}-{start + i}" for i in range(own)],
        )


def _names(windows: WindowSet) -> list[str]:
    return [windows.classes[label] for label in windows.labels]


def _searched(library: Library, asked: WindowSet, method: str, clock: Clock) -> list[Answer]:
    """An answer to each window, and the time it took."""
    answers = []
    for window in asked.blocks(1):
        with clock:
            answers.append(library.search(window, method=method))
    return answers
