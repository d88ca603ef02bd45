"""Work that ends when its time is over: who waits for it says how long, and long loops look at the clock.

```
with set_deadline(Deadline(time.monotonic() + 60)):   # who waits
    for window in windows:
        check_deadline()                              # raises OverdueError when the time is over
```
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from readbench.errors import OverdueError


@dataclass(eq=False)
class Deadline:
    """When work must end: `at` on the clock of `time.monotonic`. Whoever holds it may make it earlier."""

    at: float


class AnyLock(Protocol):
    """A lock of threads."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as they have it
        """Take it, if that is possible in so many seconds."""
        ...

    def release(self) -> None:
        """Let others have it."""
        ...


_SET: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def set_deadline(deadline: Deadline) -> Iterator[None]:
    """Let the work of this thread end at a deadline.

    >>> with set_deadline(Deadline(time.monotonic() - 1)):
    ...     check_deadline()
    Traceback (most recent call last):
    readbench.errors.OverdueError: The time for this was over before it was done. Ask for less at once.
    """
    token = _SET.set(deadline)
    try:
        yield
    finally:
        _SET.reset(token)


@contextmanager
def within_seconds(seconds: float) -> Iterator[None]:
    """Let the work of this thread end after so many seconds, or at the deadline that it has, whichever is earlier.

    >>> with within_seconds(5.0), within_seconds(60.0):
    ...     seconds_left() <= 5.0
    True
    """
    known = _SET.get()
    at = time.monotonic() + seconds
    with set_deadline(Deadline(at if known is None else min(at, known.at))):
        yield


def pause(seconds: float) -> None:
    """Wait, at most until the deadline of the work at hand; `OverdueError` where that comes first.

    >>> with within_seconds(0.01):
    ...     pause(60.0)
    Traceback (most recent call last):
    readbench.errors.OverdueError: The time for this was over before it was done. Ask for less at once.
    """
    left = seconds_left()
    time.sleep(max(0.0, min(seconds, left)))
    if left < seconds:
        check_deadline()


@contextmanager
def hold_lock(lock: AnyLock) -> Iterator[None]:
    """Hold a lock of threads; `OverdueError` where the deadline of the work at hand comes first.

    >>> with hold_lock(threading.RLock()):
    ...     pass
    """
    while not lock.acquire(timeout=max(0.0, min(seconds_left(), threading.TIMEOUT_MAX))):
        check_deadline()
    try:
        yield
    finally:
        lock.release()


def seconds_left() -> float:
    """Time that the work at hand has; infinite where nobody set a deadline.

    >>> seconds_left()
    inf
    """
    deadline = _SET.get()
    return math.inf if deadline is None else deadline.at - time.monotonic()


def check_deadline() -> None:
    """Raise `OverdueError` where the time of the work at hand is over; nothing happens where nobody set one."""
    hold_deadline()()


def hold_deadline() -> Callable[[], None]:
    """What `check_deadline` does here, as a function for the threads that share the work at hand."""
    deadline = _SET.get()

    def check() -> None:
        if deadline is not None and time.monotonic() > deadline.at:
            raise OverdueError("The time for this was over before it was done. Ask for less at once.")

    return check
