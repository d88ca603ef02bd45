"""From the vectors of single channels to one vector per window.

A model sees one channel at a time: a batch of series of equal length, resampled to a length it admits. Time is never
padded. What is done with the C vectors of a window is the pooling (`pool_channels`):

* `mean` (the paper's): their mean; the number of channels does not matter, and neither does which is which.
* `stats`: mean, standard deviation and maximum side by side: 3 d numbers.
* `keyed`: the numbers of each vector go to places, and with signs, that its channel's name draws, and are summed:
  keeps which channel departs. The same channel lines up in any two windows, whatever others they have; two different
  channels meet by chance only, so the product of two such vectors is that of the vectors side by side, give or take
  1 / sqrt(width) of their lengths.
* `both`: `keyed` and, with half its weight, `mean`, each of length one: windows that have no channel in common can
  still be compared.

`NormalOperation` says which channels depart from normal operation, and how: a better use of the normals than one
residual per window. The vector e_c of channel c is measured by the normal vectors of the same channel:

    r_c = (e_c - mean_c) / (deviation_c + 0.01)   per dimension, D of them
    a_c = |r_c|^2 / D                             how far it went
    d_c = r_c / sqrt(a_c) * log(1 + a_c)^p        its direction, as loud as it went far
    p = 3/2 log10(1 + C)                          in a window of C channels

A channel that behaves as usual has a_c near one and little weight; one that departs speaks louder, but only with a
power of the logarithm of how far it went, so that no single channel drowns the others. The more channels there are,
the more of them have nothing to do with the fault, and the quieter those must be: p is 0.7 for two and 2.6 for fifty.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from readbench.engine.preparation import resample
from readbench.engine.protocols import BatchEncoder, Vectors, unit_vectors
from readbench.engine.windows import WindowSet

Pooling = Literal["mean", "stats", "keyed", "both"]
BOTH: tuple[Pooling, ...] = ("keyed", "mean")
Rows = NDArray[np.intp]
"""Numbers of series, counted through the channels of all windows."""
KEYED_WIDTH = 4096
"""Numbers of a keyed vector, unless the channels' own vectors are longer."""
MEAN_WEIGHT = 0.5
"""Of the mean beside the keyed vector, in `both`."""
VECTOR_NUMBERS = 2048
"""Numbers set aside for the vector of a channel, which waits for those of the other channels of its batch."""
POINTS = 2**20
"""Points of all series that are embedded at once: long series go in smaller parts."""


