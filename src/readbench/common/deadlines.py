"""Deadlines: the caller sets a time limit, and long loops check it.

```
with set_deadline(Deadline(time.monotonic() + 60)):   # the caller
    for window in windows:
        check_deadline()                              # raises OverdueError after the deadline
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
    """Time `at` which work must end, on the clock of `time.monotonic`; may be changed while work runs."""

    at: float


class AnyLock(Protocol):
    """Protocol of `threading.Lock` and `RLock`."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as they have it
        """Acquire the lock within `timeout` seconds."""
        ...

    def release(self) -> None:
        """Release the lock."""
        ...


_DEADLINE: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def set_deadline(deadline: Deadline) -> Iterator[None]:
    """Set the deadline of this thread for the block.

    >>> with set_deadline(Deadline(time.monotonic() - 1)):
    ...     check_deadline()
    Traceback (most recent call last):
    readbench.errors.OverdueError: The time for this was over before it was done. Ask for less at once.
    """
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


@contextmanager
def within_seconds(seconds: float) -> Iterator[None]:
    """Limit the block to this many seconds, or to the deadline already set if that is earlier.

    >>> with within_seconds(5.0), within_seconds(60.0):
    ...     seconds_left() <= 5.0
    True
    """
    known = _DEADLINE.get()
    at = time.monotonic() + seconds
    with set_deadline(Deadline(at if known is None else min(at, known.at))):
        yield


def pause(seconds: float) -> None:
    """Sleep until `seconds` have passed; raise `OverdueError` if the deadline comes first.

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
    """Hold a lock; raise `OverdueError` if the deadline comes before it is free.

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
    """Seconds until the deadline of this thread; infinite without one.

    >>> seconds_left()
    inf
    """
    deadline = _DEADLINE.get()
    return math.inf if deadline is None else deadline.at - time.monotonic()


def check_deadline() -> None:
    """Raise `OverdueError` after the deadline of this thread; do nothing without one."""
    hold_deadline()()


def hold_deadline() -> Callable[[], None]:
    """Return `check_deadline` bound to the deadline of this thread, for the threads it starts."""
    deadline = _DEADLINE.get()

    def check() -> None:
        if deadline is not None and time.monotonic() > deadline.at:
            raise OverdueError("The time for this was over before it was done. Ask for less at once.")

    return check
