"""Exact search for the nearest windows under DTW, by lower bounds, without computing all distances.

The corpus passes by in steps. For each query, lower bounds say which windows of a step may still be among its k
nearest; these wait in a list, the most promising first, until there are tiles full of them. Where a sample of the step
shows that too few would be ruled out, bounding costs more than it saves: then the whole step is compared, and the next
steps with it before bounds are tried again, so that a search takes no longer than comparing everything. What is found
does not depend on any of this.

The bound is LB_Keogh (Keogh and Ratanamahatana, 2005): each point of a series is matched with a point of the other at
most a radius away, so it costs at least its distance to the range of these. The bound is taken in both directions, the
larger counts for each channel. The first points are always matched with each other (LB_Kim; Kim, Park and Chu, 2001),
so that the range of the first is one point. The sum over channels bounds DTW-I, which bounds DTW-D.

In reading order: ranges and bounds, the nearest windows of each query so far (`Nearest`), the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from readbench.engine.kernels.compiling import (
    Node,
    add,
    add_square,
    compiled,
    greatest,
    inlined,
    least,
    store,
    subtract,
)
from readbench.engine.kernels.dtw import LANES, TILES, Floats, Ints, Tiles, load, radius, select_tiles, splat
from readbench.engine.kernels.dtw_corpus import TiledCorpus
from readbench.engine.kernels.memory import allocate_aligned
from readbench.engine.kernels.nearest import behind, replace_root
from readbench.engine.kernels.threads import Team

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
        high=allocate_aligned(longest * LANES),
        low=allocate_aligned(longest * LANES),
        spare_high=allocate_aligned(spare),
        spare_low=allocate_aligned(spare),
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
    # Two runs of `width` cover the window; where they overlap, a maximum does not mind.
    for j in range(depth):
        upper[j] = max(high[j], high[j + window - width])
        lower[j] = min(low[j], low[j + window - width])
    upper[0] = lower[0] = points[0]  # first points are matched with each other (LB_Kim)


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
        for lane in range(LANES):  # the widest band of the lanes bounds all of them
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
    if ours >= 0 and slot < 0:  # each point is matched with a zero at least once
        for i in range(begin, begin + length):
            backwards = add_square(backwards, splat(queries.values[i]))
    elif ours < 0 and slot >= 0:
        for j in range(depth):
            forwards = add_square(forwards, load(tiles.values, base + j * step))
    elif ours >= 0 and slot >= 0:
        upper, lower = own.upper[query, c], own.lower[query, c]
        for j in range(shortest):  # what comes later is not there in every lane
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
            own.ready[-1, 0] = 0  # the ranges of the tile are those of another channel
            for query in range(len(queries.start)):
                place = (query * len(tiles.start) + tile) * LANES
                _bound_channel(queries, query, tiles, tile, c, joint, both, own, out, place)


_score_array, _place_array, _table = types.float32[::1], types.int64[::1], types.float32[:, ::1]


class Nearest:
    """The k nearest windows of each query so far; of equally near ones, those that come first in the corpus.

    Attributes:
        within: (Q,) no farther window can be among the nearest.
    """

    def __init__(self, queries: int, k: int) -> None:
        self.within = np.full(queries, np.inf, np.float32)
        self._items = np.full((queries, k), np.iinfo(np.int64).max)
        self._scores = np.full((queries, k), -np.inf, np.float32)

    @property
    def k(self) -> int:
        """How many are looked for."""
        return self._items.shape[1]

    def offer(self, queries: Ints, items: Ints, distances: Floats) -> None:
        """Take in windows that were not offered before.

        Args:
            queries: (m,) which queries.
            items: (n,) positions in the corpus; negative ones are passed over.
            distances: (m, n).
        """
        _offer(queries, items, distances, self._scores, self._items, self.within)

    def rank(self) -> tuple[Ints, Floats]:
        """Positions (Q, k) and distances (Q, k), nearest first; nothing can be offered after this."""
        _rank(self._scores, self._items)
        return self._items, np.negative(self._scores)


@compiled(types.none(_place_array, _place_array, _table, _table, types.int64[:, ::1], _score_array))
def _offer(queries: Ints, items: Ints, distances: Floats, heap: Floats, heap_items: Ints, within: Floats) -> None:
    """Update the heaps (Q, k) of negative distances, and what is within reach of them."""
    for row in range(len(queries)):
        query = queries[row]
        for place in range(len(items)):
            distance, item = distances[row, place], items[place]
            # Seeds may limit `within` before the heap is full; what is as far as the limit may win by its position.
            if distance > within[query] or item < 0:
                continue
            if behind(heap[query, 0], heap_items[query, 0], -distance, item):
                replace_root(heap[query], heap_items[query], -distance, item)
                within[query] = min(within[query], -heap[query, 0])


@compiled(types.none(_table, types.int64[:, ::1]))
def _rank(heap: Floats, heap_items: Ints) -> None:
    """Sort heaps (Q, k) in place, best first: the worst of what is left goes behind the rest, again and again."""
    for query in range(len(heap)):
        scores, items = heap[query], heap_items[query]
        for last in range(len(scores) - 1, 0, -1):
            score, item = scores[last], items[last]
            scores[last], items[last] = scores[0], items[0]
            replace_root(scores[:last], items[:last], score, item)


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
MOST_STEPS_WITHOUT_BOUNDS = 32
"""Steps after which bounds are tried again at the latest."""
QUERIES_FOR_REVERSE_BOUNDS = 4
"""Queries from which on bounds are taken in both directions: they share the ranges of the tiles."""
BOUND_COST_SHARE = 0.75
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
    return run.nearest.rank()


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
        at_once = len(self.pause) < QUERIES_FOR_REVERSE_BOUNDS and len(self.corpus) <= MOST_TILES * LANES
        fewest = MOST_TILES if at_once else FEWEST_TILES
        size = min(max(STEP_CELLS // (cells * len(self.pause)), fewest), MOST_TILES)
        start = 0
        while start < len(block.start):
            stop = start + size * max(1, int(self.pause.min()))
            yield select_tiles(block, slice(start, stop))
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
        self.pause[trying] = np.where(pays, 0, np.minimum(2 ** self.failures[trying], MOST_STEPS_WITHOUT_BOUNDS))
        return pays

    def _share_left(self, chosen: Ints, bounds: Floats) -> Floats:
        """(chosen,) share of the windows that bounds (chosen, lanes) leave."""
        share: Floats = (bounds <= self.nearest.within[chosen, None]).mean(axis=1)
        return share

    def _share_of_sample(self, trying: Ints, tiles: Tiles) -> Floats:
        """(trying,) about which share of a step bounds would leave, by those of a few channels of its first tiles."""
        channels = self.queries.slots.shape[1]
        every = max(1, channels // PROBE_CHANNELS)
        sample = select_tiles(tiles, slice(0, -(-len(tiles.start) // PROBE_TILES)))
        bounds = self._bounds(trying, sample, every) * np.float32(channels / len(range(0, channels, every)))
        return self._share_left(trying, bounds)

    def _bounds(self, chosen: Ints, tiles: Tiles, every: int = 1) -> Floats:
        """(chosen, lanes) lower bounds, a little lower still by what rounding may have added."""
        count = len(tiles.start)
        out = np.empty((len(chosen), count * LANES), np.float32)
        queries, deepest = select_tiles(self.queries, chosen), int(tiles.depth.max())
        corpus, both = self.corpus, len(chosen) >= QUERIES_FOR_REVERSE_BOUNDS

        def work(first: int, last: int) -> None:
            scratch = ranges(queries, deepest)
            bound(queries, tiles, first, last, corpus.joint, both, every, corpus.band, scratch, out.reshape(-1))

        self.team.share(work, count)
        # A distance and a bound are each off by up to `terms` roundings of 2^-24; twice that is allowed for.
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
        bounding = BOUND_OPERATIONS + RANGE_OPERATIONS / len(chosen) * (len(chosen) >= QUERIES_FOR_REVERSE_BOUNDS)
        fixed = QUERY_OPERATIONS / (lanes * int(tiles.stored.max() * tiles.depth[-1]))
        left = share + LANES / 2 / len(corpus)  # the half tile
        pays: NDArray[np.bool_] = fixed + bounding + left * (compare + PACK_OPERATIONS) < BOUND_COST_SHARE * compare
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
        queries = self.queries if len(chosen) == len(self.pause) else select_tiles(self.queries, chosen)
        distances = self.corpus.scan(queries, tiles, self.team)
        self.nearest.offer(chosen, tiles.items.reshape(-1), distances)
