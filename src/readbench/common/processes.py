"""Processes: run work in a fresh one, end with the parent, measure memory."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from readbench.common.progress import Progress
from readbench.common.supervised import SupervisedLoop
from readbench.errors import ReadbenchError, RunError

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

T = TypeVar("T")
R = TypeVar("R")
SAMPLE_INTERVAL_S = 0.2

Work = Callable[[T, Progress], R]


class _Result(Generic[R]):
    """The last message of a successful process."""

    def __init__(self, value: R) -> None:
        self.value = value


def in_fresh_process(work: Work[T, R], given: T, progress: Progress) -> R:
    """Run a function in a new process, so that earlier work does not count in its time and memory.

    Args:
        work: a function of a module; argument and result must be picklable.
        given: its argument.
        progress: receives the progress of the process.

    Raises:
        RunError: the process ended without a result. A `ReadbenchError` of the work is raised here.
    """
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, work, given))
    process.start()
    there.close()
    try:
        return _received(here, progress)
    except EOFError:
        process.join()
        raise RunError(
            f"The process ended without a result (exit code {process.exitcode}; -9 is often a lack of memory)."
        ) from None
    finally:
        process.join()


def _received(here: Connection[Any, Any], progress: Progress) -> Any:  # noqa: ANN401 - what the work returns
    while True:
        message = here.recv()
        if isinstance(message, _Result):
            return message.value
        if isinstance(message, ReadbenchError):
            raise message
        progress(*message)


def _serve(there: Connection[Any, Any], work: Work[T, R], given: T) -> None:
    """Run in the new process: do the work and send the result."""
    end_with_parent()
    try:
        there.send(_Result(work(given, lambda *told: there.send(told))))
    except ReadbenchError as error:
        there.send(error)


def is_alive(process: int) -> bool:
    """Whether a process of this number runs; True where the system cannot tell.

    >>> is_alive(os.getpid())
    True
    """
    if not hasattr(os, "kill") or sys.platform == "win32":  # on Windows, signal 0 would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # a process of another user
    return True


def end_with_parent() -> None:
    """End this process as soon as its parent ends, for whatever reason."""
    SupervisedLoop("ends with its parent", _outlive_no_parent).start()


def _outlive_no_parent() -> bool:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
    return True


class MemoryWatch:
    """Samples the memory of this process and its children during the `with` block; `peak` is in bytes.

    Memory-mapped files do not count: the system reclaims their pages when it needs them. The peak is NaN on a system
    that does not report memory.

    >>> with MemoryWatch() as memory:
    ...     taken = bytearray(2**20)
    >>> memory.peak > len(taken)
    True
    """

    def __init__(self) -> None:
        self.peak = 0.0
        self._loop = SupervisedLoop("samples memory", self._sample)

    def __enter__(self) -> Self:
        self._loop.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.stop()
        self._loop.join()

    def _sample(self) -> None:
        now = own_memory()
        self.peak = now if math.isnan(now) else max(self.peak, now)
        self._loop.stopping.wait(SAMPLE_INTERVAL_S)


def own_memory() -> float:
    """Bytes of anonymous memory of this process and its descendants.

    Without `/proc`, the peak resident memory of this process; NaN where the system does not report that either.
    """
    if Path("/proc/self/status").exists():
        return _anonymous(os.getpid())
    if resource is None:
        return math.nan
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, all others kilobytes
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


def _anonymous(process: int) -> float:
    """Anonymous bytes of a process and its descendants; 0 if it has just ended."""
    folder = Path("/proc") / str(process)
    try:
        fields = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
        below = [int(child) for task in (folder / "task").iterdir() for child in _children(task)]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    alone = float(fields["RssAnon"].split()[0]) * 1024 if "RssAnon" in fields else 0.0
    return alone + sum(map(_anonymous, below))


def _children(task: Path) -> list[str]:
    listed = task / "children"
    return listed.read_text().split() if listed.exists() else []
