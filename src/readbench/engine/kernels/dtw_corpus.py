"""DTW of queries with all windows of a corpus, tile by tile.

Channels are summed in the order of the axis. One that neither the query nor the tile has is left out, which changes no
bit of the sum; one that only one of them has is compared with zeros.

The loops over the kernels of `readbench.engine.kernels.dtw` come first. `TiledCorpus` keeps the tiles block by block
where they fit in memory, and else packs them anew whenever the corpus passes by.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numba import types

from readbench.common.deadlines import hold_deadline
from readbench.engine.kernels.compiling import compiled
from readbench.engine.kernels.dtw import (
    LANES,
    TILES,
    Floats,
    Ints,
    TileRows,
    Tiles,
    pack,
    select_tiles,
    set_penalty,
    warp_channel,
    warp_jointly,
)
from readbench.engine.kernels.memory import PieceCache, allocate_aligned
from readbench.engine.kernels.threads import Team

_LARGEST = np.finfo(np.float32).max
_floats, _ints, _int, _float = types.float32[::1], types.int64[::1], types.intp, types.float64


class DtwWorkspace(NamedTuple):
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


WORK: Final = types.NamedTuple((_floats, _floats, _ints, _floats, _floats, _ints, _ints, _floats), DtwWorkspace)


def workspace(queries: Tiles, deepest: int) -> DtwWorkspace:
    """Scratch memory for comparing these queries with tiles of at most `deepest` timesteps."""
    longest, channels = int(queries.depth.max()), queries.slots.shape[1]
    return DtwWorkspace(
        row=allocate_aligned((deepest + 1) * LANES),
        penalty=allocate_aligned((longest + deepest + 3) * LANES),
        radii=np.empty(LANES, np.int64),
        zeros=np.zeros(max(longest, deepest * LANES), np.float32),
        points=allocate_aligned(longest * channels),
        base=np.empty(channels, np.int64),
        step=np.empty(channels, np.int64),
        total=allocate_aligned(LANES),
    )


@compiled(types.boolean(TILES, _int, TILES, _int, _int, _int, _int, WORK))
def warp_pair(  # noqa: PLR0913, PLR0917 - flat arguments, as the compiler likes them
    queries: Tiles, query: int, tiles: Tiles, tile: int, c: int, narrow: int, wide: int, work: DtwWorkspace
) -> bool:
    """Warp channel c of a query and a tile in `work.row`; False where neither has it."""
    length, depth = queries.depth[query], tiles.depth[tile]
    # Queries may have channels behind those of the corpus.
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
    queries: Tiles, query: int, tiles: Tiles, tile: int, narrow: int, wide: int, work: DtwWorkspace
) -> None:
    """DTW-I of one query and one tile into `work.total`: the sum of each channel's own distance."""
    for lane in range(LANES):
        work.total[lane] = 0
    for c in range(queries.slots.shape[1]):
        if warp_pair(queries, query, tiles, tile, c, narrow, wide, work):
            for lane in range(LANES):  # D(last, j) is at j + 1, so a series' last column is at its length
                work.total[lane] += work.row[tiles.lengths[tile, lane] * LANES + lane]


@compiled(types.none(TILES, _int, TILES, _int, _int, _int, WORK))
def compare_jointly(
    queries: Tiles, query: int, tiles: Tiles, tile: int, narrow: int, wide: int, work: DtwWorkspace
) -> None:
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
            # A channel that the tile lacks is the vector of zeros at 0, read again at every step.
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
    work: DtwWorkspace,
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
                # Squares of values up to 1e15 may exceed float32, and scores must be finite.
                out[query, tile * LANES + lane] = min(work.total[lane], _LARGEST)


MOST_CELLS = 2**28
"""Cells of the recursion between two looks at the clock: about a tenth of a second."""


