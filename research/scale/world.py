"""One simulated world on disk: a corpus of faults of any size, held-out queries, and windows of normal operation.

The first runs of a simulator are held out: some give the queries, others the normals. All further runs give the corpus,
faults only, as the benchmark has it at pollution level 0. Runs do not depend on how many there are, so a smaller corpus
is the beginning of a larger one, and all sizes are asked the same queries.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import find_source, windows_of
from readbench.benchmark.simulators import BATCH, Simulator
from readbench.common.files import exclusive, write_json
from readbench.common.processes import end_with_parent
from readbench.common.progress import Progress, during
from readbench.engine.preparation import ChannelStats
from readbench.engine.window_files import WindowWriter, load_windows, save_windows
from readbench.engine.windows import NORMAL, WindowSet, concatenate
from readbench.errors import UsageError

ASKED_RUNS, NORMAL_RUNS = 512, 256
"""Runs that queries and normals come from; whole batches."""
NORMALS = 512
"""Windows of normal operation."""
SEED = 0
"""Of the draw of the queries."""
AHEAD = 2
"""Batches that wait for each process."""
PART = 25_000
"""Windows whose statistics are taken together, however many processes there are."""


@dataclass(frozen=True, eq=False)
class Material:
    """What a method is given and judged by; values stay on disk.

    Args:
        corpus: N faults, with the channel statistics that windows are scaled by.
        queries: Q faults of other groups.
        normals: windows of normal operation.
        bytes: of the corpus's values.
    """

    corpus: WindowSet
    queries: WindowSet
    normals: WindowSet
    bytes: int


@dataclass(frozen=True)
class World:
    """A simulated source and where its windows lie.

    Args:
        source: its text, such as `sim_tanks(difficulty=2)`.
        queries: how many.
        cache: cache root.
    """

    source: str
    queries: int
    cache: Path

    @property
    def simulator(self) -> Simulator:
        """The source."""
        source = find_source(self.source)
        if not isinstance(source, Simulator):
            raise UsageError(f"{self.source} is not simulated, so it cannot be made larger. Use one of sim_*.")
        return replace(source, runs=ASKED_RUNS + NORMAL_RUNS)  # how many there are is no part of what they are

    @property
    def key(self) -> str:
        """Hash of the source, its protocol and what is held out."""
        source = self.simulator
        identity = (source.fingerprint(None), repr(source.info.protocol), ASKED_RUNS, NORMAL_RUNS, NORMALS, SEED)
        return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]

    @property
    def folder(self) -> Path:
        """Where its windows lie."""
        return self.cache / "scale" / f"{self.simulator.info.name}-{self.key}"

    def build(self, sizes: tuple[int, ...], jobs: int, progress: Progress) -> float:
        """Make sure that corpora of these sizes are on disk; an interrupted build goes on.

        Args:
            sizes: windows of each; the largest is stored, the others are its beginnings.
            jobs: processes that simulate.
            progress: told how many windows there are.

        Returns:
            Seconds that building the largest took, interrupted builds included.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(self.folder.with_suffix(".lock")):
            self._hold_out()
            self._grow(max(sizes), jobs, progress)
            for size in sizes:
                self._measure(size, jobs, progress)
        return float(json.loads((self._holding(max(sizes)) / "built.json").read_text()))

    def open(self, size: int) -> Material:
        """The material of a corpus that is built, memory-mapped."""
        corpus = load_windows(self._holding(size))[:size]
        stats = json.loads(self._statistics(size).read_text())
        values = int((corpus.channel_counts.astype(np.int64) * corpus.lengths).sum()) * 4
        queries, normals = load_windows(self._asked), load_windows(self.folder / "normals")
        return Material(corpus.with_stats(ChannelStats(**stats)), queries, normals, values)

    @property
    def _asked(self) -> Path:
        return self.folder / f"queries-{self.queries}"

    def _holding(self, size: int) -> Path:
        """The smallest stored corpus that holds one of this size, else where that will be."""
        found = (path.name.removeprefix("corpus-") for path in self.folder.glob("corpus-*"))
        stored = [int(name) for name in found if name.isdigit()]
        return self.folder / f"corpus-{min((n for n in stored if n >= size), default=size)}"

    def _statistics(self, size: int) -> Path:
        return self.folder / f"statistics-{size}.json"

    def _hold_out(self) -> None:
        if not self._asked.exists():
            asked = concatenate([_cut(self.simulator, first) for first in range(0, ASKED_RUNS, BATCH)])
            save_windows(asked[_one_a_group(asked, self.queries)], self._asked)
        if (self.folder / "normals").exists():
            return
        usual = concatenate([_cut(self.simulator, ASKED_RUNS + first) for first in range(0, NORMAL_RUNS, BATCH)])
        usual = usual[usual.labels == NORMAL]
        save_windows(usual[np.linspace(0, len(usual) - 1, NORMALS).astype(np.intp)], self.folder / "normals")

    def _grow(self, size: int, jobs: int, progress: Progress) -> None:
        """Stream the faults of as many runs as it takes to disk."""
        folder, source = self._holding(size), self.simulator
        if folder.exists():
            return
        began, clock = time.perf_counter(), self.folder / f"clock-{size}.json"
        before = json.loads(clock.read_text()) if clock.exists() else 0.0
        with WindowWriter(folder, source.info.classes) as writer:
            first = max(writer.mark, ASKED_RUNS + NORMAL_RUNS)
            for following, faults in _faults(source, first, jobs):
                writer.append(faults[: size - writer.count])
                writer.checkpoint(following)
                write_json(clock, before + time.perf_counter() - began)
                progress(f"building {source.info.name}", writer.count, size)
                if writer.count == size:
                    break
            writer.attach("built.json", before + time.perf_counter() - began)

    def _measure(self, size: int, jobs: int, progress: Progress) -> None:
        """Channel statistics of a corpus, as a task fixes them once for all methods."""
        if self._statistics(size).exists():
            return
        parts = [(start, min(start + PART, size)) for start in range(0, size, PART)]
        measure = partial(_part_statistics, self._holding(size))
        with during(progress, f"channel statistics of {size:,} windows"):
            if jobs == 1 or len(parts) == 1:
                found = list(map(measure, parts))
            else:
                with ProcessPoolExecutor(jobs, get_context("spawn"), end_with_parent) as pool:
                    found = list(pool.map(measure, parts))
        stats = merge_statistics(found, [stop - start for start, stop in parts])
        write_json(self._statistics(size), {"mean": stats.mean, "std": stats.std})


