"""Queries as spectra, correlated with one tile of corpus items after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readbench.retrieve.kernels.correlation import (
    CHANNELS,
    LANES,
    joint_peaks,
    places,
    separate_peaks,
    tile_spectra,
    turns,
)
from readbench.retrieve.rows import Rows


def transform_size(left: int, right: int) -> int:
    """Transform length at which correlations of two lengths do not wrap around: a power of two.

    >>> transform_size(256, 256), transform_size(256, 300)
    (512, 1024)
    """
    return max(8, 1 << (left + right - 2).bit_length())


def spectrum_bytes(size: int, channels: int) -> int:
    """Memory that the spectra of one query take."""
    return 8 * (size // 2 + 1) * channels


class Correlator:
    """Queries as spectra, to be correlated with one tile of items after the other.

    Args:
        queries: (Q, C, T) rows.
        size: length of the transforms, from `transform_size`.
        joint: sum the channels' correlations before looking for the peak, not after.

    >>> x = np.sin(np.arange(12.0, dtype=np.float32)).reshape(1, 1, 12)
    >>> later = np.roll(np.pad(x, ((0, 0), (0, 0), (0, 8))), 5)
    >>> correlator = Correlator(Rows(x, np.array([12])), transform_size(12, 20), joint=True)
    >>> correlator.peaks(Rows(later, np.array([20]))).round(5).tolist()
    [[1.0]]
    """

    def __init__(self, queries: Rows, size: int, *, joint: bool) -> None:
        self._place, self._turn = places(size), turns(size)
        self._joint, self._count = joint, len(queries.lengths)
        tiles = [self._pairs(queries.values[at : at + LANES]) for at in range(0, self._count, LANES)]
        self._queries = np.concatenate(tiles) / np.float32(size)
        self._steps = np.ones(2 * len(self._queries), np.int64)
        self._steps[: self._count] = queries.lengths

    def peaks(self, items: Rows) -> NDArray[np.float32]:
        """(Q, B) largest normalised cross-correlations with B items, at most `LANES`; summed where not joint."""
        lengths = np.ones(LANES, np.int64)
        lengths[: len(items.lengths)] = items.lengths
        tile = tile_spectra(self._unit(items.values), self._place, self._turn)
        find = joint_peaks if self._joint else separate_peaks
        found: NDArray[np.float32] = find(tile, self._queries, self._steps, lengths, self._place, self._turn)
        return found[: self._count, : len(items.lengths)]

    def _pairs(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Spectra (P, F, C, 4) of queries two by two, as the kernels read them."""
        tile = tile_spectra(self._unit(values), self._place, self._turn)
        frequencies, channels = tile.shape[:2]
        pairs = tile.reshape(frequencies, channels, 2, LANES // 2, 2).transpose(3, 0, 1, 4, 2)
        used = (len(values) + 1) // 2
        return np.ascontiguousarray(pairs[:used]).reshape(used, frequencies, channels, 4)

    def _unit(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Windows (channels where not joint) scaled to norm 1, or left at zero; channels filled up for the kernels."""
        count, channels, length = values.shape
        wide = values.astype(np.float64)
        square = np.einsum("nct,nct->nc", wide, wide)
        norm = np.sqrt(square.sum(axis=1, keepdims=True) if self._joint else square)[:, :, None]
        out = np.zeros((count, channels + -channels % CHANNELS, length), np.float32)
        np.divide(wide, np.where(norm > 0, norm, 1), out=out[:, :channels], casting="same_kind")
        return out
