"""The cache on disk: its entries, their last use, and its size limit.

Everything listed here can be computed again. What cannot (costs of language models, accepted licences, demonstration
libraries) lies in other folders and is never removed.
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
"""Environment variable with the size limit of the cache, in gigabytes."""
DEPTHS = {"windows": 1, "scores": 1, "embeddings": 2, "models": 2, "scale": 1}
"""Folders of the cache that can be computed again, and the depth of their entries."""
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
"""Errors of reading an array from a damaged file, or from one that was removed meanwhile."""
IN_USE_S = 3600.0
"""Entries used within this many seconds may be in use: the limit does not remove them."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


@dataclass(frozen=True)
class CacheEntry:
    """A file or folder of the cache, removed as a whole.

    Args:
        path: file or folder.
        kind: the folder of the cache that holds it.
        size: bytes.
        used: last time it was read or written, seconds since 1970.
    """

    path: Path
    kind: str
    size: int
    used: float

    def remove(self) -> None:
        """Remove it; it may be gone already."""
        if self.path.is_dir():
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            self.path.unlink(missing_ok=True)


def list_cache(root: Path | None = None, kind: str = "") -> list[CacheEntry]:
    """List the entries of the cache, or of one kind, least recently used first."""
    root = root or cache_root()
    found = [
        _entry(path, name)
        for name, depth in DEPTHS.items()
        if kind in ("", name)
        for path in _below(root / name, depth)
        if path.suffix not in {".partial", ".lock"}
    ]
    return sorted(found, key=lambda entry: (entry.used, str(entry.path)))


def choose_surplus(entries: Sequence[CacheEntry], most: float, idle_s: float = 0.0) -> list[CacheEntry]:
    """Choose the least recently used entries whose removal leaves at most `most` bytes.

    Args:
        entries: least recently used first.
        most: bytes.
        idle_s: keep entries used within this many seconds, even above the limit.
    """
    left, limit, chosen = sum(entry.size for entry in entries), time.time() - idle_s, []
    for entry in entries:
        if left <= most or entry.used > limit:
            break
        chosen.append(entry)
        left -= entry.size
    return chosen


def keep_limit(root: Path | None = None) -> int:
    """Remove idle entries above the limit of `READBENCH_CACHE_GB`; return the bytes removed, 0 without a limit."""
    if not (text := os.environ.get(LIMIT, "").strip()):
        return 0
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text):
        raise UsageError(f"{LIMIT} takes a number of gigabytes, as in {LIMIT}=5. Got {text!r}.")
    surplus = choose_surplus(list_cache(root), float(text) * 1e9, IN_USE_S)
    for entry in surplus:
        entry.remove()
    return sum(entry.size for entry in surplus)


def mark_used(path: Path) -> None:
    """Set the time of last use; many file systems do not record reads."""
    with suppress(OSError):  # removed meanwhile, or a read-only folder
        os.utime(path)


def keep_arrays(path: Path, compute: Callable[[], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Load the arrays of an `.npz` cache file by name, or compute and store them; a damaged file is computed again.

    A lock makes processes that want the same file wait, so that it is computed once.
    """
    import numpy as np  # noqa: PLC0415 - slow to import; listing the cache does not need it

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
    """Parse a size such as `500MB` into bytes.

    >>> parse_size("1.5 GB"), parse_size("200M"), parse_size("0")
    (1500000000.0, 200000000.0, 0.0)
    """
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise UsageError(f"A size is a number with a unit, as in 500MB or 2GB. Got {text!r}.")
    return float(found[1]) * _UNITS[found[2].lower()]


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """Paths at this depth below a folder, and files above that depth."""
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
