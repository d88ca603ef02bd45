"""Where files lie, how they are written and told apart, and how processes take turns at them.

* **Where**: the data root, the cache, and what a user imported.
* **Whole or not at all** (`write_atomically` and what stands on it): a file is written beside its place under a name of
  its own and then takes the place in one step. Whoever reads sees the old file or the new one; of two writers the last
  one wins. A process that is killed leaves only the file beside. With `durable` that holds when the power fails, too.
* **Told apart** (`digest`): the short hash under which results are kept.
* **In turn** (`exclusive`): a lock that the operating system releases when its holder ends, however it ends.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout
from platformdirs import user_cache_path, user_data_path

from readbench.common.deadlines import check_deadline, seconds_left


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
def write_atomically(path: Path, *, durable: bool = False, mode: int = 0o666) -> Iterator[Path]:
    """Give the name of a new file beside `path`, which takes its place when the block ends well.

    Where the block fails, the new file is removed and what was there stays. Folders are made.

    Args:
        path: the file to be written.
        durable: it is on the disk before it takes its place, and so is the change of place: what was written before a
            power cut is there after it. Slow (a few milliseconds), for what cannot be computed again.
        mode: who may read and write it, less what the user's mask takes away.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "deep" / "a.txt"
    >>> with write_atomically(path) as partial:
    ...     _ = partial.write_text("whole")
    >>> [file.name for file in path.parent.iterdir()]
    ['a.txt']
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():  # a device or a pipe would be replaced by a file
        raise OSError(errno.EINVAL, "it is no file, and would be replaced by one", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
    try:
        partial.unlink(missing_ok=True)  # of a killed process that had this number
        partial.touch(mode, exist_ok=False)
        yield partial
        if durable:
            sync(partial)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if not error.errno or error.filename not in {None, str(partial), partial}:
            raise
        # Say the name that the caller knows; some libraries say none, or put the reason into their own words.
        raise type(error)(error.errno, os.strerror(error.errno or 0), str(path)) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)


def require_folder(folder: Path) -> None:
    """Make a folder, and see that files can be written into it: before the work whose results go there.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "deep"
    >>> require_folder(folder)
    >>> list(folder.iterdir())
    []
    """
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f".{os.getpid()}.{threading.get_ident()}.probe"
    try:
        probe.write_bytes(b"can this be written?")
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(folder)) from error
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


@contextmanager
def open_atomic(path: Path, *, durable: bool = False) -> Iterator[IO[bytes]]:
    """The same as a file to write bytes to."""
    with write_atomically(path, durable=durable) as partial, partial.open("wb") as file:
        yield file


def write_bytes(path: Path, content: bytes, *, durable: bool = False, mode: int = 0o666) -> None:
    """Write a file whole, or not at all."""
    with write_atomically(path, durable=durable, mode=mode) as partial:
        partial.write_bytes(content)


def write_text(path: Path, content: str, *, durable: bool = False, mode: int = 0o666) -> None:
    """Write a file in UTF-8 whole, or not at all."""
    with write_atomically(path, durable=durable, mode=mode) as partial:
        partial.write_text(content, encoding="utf-8")


def write_json(path: Path, content: object, *, indent: int | None = 1) -> None:
    """Write a small JSON file whole, or not at all."""
    write_text(path, json.dumps(content, indent=indent))


def sync(path: Path) -> None:
    """Wait until a file, or what a folder lists, is on the disk, and there after a power cut."""
    if os.name != "posix" and path.is_dir():  # there, folders cannot be opened
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest(*parts: object) -> str:
    """Hash of what decides a result, by its `repr`: 16 hexadecimal digits.

    >>> digest("euclidean", 0.1)
    'bb331648f0b00804'
    """
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


LOCK_WAIT_S = 3600.0
"""How long a lock is waited for: who holds one may import or build a large dataset meanwhile."""
SHORT_WAIT_S = 20.0
"""The same of a small file, which is written in a moment."""


@contextmanager
def exclusive(path: Path, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """Hold the lock on the file at `path`; wait while another process or thread holds it.

    On a file system without locks, the existence of the file is the lock, and a warning says so. Where the lock cannot
    be made, as in a folder that may only be read, the `OSError` comes at once.

    Args:
        path: of the lock; its folder is made.
        wait_s: after so many seconds of waiting, `TimeoutError`; `OverdueError` where the deadline of the work at hand
            comes first.

    >>> import tempfile
    >>> with exclusive(Path(tempfile.mkdtemp()) / "work.lock"):
    ...     pass
    """
    if path.exists():
        os.close(os.open(path, os.O_RDWR))
    else:
        require_folder(path.parent)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=max(0.0, min(wait_s, seconds_left())))
    except Timeout as error:
        check_deadline()
        held = f"another process has held this lock for more than {wait_s:g} s; try again when it is done"
        raise TimeoutError(errno.ETIMEDOUT, held, str(path)) from error
    try:
        yield
    finally:
        lock.release()
