"""Exact nearest windows without all distances.

The corpus passes by in steps. For each query, lower bounds say which windows of a step may still be among its k
nearest; these wait in a list, the most promising first, until there are tiles full of them. Where few of the first
windows of a step are ruled out, bounding costs more than it saves: then the whole step is compared, and the next steps
too before bounds are tried again. What is found does not depend on any of this.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from readbench.retrieve.kernels.dtw import Floats, Ints, radius
from readbench.retrieve.kernels.dtw_bounds import bound, ranges
from readbench.retrieve.kernels.dtw_corpus import TiledCorpus
from readbench.retrieve.kernels.dtw_lanes import LANES
from readbench.retrieve.kernels.dtw_threads import Team
from readbench.retrieve.kernels.dtw_tiles import Tiles

STEP_CELLS = 2**27
"""Cells of the recursion in a step: a few milliseconds of work."""
FEWEST_TILES, MOST_TILES = 4, 64
"""Tiles of a step, whatever their size."""
PROBE = 16
"""Of so many tiles of a step, the bounds of one decide about the others."""
WAITING_TILES = 4
"""Tiles full of promising windows that wait before they are compared."""
LONGEST_PAUSE = 32
"""Steps after which bounds are tried again at the latest."""
BOTH_WAYS = 4
"""Queries from which on bounds are taken in both directions: they share the ranges of the tiles."""
CLEARLY = 0.8
"""Share of the cost of comparing all that bounds may cost at most."""
BATCH = 128
"""Queries bounded at once: limits memory."""
BOUND_OPERATIONS, RANGE_OPERATIONS, PACK_OPERATIONS = 15, 40, 100
"""Cost per point of a bound, of the ranges that all queries share, and of packing, in vector operations (measured)."""

LARGEST = np.finfo(np.float32).max
"""What a distance is at most."""


def search(queries: Tiles, corpus: TiledCorpus, k: int, team: Team, seeds: Ints | None = None) -> Nearest:
    """The k windows of the corpus nearest to each query, exactly.

    Args:
        queries: Q single series.
        corpus: at least k windows.
        k: how many.
        team: threads to use.
        seeds: (Q, m) windows that are likely to be near, from another method; negative places are empty. They only
            save work, and do so from k of them on.
    """
    run = _Search(queries, corpus, k, team)
    if seeds is not None:
        run.start_from(seeds)
    for block in corpus.blocks(team):
        for tiles in run.steps(block):
            run.pass_by(tiles)
    run.compare_waiting(fewest=1)
    return run.nearest


class Nearest:
    """The k nearest windows of each query so far; of equally near ones, those that come first in the corpus.

    Attributes:
        item: (Q, k) positions in the corpus, nearest first.
        distance: (Q, k).
        within: (Q,) no farther window can be among the nearest.
    """

    def __init__(self, queries: int, k: int) -> None:
        self.item = np.full((queries, k), np.iinfo(np.int64).max)
        self.distance = np.full((queries, k), np.inf, np.float32)
        self.within = np.full(queries, np.inf, np.float32)

    def offer(self, query: int, items: Ints, distances: Floats) -> None:
        """Take in windows that were not offered before."""
        k = self.item.shape[1]
        if len(distances) > k:
            self.within[query] = min(self.within[query], np.partition(distances, k - 1)[k - 1])
        near = distances <= self.within[query]
        distance = np.append(self.distance[query], distances[near])
        item = np.append(self.item[query], items[near])
        order = np.lexsort((item, distance))[:k]
        self.distance[query], self.item[query] = distance[order], item[order]
        self.within[query] = min(self.within[query], distance[order[-1]])


class _Search:
    """What is known about each query while the corpus passes by."""

    def __init__(self, queries: Tiles, corpus: TiledCorpus, k: int, team: Team) -> None:
        count = len(queries.start)
        self.queries, self.corpus, self.team = queries, corpus, team
        self.nearest = Nearest(count, k)
        self.waiting = [(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in range(count)]
        self.pause = np.zeros(count, np.int64)
        self.failures = np.zeros(count, np.int64)

    def start_from(self, seeds: Ints) -> None:
        """Limit how far the nearest can be by the k-th nearest of the seeds."""
        k = self.nearest.item.shape[1]
        own = [np.unique(row[row >= 0]) for row in seeds]
        jobs = [(query, items) for query, items in enumerate(own) if len(items) >= k]
        for (query, _), distances in zip(jobs, self.team.each(self._compare, jobs), strict=True):
            self.nearest.within[query] = np.partition(distances, k - 1)[k - 1]

    def steps(self, block: Tiles) -> Iterator[Tiles]:
        """A block in pieces: what the first show spares work on the others."""
        depth = int(block.depth[-1])
        cells = int(block.stored.max()) * LANES * depth * (2 * radius(depth, depth, self.corpus.band) + 1)
        size = min(max(STEP_CELLS // (cells * len(self.pause)), FEWEST_TILES), MOST_TILES)
        for start in range(0, len(block.start), size):
            yield _select(block, slice(start, start + size))

    def pass_by(self, tiles: Tiles) -> None:
        """Compare the queries with a step of the corpus, or keep what may be near for later."""
        for start in range(0, len(self.pause), BATCH):
            batch = np.arange(start, min(start + BATCH, len(self.pause)))
            trying = (self.pause[batch] == 0) & (self.nearest.within[batch] < LARGEST)
            trying[trying] = self._bound(batch[trying], tiles)
            left = batch[~trying]
            if len(left):
                self._compare_all(left, tiles)
            self.pause[left] = np.maximum(self.pause[left] - 1, 0)
        self.compare_waiting(fewest=WAITING_TILES * LANES)

    def _bound(self, trying: Ints, tiles: Tiles) -> NDArray[np.bool_]:
        """For which of the queries bounds pay in this step; what may be near to these is waiting now."""
        if not len(trying):
            return np.empty(0, bool)
        few = -(-len(tiles.start) // PROBE)
        probe, rest = _select(tiles, slice(0, few)), _select(tiles, slice(few, None))
        bounds = self._bounds(trying, probe)
        pays = self._pays(trying, tiles, (bounds <= self.nearest.within[trying, None]).mean(axis=1))
        self.failures[trying] = np.where(pays, 0, self.failures[trying] + 1)
        self.pause[trying] = np.where(pays, 0, np.minimum(2 ** self.failures[trying], LONGEST_PAUSE))
        chosen = trying[pays]
        if len(chosen):
            bounds = np.hstack([bounds[pays], self._bounds(chosen, rest)])
            self._wait(chosen, tiles.items.reshape(-1), bounds)
        return pays

    def _bounds(self, chosen: Ints, tiles: Tiles) -> Floats:
        """(chosen, lanes) lower bounds, a little lower still by what rounding may have added."""
        count = len(tiles.start)
        out = np.empty((len(chosen), count * LANES), np.float32)
        if not count:
            return out
        queries, deepest = _select(self.queries, chosen), int(tiles.depth.max())
        corpus, both = self.corpus, len(chosen) >= BOTH_WAYS

        def work(first: int, last: int) -> None:
            scratch = ranges(queries, deepest)
            bound(queries, tiles, first, last, corpus.joint, both, corpus.band, scratch, out.reshape(-1))

        self.team.share(work, count)
        terms = int(self.queries.depth.max()) + deepest + self.queries.slots.shape[1] + 2
        sure: Floats = np.minimum(out, LARGEST) * np.float32(1 - 4 * terms * 2.0**-24)
        return sure

    def _pays(self, chosen: Ints, tiles: Tiles, share: Floats) -> NDArray[np.bool_]:
        """Whether bounds, and comparing the share of windows that they leave, cost clearly less than comparing all."""
        corpus, channels = self.corpus, tiles.slots.shape[1]
        reach = [radius(int(self.queries.depth[query]), int(tiles.depth[-1]), corpus.band) for query in chosen]
        compare = (2 + 3 / channels if corpus.joint else 4) * (2 * np.array(reach) + 1)
        bounding = BOUND_OPERATIONS + RANGE_OPERATIONS / len(chosen) * (len(chosen) >= BOTH_WAYS)
        pays: NDArray[np.bool_] = bounding + share * (compare + PACK_OPERATIONS) < CLEARLY * compare
        return pays

    def _wait(self, chosen: Ints, items: Ints, bounds: Floats) -> None:
        for query, own in zip(chosen, bounds, strict=True):
            near = (own <= self.nearest.within[query]) & (items >= 0)
            before = self.waiting[query]
            self.waiting[query] = np.append(before[0], items[near]), np.append(before[1], own[near])

    def compare_waiting(self, fewest: int) -> None:
        """Compare the windows that wait, where there are enough of them.

        The most promising go first: what they show often rules out the others.
        """
        ready = [query for query, (items, _) in enumerate(self.waiting) if len(items) >= fewest]
        for query in ready:
            items, bounds = self.waiting[query]
            order = np.argsort(bounds, kind="stable")
            self.waiting[query] = items[order], bounds[order]
        for most in (LANES, None):
            jobs = [(query, items) for query in ready for items in self._take(query, most, whole=fewest > 1)]
            for (query, items), distances in zip(jobs, self.team.each(self._compare, jobs), strict=True):
                self.nearest.offer(query, items, distances)

    def _take(self, query: int, most: int | None, *, whole: bool) -> list[Ints]:
        """Take up to `most` windows that wait, in portions of two tiles; only full tiles if they must be whole."""
        items, bounds = self.waiting[query]
        count = int(np.searchsorted(bounds, self.nearest.within[query], side="right"))
        taken = count if most is None else min(most, count)
        if whole:
            taken -= taken % LANES
        self.waiting[query] = items[taken:count], bounds[taken:count]
        return [items[start : min(start + 2 * LANES, taken)] for start in range(0, taken, 2 * LANES)]

    def _compare(self, job: tuple[int, Ints]) -> Floats:
        """Distances of one query to some windows, in the calling thread."""
        query, items = job
        alone = Team(1)
        tiles = self.corpus.pack(items, alone)
        return self.corpus.scan(_select(self.queries, slice(query, query + 1)), tiles, alone)[0, : len(items)]

    def _compare_all(self, chosen: Ints, tiles: Tiles) -> None:
        items = tiles.items[tiles.items >= 0]
        distances = self.corpus.scan(_select(self.queries, chosen), tiles, self.team)
        for query, own in zip(chosen, distances, strict=True):
            self.nearest.offer(query, items, own[: len(items)])


def _select(tiles: Tiles, chosen: slice | Ints) -> Tiles:
    """Some of the tiles; the values stay where they are."""
    return Tiles(tiles.values, *(field[chosen] for field in tiles[1:]))
