"""One process at a time: a lock that the operating system releases when its holder ends, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock on the file at `path`; wait while another process or thread holds it.

    On a file system without locks, the existence of the file is the lock, and a warning says so.

    >>> import tempfile
    >>> with exclusive(Path(tempfile.mkdtemp()) / "work.lock"):
    ...     pass
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path):
        yield
