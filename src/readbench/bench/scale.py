"""Exact DTW search through a corpus that does not fit in memory."""

from __future__ import annotations

import resource
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from readbench.data import build
from readbench.data.simulators import Tanks
from readbench.retrieve.dtw import DtwIndependent

K = 20
SAMPLE_S = 0.2


@dataclass(frozen=True)
class ScaleResult:
    """How a search through a large corpus went.

    Args:
        windows: size of the corpus.
        gigabytes: its values.
        queries: how many.
        fit_s: reading the corpus once for its channel statistics.
        search_s: exact top 20 of all queries.
        peak_gigabytes: most memory that was the process's own (not the page cache of the memory-mapped file).
    """

    windows: int
    gigabytes: float
    queries: int
    fit_s: float
    search_s: float
    peak_gigabytes: float


def search_at_scale(windows: int, cache: Path, queries: int = 10) -> ScaleResult:
    """Build (or open) `sim_tanks` of this size and search it with DTW-I for windows of another, similar world."""
    corpus = build(Tanks().sized(windows), None, cache).windows
    asked = build(Tanks(runs=64, seed=1), None, cache).windows
    asked = asked[np.flatnonzero(asked.labels > 0)[:queries]].compact()
    with MemoryWatch() as memory:
        began = time.perf_counter()
        retriever = DtwIndependent().fit(corpus, corpus[:0])
        fitted = time.perf_counter()
        hits = retriever.search(asked, K)
        ended = time.perf_counter()
    if hits.indices.shape != (len(asked), K):
        raise RuntimeError("the search came back short")
    values = int((corpus.channel_counts.astype(np.int64) * corpus.lengths).sum()) * 4
    return ScaleResult(len(corpus), values / 1e9, len(asked), fitted - began, ended - fitted, memory.peak / 1e9)


class MemoryWatch:
    """Samples the process's own memory while its `with` block runs.

    What is memory-mapped from the corpus's file is not the process's own: the system takes it back when it needs it.
    """

    def __init__(self) -> None:
        self.peak = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.peak = max(self.peak, own_memory())
            if self._stop.wait(SAMPLE_S):
                return


def own_memory() -> float:
    """Bytes of anonymous memory where the system tells it, else of all resident memory."""
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return float(fields["RssAnon"].split()[0]) * 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024
