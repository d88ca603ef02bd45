"""Audit log: one JSON line per request, without its contents.

Lines and files have a bounded size. Requests without a key are limited to `STRANGERS_LINES` lines a minute; the others
are counted in one line.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TextIO

from pydantic import BaseModel, ConfigDict

from readbench.errors import UsageError

MIN_FREE_BYTES = 2**16
"""Free bytes below which the disk counts as full."""
MAX_PATH_CHARS = 200
"""Longest path in the log, in characters."""
MAX_FILE_BYTES = 64 * 2**20
"""Size in bytes at which the log is rotated."""
KEPT_FILES = 8
"""Number of rotated files that are kept."""
STRANGERS_LINES = 30
"""Lines per minute for requests without a key."""
ECHOED_LINES = 3000
"""Lines per minute that are echoed on the terminal."""
LOGGED_LINES = 300
"""Messages per minute in the log of the process."""
HELD_FILES = "/looked/"
"""Path prefix before the secret name of a held file."""
log = logging.getLogger("readbench.service")


class Event(BaseModel):
    """One request, or several without a key.

    Args:
        time: seconds since 1970.
        key: name of the key; "" without one.
        method: HTTP method; `*` for several requests.
        path: path without the query, cut to `MAX_PATH_CHARS` characters; `*` for several requests.
        status: HTTP status; 0 for several requests.
        ms: duration in milliseconds.
        received: bytes of the request's body.
        changes: changes by number, kind and case, such as `12: edit of w0`; `history` has the details.
        count: number of requests.
    """

    model_config = ConfigDict(frozen=True)

    time: float
    key: str
    method: str
    path: str
    status: int
    ms: float
    received: int
    changes: tuple[str, ...] = ()
    count: int = 1

    def write_line(self) -> str:
        """Line of the log."""
        left_out = {"count"} if self.count == 1 else None
        return json.dumps(self.model_dump(exclude=left_out), separators=(",", ":")) + "\n"


def describe_path(path: str) -> str:
    """Path for logs: shortened, without the secret name of a file.

    >>> describe_path("/cases/w0"), describe_path("/looked/x7Rt"), len(describe_path("/" * 60_000))
    ('/cases/w0', '/looked/...', 200)
    """
    if path.startswith(HELD_FILES):
        return f"{HELD_FILES}..."
    return path if len(path) <= MAX_PATH_CHARS else f"{path[: MAX_PATH_CHARS - 3]}..."


class LineBudget:
    """Rate limit of lines per minute; counts the lines left out.

    Args:
        most: lines per minute.
        clock: returns seconds.

    >>> budget = LineBudget(2, clock=lambda: 0.0)
    >>> [budget.admit() for _ in range(4)], budget.left_out
    ([True, True, False, False], 2)
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self.left_out = 0
        self._clock = clock
        self._begun = clock()
        self._admitted = 0

    def admit(self) -> bool:
        """True if one more line is allowed in this minute."""
        if self.over():
            self._begun, self._admitted = self._clock(), 0
        self._admitted += 1
        if self._admitted <= self.most:
            return True
        self.left_out += 1
        return False

    def over(self) -> bool:
        """True if the minute is over."""
        return self._clock() - self._begun >= 60.0

    def take_left_out(self) -> int:
        """Number of lines left out since the last call."""
        left_out, self.left_out = self.left_out, 0
        return left_out


class LimitedLog(logging.Filter):
    """Limits the messages per minute; the next message has the number left out."""

    def __init__(self, most: int = LOGGED_LINES) -> None:
        super().__init__()
        self._budget = LineBudget(most)

    def filter(self, record: logging.LogRecord) -> bool:
        """True if a message is written."""
        if not self._budget.admit():
            return False
        if left_out := self._budget.take_left_out():
            record.msg, record.args = f"{record.getMessage()} ({left_out} messages before it were left out)", None
        return True


class AuditLog:
    """Appends a line per request; external log rotation may move the file at any time.

    At `largest` bytes the file is rotated to `NAME.1`, up to `NAME.8`; the oldest is deleted.

    Args:
        path: file; None for none.
        echo: stream that gets the same lines; None for none.
        largest: size in bytes at which the file is rotated.
    """

    def __init__(self, path: Path | None, echo: TextIO | None = sys.stderr, *, largest: int = MAX_FILE_BYTES) -> None:
        self.path = path
        self.echo = echo
        self.largest = largest
        self._strangers = LineBudget(STRANGERS_LINES)
        self._echoed = LineBudget(ECHOED_LINES)
        self._failures = LineBudget(1)
        self._received = 0

    def begin(self) -> None:
        """Raise `UsageError` if the file cannot be written; called when the service starts."""
        if self.path is None:
            return
        try:
            self.check()
        except OSError as error:
            raise UsageError(
                f"The audit log {self.path} cannot be written ({error.strerror or error}). Name a file in a folder that"
                " can be written, with --audit."
            ) from error

    def check(self) -> None:
        """Raise `OSError` if no line can be written; called before each change."""
        if self.path is None:
            return
        with _open(self.path):
            pass
        if hasattr(os, "statvfs"):
            folder = os.statvfs(self.path.parent)
            if folder.f_bavail * folder.f_frsize < MIN_FREE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def record(self, event: Event) -> None:
        """Write one line, or count a request without a key; raises `OSError` on failure."""
        if not event.key and not self._admit(event):
            return
        self._write(event)

    def try_to_record(self, event: Event) -> None:
        """`record` for read-only requests: a failure is logged once a minute, so that reading works on a full disk."""
        try:
            self.record(event)
        except OSError as error:
            if self._failures.admit():
                log.error("requests are missing in the audit log %s (%s)", self.path, error.strerror)  # noqa: TRY400

    def close(self) -> None:
        """Write the line of counted requests."""
        self._tell_left_out(force=True)

    def _admit(self, event: Event) -> bool:
        self._tell_left_out()
        admitted = self._strangers.admit()
        self._received += 0 if admitted else event.received
        return admitted

    def _tell_left_out(self, *, force: bool = False) -> None:
        if not self._strangers.left_out or not (force or self._strangers.over()):
            return
        count, received = self._strangers.take_left_out(), self._received
        self._received = 0
        now = round(time.time(), 3)
        self._write(Event(time=now, key="", method="*", path="*", status=0, ms=0.0, received=received, count=count))

    def _write(self, event: Event) -> None:
        line = event.write_line()
        if self.path is not None:
            self._append(self.path, line)
        if self.echo is not None and self._echoed.admit():
            self.echo.write(line)
            self.echo.flush()

    def _append(self, path: Path, line: str) -> None:
        """Write one line; completes an unfinished line of a killed process first."""
        with _open(path) as file:
            size, whole = _measure(file)
            if size + len(line) <= self.largest:
                file.write((line if whole else f"\n{line}").encode())
                return
        for number in range(KEPT_FILES, 0, -1):
            newer = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
            if newer.exists():
                newer.replace(path.with_name(f"{path.name}.{number}"))
        with _open(path) as file:
            file.write(line.encode())


def _open(path: Path) -> BinaryIO:
    """Open a file for appending; a new one is readable by its owner only."""
    if path.exists() and not path.is_file():  # a device may swallow lines without a word
        raise OSError(errno.EINVAL, "no plain file")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, stat.S_IRUSR | stat.S_IWUSR)
    return os.fdopen(descriptor, "ab+")


def _measure(file: BinaryIO) -> tuple[int, bool]:
    """Size of a file in bytes, and whether its last line is complete (True if empty)."""
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return 0, True
    file.seek(-1, os.SEEK_END)
    return size, file.read(1) == b"\n"
