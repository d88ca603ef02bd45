"""Room for many numbers: in memory, or in a file that nobody else sees."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from readbench.errors import DataError

IN_MEMORY = 2**28
"""Bytes of an array that are kept in memory; a larger one goes into a file."""


def allocate(count: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """(count,) numbers to be filled; where there are many, in a memory-mapped file that is gone when nobody uses it.

    >>> allocate(3).shape
    (3,)
    """
    size = count * np.dtype(dtype).itemsize
    if size <= IN_MEMORY:
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
    """Make a file so large; where the system can, its place on the disk is taken now and not missed later."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)
