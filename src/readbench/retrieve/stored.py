"""Vectors of a corpus that is too large for memory: one file, written block by block and used in place."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from readbench.encoders import Vectors
from readbench.kernels.threads import available_threads
from readbench.locks import exclusive
from readbench.processes import end_with_parent
from readbench.windows import WindowSet

BLOCK = 2048
"""Windows encoded, and saved, at a time."""
AHEAD = 2
"""Blocks that wait for each process."""
Represent = Callable[[WindowSet], Vectors]
"""(B, D) vectors of B windows."""
Progress = Callable[[int, int], None]
"""Told how many windows have their vectors, and how many there are."""


@dataclass(eq=False)
class StoredVectors:
    """A folder for the vectors of one corpus; an interrupted writer goes on where it was.

    Args:
        folder: where they are; its own, removed by `clear`.
        key: what the vectors depend on. Vectors that were stored under another are made again.
        jobs: processes that encode side by side; with more than one, the encoder must survive pickling.
        progress: told after each block.

    Attributes:
        seconds: time spent on the vectors, interrupted runs included.
        earlier: the part of it that interrupted runs spent.

    >>> import tempfile
    >>> windows = WindowSet.from_arrays(np.arange(6.0).reshape(3, 1, 2))
    >>> stored = StoredVectors(Path(tempfile.mkdtemp()), "means")
    >>> stored.filled(windows, lambda some: np.stack([w.values.mean(axis=1) for w in some])).tolist()
    [[0.5], [2.5], [4.5]]
    """

    folder: Path
    key: str
    jobs: int = 1
    progress: Progress | None = None
    seconds: float = 0.0
    earlier: float = 0.0

    def filled(self, windows: WindowSet, represent: Represent) -> Vectors:
        """(N, D) vectors of all windows, memory-mapped; those that are stored already are kept."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with exclusive(self.folder / "vectors.lock"):
            known, self.earlier = self._journal(len(windows))
            self.seconds = self.earlier
            for done in self._rest(windows, represent, known or self._begin(windows, represent)):
                if self.progress:
                    self.progress(done, len(windows))
        vectors: Vectors = np.load(self._file, mmap_mode="r")
        return vectors

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._file.stat().st_size if self._file.exists() else 0

    def clear(self) -> None:
        """Remove the vectors."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _file(self) -> Path:
        return self.folder / "vectors.npy"

    def _journal(self, count: int) -> tuple[int, float]:
        """Windows that have their vectors, and the seconds it took; nothing where those are of something else."""
        try:
            state = json.loads((self.folder / "journal.json").read_text())
            shape = np.load(self._file, mmap_mode="r").shape
        except (OSError, ValueError):
            return 0, 0.0
        fits = state["key"] == self.key and shape[0] == count
        return (state["done"], state["seconds"]) if fits else (0, 0.0)

    def _note(self, done: int) -> int:
        partial = self.folder / "journal.new"
        partial.write_text(json.dumps({"key": self.key, "done": done, "seconds": self.seconds}))
        partial.replace(self.folder / "journal.json")
        return done

    def _begin(self, windows: WindowSet, represent: Represent) -> int:
        """Make the file, as wide as the vectors of the first block are."""
        (self.folder / "journal.json").unlink(missing_ok=True)
        began = time.perf_counter()
        first = represent(windows[:BLOCK])
        shape = (len(windows), first.shape[1])
        file = np.lib.format.open_memmap(self._file, "w+", np.float32, shape)  # type: ignore[no-untyped-call]
        file[: len(first)] = first
        file.flush()
        self.seconds += time.perf_counter() - began
        return self._note(len(first))

    def _rest(self, windows: WindowSet, represent: Represent, first: int) -> Iterator[int]:
        """Store what is left; gives how far it has come."""
        starts = range(first, len(windows), BLOCK)
        began = time.perf_counter()
        for done in self._stored(windows, represent, starts):
            ended = time.perf_counter()
            self.seconds += ended - began
            began = ended
            yield self._note(done)

    def _stored(self, windows: WindowSet, represent: Represent, starts: range) -> Iterator[int]:
        if self.jobs == 1 or len(starts) == 1:
            for start in starts:
                yield _store(self._file, start, represent, windows[start : start + BLOCK])
            return
        threads = max(1, available_threads() // self.jobs)
        with ProcessPoolExecutor(self.jobs, get_context("spawn"), _prepare, (threads,)) as pool:
            running: deque[Future[int]] = deque()
            for start in starts:
                block = windows[start : start + BLOCK].compact()
                running.append(pool.submit(_store, self._file, start, represent, block))
                if len(running) >= AHEAD * self.jobs:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()


def _prepare(threads: int) -> None:
    """In a new process: its share of the threads, one for each product of matrices."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import

    end_with_parent()
    threadpool_limits(1)
    os.environ["READBENCH_THREADS"] = str(threads)


def _store(file: Path, start: int, represent: Represent, windows: WindowSet) -> int:
    """Encode a block into its place; returns where it ends."""
    vectors = np.load(file, mmap_mode="r+")
    vectors[start : start + len(windows)] = represent(windows)
    vectors.flush()
    return start + len(windows)
