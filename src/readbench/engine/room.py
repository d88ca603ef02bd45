"""Memory for large arrays: in RAM, or in an unnamed temporary file."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from readbench.errors import DataError

MAX_IN_MEMORY_BYTES = 2**28
"""Bytes up to which an array stays in memory; larger ones are memory-mapped files."""


def allocate(count: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """(count,) uninitialised numbers; large arrays lie in a temporary file that is removed when unused.

    >>> allocate(3).shape
    (3,)
    """
    size = count * np.dtype(dtype).itemsize
    if size <= MAX_IN_MEMORY_BYTES:
        return np.empty(count, dtype)
    try:
        with tempfile.TemporaryFile(prefix="readbench-") as file:
            _reserve(file.fileno(), size)
            return np.asarray(np.memmap(file, dtype, "r+", shape=(count,)))
    except OSError as error:
        raise DataError(
            f"No room for {size / 1e9:.1f} GB in {tempfile.gettempdir()} ({error}). Set TMPDIR to a folder with more."
        ) from error


def _reserve(file: int, size: int) -> None:
    """Set the size of a file; reserve the disk space now, where the system can."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)
