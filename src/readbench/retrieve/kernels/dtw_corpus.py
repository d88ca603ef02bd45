"""A corpus in tiles, block by block: kept where it fits in memory, else packed anew whenever it passes by."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from readbench.kernels.threads import Team
from readbench.retrieve.kept import Kept
from readbench.retrieve.kernels.dtw import Floats, Ints
from readbench.retrieve.kernels.dtw_lanes import LANES
from readbench.retrieve.kernels.dtw_scan import scan, workspace
from readbench.retrieve.kernels.dtw_tiles import Rows, Tiles, pack, selected

BLOCK_BYTES = 64 * 2**20
"""Tiles in memory at a time, where the corpus is streamed."""


class TiledCorpus:
    """The windows of a set in tiles of like length and channels.

    Args:
        rows: the windows, at least one, and how they come to the common axis.
        joint: tiles for DTW-D (channels interleaved) instead of DTW-I.
        band: radius as a share of the longer length.
    """

    def __init__(self, rows: Rows, *, joint: bool, band: float) -> None:
        self.rows, self.joint, self.band = rows, joint, band
        windows = rows.windows
        order = np.lexsort((windows.channel_set, windows.lengths))
        last_of_tile = np.append(order[LANES - 1 : -1 : LANES], order[-1])
        size = windows.lengths[last_of_tile].astype(np.int64) * LANES * rows.row.shape[1] * 4
        end = np.cumsum(size)
        new_block = np.flatnonzero(np.diff(end // BLOCK_BYTES)) + 1
        self._blocks: list[Ints] = np.split(order, new_block * LANES)
        self._kept = Kept[Tiles](int(end[-1]))

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

        def work(first: int, last: int) -> None:
            scan(queries, tiles, first, last, joint, self.band, workspace(queries, deepest), out)

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
        found = self.scan(selected(queries, slice(query, query + 1)), tiles, alone)
        return np.ascontiguousarray(found[:, : len(items)])

    def nearest(self, queries: Tiles, k: int, team: Team, seeds: Ints | None) -> tuple[Ints, Floats]:
        """(Q, k) nearest windows of each query and their distances; `seeds` (Q, m) are windows known to be near."""
        from readbench.retrieve.kernels.dtw_search import search  # noqa: PLC0415 - it takes a corpus

        return search(queries, self, k, team, seeds)
