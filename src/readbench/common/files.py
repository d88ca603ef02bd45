"""Files: where they lie, atomic writes, hashes as keys, and locks between processes.

* **Folders**: the data root, the cache, and imported datasets.
* **Atomic writes** (`write_atomically` and the functions built on it): a file is written under a temporary name beside
  its place and renamed. Readers see the old file or the new one; of two writers the last one wins. A killed process
  leaves only the temporary file. With `durable` this also holds when the power fails.
* **Keys** (`digest`): the short hash under which results are stored.
* **Locks** (`exclusive`): released by the operating system when the holder ends, for whatever reason.
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
    """The folder with one sub-folder per source: the argument, else `READBENCH_DATA`, else None."""
    if given is not None:
        return given
    variable = os.environ.get("READBENCH_DATA")
    return Path(variable) if variable else None


def cache_root() -> Path:
    """The folder of everything that can be computed again: `READBENCH_CACHE`, else the platform's user cache."""
    if variable := os.environ.get("READBENCH_CACHE"):
        return Path(variable)
    return user_cache_path("readbench", appauthor=False)


def imported_root() -> Path:
    """The folder of imported datasets, which cannot be computed again: `READBENCH_IMPORTED`, else user data."""
    if variable := os.environ.get("READBENCH_IMPORTED"):
        return Path(variable)
    return user_data_path("readbench", appauthor=False) / "imported"


@contextmanager
def write_atomically(path: Path, *, durable: bool = False, mode: int = 0o666) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename it to `path` when the block succeeds.

    If the block fails, the temporary file is removed and the old file stays. Folders are created.

    Args:
        path: file to write.
        durable: flush the file before the rename and the folder after it, so that both survive a power cut. Takes a few
            milliseconds; for data that cannot be computed again.
        mode: permissions of the file, before the umask.

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
        # Name the caller's path; some libraries name none, or put the reason into their message.
        raise type(error)(error.errno, os.strerror(error.errno or 0), str(path)) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)


def require_folder(folder: Path) -> None:
    """Make a folder and check that files can be written into it, before long work whose results go there.

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
    """Open a file for bytes and write it atomically."""
    with write_atomically(path, durable=durable) as partial, partial.open("wb") as file:
        yield file


def write_bytes(path: Path, content: bytes, *, durable: bool = False, mode: int = 0o666) -> None:
    """Write a file atomically."""
    with write_atomically(path, durable=durable, mode=mode) as partial:
        partial.write_bytes(content)


def write_text(path: Path, content: str, *, durable: bool = False, mode: int = 0o666) -> None:
    """Write a text file in UTF-8 atomically."""
    with write_atomically(path, durable=durable, mode=mode) as partial:
        partial.write_text(content, encoding="utf-8")


def write_json(path: Path, content: object, *, indent: int | None = 1) -> None:
    """Write a small JSON file atomically."""
    write_text(path, json.dumps(content, indent=indent))


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    if os.name != "posix" and path.is_dir():  # folders cannot be opened on Windows
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest(*parts: object) -> str:
    """Hash the `repr` of the arguments that decide a result: 16 hexadecimal digits.

    >>> digest("euclidean", 0.1)
    'bb331648f0b00804'
    """
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


LOCK_WAIT_S = 3600.0
"""Seconds to wait for a lock: its holder may import or build a large dataset."""
SHORT_WAIT_S = 20.0
"""Seconds to wait for the lock of a small file."""


@contextmanager
def exclusive(path: Path, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """Hold the lock file at `path`; wait while another process or thread holds it.

    On a file system without locks, the existence of the file is the lock, and a warning says so. Where the lock file
    cannot be made, as in a read-only folder, the `OSError` comes at once.

    Args:
        path: of the lock file; its folder is created.
        wait_s: seconds to wait before `TimeoutError`; `OverdueError` if the deadline of this thread comes first.

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
