"""Exact search for the nearest windows under DTW: lower bounds rule most of the corpus out.

The corpus is searched in steps. Each step computes a lower bound of every distance, compares the windows whose bound
is below the k-th best distance so far, smallest bounds first, and rules the others out. Where a sample of the step
shows that too few would be ruled out, the whole step is compared, and so are the next ones before bounds are tried
again. The result is that of the full scan in every case. Abandoning a comparison early, without bounds, takes 1.8 to 3
times as long on random walks and on clustered windows.

The bound is LB_Keogh (Keogh and Ratanamahatana, 2005): a point of one series is matched with a point of the other at
most a radius away, so it costs at least its distance to the range of these points. With several queries the bound is
taken in both directions, and the larger one counts per channel. The first points are always matched (LB_Kim; Kim, Park
and Chu, 2001), so the range of the first is one point. The sum over channels bounds DTW-I, which bounds DTW-D.

In reading order: ranges and bounds, the nearest windows of each query so far (`Nearest`), the search.
"""

from __future__ import annotations

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


@compiled(types.none(TILES, TILES, _int, _float, RANGES))
def _prepare(queries: Tiles, tiles: Tiles, tile: int, band: float, scratch: Ranges) -> None:
    """Each query's radius for a tile, and its ranges where they are not those of the tile before."""
    depth = tiles.depth[tile]
    for query in range(len(queries.start)):
        length, reach = queries.depth[query], 0
        for lane in range(LANES):  # the widest band of the lanes bounds all of them
            reach = max(reach, radius(length, tiles.lengths[tile, lane], band))
        scratch.reach[query] = reach
        if scratch.ready[query, 0] == reach and scratch.ready[query, 1] == depth:
            continue
        scratch.ready[query, 0], scratch.ready[query, 1] = reach, depth
        for c in range(queries.slots.shape[1]):
            if queries.slots[query, c] >= 0:
                begin = queries.start[query] + queries.slots[query, c] * length
                points = queries.values[begin : begin + length]
                upper, lower = scratch.upper[query, c], scratch.lower[query, c]
                _range_of_points(points, depth, reach, upper, lower, scratch.spare_high, scratch.spare_low)


