"""Lower bounds of DTW distances, for windows that need not be compared at all.

LB_Keogh (Keogh and Ratanamahatana, 2005): each point of a series is matched with a point of the other at most a radius
away, so it costs at least its distance to the range of these. The bound is taken in both directions, the larger counts
for each channel. The first points are always matched with each other (LB_Kim; Kim, Park and Chu, 2001), so that the
range of the first is one point. The sum over channels bounds DTW-I, which bounds DTW-D.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from readbench.kernels.compiling import Node, compiled, inlined
from readbench.kernels.lanes import add, add_square, greatest, least, store, subtract
from readbench.kernels.memory import aligned
from readbench.retrieve.kernels.dtw import Floats, Ints, radius
from readbench.retrieve.kernels.dtw_lanes import LANES, load, splat
from readbench.retrieve.kernels.dtw_tiles import TILES, Tiles

_INF, _ZERO = np.float32(np.inf), np.float32(0)
_floats, _ints, _int, _float = types.float32[::1], types.int64[::1], types.intp, types.float64


class Ranges(NamedTuple):
    """Ranges within a radius, of the queries and of one channel of a tile; scratch memory of one thread.

    Args:
        upper: (Q, C, depth) largest values of the queries.
        lower: (Q, C, depth) smallest values.
        reach: (Q,) the radius in use.
        ready: (Q + 1, 2) radius and size for which the ranges of each query are, and in the last row of the tile.
        high: (T1, LANES) largest values of the tile, flat.
        low: (T1, LANES) smallest values, flat.
        spare_high: scratch for these.
        spare_low: scratch for these.
    """

    upper: NDArray[np.float32]
    lower: NDArray[np.float32]
    reach: Ints
    ready: Ints
    high: Floats
    low: Floats
    spare_high: Floats
    spare_low: Floats


_cube = types.float32[:, :, ::1]
RANGES: Final = types.NamedTuple((_cube, _cube, _ints, types.int64[:, ::1], *[_floats] * 4), Ranges)


def ranges(queries: Tiles, deepest: int) -> Ranges:
    """Scratch memory for bounding the distances of these queries to tiles of at most `deepest` timesteps."""
    count, channels = queries.slots.shape
    longest = int(queries.depth.max())
    spare = (2 * (longest + deepest) + 3) * LANES
    return Ranges(
        upper=np.empty((count, channels, deepest), np.float32),
        lower=np.empty((count, channels, deepest), np.float32),
        reach=np.zeros(count, np.int64),
        ready=np.zeros((count + 1, 2), np.int64),
        high=aligned(longest * LANES),
        low=aligned(longest * LANES),
        spare_high=aligned(spare),
        spare_low=aligned(spare),
    )


@compiled(types.none(_floats, _int, _int, _floats, _floats, _floats, _floats))
def _range_of_points(
    points: Floats, depth: int, reach: int, upper: Floats, lower: Floats, high: Floats, low: Floats
) -> None:
    """Largest and smallest of the points at most `reach` from each of `depth` positions, by doubling windows.

    Vectors run along time here. What they compute behind the last whole window is not read.
    """
    size, window = depth + 2 * reach, 2 * reach + 1
    for p in range(size):
        inside = 0 <= p - reach < len(points)
        high[p] = points[p - reach] if inside else -_INF
        low[p] = points[p - reach] if inside else _INF
    width = 1
    while 2 * width <= window:
        for p in range(0, size - width, LANES):
            store(high, p, greatest(load(high, p), load(high, p + width)))
            store(low, p, least(load(low, p), load(low, p + width)))
        width *= 2
    for j in range(depth):
        upper[j] = max(high[j], high[j + window - width])
        lower[j] = min(low[j], low[j + window - width])
    upper[0] = lower[0] = points[0]


@compiled(types.none(_floats, _int, _int, _int, _int, _int, RANGES))
def _range_of_tile(values: Floats, base: int, step: int, depth: int, length: int, reach: int, to: Ranges) -> None:
    """Largest and smallest values at most `reach` from each of `length` positions, for each lane of a channel.

    By blocks as wide as the window: the window around a position is the end of one block, accumulated backwards, and
    the beginning of the next, accumulated on the way (van Herk, 1992; Gil and Werman, 1993).
    """
    window = 2 * reach + 1
    for block in range(0, length, window):
        high, low = splat(-_INF), splat(_INF)
        for k in range(window - 1, -1, -1):
            j = block + k - reach
            if 0 <= j < depth:
                value = load(values, base + j * step)
                high, low = greatest(high, value), least(low, value)
            store(to.spare_high, k * LANES, high)
            store(to.spare_low, k * LANES, low)
        high, low = splat(-_INF), splat(_INF)
        for i in range(block, min(block + window, length)):
            if i > block and i + reach < depth:
                value = load(values, base + (i + reach) * step)
                high, low = greatest(high, value), least(low, value)
            store(to.high, i * LANES, greatest(high, load(to.spare_high, (i - block) * LANES)))
            store(to.low, i * LANES, least(low, load(to.spare_low, (i - block) * LANES)))
    store(to.high, 0, load(values, base))
    store(to.low, 0, load(values, base))


@inlined
def _outside(total: Node, value: Node, low: Node, high: Node) -> Node:
    """Total plus the squared distance of a value to a range."""
    return add_square(total, greatest(greatest(subtract(value, high), subtract(low, value)), splat(_ZERO)))


@compiled(types.none(TILES, TILES, _int, _int, _float, RANGES))
def _prepare(queries: Tiles, tiles: Tiles, tile: int, every: int, band: float, own: Ranges) -> None:
    """Each query's radius for a tile, and its ranges where they are not those of the tile before."""
    depth = tiles.depth[tile]
    for query in range(len(queries.start)):
        length, reach = queries.depth[query], 0
        for lane in range(LANES):
            reach = max(reach, radius(length, tiles.lengths[tile, lane], band))
        own.reach[query] = reach
        if own.ready[query, 0] == reach and own.ready[query, 1] == depth:
            continue
        own.ready[query, 0], own.ready[query, 1] = reach, depth
        for c in range(0, queries.slots.shape[1], every):
            if queries.slots[query, c] >= 0:
                begin = queries.start[query] + queries.slots[query, c] * length
                points = queries.values[begin : begin + length]
                upper, lower = own.upper[query, c], own.lower[query, c]
                _range_of_points(points, depth, reach, upper, lower, own.spare_high, own.spare_low)