def _tiles_at_once(queries: Tiles, tiles: Tiles, band: float) -> int:
    """Tiles that are compared without a look at the clock; one at least."""
    longest, deepest = int(queries.depth.max()), int(tiles.depth.max())
    width = min(deepest, 2 * (int(band * max(longest, deepest)) + abs(longest - deepest)) + 3)
    cells = int(queries.depth.sum()) * width * LANES * queries.slots.shape[1]
    return max(1, MOST_CELLS // max(1, cells))


BLOCK_BYTES = 64 * 2**20
"""Tiles in memory at a time, where the corpus is streamed."""


class TiledCorpus:
    """The windows of a set in tiles of like length and channels.

    Args:
        rows: the windows, at least one, and how they come to the common axis.
        joint: tiles for DTW-D (channels interleaved) instead of DTW-I.
        band: radius as a share of the longer length.
    """

    def __init__(self, rows: TileRows, *, joint: bool, band: float) -> None:
        self.rows, self.joint, self.band = rows, joint, band
        windows = rows.windows
        # By length first: all lanes of a tile walk as far as its longest window.
        order = np.lexsort((windows.channel_set, windows.lengths))
        last_of_tile = np.append(order[LANES - 1 : -1 : LANES], order[-1])
        size = windows.lengths[last_of_tile].astype(np.int64) * LANES * rows.row.shape[1] * 4
        end = np.cumsum(size)
        new_block = np.flatnonzero(np.diff(end // BLOCK_BYTES)) + 1
        self._blocks: list[Ints] = np.split(order, new_block * LANES)
        self._kept = PieceCache[Tiles](int(end[-1]))

    def __len__(self) -> int:
        return len(self.rows.windows)

    def blocks(self, team: Team) -> Iterator[Tiles]:
        """All tiles, a block at a time."""
        for number, items in enumerate(self._blocks):
            yield self._kept.get(number, partial(self.pack, items, team))

    def pack(self, items: Ints, team: Team) -> Tiles:
        """Tiles of some windows."""
        return pack(self.rows, items, team, interleaved=self.joint)

    def scan(self, queries: Tiles, tiles: Tiles, team: Team) -> Floats:
        """(Q, lanes) distances of queries to the windows in all lanes of some tiles."""
        out = np.empty((len(queries.start), tiles.items.size), np.float32)
        deepest = int(tiles.depth.max())
        joint = self.joint and queries.slots.shape[1] > 1  # of one channel, both forms and layouts are the same
        step, check = _tiles_at_once(queries, tiles, self.band), hold_deadline()

        def work(first: int, last: int) -> None:
            space = workspace(queries, deepest)
            for start in range(first, last, step):
                check()
                scan(queries, tiles, start, min(start + step, last), joint, self.band, space, out)

        team.share(work, len(tiles.start))
        return out

    def distances(self, queries: Tiles, team: Team) -> Floats:
        """(Q, N) distances of all queries to all windows."""
        out = np.empty((len(queries.start), len(self)), np.float32)
        for tiles in self.blocks(team):
            items = tiles.items[tiles.items >= 0]
            out[:, items] = self.scan(queries, tiles, team)[:, : len(items)]
        return out

    def among(self, queries: Tiles, items: Ints, team: Team) -> Floats:
        """(Q, m) distances of each query to windows (Q, m) of its own."""
        found = team.each(lambda query: self.compare(queries, query, items[query]), range(len(items)))
        return np.concatenate(found)

    def compare(self, queries: Tiles, query: int, items: Ints) -> Floats:
        """(1, n) distances of one query to some windows, in the calling thread."""
        alone = Team(1)
        tiles = self.pack(items, alone)
        found = self.scan(select_tiles(queries, slice(query, query + 1)), tiles, alone)
        return np.ascontiguousarray(found[:, : len(items)])

    def nearest(self, queries: Tiles, k: int, team: Team, seeds: Ints | None) -> tuple[Ints, Floats]:
        """(Q, k) nearest windows of each query and their distances; `seeds` (Q, m) are windows known to be near."""
        from readbench.engine.kernels.dtw_search import search  # noqa: PLC0415 - it takes a corpus

        return search(queries, self, k, team, seeds)
