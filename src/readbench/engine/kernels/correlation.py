"""Peaks of cross-correlations by Fourier transforms, of queries with a whole corpus.

Sixty-four corpus items travel side by side, one per lane: every array ends in an axis of `LANES`, and every step of a
Fourier transform is the same few operations on whole lanes, which the compiler turns into vector instructions. Two
real correlations share one complex transform, as its real and its imaginary part.

Transforms have a length n that is a power of two. They leave their result in digit-reversed order (radix-4
decimation in frequency: Oppenheim and Schafer, Discrete-Time Signal Processing, ch. 9), and nobody puts it back: a
spectrum is read through the table `place`, where frequency or lag k lies in row `place[k]`.

Kernels come first. `Correlator`, at the end, holds queries as spectra and correlates them with one tile of a
`SpectralCorpus` after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from readbench.engine.kernels.memory import PieceCache
from readbench.engine.preparation import WindowRows
from readbench.engine.windows import WindowSet

LANES = 64
"""Corpus items per tile. Fewer leave the inner loops too short to pay, more fall out of the cache."""
CHANNELS = 4
"""The channel axis is filled with zeros to a multiple of this."""

Float = NDArray[np.float32]
Index = NDArray[np.int64]


def places(size: int) -> Index:
    """(n,) the row in which a transform of length `size` leaves frequency k.

    >>> places(8).tolist()
    [0, 2, 4, 6, 1, 3, 5, 7]
    """
    frequency = np.zeros(1, np.int64)
    left, radix_product = size, 1
    while left > 1:
        radix = 4 if left % 4 == 0 else 2
        frequency = (frequency[:, None] + radix_product * np.arange(radix)).ravel()
        left, radix_product = left // radix, radix_product * radix
    return np.argsort(frequency)


def turns(size: int) -> Float:
    """(2, n) cosine and sine of k / n of a full turn."""
    angle = 2 * np.pi * np.arange(size) / size
    return np.stack([np.cos(angle), np.sin(angle)]).astype(np.float32)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def transform(re: Float, im: Float, turn: Float) -> None:
    """Fourier transform along the first axis of (n, LANES), in place, digit-reversed.

    Called with the two parts exchanged it is the inverse, not divided by n.
    """
    n = re.shape[0]
    size = n
    while size >= 4:
        quarter = size // 4
        step = n // size
        for start in range(0, n, size):
            for k in range(quarter):
                _quadruple(re, im, start + k, quarter, turn, k * step)
        size = quarter
    if size == 2:
        for start in range(0, n, 2):
            _pair(re[start], re[start + 1])
            _pair(im[start], im[start + 1])


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _quadruple(re: Float, im: Float, row: int, apart: int, turn: Float, k: int) -> None:
    """One radix-4 step on four rows `apart`, each then turned by its multiple of k / n."""
    ar, br, cr, dr = re[row], re[row + apart], re[row + 2 * apart], re[row + 3 * apart]
    ai, bi, ci, di = im[row], im[row + apart], im[row + 2 * apart], im[row + 3 * apart]
    w1r, w1i = turn[0, k], -turn[1, k]
    w2r, w2i = turn[0, 2 * k], -turn[1, 2 * k]
    w3r, w3i = turn[0, 3 * k], -turn[1, 3 * k]
    for lane in range(LANES):
        s0r, s0i = ar[lane] + cr[lane], ai[lane] + ci[lane]
        s1r, s1i = ar[lane] - cr[lane], ai[lane] - ci[lane]
        s2r, s2i = br[lane] + dr[lane], bi[lane] + di[lane]
        s3r, s3i = br[lane] - dr[lane], bi[lane] - di[lane]
        t1r, t1i = s1r + s3i, s1i - s3r  # s1 - i s3: a product with i exchanges the parts and needs no multiplication
        t2r, t2i = s0r - s2r, s0i - s2i
        t3r, t3i = s1r - s3i, s1i + s3r
        ar[lane] = s0r + s2r
        ai[lane] = s0i + s2i
        br[lane] = t1r * w1r - t1i * w1i
        bi[lane] = t1r * w1i + t1i * w1r
        cr[lane] = t2r * w2r - t2i * w2i
        ci[lane] = t2r * w2i + t2i * w2r
        dr[lane] = t3r * w3r - t3i * w3i
        di[lane] = t3r * w3i + t3i * w3r


@njit(cache=True, nogil=True, error_model="numpy")
def _pair(a: Float, b: Float) -> None:
    """One radix-2 step on two rows."""
    for lane in range(LANES):
        x, y = a[lane], b[lane]
        a[lane] = x + y
        b[lane] = x - y


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def tile_spectra(rows: Float, place: Index, turn: Float) -> Float:
    """(n / 2 + 1, C, 2, LANES) real and imaginary parts of at most LANES windows (B, C, T); C is even, T <= n."""
    n = len(place)
    count, channels, length = rows.shape
    spectra = np.empty((n // 2 + 1, channels, 2, LANES), np.float32)
    re, im = np.empty((n, LANES), np.float32), np.empty((n, LANES), np.float32)
    for c in range(0, channels, 2):
        re[:] = 0
        im[:] = 0
        for lane in range(count):
            for t in range(length):
                re[t, lane] = rows[lane, c, t]
                im[t, lane] = rows[lane, c + 1, t]
        transform(re, im, turn)
        # The second half of a real signal's spectrum is the conjugate of the first: n / 2 + 1 frequencies hold all.
        for f in range(n // 2 + 1):
            _part(re, im, place[f], place[(n - f) % n], spectra[f, c], spectra[f, c + 1])
    return spectra


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _part(re: Float, im: Float, row: int, mirror: int, first: Float, second: Float) -> None:
    """Spectra of two real signals out of the one of `first + i second`, at one frequency and its mirror image."""
    ar, ai, br, bi = first[0], first[1], second[0], second[1]
    half = np.float32(0.5)
    xr, xi, yr, yi = re[row], im[row], re[mirror], im[mirror]
    for lane in range(LANES):
        ar[lane] = half * (xr[lane] + yr[lane])
        ai[lane] = half * (xi[lane] - yi[lane])
        br[lane] = half * (xi[lane] + yi[lane])
        bi[lane] = half * (yr[lane] - xr[lane])


@njit(cache=True, nogil=True, error_model="numpy")
def query_pairs(spectra: Float, count: int) -> Float:
    """(P, n / 2 + 1, C, 4) the first `count` spectra of a tile as `joint_peaks` reads queries, divided by n.

    Real, imaginary, real, imaginary part of two queries together; where `count` is odd, the last is beside nothing.
    """
    frequencies, channels = spectra.shape[:2]
    share = np.float32(0.5 / (frequencies - 1))  # 1 / n, which the inverse transform leaves out
    pairs = np.empty(((count + 1) // 2, frequencies, channels, 4), np.float32)
    for f in range(frequencies):
        for c in range(channels):
            re, im = spectra[f, c, 0], spectra[f, c, 1]
            for p in range(len(pairs)):
                pairs[p, f, c, 0] = re[2 * p] * share
                pairs[p, f, c, 1] = im[2 * p] * share
                pairs[p, f, c, 2] = re[2 * p + 1] * share
                pairs[p, f, c, 3] = im[2 * p + 1] * share
    return pairs


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def joint_peaks(tile: Float, queries: Float, steps: Index, lengths: Index, place: Index, turn: Float) -> Float:
    """Peaks of correlations summed over the channels under one shared lag.

    Args:
        tile: (n / 2 + 1, C, 2, LANES) of `tile_spectra`.
        queries: (P, n / 2 + 1, C, 4) of `query_pairs`.
        steps: (2 P,) lengths of the queries.
        lengths: (LANES,) lengths of the items.
        place: of `places`.
        turn: of `turns`.

    Returns:
        (2 P, LANES) the largest correlation over all lags at which query and item overlap.
    """
    n = len(place)
    re, im = np.empty((n, LANES), np.float32), np.empty((n, LANES), np.float32)
    peaks = np.empty((len(steps), LANES), np.float32)
    for p in range(len(queries)):
        for f in range(n // 2 + 1):
            _summed(tile[f], queries[p, f], re[f], im[f], re[(n - f) % n], im[(n - f) % n])
        transform(im, re, turn)  # parts exchanged: the inverse
        _peak(re, place, steps[2 * p], lengths, peaks[2 * p])
        _peak(im, place, steps[2 * p + 1], lengths, peaks[2 * p + 1])
    return peaks


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _summed(x: Float, q: Float, re: Float, im: Float, mirror_re: Float, mirror_im: Float) -> None:
    """Products a, b of two queries (C, 4) with the conjugate of (C, 2, LANES), summed over C: `a + i b` and its mirror.

    Four channels at a time, so that the sums are loaded and stored a quarter as often.
    """
    sums = np.zeros((4, LANES), np.float32)
    ar, ai, br, bi = sums[0], sums[1], sums[2], sums[3]
    flat = x.reshape(-1)
    for c in range(0, len(q), CHANNELS):
        w = q[c : c + CHANNELS]
        p0, s0, u0, v0 = w[0, 0], w[0, 1], w[0, 2], w[0, 3]
        p1, s1, u1, v1 = w[1, 0], w[1, 1], w[1, 2], w[1, 3]
        p2, s2, u2, v2 = w[2, 0], w[2, 1], w[2, 2], w[2, 3]
        p3, s3, u3, v3 = w[3, 0], w[3, 1], w[3, 2], w[3, 3]
        part = flat[2 * c * LANES : 2 * (c + CHANNELS) * LANES]
        for lane in range(LANES):
            x0, y0 = part[lane], part[LANES + lane]
            x1, y1 = part[2 * LANES + lane], part[3 * LANES + lane]
            x2, y2 = part[4 * LANES + lane], part[5 * LANES + lane]
            x3, y3 = part[6 * LANES + lane], part[7 * LANES + lane]
            ar[lane] += p0 * x0 + s0 * y0 + p1 * x1 + s1 * y1 + p2 * x2 + s2 * y2 + p3 * x3 + s3 * y3
            ai[lane] += s0 * x0 - p0 * y0 + s1 * x1 - p1 * y1 + s2 * x2 - p2 * y2 + s3 * x3 - p3 * y3
            br[lane] += u0 * x0 + v0 * y0 + u1 * x1 + v1 * y1 + u2 * x2 + v2 * y2 + u3 * x3 + v3 * y3
            bi[lane] += v0 * x0 - u0 * y0 + v1 * x1 - u1 * y1 + v2 * x2 - u2 * y2 + v3 * x3 - u3 * y3
    for lane in range(LANES):
        mirror_re[lane] = ar[lane] + bi[lane]
        mirror_im[lane] = br[lane] - ai[lane]
    for lane in range(LANES):
        re[lane] = ar[lane] - bi[lane]
        im[lane] = ai[lane] + br[lane]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def separate_peaks(tile: Float, queries: Float, steps: Index, lengths: Index, place: Index, turn: Float) -> Float:
    """Peaks of each channel's own correlation, summed over the channels; arguments and result as `joint_peaks`."""
    n = len(place)
    re, im = np.empty((n, LANES), np.float32), np.empty((n, LANES), np.float32)
    peaks = np.zeros((len(steps), LANES), np.float32)
    peak = np.empty((2, LANES), np.float32)
    for query in range(len(steps)):
        side = 2 * (query % 2)
        for c in range(0, tile.shape[1], 2):
            for f in range(n // 2 + 1):
                q = queries[query // 2, f, c : c + 2, side : side + 2]
                _products(tile[f, c], tile[f, c + 1], q, re[f], im[f], re[(n - f) % n], im[(n - f) % n])
            transform(im, re, turn)
            _peak(re, place, steps[query], lengths, peak[0])
            _peak(im, place, steps[query], lengths, peak[1])
            peaks[query] += peak[0] + peak[1]
    return peaks


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _products(x: Float, y: Float, q: Float, re: Float, im: Float, mirror_re: Float, mirror_im: Float) -> None:
    """Products a, b of one query with the conjugates of two channels (2, LANES): `a + i b` and its mirror."""
    xr, xi, yr, yi = x[0], x[1], y[0], y[1]
    p, s, u, v = q[0, 0], q[0, 1], q[1, 0], q[1, 1]
    for lane in range(LANES):
        ar, ai = p * xr[lane] + s * xi[lane], s * xr[lane] - p * xi[lane]
        br, bi = u * yr[lane] + v * yi[lane], v * yr[lane] - u * yi[lane]
        mirror_re[lane] = ar + bi
        mirror_im[lane] = br - ai
        re[lane] = ar - bi
        im[lane] = ai + br


@njit(cache=True, nogil=True, error_model="numpy")
def _peak(values: Float, place: Index, steps: int, lengths: Index, peak: Float) -> None:
    """(LANES,) largest value over the lags from 1 - `lengths` to `steps` - 1, lag k in row `place[k]`."""
    n = len(place)
    peak[:] = -np.inf
    for lag in range(steps):
        row = values[place[lag]]
        for lane in range(LANES):
            peak[lane] = max(peak[lane], row[lane])
    for lag in range(1, lengths.max()):  # negative lags come round from the end
        row = values[place[n - lag]]
        for lane in range(LANES):
            if lag < lengths[lane] and row[lane] > peak[lane]:
                peak[lane] = row[lane]


def transform_size(left: int, right: int) -> int:
    """Transform length at which correlations of two lengths do not wrap around: a power of two.

    >>> transform_size(256, 256), transform_size(256, 300)
    (512, 1024)
    """
    return max(8, 1 << (left + right - 2).bit_length())  # the least power of two with room for left + right - 1 lags


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

    def tile(self, windows: WindowRows) -> Tile:
        """At most `LANES` windows as spectra."""
        lengths = np.ones(LANES, np.int64)
        lengths[: len(windows.lengths)] = windows.lengths
        return Tile(tile_spectra(self._unit(windows.values), self.place, self.turn), lengths, len(windows.lengths))

    def _unit(self, values: Float) -> Float:
        """Windows (channels where not joint) scaled to norm 1, or left at zero; channels filled up for the kernels."""
        count, _, length = values.shape
        wide = values.astype(np.float64)
        square = np.einsum("nct,nct->nc", wide, wide)
        # Whole windows are scaled by all their channels, those that the corpus lacks included.
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

    def __init__(self, corpus: WindowSet, rows: Callable[[WindowSet], WindowRows], transforms: Transforms) -> None:
        self.transforms = transforms
        self._corpus, self._rows = corpus, rows
        tiles = -(-len(corpus) // LANES)
        self._kept = PieceCache[Tile](tiles * LANES * transforms.window_bytes(transforms.channels))

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
    >>> correlator = Correlator(WindowRows(x, np.array([12])), transforms)
    >>> correlator.peaks(transforms.tile(WindowRows(later, np.array([20])))).round(5).tolist()
    [[1.0]]
    """

    def __init__(self, queries: WindowRows, transforms: Transforms) -> None:
        self._transforms, self._count = transforms, len(queries.lengths)
        blocks = [slice(at, at + LANES) for at in range(0, self._count, LANES)]
        tiles = (transforms.tile(WindowRows(queries.values[own], queries.lengths[own])) for own in blocks)
        self._queries = np.concatenate([query_pairs(tile.spectra, tile.used) for tile in tiles])
        self._steps = np.ones(2 * len(self._queries), np.int64)
        self._steps[: self._count] = queries.lengths

    def peaks(self, tile: Tile) -> NDArray[np.float32]:
        """(Q, B) largest normalised cross-correlations with the B items of a tile; summed where not joint."""
        find = joint_peaks if self._transforms.joint else separate_peaks
        place, turn = self._transforms.place, self._transforms.turn
        found: Float = find(tile.spectra, self._queries, self._steps, tile.lengths, place, turn)
        return found[: self._count, : tile.used]