class ChannelEncoder(BatchEncoder):
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

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers of each window and of the vectors of its channels."""
        return super().footprint(windows) + VECTOR_NUMBERS * windows.channel_counts.astype(np.int64)

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, D) pooled vectors."""
        if not len(windows):
            return np.empty((0, 0), np.float32)
        return pool_channels(self.channel_vectors(windows), windows, self.pool)

    def channel_vectors(self, windows: WindowSet) -> Vectors:
        """(M, d) vectors of all channels of all windows, one after the other.

        At most `batch` series, and `POINTS` points, are embedded at a time.
        """
        windows.require_finite()
        owners = owners_of(windows)
        lengths = np.array([self.admissible(int(t)) for t in windows.lengths], np.intp)[owners]
        parts = list(self._parts(lengths))
        found = np.concatenate(
            self.each(lambda rows: self.embed(_series(windows, owners, rows, lengths[rows[0]])), parts)
        )
        vectors = np.empty_like(found)
        vectors[np.concatenate(parts)] = found
        return vectors

    def each(self, work: Callable[[Rows], Vectors], parts: list[Rows]) -> list[Vectors]:
        """What `work` makes of each part, in order; here one after the other."""
        return list(map(work, parts))

    def _parts(self, lengths: Rows) -> Iterator[Rows]:
        """Numbers of the series (of these lengths) that are embedded together: all of one length."""
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            step = max(1, min(self.batch, POINTS // length))
            yield from (rows[start : start + step] for start in range(0, len(rows), step))


def _series(windows: WindowSet, owners: Rows, rows: Rows, length: int) -> NDArray[np.float32]:
    """(B, length) the channels with these numbers, counted through all windows."""
    first = np.searchsorted(owners, np.arange(len(windows)))
    out = np.empty((len(rows), length), np.float32)
    begins = np.flatnonzero(np.diff(owners[rows], prepend=-1)).tolist()  # channels of a window come together
    for start, stop in pairwise([*begins, len(rows)]):
        owner = int(owners[rows[start]])
        out[start:stop] = resample(windows.values(owner)[rows[start:stop] - first[owner]], length)
    return out


def owners_of(windows: WindowSet) -> Rows:
    """(M,) the window that each channel belongs to, counted through all windows."""
    return np.repeat(np.arange(len(windows)), windows.channel_counts)


def names_of(windows: WindowSet) -> NDArray[np.str_]:
    """(M,) names of the channels of all windows, one after the other."""
    return np.array([name for i in range(len(windows)) for name in windows.channels(i)], np.str_)


def pool_channels(vectors: Vectors, windows: WindowSet, mode: Pooling) -> Vectors:
    """One vector per window from the vectors of its channels.

    Args:
        vectors: (M, d), the channels of all windows one after the other.
        windows: N windows, at least one.
        mode: the pooling, as the module describes it.
    """
    if mode == "both":
        keyed, average = (unit_vectors(pool_channels(vectors, windows, part)) for part in BOTH)
        return np.concatenate([keyed, np.float32(MEAN_WEIGHT**0.5) * average], axis=1)
    owners = owners_of(windows)
    if mode == "keyed":
        return _keyed(vectors, owners, windows)
    starts = np.searchsorted(owners, np.arange(len(windows)))
    counts = windows.channel_counts[:, None].astype(np.float32)
    mean = np.add.reduceat(vectors, starts, axis=0) / counts
    if mode == "mean":
        return mean.astype(np.float32)
    square = np.add.reduceat(vectors**2, starts, axis=0) / counts
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    return np.concatenate([mean, spread, np.maximum.reduceat(vectors, starts, axis=0)], axis=1).astype(np.float32)


def _keyed(vectors: Vectors, owners: Rows, windows: WindowSet) -> Vectors:
    """(N, width) signed sums over the channels, each at its own places."""
    from readbench.engine.kernels.keyed import add_keyed  # noqa: PLC0415 - compiles

    size = vectors.shape[1]
    summed = np.zeros((len(windows), max(KEYED_WIDTH, size)), np.float32)
    names = names_of(windows)
    for name in np.unique(names):
        rows = np.flatnonzero(names == name)
        add_keyed(summed, owners[rows], vectors, rows, *_key(str(name), size, summed.shape[1]))
    return summed


@lru_cache(maxsize=4096)
def _key(name: str, size: int, width: int) -> tuple[Rows, NDArray[np.float32]]:
    """Where the numbers of a channel's vector go, no two to one place, and with which signs: drawn from its name."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    rng = np.random.default_rng(seed)
    places = rng.permutation(width)[:size].astype(np.intp)
    return places, rng.choice(np.array([-1, 1], np.float32), size)


LEAST_DEVIATION = 1e-2
"""Added to every deviation: a dimension that never moved in normal operation must not decide alone."""
SHARPNESS = 1.5
"""How much quieter usual channels are with every tenfold number of channels."""
FEWEST = 8
"""Vectors that a channel needs before its own statistics are trusted."""


@dataclass(frozen=True, eq=False)
class NormalOperation:
    """Mean and deviation of each channel's vectors in normal operation.

    Args:
        names: K channels.
        mean: (K, D).
        deviation: (K, D).
    """

    names: tuple[str, ...]
    mean: Vectors
    deviation: Vectors

    @classmethod
    def of(cls, vectors: Vectors, names: NDArray[np.str_]) -> NormalOperation:
        """From the vectors (M, D) of M channels with these names; channels that were seen too rarely are left out.

        >>> rng = np.random.default_rng(0)
        >>> usual = NormalOperation.of(rng.normal(size=(100, 4)).astype(np.float32), np.repeat(["a", "b"], 50))
        >>> usual.names, usual.mean.shape
        (('a', 'b'), (2, 4))
        """
        kept, means, deviations = [], [], []
        for name in np.unique(names):
            rows = vectors[names == name]
            if len(rows) >= FEWEST:
                kept.append(str(name))
                means.append(rows.mean(axis=0, dtype=np.float64))
                deviations.append(rows.std(axis=0, dtype=np.float64))
        shape = (len(kept), vectors.shape[1])
        return cls(
            tuple(kept),
            np.array(means, np.float32).reshape(shape),
            np.array(deviations, np.float32).reshape(shape),
        )

    def departures(
        self, vectors: Vectors, names: NDArray[np.str_], channels: NDArray[np.integer], own: Vectors | None = None
    ) -> Vectors:
        """(M, D) departures of the channels' vectors.

        Unknown channels are measured by the mean of the known ones. Where no channel is known, nothing is usual: the
        vectors stay as they are.

        Args:
            vectors: (M, D).
            names: (M,) of the channels.
            channels: (M,) how many the window of each has.
            own: (M, D) what is usual for each, in place of the mean; rows of NaN where that is unknown.
        """
        if not self.names:
            return vectors
        place = {name: row for row, name in enumerate(self.names)}
        rows = np.array([place.get(str(name), len(self.names)) for name in names], np.intp)
        mean = np.vstack([self.mean, self.mean.mean(axis=0)])[rows]
        deviation = np.vstack([self.deviation, self.deviation.mean(axis=0)])[rows]
        mean = mean if own is None else np.where(np.isfinite(own), own, mean)
        residual = (vectors - mean) / (deviation + LEAST_DEVIATION)
        away = np.mean(residual**2, axis=1, keepdims=True)
        power = SHARPNESS * np.log10(1 + channels)[:, None]
        loud: Vectors = residual * (np.log1p(away) ** power / np.sqrt(away + 1e-6))
        return loud.astype(np.float32)

    def fingerprint(self) -> str:
        """Hash of all numbers."""
        digest = hashlib.sha256(repr(self.names).encode())
        digest.update(self.mean.tobytes())
        digest.update(self.deviation.tobytes())
        return digest.hexdigest()[:16]