def merge_statistics(parts: Sequence[ChannelStats], counts: Sequence[int]) -> ChannelStats:
    """Statistics of a whole from those of its parts, which have so many values of each channel, or in such proportion.

    >>> parts = [ChannelStats({"a": 1.0}, {"a": 0.0}), ChannelStats({"a": 3.0}, {"a": 0.0})]
    >>> merge_statistics(parts, [5, 5])
    ChannelStats(mean={'a': 2.0}, std={'a': 1.0})
    """
    share = np.array(counts)[:, None] / sum(counts)
    names = list(parts[0].mean)
    mean, std = (
        np.array([[getattr(part, kind)[name] for name in names] for part in parts]) for kind in ("mean", "std")
    )
    whole = (share * mean).sum(axis=0)
    spread = np.sqrt((share * (std**2 + (mean - whole) ** 2)).sum(axis=0))
    return ChannelStats(*(dict(zip(names, values.tolist(), strict=True)) for values in (whole, spread)))


def _part_statistics(folder: Path, part: tuple[int, int]) -> ChannelStats:
    return ChannelStats.of(_opened(folder)[slice(*part)])


@lru_cache(maxsize=1)
def _opened(folder: Path) -> WindowSet:
    """A corpus, once for all parts that a process measures."""
    return load_windows(folder)


def _faults(source: Simulator, first: int, jobs: int) -> Iterator[tuple[int, WindowSet]]:
    """Faults of one batch of runs after the other, without end, each with the number of the run that follows."""
    if jobs == 1:
        while True:
            yield first + BATCH, _cut_faults(source, first)
            first += BATCH
    with ProcessPoolExecutor(jobs, get_context("spawn"), end_with_parent) as pool:
        running: deque[tuple[int, Future[WindowSet]]] = deque()
        try:
            while True:
                while len(running) < AHEAD * jobs:
                    running.append((first + BATCH, pool.submit(_cut_faults, source, first)))
                    first += BATCH
                following, windows = running.popleft()
                yield following, windows.result()
        finally:
            for _, waiting in running:
                waiting.cancel()


def _cut_faults(source: Simulator, first: int) -> WindowSet:
    windows = _cut(source, first)
    return windows[windows.labels > NORMAL].compact()


def _cut(source: Simulator, first: int) -> WindowSet:
    """All windows of a batch of runs."""
    info, some = source.info, replace(source, runs=first + BATCH)
    cut = (windows_of(recording, info.protocol, info.classes) for recording in some.recordings_from(first))
    return concatenate([windows for windows in cut if windows is not None])


def _one_a_group(windows: WindowSet, count: int) -> NDArray[np.intp]:
    """Positions of faults of different groups: the middle fault of each of so many groups, drawn once for all."""
    faulty = np.flatnonzero(windows.labels > NORMAL)
    groups = np.array(windows.groups[faulty].tolist())
    middle = [own[len(own) // 2] for own in (faulty[groups == name] for name in dict.fromkeys(groups.tolist()))]
    if len(middle) < count:
        raise UsageError(f"The held-out runs have {len(middle)} groups with a fault, so at most as many --queries.")
    return np.sort(np.random.default_rng(SEED).permutation(middle)[:count])
