"""What lies in the cache, when it was used last, and how it is kept within a limit.

Everything that is listed here can be computed again. What cannot (what language models have cost, licences that were
accepted, demonstration libraries) lies beside it and is never touched.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from readbench.common.files import cache_root, exclusive, open_atomic
from readbench.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIMIT = "READBENCH_CACHE_GB"
"""The variable that says how large the cache may become."""
DEPTHS = {"windows": 1, "scores": 1, "embeddings": 2, "models": 2, "scale": 1}
"""Folders of the cache that can be computed again, and how deep in them an entry lies."""
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
"""What reading an array from a damaged file may raise, or from one that was removed meanwhile."""
IN_USE_S = 3600.0
"""What was used within this time may be in use now: a limit leaves it alone."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


@dataclass(frozen=True)
class CacheEntry:
    """A file or folder of the cache that is kept or removed whole.

    Args:
        path: where it is.
        kind: the folder of the cache it is in.
        size: in bytes.
        used: when it was last read or written, in seconds since the epoch.
    """

    path: Path
    kind: str
    size: int
    used: float

    def remove(self) -> None:
        """Remove it; another process may have done so."""
        if self.path.is_dir():
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            self.path.unlink(missing_ok=True)


def list_cache(root: Path | None = None, kind: str = "") -> list[CacheEntry]:
    """All entries of the cache, or of one kind, the least recently used first."""
    root = root or cache_root()
    found = [
        _entry(path, name)
        for name, depth in DEPTHS.items()
        if kind in ("", name)
        for path in _below(root / name, depth)
        if path.suffix not in {".partial", ".lock"}
    ]
    return sorted(found, key=lambda own: (own.used, str(own.path)))


def choose_surplus(entries: Sequence[CacheEntry], most: float, idle_s: float = 0.0) -> list[CacheEntry]:
    """The least recently used entries without which the others take at most so many bytes.

    Args:
        entries: the least recently used first.
        most: bytes.
        idle_s: entries used within this time stay, whatever the limit.
    """
    left, limit, chosen = sum(own.size for own in entries), time.time() - idle_s, []
    for own in entries:
        if left <= most or own.used > limit:
            break
        chosen.append(own)
        left -= own.size
    return chosen


def keep_limit(root: Path | None = None) -> int:
    """Remove what is above the limit of `READBENCH_CACHE_GB` and not in use; the bytes removed, 0 without a limit."""
    if not (text := os.environ.get(LIMIT, "").strip()):
        return 0
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text):
        raise UsageError(f"{LIMIT} takes a number of gigabytes, as in {LIMIT}=5. Got {text!r}.")
    surplus = choose_surplus(list_cache(root), float(text) * 1e9, IN_USE_S)
    for own in surplus:
        own.remove()
    return sum(own.size for own in surplus)


def mark_used(path: Path) -> None:
    """Note that a file was read: many systems do not write down when."""
    with suppress(OSError):  # removed meanwhile, or a place that may only be read
        os.utime(path)


def keep_arrays(path: Path, compute: Callable[[], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Arrays from a file of the cache, or computed and kept there; a damaged file is computed again.

    Processes that want the same file wait for each other, so that it is computed once.

    Args:
        path: the file, `.npz`.
        compute: gives the arrays by name.
    """
    import numpy as np  # noqa: PLC0415 - slow to import; who looks after the cache needs none

    with exclusive(path.with_suffix(".lock")):
        try:
            with path.open("rb") as file, np.load(file) as stored:  # numpy leaves a damaged file open
                arrays = {name: stored[name] for name in stored.files}
        except UNREADABLE:
            arrays = compute()
            with open_atomic(path) as fresh:
                np.savez(fresh, **arrays)  # type: ignore[arg-type]  # numpy's stub takes its flag for one of the arrays
        else:
            mark_used(path)
    return arrays


def parse_size(text: str) -> float:
    """Bytes, from a number with a unit.

    >>> parse_size("1.5 GB"), parse_size("200M"), parse_size("0")
    (1500000000.0, 200000000.0, 0.0)
    """
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise UsageError(f"A size is a number with a unit, as in 500MB or 2GB. Got {text!r}.")
    return float(found[1]) * _UNITS[found[2].lower()]


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """What lies so deep in a folder; a file above that depth is an entry, too."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if depth > 1 and path.is_dir():
            yield from _below(path, depth - 1)
        else:
            yield path


def _entry(path: Path, kind: str) -> CacheEntry:
    size, used = 0, 0.0
    for file in [path, *path.rglob("*")] if path.is_dir() else [path]:
        with suppress(FileNotFoundError):
            found = file.stat()
            size += found.st_size if file.is_file() else 0
            used = max(used, found.st_mtime, found.st_atime if file.is_file() else 0.0)
    return CacheEntry(path, kind, size, used)
