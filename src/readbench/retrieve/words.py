"""From windows to words: symbolic representations of a sliding word window.

A word window of w steps is described by L numbers (segment means for SAX, Fourier coefficients for SFA), and each
number by one of a few letters according to the bin it falls into. A word is then a number in base `alphabet`, and a
window a bag of words per channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from readbench.retrieve.bags import Bags


@dataclass(frozen=True, eq=False)
class Lexicon:
    """How series become words.

    Attributes:
        basis: (w, L) one column per letter.
        edges: (C, L, alphabet - 1) ascending bin edges of each channel, or (1, L, alphabet - 1) for all channels; a
            value on an edge is in the upper bin.
        stride: steps from one word window to the next.
        standardise: bring each word window to mean 0 and deviation 1 first.
    """

    basis: NDArray[np.float64]
    edges: NDArray[np.float32]
    stride: int
    standardise: bool

    @property
    def size(self) -> int:
        """Number of different words a channel may have."""
        return int((self.edges.shape[2] + 1) ** self.edges.shape[1])

    def words(self, values: NDArray[np.float32]) -> NDArray[np.int64]:
        """(N, C, W) words of (N, C, T) series, each a number below `size`."""
        found = features(values, self.basis, self.stride, standardise=self.standardise)
        alphabet = self.edges.shape[2] + 1
        words = np.zeros(found.shape[:3], np.int64)
        for letter in range(found.shape[3]):
            words *= alphabet
            for edge in range(alphabet - 1):
                words += found[..., letter] >= self.edges[None, :, letter, edge, None]
        return words

    def bags(self, values: NDArray[np.float32]) -> Bags:
        """The words of (N, C, T) series; those of channel c are numbered from c x `size`."""
        words = self.words(values)
        count, channels, _ = words.shape
        words += self.size * np.arange(channels)[None, :, None]
        return Bags.of(words.reshape(count, -1), channels * self.size)


def features(
    values: NDArray[np.float32], basis: NDArray[np.float64], stride: int, *, standardise: bool
) -> NDArray[np.float32]:
    """(N, C, W, L) features of every word window of (N, C, T) series."""
    from readbench.retrieve.kernels.words import project  # noqa: PLC0415 - brings numba

    count, channels, length = values.shape
    rows = np.ascontiguousarray(values).reshape(count * channels, length)
    found: NDArray[np.float32] = project(rows, basis, stride, standardise)
    return found.reshape(count, channels, *found.shape[1:])


def segment_means(size: int, letters: int) -> NDArray[np.float64]:
    """(w, L) basis of the piecewise aggregate approximation (Keogh et al., KAIS 2001).

    Segments have equal length w / L. Where that is no whole number, a step belongs to two segments in part.

    >>> segment_means(3, 2).T.round(2).tolist()
    [[0.67, 0.33, 0.0], [0.0, 0.33, 0.67]]
    """
    bounds = np.arange(letters + 1) * size / letters
    steps = np.arange(size)[:, None]
    overlap = np.minimum(bounds[1:], steps + 1) - np.maximum(bounds[:-1], steps)
    return overlap.clip(0) * letters / size


def fourier_columns(size: int, letters: int, *, mean: bool) -> NDArray[np.float64]:
    """(w, L) basis of the lowest Fourier coefficients, real and imaginary parts in turn.

    Args:
        size: w, the length of the word window.
        letters: L, the number of columns.
        mean: begin with the coefficient of frequency 0, which is real, instead of dropping it. Columns beyond the
            highest frequency of a short word window are zero.

    >>> fourier_columns(4, 3, mean=True).T.round(2).tolist()
    [[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, -1.0, -0.0], [-0.0, -1.0, -0.0, 1.0]]
    """
    steps = np.arange(size)
    columns = [np.ones(size)] if mean else []
    frequency = 1
    while len(columns) < letters:
        angle = 2 * np.pi * frequency * steps / size
        known = 2 * frequency <= size
        columns += [np.cos(angle) * known, -np.sin(angle) * (2 * frequency < size)]
        frequency += 1
    return np.stack(columns[:letters], axis=1)


def normal_edges(letters: int, alphabet: int) -> NDArray[np.float32]:
    """(1, L, alphabet - 1) edges between which a standard normal value falls equally often.

    Lin et al., "Experiencing SAX" (DMKD 2007), table of breakpoints:

    >>> normal_edges(1, 4).astype(float).round(2).tolist()
    [[[-0.67, 0.0, 0.67]]]
    """
    edges = [NormalDist().inv_cdf(k / alphabet) for k in range(1, alphabet)]
    return np.tile(np.array(edges, np.float32), (1, letters, 1))


def equal_depth_edges(found: NDArray[np.float32], alphabet: int) -> NDArray[np.float32]:
    """(C, L, alphabet - 1) edges between which equally many of (N, C, W, L) features fall, per channel and column.

    Multiple coefficient binning of Schäfer and Högqvist, "SFA" (EDBT 2012): every coefficient has bins of its own.

    >>> equal_depth_edges(np.arange(6, dtype=np.float32).reshape(6, 1, 1, 1), 3).tolist()
    [[[2.0, 4.0]]]
    """
    columns = np.moveaxis(found, 1, 0).reshape(found.shape[1], -1, found.shape[3])
    depth = columns.shape[1]
    cuts = np.arange(1, alphabet) * depth // alphabet
    return np.moveaxis(np.partition(columns, cuts, axis=1)[:, cuts], 1, 2)
