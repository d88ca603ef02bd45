"""Windows as tiles: scaled, on a common channel axis, and laid out with one series per lane.

A tile holds as many windows as a vector has lanes, of any length and channels. Only the channels that one of them has
are stored. Reading, scaling and transposing are one pass over the values, so that a corpus that is larger than memory
can be streamed through a few tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from readbench.retrieve.kernels.dtw_lanes import LANES, aligned, compiled, inlined
from readbench.windows import Normalisation, WindowSet
from readbench.windows.reconcile import LARGEST_SCORE, Alignment, ChannelStats

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_RESOLUTION = float(np.finfo(np.float32).eps)
_LARGEST = float(np.finfo(np.float32).max)
_whole, _half = types.int64[::1], types.int32[::1]
_source = types.Array(types.float32, 1, "C", readonly=True)
_SIGNATURE = types.boolean(
    *(_source, _whole, _half, _half, _whole),
    *(types.int64[:, ::1], types.float64[:, ::1], types.float64[:, ::1], types.boolean, types.float64),
    *(types.float32[::1], _whole, _whole, types.int64[:, ::1], types.intp, types.boolean),
)


class Tiles(NamedTuple):
    """Windows in tiles, in the order in which compiled code takes them.

    Args:
        values: flat; a tile is (channels, depth, lanes), or (depth, channels, lanes) where channels are interleaved,
            then one vector of zeros.
        start: (n,) where each tile begins.
        depth: (n,) length of its longest window.
        slots: (n, C) which of the tile's channels is channel c of the axis; -1 where none of its windows has it.
        lengths: (n, lanes) of the windows; a lane without a window has some length and zero values.
        items: (n, lanes) position of the window in its set; -1 in a lane without one.
    """

    values: Floats
    start: Ints
    depth: Ints
    slots: Ints
    lengths: Ints
    items: Ints


@dataclass(frozen=True, eq=False)
class Rows:
    """How the windows of a set come to a common channel axis and scale.

    Args:
        windows: the set.
        row: (S, C) for each of its channel sets, the row that is channel c of the axis; -1 where it has none.
        mean: (S, C) subtracted from that row.
        scale: (S, C) multiplied with afterwards; zero makes a constant channel zero.
        own: scale each row by its own mean and deviation instead.
        limit: scaled values end here.
    """

    windows: WindowSet
    row: Ints
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    own: bool
    limit: float

    @classmethod
    def of(
        cls, windows: WindowSet, axis: tuple[str, ...], align: Alignment, norm: Normalisation, stats: ChannelStats | None
    ) -> Rows:
        """Rows matched to the axis by name or position; `stats` scale them unless the mode does without."""
        shape = len(windows.channel_sets), len(axis)
        row, mean, scale = np.full(shape, -1, np.int64), np.zeros(shape), np.ones(shape)
        place = {name: c for c, name in enumerate(axis)}
        for s, names in enumerate(windows.channel_sets):
            for r, name in enumerate(names):
                c = place.get(name, -1) if align == "name" else r
                if 0 <= c < len(axis):
                    row[s, c] = r
                    if stats is not None:
                        mean[s, c], scale[s, c] = _location_scale(stats, name)
        return cls(windows, row, mean, scale, own=norm == "window", limit=np.inf if norm == "none" else LARGEST_SCORE)


def _location_scale(stats: ChannelStats, name: str) -> tuple[float, float]:
    """Mean and inverse deviation, which is zero where the spread is below what float32 resolves."""
    mean, std = stats.mean.get(name, 0.0), stats.std.get(name, 0.0)
    return mean, 1 / std if std > abs(mean) * _RESOLUTION else 0.0


def pack(rows: Rows, items: Ints, *, lanes: int = LANES, interleaved: bool = False) -> Tiles:
    """Tiles of the windows at `items`, in that order, `lanes` at a time.

    Args:
        rows: where the values come from.
        items: (n,) positions in the set, at least one.
        lanes: windows per tile; 1 gives plain series, as queries are kept.
        interleaved: all channels of a timestep together, as the joint cost reads them.
    """
    windows, count = rows.windows, -(-len(items) // lanes)
    filled = np.append(items, np.full(count * lanes - len(items), items[-1]))
    lengths = windows.lengths[filled].astype(np.int64).reshape(count, lanes)
    depth = lengths.max(axis=1)
    present = (rows.row[windows.channel_set[filled]] >= 0).reshape(count, lanes, -1).any(axis=1)
    size = present.sum(axis=1) * depth * lanes
    start = lanes + np.cumsum(size) - size
    tiles = Tiles(
        values=aligned(lanes + int(size.sum())),
        start=start,
        depth=depth,
        slots=np.where(present, present.cumsum(axis=1) - 1, -1),
        lengths=lengths,
        items=np.append(items, np.full(len(filled) - len(items), -1)).reshape(count, lanes),
    )
    tiles.values[:lanes] = 0
    _fill(rows, filled, tiles, interleaved=interleaved)
    return tiles


def _fill(rows: Rows, filled: Ints, tiles: Tiles, *, interleaved: bool) -> None:
    """Copy the values, buffer by buffer of the set."""
    windows = rows.windows
    chunk = windows.chunk[filled]
    for number in np.unique(chunk):
        place = np.flatnonzero(chunk == number)
        own = filled[place]
        flat = np.asarray(windows.chunks[number])
        where = windows.offset[own], windows.lengths[own], windows.channel_set[own], place
        how = rows.row, rows.mean, rows.scale, rows.own, rows.limit
        if not _transpose(flat, *where, *how, *tiles[:4], tiles.items.shape[1], interleaved):
            windows[own].require_finite()


@inlined
def _moments(flat: Floats, start: int, length: int) -> tuple[float, float]:
    """Mean and inverse deviation of one row, in float64; zero where float32 does not resolve the spread."""
    total = 0.0
    for t in range(start, start + length):
        total += np.float64(flat[t])
    mean = total / length
    square = 0.0
    for t in range(start, start + length):
        square += (np.float64(flat[t]) - mean) ** 2
    std = np.sqrt(square / length)
    return mean, 1 / std if std > abs(mean) * _RESOLUTION else 0.0


@compiled(_SIGNATURE)
def _transpose(  # noqa: C901, PLR0913, PLR0917 - flat arrays in, flat arrays out
    flat: Floats,
    offset: Ints,
    length: NDArray[np.int32],
    kind: NDArray[np.int32],
    place: Ints,
    row: Ints,
    mean: NDArray[np.float64],
    scale: NDArray[np.float64],
    own: bool,  # noqa: FBT001
    limit: float,
    values: Floats,
    start: Ints,
    depth: Ints,
    slots: Ints,
    lanes: int,
    interleaved: bool,  # noqa: FBT001
) -> bool:
    """Scale rows of `flat` and write each to its lane; False where a value is not finite.

    Lanes of one tile and channel are written together, so that their cache lines are still there for the next lane.
    """
    finite = True
    first = 0
    while first < len(place):
        tile = place[first] // lanes
        last = first
        while last < len(place) and place[last] // lanes == tile:
            last += 1
        stored = (slots[tile] >= 0).sum()
        for c in range(slots.shape[1]):
            if slots[tile, c] < 0:
                continue
            step = lanes * stored if interleaved else lanes
            base = start[tile] + slots[tile, c] * lanes * (1 if interleaved else depth[tile])
            for item in range(first, last):
                target = base + place[item] % lanes
                r = row[kind[item], c]
                count = length[item] if r >= 0 else 0
                if r >= 0:
                    source = offset[item] + r * count
                    centre, factor = mean[kind[item], c], scale[kind[item], c]
                    if own:
                        centre, factor = _moments(flat, source, count)
                    for t in range(count):
                        x = np.float64(flat[source + t])
                        finite &= abs(x) <= _LARGEST
                        values[target + t * step] = np.float32(min(max((x - centre) * factor, -limit), limit))
                for t in range(count, depth[tile]):
                    values[target + t * step] = 0
        first = last
    return finite
