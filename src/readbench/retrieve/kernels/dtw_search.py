"""Exact nearest windows without all distances.

The corpus passes by in steps. For each query, lower bounds say which windows of a step may still be among its k
nearest; these wait in a list, the most promising first, until there are tiles full of them. Where a sample of the step
shows that too few would be ruled out, bounding costs more than it saves: then the whole step is compared, and the next
steps with it before bounds are tried again, so that a search takes no longer than comparing everything. What is found
does not depend on any of this.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from readbench.kernels.threads import Team
from readbench.retrieve.kernels.dtw import Floats, Ints, radius
from readbench.retrieve.kernels.dtw_bounds import bound, ranges
from readbench.retrieve.kernels.dtw_corpus import TiledCorpus
from readbench.retrieve.kernels.dtw_lanes import LANES
from readbench.retrieve.kernels.dtw_nearest import Nearest
from readbench.retrieve.kernels.dtw_tiles import Tiles, selected

STEP_CELLS = 2**27
"""Cells of the recursion in a step: a few milliseconds of work."""
FEWEST_TILES, MOST_TILES = 4, 64
"""Tiles of a step, whatever their size.

Few queries are compared with a corpus of the most tiles at once: there, a trial costs more than it may spare.
"""
PROBE_TILES, PROBE_CHANNELS = 16, 8
"""Of so many tiles of a step, the bounds of one decide about all; about so many channels of it are enough."""
WAITING_TILES = 4
"""Tiles full of promising windows that wait before they are compared."""
LONGEST_PAUSE = 32
"""Steps after which bounds are tried again at the latest."""
BOTH_WAYS = 4
"""Queries from which on bounds are taken in both directions: they share the ranges of the tiles."""
CLEARLY = 0.75
"""Share of the cost of comparing all that bounds may cost at most."""
BATCH = 128
"""Queries bounded at once: limits memory."""
BOUND_OPERATIONS, RANGE_OPERATIONS, PACK_OPERATIONS = 17, 45, 110
"""Cost per point of a bound, of the ranges that all queries share, and of packing, in vector operations (measured)."""
QUERY_OPERATIONS = 3 * 10**6
"""Cost of keeping the list of a query that waits, per step."""

LARGEST = np.finfo(np.float32).max
"""What a distance is at most."""


def search(queries: Tiles, corpus: TiledCorpus, k: int, team: Team, seeds: Ints | None = None) -> tuple[Ints, Floats]:
    """The k windows of the corpus nearest to each query, exactly.

    Args:
        queries: Q single series.
        corpus: at least k windows.
        k: how many.
        team: threads to use.
        seeds: (Q, m) windows that are likely to be near, from another method; negative places are empty. They only
            save work, and do so from k of them on.

    Returns:
        Positions (Q, k) and distances (Q, k), nearest first; ties keep corpus order.
    """
    run = _Search(queries, corpus, k, team)
    if seeds is not None:
        run.start_from(seeds)
    for block in corpus.blocks(team):
        for tiles in run.steps(block):
            run.pass_by(tiles)
    run.compare_waiting(fewest=1)
    return run.nearest.ranked()


class _Search:
    """What is known about each query while the corpus passes by."""

    def __init__(self, queries: Tiles, corpus: TiledCorpus, k: int, team: Team) -> None:
        count = len(queries.start)
        self.queries, self.corpus, self.team = queries, corpus, team
        self.nearest = Nearest(count, k)
        self.waiting = [(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in range(count)]
        self.pause = np.zeros(count, np.int64)
        self.failures = np.ones(count, np.int64)

    def start_from(self, seeds: Ints) -> None:
        """Limit how far the nearest can be by the k-th nearest of the seeds."""
        k = self.nearest.k
        own = [np.unique(row[row >= 0]) for row in seeds]
        jobs = [(query, items) for query, items in enumerate(own) if len(items) >= k]
        for (query, _), distances in zip(jobs, self.team.each(self._compare, jobs), strict=True):
            self.nearest.within[query] = np.partition(distances[0], k - 1)[k - 1]

    def steps(self, block: Tiles) -> Iterator[Tiles]:
        """A block in pieces: what the first show spares work on the others.

        As long as no query tries bounds, steps pass by together.
        """
        depth = int(block.depth[-1])
        cells = int(block.stored.max()) * LANES * depth * (2 * radius(depth, depth, self.corpus.band) + 1)
        at_once = len(self.pause) < BOTH_WAYS and len(self.corpus) <= MOST_TILES * LANES
        fewest = MOST_TILES if at_once else FEWEST_TILES
        size = min(max(STEP_CELLS // (cells * len(self.pause)), fewest), MOST_TILES)
        start = 0
        while start < len(block.start):
            stop = start + size * max(1, int(self.pause.min()))
            yield selected(block, slice(start, stop))
            start = stop

    def pass_by(self, tiles: Tiles) -> None:
        """Compare the queries with a step of the corpus, or keep what may be near for later."""
        trying = np.flatnonzero((self.pause == 0) & (self.nearest.within < LARGEST))
        self.pause = np.maximum(self.pause - max(1, self.pause.min()), 0)
        bounded = np.zeros(len(self.pause), bool)
        for start in range(0, len(trying), BATCH):
            some = trying[start : start + BATCH]
            bounded[some] = self._bound(some, tiles)
        self._compare_all(np.flatnonzero(~bounded), tiles)
        if bounded.any():
            self.compare_waiting(fewest=WAITING_TILES * LANES)

    def _bound(self, trying: Ints, tiles: Tiles) -> NDArray[np.bool_]:
        """Which of the queries are bounded in this step; what may be near to these is waiting now.

        Where bounds paid in the step before, no sample is needed to try them again.
        """
        bounded = self.failures[trying] == 0
        doubtful = trying[~bounded]
        if len(doubtful):
            bounded[~bounded] = self._judge(doubtful, tiles, self._share_of_sample(doubtful, tiles))
        chosen = trying[bounded]
        if len(chosen):
            bounds = self._bounds(chosen, tiles)
            self._judge(chosen, tiles, self._share_left(chosen, bounds))
            self._wait(chosen, tiles.items.reshape(-1), bounds)
        return bounded

    def _judge(self, trying: Ints, tiles: Tiles, share: Floats) -> NDArray[np.bool_]:
        """For which queries it pays to bound a step where bounds leave such a share; the others pause."""
        pays = self._pays(trying, tiles, share)
        self.failures[trying] = np.where(pays, 0, self.failures[trying] + 1)
        self.pause[trying] = np.where(pays, 0, np.minimum(2 ** self.failures[trying], LONGEST_PAUSE))
        return pays

    def _share_left(self, chosen: Ints, bounds: Floats) -> Floats:
        """(chosen,) share of the windows that bounds (chosen, lanes) leave."""
        share: Floats = (bounds <= self.nearest.within[chosen, None]).mean(axis=1)
        return share

    def _share_of_sample(self, trying: Ints, tiles: Tiles) -> Floats:
        """(trying,) about which share of a step bounds would leave, by those of a few channels of its first tiles."""
        channels = self.queries.slots.shape[1]
        every = max(1, channels // PROBE_CHANNELS)
        sample = selected(tiles, slice(0, -(-len(tiles.start) // PROBE_TILES)))
        bounds = self._bounds(trying, sample, every) * np.float32(channels / len(range(0, channels, every)))
        return self._share_left(trying, bounds)

    def _bounds(self, chosen: Ints, tiles: Tiles, every: int = 1) -> Floats:
        """(chosen, lanes) lower bounds, a little lower still by what rounding may have added."""
        count = len(tiles.start)
        out = np.empty((len(chosen), count * LANES), np.float32)
        queries, deepest = selected(self.queries, chosen), int(tiles.depth.max())
        corpus, both = self.corpus, len(chosen) >= BOTH_WAYS

        def work(first: int, last: int) -> None:
            scratch = ranges(queries, deepest)
            bound(queries, tiles, first, last, corpus.joint, both, every, corpus.band, scratch, out.reshape(-1))

        self.team.share(work, count)
        terms = int(self.queries.depth.max()) + deepest + self.queries.slots.shape[1] + 2
        sure: Floats = np.minimum(out, LARGEST) * np.float32(1 - 4 * terms * 2.0**-24)
        return sure

    def _pays(self, chosen: Ints, tiles: Tiles, share: Floats) -> NDArray[np.bool_]:
        """Whether bounds, and comparing the share of windows that they leave, cost clearly less than comparing all.

        Half a tile of the whole corpus is compared in addition, because the last one is seldom full.
        """
        corpus, channels, lanes = self.corpus, tiles.slots.shape[1], tiles.items.size
        lengths, own = np.unique(self.queries.depth[chosen], return_inverse=True)
        reach = np.array([radius(int(length), int(tiles.depth[-1]), corpus.band) for length in lengths])[own]
        compare = (2 + 3 / channels if corpus.joint else 4) * (2 * reach + 1)
        bounding = BOUND_OPERATIONS + RANGE_OPERATIONS / len(chosen) * (len(chosen) >= BOTH_WAYS)
        fixed = QUERY_OPERATIONS / (lanes * int(tiles.stored.max() * tiles.depth[-1]))
        left = share + LANES / 2 / len(corpus)
        pays: NDArray[np.bool_] = fixed + bounding + left * (compare + PACK_OPERATIONS) < CLEARLY * compare
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
                self.nearest.offer(np.array([query]), items, distances)

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
        """(1, n) distances of one query to some windows, in the calling thread."""
        query, items = job
        return self.corpus.compare(self.queries, query, items)

    def _compare_all(self, chosen: Ints, tiles: Tiles) -> None:
        if not len(chosen):
            return
        queries = self.queries if len(chosen) == len(self.pause) else selected(self.queries, chosen)
        distances = self.corpus.scan(queries, tiles, self.team)
        self.nearest.offer(chosen, tiles.items.reshape(-1), distances)
