"""Threads for compiled loops, which run without the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from readbench.errors import ParameterError

T = TypeVar("T")
R = TypeVar("R")
PIECES = 4
"""Pieces of work per thread: enough that the threads end together."""


def available_threads() -> int:
    """`READBENCH_THREADS`, else as many as this process has processors."""
    if variable := os.environ.get("READBENCH_THREADS"):
        if not variable.isdigit() or int(variable) < 1:
            raise ParameterError(f"READBENCH_THREADS must be a whole number from 1 on. Got {variable!r} instead.")
        return int(variable)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Team:
    """Some threads; a team of one works in the caller's.

    >>> done = []
    >>> with Team(2) as team:
    ...     team.share(lambda first, last: done.extend(range(first, last)), 10)
    >>> sorted(done) == list(range(10))
    True
    """

    def __init__(self, size: int | None = None) -> None:
        self.size = available_threads() if size is None else size
        self._pool = ThreadPoolExecutor(self.size) if self.size > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def each(self, work: Callable[[T], R], jobs: Iterable[T]) -> list[R]:
        """Results of all jobs, in order."""
        return list(map(work, jobs) if self._pool is None else self._pool.map(work, jobs))

    def share(self, work: Callable[[int, int], None], count: int) -> None:
        """Do `work(first, last)` for pieces that together make up `range(count)`."""
        pieces = 1 if self._pool is None else PIECES * self.size
        self.each(lambda piece: work(piece.start, piece.stop), _pieces(count, pieces))

    def shares(self, count: int) -> list[slice]:
        """Pieces that together make up `range(count)`, one for each thread; fewer where there is less to do.

        >>> Team(2).shares(5)
        [slice(0, 2, None), slice(2, 5, None)]
        """
        return _pieces(count, self.size)


def _pieces(count: int, most: int) -> list[slice]:
    pieces = min(count, most)
    return [slice(count * piece // pieces, count * (piece + 1) // pieces) for piece in range(pieces)]