@compiled(types.none(TILES, _int, TILES, _int, _int, types.boolean, types.boolean, RANGES, _floats, _int))
def _bound_channel(  # noqa: PLR0913, PLR0917
    queries: Tiles,
    query: int,
    tiles: Tiles,
    tile: int,
    c: int,
    joint: bool,  # noqa: FBT001
    both: bool,  # noqa: FBT001
    own: Ranges,
    out: Floats,
    place: int,
) -> None:
    """Add lower bounds of one channel's distances to the lanes at `out[place]`."""
    length, depth, shortest = queries.depth[query], tiles.depth[tile], tiles.shortest[tile]
    ours, slot = queries.slots[query, c], tiles.slots[tile, c] if c < tiles.slots.shape[1] else -1
    begin = queries.start[query] + ours * length
    base = tiles.start[tile] + slot * LANES * (1 if joint else depth)
    step = LANES * tiles.stored[tile] if joint else LANES
    forwards = backwards = splat(_ZERO)
    if ours >= 0 and slot < 0:
        for i in range(begin, begin + length):
            backwards = add_square(backwards, splat(queries.values[i]))
    elif ours < 0 and slot >= 0:
        for j in range(depth):
            forwards = add_square(forwards, load(tiles.values, base + j * step))
    elif ours >= 0 and slot >= 0:
        upper, lower = own.upper[query, c], own.lower[query, c]
        for j in range(shortest):
            forwards = _outside(forwards, load(tiles.values, base + j * step), splat(lower[j]), splat(upper[j]))
        if both and (own.ready[-1, 0] != own.reach[query] or own.ready[-1, 1] != length):
            own.ready[-1, 0], own.ready[-1, 1] = own.reach[query], length
            _range_of_tile(tiles.values, base, step, depth, length, own.reach[query], own)
        for i in range(length if both else 0):
            value = splat(queries.values[begin + i])
            backwards = _outside(backwards, value, load(own.low, i * LANES), load(own.high, i * LANES))
    store(out, place, add(load(out, place), greatest(forwards, backwards)))


@compiled(types.none(TILES, TILES, _int, _int, types.boolean, types.boolean, _int, _float, RANGES, _floats))
def bound(  # noqa: PLR0913, PLR0917
    queries: Tiles,
    tiles: Tiles,
    first: int,
    last: int,
    joint: bool,  # noqa: FBT001
    both: bool,  # noqa: FBT001
    every: int,
    band: float,
    own: Ranges,
    out: Floats,
) -> None:
    """Write lower bounds of all queries' distances to tiles `first` to `last` into `out` (Q, tiles, LANES), flat.

    With `both`, in both directions; without, only the distance of the windows to the queries' ranges, which spares the
    ranges of the tiles and is worth it for few queries. Only every so many channels are summed: `every` is 1 unless
    the sum need not be complete.
    """
    for tile in range(first, last):
        _prepare(queries, tiles, tile, every, band, own)
        for query in range(len(queries.start)):
            store(out, (query * len(tiles.start) + tile) * LANES, splat(_ZERO))
        for c in range(0, queries.slots.shape[1], every):
            own.ready[-1, 0] = 0
            for query in range(len(queries.start)):
                place = (query * len(tiles.start) + tile) * LANES
                _bound_channel(queries, query, tiles, tile, c, joint, both, own, out, place)