@compiled(types.none(TILES, _int, TILES, _int, _int, types.boolean, types.boolean, RANGES, _floats, _int))
def _bound_channel(  # noqa: PLR0913, PLR0917
    queries: Tiles,
    query: int,
    tiles: Tiles,
    tile: int,
    c: int,
    joint: bool,  # noqa: FBT001
    both: bool,  # noqa: FBT001
    scratch: Ranges,
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
        upper, lower = scratch.upper[query, c], scratch.lower[query, c]
        for j in range(shortest):  # what comes later is not there in every lane
            forwards = _outside(forwards, load(tiles.values, base + j * step), splat(lower[j]), splat(upper[j]))
        if both and (scratch.ready[-1, 0] != scratch.reach[query] or scratch.ready[-1, 1] != length):
            scratch.ready[-1, 0], scratch.ready[-1, 1] = scratch.reach[query], length
            _range_of_tile(tiles.values, base, step, depth, length, scratch.reach[query], scratch)
        for i in range(length if both else 0):
            value = splat(queries.values[begin + i])
            backwards = _outside(backwards, value, load(scratch.low, i * LANES), load(scratch.high, i * LANES))
    store(out, place, add(load(out, place), greatest(forwards, backwards)))


@compiled(types.none(TILES, TILES, _int, _int, types.boolean, types.boolean, _float, RANGES, _floats))
def bound(  # noqa: PLR0913, PLR0917
    queries: Tiles,
    tiles: Tiles,
    first: int,
    last: int,
    joint: bool,  # noqa: FBT001
    both: bool,  # noqa: FBT001
    band: float,
    scratch: Ranges,
    out: Floats,
) -> None:
    """Write lower bounds of all queries' distances to tiles `first` to `last` into `out` (Q, tiles, LANES), flat.

    Without `both`, only the distance of the windows to the queries' ranges counts: it needs no ranges of the tiles,
    which few queries would not repay.
    """
    for tile in range(first, last):
        _prepare(queries, tiles, tile, band, scratch)
        for query in range(len(queries.start)):
            store(out, (query * len(tiles.start) + tile) * LANES, splat(_ZERO))
        for c in range(queries.slots.shape[1]):
            scratch.ready[-1, 0] = 0  # the ranges of the tile are those of another channel
            for query in range(len(queries.start)):
                place = (query * len(tiles.start) + tile) * LANES
                _bound_channel(queries, query, tiles, tile, c, joint, both, scratch, out, place)


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
        """Number of windows kept per query."""
        return self._items.shape[1]

    def offer(self, queries: Ints, items: Ints, distances: Floats) -> None:
        """Update the nearest by windows that were not offered before.

        Args:
            queries: (m,) which queries.
            items: (n,) positions in the corpus; negative ones are skipped.
            distances: (m, n).
        """
        _offer(queries, items, distances, self._scores, self._items, self.within)

    def rank(self) -> tuple[Ints, Floats]:
        """Positions (Q, k) and distances (Q, k), nearest first."""
        distances = np.negative(self._scores)
        order = np.lexsort((self._items, distances))
        return np.take_along_axis(self._items, order, axis=1), np.take_along_axis(distances, order, axis=1)


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


FIRST_TILES = 16
"""Tiles of the first step; later steps double."""
STEP_PAIRS = 2**18
"""Pairs of query and window in the largest steps."""
PROBE_TILES = 16
"""One in so many tiles of a step is the sample that decides about bounds."""
MAX_PAUSE = 32
"""Most steps that are compared in full before bounds are tried again."""
QUERIES_FOR_REVERSE_BOUNDS = 4
"""Queries from which on bounds are taken in both directions: they share the ranges of the tiles."""
BOUND_COST_SHARE = 0.75
"""Largest cost of bounds and comparisons, as a share of comparing the whole step."""
BATCH = 128
"""Queries bounded at once; limits memory."""
BOUND_OPERATIONS, RANGE_OPERATIONS, PACK_OPERATIONS = 17, 45, 110
"""Measured cost per point, in vector operations: of a bound, of the ranges that all queries share, of packing."""
QUERY_OPERATIONS = 3 * 10**6
"""Cost of sorting the bounds of one query, per step."""

LARGEST = np.finfo(np.float32).max
"""Largest distance."""


def search(queries: Tiles, corpus: TiledCorpus, k: int, team: Team, seeds: Ints | None = None) -> tuple[Ints, Floats]:
    """The k windows of the corpus nearest to each query, exactly.

    Args:
        queries: Q single series.
        corpus: at least k windows.
        k: how many.
        team: threads to use.
        seeds: (Q, m) windows that are likely to be near, from another method; negative places are empty. With at
            least k of them they save work; they never change the result.

    Returns:
        Positions (Q, k) and distances (Q, k), nearest first; ties keep corpus order.
    """
    run = _Search(queries, corpus, k, team)
    if seeds is not None:
        run.start_from(seeds)
    size, largest = FIRST_TILES, max(FIRST_TILES, STEP_PAIRS // (len(queries.start) * LANES))
    for block in corpus.blocks(team):
        start = 0
        while start < len(block.start):
            run.compare_step(select_tiles(block, slice(start, start + size)))
            start, size = start + size, min(2 * size, largest)
    return run.nearest.rank()


class _Search:
    """State of a search: the nearest so far, and for which queries bounds pay.

    Attributes:
        nearest: the best so far.
        pause: (Q,) steps until bounds are tried again.
        failures: (Q,) trials in a row in which bounds did not pay.
    """

    def __init__(self, queries: Tiles, corpus: TiledCorpus, k: int, team: Team) -> None:
        count = len(queries.start)
        self.queries, self.corpus, self.team = queries, corpus, team
        self.nearest = Nearest(count, k)
        self.pause = np.zeros(count, np.int64)
        self.failures = np.zeros(count, np.int64)

    def start_from(self, seeds: Ints) -> None:
        """Limit the search by the k-th nearest of the seeds."""
        k = self.nearest.k
        jobs = [(query, items) for query, row in enumerate(seeds) if len(items := np.unique(row[row >= 0])) >= k]
        for (query, _), distances in zip(jobs, self.team.each(self._compare, jobs), strict=True):
            self.nearest.within[query] = np.partition(distances[0], k - 1)[k - 1]

    def compare_step(self, tiles: Tiles) -> None:
        """Update the nearest by the windows of a step."""
        trying = np.flatnonzero((self.pause == 0) & (self.nearest.within < LARGEST))
        self.pause = np.maximum(self.pause - 1, 0)
        whole = np.ones(len(self.pause), bool)
        for start in range(0, len(trying), BATCH):
            bounded = self._paying(trying[start : start + BATCH], tiles)
            whole[bounded] = False
            if len(bounded):
                self._compare_promising(bounded, tiles.items.reshape(-1), self._bounds(bounded, tiles))
        if whole.any():
            chosen = np.flatnonzero(whole)
            distances = self.corpus.scan(select_tiles(self.queries, chosen), tiles, self.team)
            self.nearest.offer(chosen, tiles.items.reshape(-1), distances)

    def _paying(self, trying: Ints, tiles: Tiles) -> Ints:
        """The queries for which bounds pay in this step, by the first of its tiles; the others pause."""
        sample = select_tiles(tiles, slice(0, -(-len(tiles.start) // PROBE_TILES)))
        share = (self._bounds(trying, sample) <= self.nearest.within[trying, None]).mean(axis=1)
        pays = self._cost(trying, tiles, share) < BOUND_COST_SHARE
        self.failures[trying] = np.where(pays, 0, self.failures[trying] + 1)
        self.pause[trying] = np.where(pays, 0, np.minimum(2 ** self.failures[trying], MAX_PAUSE))
        return trying[pays]

    def _cost(self, trying: Ints, tiles: Tiles, share: Floats) -> Floats:
        """(trying,) cost of bounds and of comparing the share that they leave; 1 is comparing the whole step."""
        channels, depth = tiles.slots.shape[1], int(tiles.depth[-1])
        reach = np.array([radius(length, depth, self.corpus.band) for length in self.queries.depth[trying].tolist()])
        compare = (2 + 3 / channels if self.corpus.joint else 4) * (2 * reach + 1)
        ranges_shared = RANGE_OPERATIONS / len(trying) * (len(trying) >= QUERIES_FOR_REVERSE_BOUNDS)
        sorting = QUERY_OPERATIONS / (tiles.items.size * int(tiles.stored.max()) * depth)
        cost: Floats = (BOUND_OPERATIONS + ranges_shared + sorting + share * (compare + PACK_OPERATIONS)) / compare
        return cost

    def _bounds(self, chosen: Ints, tiles: Tiles) -> Floats:
        """(chosen, lanes) lower bounds, reduced by what rounding may have added."""
        out = np.empty((len(chosen), tiles.items.size), np.float32)
        queries, deepest = select_tiles(self.queries, chosen), int(tiles.depth.max())
        corpus, both = self.corpus, len(chosen) >= QUERIES_FOR_REVERSE_BOUNDS

        def work(first: int, last: int) -> None:
            scratch = ranges(queries, deepest)
            bound(queries, tiles, first, last, corpus.joint, both, corpus.band, scratch, out.reshape(-1))

        self.team.share(work, len(tiles.start))
        # A distance and a bound are each off by up to `terms` roundings of 2^-24; twice that is allowed for.
        terms = int(self.queries.depth.max()) + deepest + self.queries.slots.shape[1] + 2
        sure: Floats = np.minimum(out, LARGEST) * np.float32(1 - 4 * terms * 2.0**-24)
        return sure

    def _compare_promising(self, chosen: Ints, items: Ints, bounds: Floats) -> None:
        """Compare the windows (lanes,) whose bounds (chosen, lanes) are not too large.

        The most promising go first: what they show often rules out the others.
        """
        order = np.argsort(bounds, axis=1, kind="stable")
        for part in (slice(0, LANES), slice(LANES, None)):
            jobs = []
            for query, row, places in zip(chosen.tolist(), bounds, order[:, part], strict=True):
                near = items[places[row[places] <= self.nearest.within[query]]]
                near = near[near >= 0]
                jobs += [(query, near[start : start + 2 * LANES]) for start in range(0, len(near), 2 * LANES)]
            for (query, near), distances in zip(jobs, self.team.each(self._compare, jobs), strict=True):
                self.nearest.offer(np.array([query]), near, distances)

    def _compare(self, job: tuple[int, Ints]) -> Floats:
        """(1, n) distances of one query to some windows, in the calling thread."""
        query, items = job
        return self.corpus.compare(self.queries, query, items)
