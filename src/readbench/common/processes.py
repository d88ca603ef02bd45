"""Processes: a fresh one for a piece of work, the end of one with its parent, and the memory that one takes."""

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
SAMPLE_S = 0.2

Work = Callable[[T, Progress], R]


class _Result(Generic[R]):
    """The last message of a process that did its work."""

    def __init__(self, value: R) -> None:
        self.value = value


def in_fresh_process(work: Work[T, R], given: T, progress: Progress) -> R:
    """Do a piece of work in a process of its own, so that nothing before it counts for its time and memory.

    Args:
        work: a function of a module; what it is given and what it returns must survive pickling.
        given: its argument.
        progress: told here what the work tells there.

    Raises:
        RunError: the process ended without a result. What the work raises on purpose is raised here.
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
    """In the new process: do the work and send what comes of it."""
    end_with_parent()
    try:
        there.send(_Result(work(given, lambda *told: there.send(told))))
    except ReadbenchError as error:
        there.send(error)


def is_alive(process: int) -> bool:
    """Whether there is a process of this number; True where the system does not tell.

    >>> is_alive(os.getpid())
    True
    """
    if not hasattr(os, "kill") or sys.platform == "win32":  # there, asking would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is another user's
    return True


def end_with_parent() -> None:
    """From now on, this process ends when the one that started it does, however that ends."""
    SupervisedLoop("ends with its parent", _outlive_no_parent).start()


def _outlive_no_parent() -> bool:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
    return True


class MemoryWatch:
    """Samples the memory of this process and of those it started while the `with` block runs.

    What is memory-mapped from a file is not a process's own: the system takes it back when it needs it. The peak is NaN
    on a system that does not tell.

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
        self._loop.stopping.wait(SAMPLE_S)


def own_memory() -> float:
    """Bytes of anonymous memory, with that of all processes below, where the system tells it.

    Elsewhere the most that was resident in this process so far; NaN where the system does not tell that either.
    """
    if Path("/proc/self/status").exists():
        return _anonymous(os.getpid())
    if resource is None:
        return math.nan
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, all others kilobytes
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


def _anonymous(process: int) -> float:
    """Of a process and those below it; one that has just ended has none."""
    folder = Path("/proc") / str(process)
    try:
        fields = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
        below = [int(child) for task in (folder / "task").iterdir() for child in _children(task)]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    own = float(fields["RssAnon"].split()[0]) * 1024 if "RssAnon" in fields else 0.0
    return own + sum(map(_anonymous, below))


def _children(task: Path) -> list[str]:
    listed = task / "children"
    return listed.read_text().split() if listed.exists() else []
