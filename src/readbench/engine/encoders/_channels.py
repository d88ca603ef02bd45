"""Pool the vectors of single channels into one vector per window.

A network sees one channel at a time: a batch of series of equal length, resampled to a length it admits; time is never
padded. `pool_channels` pools the C vectors of a window:

* `mean` (the paper's): their mean; independent of the number and order of channels.
* `stats`: mean, standard deviation and maximum, concatenated: 3 d numbers.
* `keyed`: the numbers of each vector are permuted and signed by a hash of the channel's name, then summed, which keeps
  the identity of the channels. Equal channels of two windows line up; different ones interfere at random, so the
  product of two keyed vectors is that of the concatenated vectors up to 1 / sqrt(width) of their lengths.
* `both`: `keyed` and, with half its weight, `mean`, each of length one, so that windows without a common channel can be
  compared.

`NormalOperation` measures how far each channel departs from normal operation. The vector e_c of channel c is
standardised by the normal vectors of the same channel:

    r_c = (e_c - mean_c) / (deviation_c + 0.01)   per dimension, D of them
    a_c = |r_c|^2 / D                             size of the departure
    d_c = r_c / sqrt(a_c) * log(1 + a_c)^p        departure with compressed size
    p = 3/2 log10(1 + C)                          in a window of C channels

A normal channel has a_c near one and little weight. The logarithm keeps a single channel from dominating. With more
channels, more of them are unrelated to the fault, so the power p rises: 0.7 for two channels, 2.6 for fifty.
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
"""Indices of series, counted over the channels of all windows."""
KEYED_WIDTH = 4096
"""Minimum length of a keyed vector; longer if the channels' vectors are."""
MEAN_WEIGHT = 0.5
"""Weight of the mean relative to the keyed vector, in `both`."""
VECTOR_NUMBERS = 2048
"""Numbers reserved for a channel's vector in the memory bound of a batch."""
MAX_BATCH_POINTS = 2**20
"""Maximum points of all series embedded at once."""


class ChannelEncoder(BatchEncoder):
    """Base class of encoders that embed each channel separately.

    Subclasses set `pool` and `batch`, and implement `embed` and `admissible`.
    """

    pool: Pooling
    batch: int

    @abstractmethod
    def embed(self, series: NDArray[np.float32]) -> Vectors:
        """(B, d) vectors of series (B, T) of an admissible length."""

    def admissible(self, length: int) -> int:
        """The admissible length nearest to `length`; by default any."""
        return length

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers of each window and of its channels' vectors."""
        return super().footprint(windows) + VECTOR_NUMBERS * windows.channel_counts.astype(np.int64)

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, D) pooled vectors."""
        if not len(windows):
            return np.empty((0, 0), np.float32)
        return pool_channels(self.channel_vectors(windows), windows, self.pool)

    def channel_vectors(self, windows: WindowSet) -> Vectors:
        """(M, d) vectors of the channels of all windows, in order.

        At most `batch` series and `MAX_BATCH_POINTS` points are embedded at a time.
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
        """Apply `work` to each part, in order; subclasses may use threads."""
        return list(map(work, parts))

    def _parts(self, lengths: Rows) -> Iterator[Rows]:
        """Group series of equal length into batches; yields their indices."""
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            step = max(1, min(self.batch, MAX_BATCH_POINTS // length))
            yield from (rows[start : start + step] for start in range(0, len(rows), step))


def _series(windows: WindowSet, owners: Rows, rows: Rows, length: int) -> NDArray[np.float32]:
    """(B, length) the channels with these indices, resampled."""
    first = np.searchsorted(owners, np.arange(len(windows)))
    out = np.empty((len(rows), length), np.float32)
    begins = np.flatnonzero(np.diff(owners[rows], prepend=-1)).tolist()  # channels of a window are adjacent
    for start, stop in pairwise([*begins, len(rows)]):
        owner = int(owners[rows[start]])
        out[start:stop] = resample(windows.values(owner)[rows[start:stop] - first[owner]], length)
    return out


def owners_of(windows: WindowSet) -> Rows:
    """(M,) index of the window of each channel."""
    return np.repeat(np.arange(len(windows)), windows.channel_counts)


def names_of(windows: WindowSet) -> NDArray[np.str_]:
    """(M,) names of the channels of all windows, in order."""
    return np.array([name for i in range(len(windows)) for name in windows.channels(i)], np.str_)


def pool_channels(vectors: Vectors, windows: WindowSet, mode: Pooling) -> Vectors:
    """Pool the vectors of channels into one vector per window.

    Args:
        vectors: (M, d) of the channels of all windows, in order.
        windows: N windows, at least one.
        mode: kind of pooling; see the module.
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
    """(N, width) sums of the channels' permuted and signed vectors."""
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
    """Positions (a permutation, cut to `size`) and signs of a channel's numbers, drawn from a hash of its name."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    rng = np.random.default_rng(seed)
    places = rng.permutation(width)[:size].astype(np.intp)
    return places, rng.choice(np.array([-1, 1], np.float32), size)


DEVIATION_OFFSET = 1e-2
"""Added to every deviation, so that a dimension that is constant in normal operation does not dominate."""
COMPRESSION_POWER = 1.5
"""Power of the compression per tenfold number of channels."""
MIN_VECTORS = 8
"""Minimum vectors of a channel for separate statistics."""


@dataclass(frozen=True, eq=False)
class NormalOperation:
    """Mean and deviation (K, D) of the vectors of K channels in normal operation."""

    names: tuple[str, ...]
    mean: Vectors
    deviation: Vectors

    @classmethod
    def of(cls, vectors: Vectors, names: NDArray[np.str_]) -> NormalOperation:
        """Estimate from vectors (M, D) of channels with these names; rarely seen channels are left out.

        >>> rng = np.random.default_rng(0)
        >>> usual = NormalOperation.of(rng.normal(size=(100, 4)).astype(np.float32), np.repeat(["a", "b"], 50))
        >>> usual.names, usual.mean.shape
        (('a', 'b'), (2, 4))
        """
        kept, means, deviations = [], [], []
        for name in np.unique(names):
            rows = vectors[names == name]
            if len(rows) >= MIN_VECTORS:
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
        """(M, D) departures of channel vectors from normal operation.

        Unknown channels are measured by the mean of the known ones. If none is known, vectors are returned unchanged.

        Args:
            vectors: (M, D).
            names: (M,) of the channels.
            channels: (M,) number of channels in the window of each.
            own: (M, D) usual vector of each channel in place of the mean; NaN if unknown.
        """
        if not self.names:
            return vectors
        place = {name: row for row, name in enumerate(self.names)}
        rows = np.array([place.get(str(name), len(self.names)) for name in names], np.intp)
        mean = np.vstack([self.mean, self.mean.mean(axis=0)])[rows]
        deviation = np.vstack([self.deviation, self.deviation.mean(axis=0)])[rows]
        mean = mean if own is None else np.where(np.isfinite(own), own, mean)
        residual = (vectors - mean) / (deviation + DEVIATION_OFFSET)
        away = np.mean(residual**2, axis=1, keepdims=True)
        power = COMPRESSION_POWER * np.log10(1 + channels)[:, None]
        loud: Vectors = residual * (np.log1p(away) ** power / np.sqrt(away + 1e-6))
        return loud.astype(np.float32)

    def fingerprint(self) -> str:
        """Hash of the statistics."""
        digest = hashlib.sha256(repr(self.names).encode())
        digest.update(self.mean.tobytes())
        digest.update(self.deviation.tobytes())
        return digest.hexdigest()[:16]
