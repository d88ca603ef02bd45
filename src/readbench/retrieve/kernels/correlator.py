"""Queries as spectra, correlated with one tile of corpus items after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from readbench.retrieve.kept import Kept
from readbench.retrieve.kernels.correlation import (
    CHANNELS,
    LANES,
    Float,
    Index,
    joint_peaks,
    places,
    query_pairs,
    separate_peaks,
    tile_spectra,
    turns,
)
from readbench.retrieve.rows import Rows
from readbench.windows import WindowSet


def transform_size(left: int, right: int) -> int:
    """Transform length at which correlations of two lengths do not wrap around: a power of two.

    >>> transform_size(256, 256), transform_size(256, 300)
    (512, 1024)
    """
    return max(8, 1 << (left + right - 2).bit_length())


def _filled(channels: int) -> int:
    """Channels with those that fill them up for the kernels."""
    return channels + -channels % CHANNELS


class Tile(NamedTuple):
    """At most `LANES` windows as spectra.

    Args:
        spectra: (n / 2 + 1, C, 2, LANES) real and imaginary parts.
        lengths: (LANES,) of the windows, 1 in empty lanes.
        used: how many windows there are.
    """

    spectra: Float
    lengths: Index
    used: int


class Transforms:
    """Fourier transforms of one length, and how windows are scaled for them.

    Args:
        size: the length, from `transform_size`.
        channels: of the corpus; windows may have more behind these, which count only for their norm.
        joint: scale whole windows to norm 1 and sum the channels' correlations before looking for the peak; else each
            channel on its own.
    """

    def __init__(self, size: int, channels: int, *, joint: bool) -> None:
        self.size, self.channels, self.joint = size, channels, joint
        self.place, self.turn = places(size), turns(size)

    def window_bytes(self, channels: int) -> int:
        """Memory that the spectra of one window of so many channels take."""
        return 8 * (self.size // 2 + 1) * _filled(channels)

    def tile(self, windows: Rows) -> Tile:
        """At most `LANES` windows as spectra."""
        lengths = np.ones(LANES, np.int64)
        lengths[: len(windows.lengths)] = windows.lengths
        return Tile(tile_spectra(self._unit(windows.values), self.place, self.turn), lengths, len(windows.lengths))

    def _unit(self, values: Float) -> Float:
        """Windows (channels where not joint) scaled to norm 1, or left at zero; channels filled up for the kernels."""
        count, _, length = values.shape
        wide = values.astype(np.float64)
        square = np.einsum("nct,nct->nc", wide, wide)
        norm = np.sqrt(square.sum(axis=1, keepdims=True) if self.joint else square[:, : self.channels])[:, :, None]
        out = np.zeros((count, _filled(self.channels), length), np.float32)
        shared = out[:, : self.channels]
        np.divide(wide[:, : self.channels], np.where(norm > 0, norm, 1), out=shared, casting="same_kind")
        return out


class SpectralCorpus:
    """A corpus as tiles of spectra, kept where they fit in memory, else made anew whenever it passes by.

    Args:
        corpus: the windows.
        rows: brings some of them to the channel axis and scale of the corpus.
        transforms: of the spectra.
    """

    def __init__(self, corpus: WindowSet, rows: Callable[[WindowSet], Rows], transforms: Transforms) -> None:
        self.transforms = transforms
        self._corpus, self._rows = corpus, rows
        tiles = -(-len(corpus) // LANES)
        self._kept = Kept[Tile](tiles * LANES * transforms.window_bytes(transforms.channels))

    def tile(self, start: int) -> Tile:
        """The tile whose first window is at this position, a multiple of `LANES`."""
        return self._kept.get(start, partial(self._made, start))

    def _made(self, start: int) -> Tile:
        return self.transforms.tile(self._rows(self._corpus[start : start + LANES]))


class Correlator:
    """Queries as spectra, to be correlated with one tile of items after the other.

    Args:
        queries: (Q, C, T) rows.
        transforms: as for the tiles.

    >>> x = np.sin(np.arange(12.0, dtype=np.float32)).reshape(1, 1, 12)
    >>> later = np.roll(np.pad(x, ((0, 0), (0, 0), (0, 8))), 5)
    >>> transforms = Transforms(transform_size(12, 20), 1, joint=True)
    >>> correlator = Correlator(Rows(x, np.array([12])), transforms)
    >>> correlator.peaks(transforms.tile(Rows(later, np.array([20])))).round(5).tolist()
    [[1.0]]
    """

    def __init__(self, queries: Rows, transforms: Transforms) -> None:
        self._transforms, self._count = transforms, len(queries.lengths)
        blocks = [slice(at, at + LANES) for at in range(0, self._count, LANES)]
        tiles = (transforms.tile(Rows(queries.values[own], queries.lengths[own])) for own in blocks)
        self._queries = np.concatenate([query_pairs(tile.spectra, tile.used) for tile in tiles])
        self._steps = np.ones(2 * len(self._queries), np.int64)
        self._steps[: self._count] = queries.lengths

    def peaks(self, tile: Tile) -> NDArray[np.float32]:
        """(Q, B) largest normalised cross-correlations with the B items of a tile; summed where not joint."""
        find = joint_peaks if self._transforms.joint else separate_peaks
        place, turn = self._transforms.place, self._transforms.turn
        found: Float = find(tile.spectra, self._queries, self._steps, tile.lengths, place, turn)
        return found[: self._count, : tile.used]
