"""Distances of queries to all windows of some tiles: loops over the kernels of `dtw`.

Channels are summed in the order of the axis. One that neither the query nor the tile has is left out, which changes no
bit of the sum; one that only one of them has is compared with zeros.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import types

from readbench.kernels.compiling import compiled
from readbench.kernels.memory import aligned
from readbench.retrieve.kernels.dtw import Floats, Ints, set_penalty, warp_channel, warp_jointly
from readbench.retrieve.kernels.dtw_lanes import LANES
from readbench.retrieve.kernels.dtw_tiles import TILES, Tiles

_LARGEST = np.finfo(np.float32).max
_floats, _ints, _int, _float = types.float32[::1], types.int64[::1], types.intp, types.float64


class Work(NamedTuple):
    """Scratch memory of one thread.

    Args:
        row: (depth + 1, LANES) of the recursion.
        penalty: (R + 2, LANES) of the band.
        radii: (LANES,) of the band.
        zeros: a series of zeros for LANES lanes, which serves as a query of zeros too.
        points: (T1, C) the query's channels beside those of a tile.
        base: (C,) where these begin in the tile.
        step: (C,) from column to column.
        total: (LANES,) distances.
    """

    row: Floats
    penalty: Floats
    radii: Ints
    zeros: Floats
    points: Floats
    base: Ints
    step: Ints
    total: Floats


WORK: Final = types.NamedTuple((_floats, _floats, _ints, _floats, _floats, _ints, _ints, _floats), Work)


def workspace(queries: Tiles, deepest: int) -> Work:
    """Scratch memory for comparing these queries with tiles of at most `deepest` timesteps."""
    longest, channels = int(queries.depth.max()), queries.slots.shape[1]
    return Work(
        row=aligned((deepest + 1) * LANES),
        penalty=aligned((longest + deepest + 3) * LANES),
        radii=np.empty(LANES, np.int64),
        zeros=np.zeros(max(longest, deepest * LANES), np.float32),
        points=aligned(longest * channels),
        base=np.empty(channels, np.int64),
        step=np.empty(channels, np.int64),
        total=aligned(LANES),
    )


@compiled(types.boolean(TILES, _int, TILES, _int, _int, _int, _int, WORK))
def warp_pair(  # noqa: PLR0913, PLR0917 - flat arguments, as the compiler likes them
    queries: Tiles, query: int, tiles: Tiles, tile: int, c: int, narrow: int, wide: int, work: Work
) -> bool:
    """Warp channel c of a query and a tile in `work.row`; False where neither has it."""
    length, depth = queries.depth[query], tiles.depth[tile]
    ours, theirs = queries.slots[query, c], tiles.slots[tile, c] if c < tiles.slots.shape[1] else -1
    begin = queries.start[query] + ours * length
    points = queries.values[begin : begin + length] if ours >= 0 else work.zeros[:length]
    begin, size = tiles.start[tile] + theirs * depth * LANES, depth * LANES
    series = tiles.values[begin : begin + size] if theirs >= 0 else work.zeros[:size]
    if ours >= 0 or theirs >= 0:
        warp_channel(points, series, work.row, work.penalty, depth, narrow, wide)
    return ours >= 0 or theirs >= 0


@compiled(types.none(TILES, _int, TILES, _int, _int, _int, WORK))
def compare_independently(
    queries: Tiles, query: int, tiles: Tiles, tile: int, narrow: int, wide: int, work: Work
) -> None:
    """DTW-I of one query and one tile into `work.total`: the sum of each channel's own distance."""
    for lane in range(LANES):
        work.total[lane] = 0
    for c in range(queries.slots.shape[1]):
        if warp_pair(queries, query, tiles, tile, c, narrow, wide, work):
            for lane in range(LANES):
                work.total[lane] += work.row[tiles.lengths[tile, lane] * LANES + lane]


@compiled(types.none(TILES, _int, TILES, _int, _int, _int, WORK))
def compare_jointly(queries: Tiles, query: int, tiles: Tiles, tile: int, narrow: int, wide: int, work: Work) -> None:
    """DTW-D of one query and one interleaved tile into `work.total`: one path for all channels."""
    length, depth = queries.depth[query], tiles.depth[tile]
    ours, theirs = queries.slots[query], tiles.slots[tile]
    used = 0
    for c in range(len(ours)):
        used += ours[c] >= 0 or (c < len(theirs) and theirs[c] >= 0)
    place = 0
    for c in range(len(ours)):
        slot = theirs[c] if c < len(theirs) else -1
        if ours[c] >= 0 or slot >= 0:
            work.base[place] = tiles.start[tile] + slot * LANES if slot >= 0 else 0
            work.step[place] = tiles.stored[tile] * LANES if slot >= 0 else 0
            begin = queries.start[query] + ours[c] * length
            for t in range(length):
                work.points[t * used + place] = queries.values[begin + t] if ours[c] >= 0 else 0
            place += 1
    warp_jointly(
        work.points[: length * used],
        tiles.values,
        work.base[:used],
        work.step[:used],
        work.row,
        work.penalty,
        depth,
        narrow,
        wide,
    )
    for lane in range(LANES):
        work.total[lane] = work.row[tiles.lengths[tile, lane] * LANES + lane]


@compiled(types.none(TILES, TILES, _int, _int, types.boolean, _float, WORK, types.float32[:, ::1]))
def scan(  # noqa: PLR0913, PLR0917
    queries: Tiles,
    tiles: Tiles,
    first: int,
    last: int,
    joint: bool,  # noqa: FBT001
    band: float,
    work: Work,
    out: Floats,
) -> None:
    """Write the distances of all queries to tiles `first` to `last` into `out` (Q, tiles * LANES)."""
    for tile in range(first, last):
        for query in range(len(queries.start)):
            narrow, wide = set_penalty(queries.depth[query], tiles.lengths[tile], band, work.radii, work.penalty)
            if joint:
                compare_jointly(queries, query, tiles, tile, narrow, wide, work)
            else:
                compare_independently(queries, query, tiles, tile, narrow, wide, work)
            for lane in range(LANES):
                out[query, tile * LANES + lane] = min(work.total[lane], _LARGEST)
