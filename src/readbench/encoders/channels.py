"""Encoders of single channels, and how their vectors become one vector per window.

A model sees one channel at a time: a batch of series of equal length, resampled to a length it admits. Time is never
padded. What is done with the C vectors of a window is the pooling:

* `mean` (the paper's): their mean; the number of channels does not matter, and neither does which is which.
* `stats`: mean, standard deviation and maximum side by side: 3 d numbers.
* `keyed`: each vector is turned by a random rotation of its channel's name, then summed: keeps which channel departs.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from readbench.encoders.base import Vectors
from readbench.windows import WindowSet, resample

Pooling = Literal["mean", "stats", "keyed"]
KEYED_WIDTH = 1024


class ChannelEncoder(ABC):
    """Base of encoders that embed each channel on its own.

    Subclasses set `pool` and `batch`, and write `embed` and `admissible`.
    """

    pool: Pooling
    batch: int

    @abstractmethod
    def embed(self, series: NDArray[np.float32]) -> Vectors:
        """(B, d) vectors of B series of one admissible length (B, T)."""

    def admissible(self, length: int) -> int:
        """The nearest length the model takes; by default any."""
        return length

    def encode(self, windows: WindowSet) -> Vectors:
        """(N, D) pooled vectors; memory holds `batch` series at a time."""
        windows.require_finite()
        owners = np.repeat(np.arange(len(windows)), windows.channel_counts)
        lengths = np.array([self.admissible(int(t)) for t in windows.lengths], np.intp)[owners]
        vectors: Vectors | None = None
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            for start in range(0, len(rows), self.batch):
                part = rows[start : start + self.batch]
                found = self.embed(_series(windows, owners, part, int(length)))
                if vectors is None:
                    vectors = np.empty((len(owners), found.shape[1]), np.float32)
                vectors[part] = found
        if vectors is None:
            return np.empty((0, 0), np.float32)
        return pool_channels(vectors, owners, windows, self.pool)


def _series(windows: WindowSet, owners: NDArray[np.intp], rows: NDArray[np.intp], length: int) -> NDArray[np.float32]:
    """(B, length) the channels with these numbers, counted through all windows."""
    first = np.searchsorted(owners, np.arange(len(windows)))
    out = np.empty((len(rows), length), np.float32)
    for k, row in enumerate(rows):
        owner = int(owners[row])
        channel = int(row - first[owner])
        out[k] = resample(windows.values(owner)[channel : channel + 1], length)[0]
    return out


def pool_channels(vectors: Vectors, owners: NDArray[np.intp], windows: WindowSet, mode: Pooling) -> Vectors:
    """One vector per window from the vectors of its channels.

    Args:
        vectors: (M, d), the channels of all windows one after the other.
        owners: (M,) which window each belongs to, ascending.
        windows: N windows.
        mode: see the module.
    """
    starts = np.searchsorted(owners, np.arange(len(windows)))
    counts = windows.channel_counts[:, None].astype(np.float32)
    if mode == "keyed":
        names = np.array([name for i in range(len(windows)) for name in windows.channels(i)])
        summed = np.zeros((len(windows), KEYED_WIDTH), np.float32)
        for name in np.unique(names):
            rows = np.flatnonzero(names == name)
            summed[owners[rows]] += vectors[rows] @ _key(str(name), vectors.shape[1])
        return summed
    mean = np.add.reduceat(vectors, starts, axis=0) / counts
    if mode == "mean":
        return mean.astype(np.float32)
    square = np.add.reduceat(vectors**2, starts, axis=0) / counts
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    return np.concatenate([mean, spread, np.maximum.reduceat(vectors, starts, axis=0)], axis=1).astype(np.float32)


def _key(name: str, width: int) -> NDArray[np.float32]:
    """(d, KEYED_WIDTH) the projection of a channel: a random matrix seeded by its name."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    matrix = np.random.default_rng(seed).standard_normal((width, KEYED_WIDTH), np.float32)
    return matrix / np.float32(np.sqrt(KEYED_WIDTH))
