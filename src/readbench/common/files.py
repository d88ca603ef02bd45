"""Where files lie (the data root, the cache, what a user imported), and how processes take turns at them.

`exclusive` lets in one process at a time: a lock that the operating system releases when its holder ends, however it
ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path, user_data_path


def data_root(given: Path | None = None) -> Path | None:
    """The folder with one sub-folder per source: the argument, else `READBENCH_DATA`, else nothing."""
    if given is not None:
        return given
    variable = os.environ.get("READBENCH_DATA")
    return Path(variable) if variable else None


def cache_root() -> Path:
    """The folder for everything that can be computed again: `READBENCH_CACHE`, else the platform's user cache."""
    if variable := os.environ.get("READBENCH_CACHE"):
        return Path(variable)
    return user_cache_path("readbench", appauthor=False)


def imported_root() -> Path:
    """The folder of imported datasets: `READBENCH_IMPORTED`, else in the platform's folder of user data.

    Unlike the cache it holds what cannot be computed again.
    """
    if variable := os.environ.get("READBENCH_IMPORTED"):
        return Path(variable)
    return user_data_path("readbench", appauthor=False) / "imported"


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
