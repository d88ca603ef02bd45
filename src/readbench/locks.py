"""One process at a time: a lock that the operating system releases when its holder ends, however it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

POLL_S = 0.2


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock on the file at `path`; wait while another process holds it. The file itself stays.

    >>> import tempfile
    >>> with exclusive(Path(tempfile.mkdtemp()) / "work.lock"):
    ...     pass
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        while not _acquire(file):
            time.sleep(POLL_S)
        yield  # closing the file releases the lock


if sys.platform == "win32":
    import msvcrt

    def _acquire(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _acquire(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
