"""Dynamic time warping of one query against `LANES` series at once, and the tiles in which the series lie.

**Recursion.** D(i, j) = cost(i, j) + min(D(i-1, j), D(i, j-1), D(i-1, j-1)) leaves little to vectorise inside one pair
of series. Across pairs everything is alike: each lane of a vector holds its own series, and all lanes walk the same
band. Two rows are computed in one pass, so that a column of the series and of the row before is read once for two
cells, and the row is updated in place.

Series of different length share a tile. A lane's result stands in its own last column, which later columns cannot
reach. Where the lanes' bands differ in width, a penalty of infinity closes the cells outside a lane's own band, in the
few columns at the edges where that can happen.

All sums are of squares, in float32: the relative error of a distance over C channels is below
(T1 + T2 + C + 2) 2^-24. It does not depend on which series share a tile.

**Tiles.** A tile holds as many windows as a vector has lanes, of any length and channels, scaled, on a common channel
axis, one series per lane. Only the channels that one of them has are stored. Reading, scaling and transposing are one
pass over the values, so that a corpus that is larger than memory can be streamed through a few tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numba import carray, types
from numpy.typing import NDArray

from readbench.engine.kernels.compiling import (
    Node,
    add,
    add_square,
    compiled,
    inlined,
    least_cost,
    make_load,
    make_splat,
    store,
    subtract,
    wide_registers,
)
from readbench.engine.kernels.memory import BLOCK, allocate_aligned, floats_at, transpose_block
from readbench.engine.kernels.threads import Team
from readbench.engine.preparation import MAX_SCORE, RESOLUTION, Alignment, Scaler
from readbench.engine.windows import WindowSet

LANES: Final = 64 if wide_registers() else 32
"""Series compared at once: as many as keep two rows of the recursion in registers."""

load = make_load(LANES)
splat = make_splat(LANES)


Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_INF = np.float32(np.inf)
_ZERO = np.float32(0)
_floats, _ints, _int, _float = types.float32[::1], types.int64[::1], types.intp, types.float64


@compiled(_int(_int, _int, _float))
def radius(left: int, right: int, band: float) -> int:
    """Sakoe-Chiba radius for two lengths: a share of the longer one, and wide enough that a path exists.

    >>> radius(256, 256, 0.1), radius(256, 200, 0.1), radius(3, 3, 0.1)
    (26, 57, 1)
    """
    share = int(np.rint(band * max(left, right)))
    return max(1, share, abs(left - right) + 1)


@compiled(types.UniTuple(_int, 2)(_int, _ints, _float, _ints, _floats))
def set_penalty(length: int, lengths: Ints, band: float, radii: Ints, penalty: Floats) -> tuple[int, int]:
    """Write what a cell |i - j| off the diagonal costs each lane extra: nothing, or infinity outside its band.

    Args:
        length: of the query.
        lengths: (LANES,) of the series.
        band: radius as a share of the longer length.
        radii: (LANES,) overwritten.
        penalty: (R + 2, LANES) flat, for offsets 0 to R + 1, where R is the largest radius; overwritten.

    Returns:
        The smallest and the largest radius of the lanes.
    """
    narrow = wide = radius(length, lengths[0], band)
    for lane in range(LANES):
        radii[lane] = radius(length, lengths[lane], band)
        narrow, wide = min(narrow, radii[lane]), max(wide, radii[lane])
    for offset in range(wide + 2):
        costs = penalty[offset * LANES : (offset + 1) * LANES]
        for lane in range(LANES):
            costs[lane] = _ZERO if offset <= radii[lane] else _INF
    return narrow, wide


@inlined
def _begin(row: Floats, depth: int) -> None:
    """The row before the first: nothing can be reached from it, and column -1 never will be."""
    for column in range(depth + 1):
        store(row, column * LANES, splat(_INF))


@inlined
def _closed(lanes: Node, penalty: Floats, offset: int) -> Node:
    return add(lanes, load(penalty, abs(offset) * LANES))


@compiled(types.none(_floats, _floats, _floats, _floats, _int, _int, _int))
def warp_channel(  # noqa: D417 - the text names the rest
    query: Floats, series: Floats, row: Floats, penalty: Floats, depth: int, narrow: int, wide: int
) -> None:
    """Accumulated cost of one channel: leaves D(last, j) in `row` at (j + 1) * LANES.

    Args:
        query: (T1,).
        series: (depth, LANES) flat.
        row: (depth + 1, LANES) flat, overwritten.
        penalty: from `set_penalty`, and its results `narrow` and `wide`.
    """
    _begin(row, depth)
    # Rows go two by two. Of an odd number the first goes alone: within it, costs can only add up from the left.
    odd = len(query) % 2
    if odd:
        total, point = splat(_ZERO), splat(query[0])
        for j in range(min(depth, wide + 1)):
            total = _closed(add_square(total, subtract(point, load(series, j * LANES))), penalty, j)
            store(row, (j + 1) * LANES, total)
    else:
        store(row, 0, splat(_ZERO))  # D(-1, -1): every path begins here
    for i in range(odd, len(query), 2):
        first, second = splat(query[i]), splat(query[i + 1])
        start, stop = max(0, i - wide), min(depth, i + wide + 2)  # the bands of rows i and i + 1 together
        left0 = left1 = splat(_INF)
        diagonal = load(row, start * LANES)
        for j in range(start, stop):
            value, above = load(series, j * LANES), load(row, (j + 1) * LANES)
            # Within the narrowest band of the lanes no cell is closed to any of them in either row.
            edge = j <= i - narrow or j > i + narrow
            new0 = add_square(least_cost(least_cost(above, diagonal), left0), subtract(first, value))
            if edge:
                new0 = _closed(new0, penalty, i - j)
            # Below new0 = D(i, j): its neighbours are D(i, j - 1), D(i + 1, j - 1) and new0 itself.
            left1 = add_square(least_cost(least_cost(left0, left1), new0), subtract(second, value))
            if edge:
                left1 = _closed(left1, penalty, i + 1 - j)
            left0, diagonal = new0, above
            store(row, (j + 1) * LANES, left1)
        if i == 0:
            store(row, 0, splat(_INF))  # no path begins later


@compiled(types.none(_floats, _floats, _ints, _ints, _floats, _floats, _int, _int, _int))
def warp_jointly(  # noqa: D417, PLR0913, PLR0917 - as many as the recursion has
    query: Floats,
    series: Floats,
    base: Ints,
    step: Ints,
    row: Floats,
    penalty: Floats,
    depth: int,
    narrow: int,
    wide: int,
) -> None:
    """Accumulated cost of K channels on one path: leaves D(last, j) in `row` at (j + 1) * LANES.

    Args:
        query: (T1, K) flat.
        series: column j of channel k is at `base[k] + j * step[k]`, LANES wide.
        base: (K,).
        step: (K,); zero for a channel that is zero throughout.
        row: (depth + 1, LANES) flat, overwritten.
        penalty: from `set_penalty`, and its results `narrow` and `wide`.
    """
    # The recursion of `warp_channel`, with the cost of a cell summed over the channels first.
    channels = len(base)
    length = len(query) // channels
    _begin(row, depth)
    odd = length % 2
    if odd:
        total = splat(_ZERO)
        for j in range(min(depth, wide + 1)):
            cost = splat(_ZERO)
            for k in range(channels):
                cost = add_square(cost, subtract(splat(query[k]), load(series, base[k] + j * step[k])))
            total = _closed(add(total, cost), penalty, j)
            store(row, (j + 1) * LANES, total)
    else:
        store(row, 0, splat(_ZERO))
    for i in range(odd, length, 2):
        start, stop = max(0, i - wide), min(depth, i + wide + 2)
        left0 = left1 = splat(_INF)
        diagonal = load(row, start * LANES)
        for j in range(start, stop):
            cost0 = cost1 = splat(_ZERO)
            for k in range(channels):
                value = load(series, base[k] + j * step[k])
                cost0 = add_square(cost0, subtract(splat(query[i * channels + k]), value))
                cost1 = add_square(cost1, subtract(splat(query[(i + 1) * channels + k]), value))
            above = load(row, (j + 1) * LANES)
            edge = j <= i - narrow or j > i + narrow
            new0 = add(cost0, least_cost(least_cost(above, diagonal), left0))
            if edge:
                new0 = _closed(new0, penalty, i - j)
            left1 = add(cost1, least_cost(least_cost(left0, left1), new0))
            if edge:
                left1 = _closed(left1, penalty, i + 1 - j)
            left0, diagonal = new0, above
            store(row, (j + 1) * LANES, left1)
        if i == 0:
            store(row, 0, splat(_INF))


_LARGEST = float(np.finfo(np.float32).max)
_double, _series = types.float64, types.float32[::1]
_whole, _table = types.int64[::1], types.int64[:, ::1]


class Tiles(NamedTuple):
    """Windows in tiles, in the order in which compiled code takes them.

    Args:
        values: one vector of zeros, then the tiles, flat; a tile is (channels, depth, lanes), or
            (depth, channels, lanes) where channels are interleaved.
        start: (n,) where each tile begins.
        depth: (n,) length of its longest window.
        shortest: (n,) length of its shortest window.
        stored: (n,) channels that it has.
        slots: (n, C) which of the tile's channels is channel c of the axis; -1 where none of its windows has it.
        lengths: (n, lanes) of the windows.
        items: (n, lanes) position of the window in its set; -1 in a lane to spare, which repeats the one before.
    """

    values: Floats
    start: Ints
    depth: Ints
    shortest: Ints
    stored: Ints
    slots: Ints
    lengths: Ints
    items: Ints


TILES: Final = types.NamedTuple((types.float32[::1], *[_whole] * 4, *[_table] * 3), Tiles)
"""The same for compiled code."""
_FILL = types.boolean(
    *(_whole, types.int32[::1], _table, _double[:, ::1], _double[:, ::1], types.boolean, _double, TILES),
    *(types.boolean, types.intp, types.intp),
)


@dataclass(frozen=True, eq=False)
class TileRows:
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
    def of(cls, windows: WindowSet, axis: tuple[str, ...], align: Alignment, scaler: Scaler) -> TileRows:
        """Rows matched to the axis by name or position, on the scaler's scale."""
        if scaler.norm == "before":  # each window on a scale of its own
            windows, scaler = scaler(windows), Scaler("none")
        shape = len(windows.channel_sets), len(axis)
        row, mean, scale = np.full(shape, -1, np.int64), np.zeros(shape), np.ones(shape)
        place = {name: c for c, name in enumerate(axis)}
        for s, names in enumerate(windows.channel_sets):
            to = np.array([place.get(name, -1) if align == "name" else r for r, name in enumerate(names)], np.intp)
            own = np.flatnonzero((to >= 0) & (to < len(axis)))
            row[s, to[own]] = own
            if scaler.stats is not None:
                level, deviation = scaler.moments(names)
                mean[s, to[own]], scale[s, to[own]] = level[own], 1 / deviation[own]
        limit = np.inf if scaler.norm == "none" else MAX_SCORE
        return cls(windows, row, mean, scale, own=scaler.norm == "window", limit=limit)


def pack(
    rows: TileRows,
    items: Ints,
    team: Team,
    *,
    lanes: int = LANES,
    interleaved: bool = False,
    memory: Callable[[int], Floats] = allocate_aligned,
) -> Tiles:
    """Tiles of the windows at `items`, in that order, `lanes` at a time.

    Args:
        rows: where the values come from.
        items: (n,) positions in the set, at least one.
        team: threads to do it with.
        lanes: windows per tile; 1 gives plain series, as queries are kept.
        interleaved: all channels of a timestep together, as the joint cost reads them.
        memory: gives an array for so many values, which begins on a cache line.
    """
    windows, count = rows.windows, -(-len(items) // lanes)
    filled = np.append(items, np.full(count * lanes - len(items), items[-1]))
    lengths = windows.lengths[filled].astype(np.int64).reshape(count, lanes)
    depth = lengths.max(axis=1)
    present = (rows.row[windows.channel_set[filled]] >= 0).reshape(count, lanes, -1).any(axis=1)
    stored = present.sum(axis=1)
    size = stored * depth * lanes
    start = lanes + np.cumsum(size) - size  # behind the vector of zeros, to which channels point that a tile lacks
    tiles = Tiles(
        values=memory(lanes + int(size.sum())),
        start=start,
        depth=depth,
        shortest=lengths.min(axis=1),
        stored=stored,
        slots=np.where(present, present.cumsum(axis=1) - 1, -1),
        lengths=lengths,
        items=np.append(items, np.full(len(filled) - len(items), -1)).reshape(count, lanes),
    )
    tiles.values[:lanes] = 0
    # Compiled code takes no list of arrays of any number: it is told where in memory the windows are.
    buffers = np.array([buffer.ctypes.data for buffer in windows.chunks])
    where = buffers[windows.chunk[filled]] + 4 * windows.offset[filled], windows.channel_set[filled]
    how = rows.row, rows.mean, rows.scale, rows.own, rows.limit

    def work(first: int, last: int) -> None:
        if not _fill(*where, *how, tiles, interleaved, first, last):  # type: ignore[arg-type]
            windows[items[first * lanes : last * lanes]].require_finite()

    team.share(work, count)
    return tiles


def select_tiles(tiles: Tiles, chosen: slice | Ints) -> Tiles:
    """Some of the tiles; the values stay where they are."""
    return Tiles(tiles.values, *(field[chosen] for field in tiles[1:]))


@compiled(types.UniTuple(_double, 2)(_series), any_order=True)
def _moments(series: Floats) -> tuple[float, float]:
    """Mean and inverse deviation in float64; the latter is zero where float32 does not resolve the spread."""
    total = 0.0
    for t in range(len(series)):
        total += series[t]
    mean = total / len(series)
    square = 0.0
    for t in range(len(series)):
        square += (series[t] - mean) ** 2
    std = np.sqrt(square / len(series))
    return mean, 1 / std if std > abs(mean) * RESOLUTION else 0.0


@compiled(types.boolean(_series, _double, _double, _double, types.float32[::1]))
def _scale(series: Floats, mean: float, scale: float, limit: float, target: Floats) -> bool:
    """Write the scaled series; False where a value is not finite."""
    strange = 0
    for t in range(len(series)):
        value = np.float64(series[t])
        strange += not abs(value) <= _LARGEST  # so written it is true of NaN; counted, not branched on, it vectorises
        target[t] = np.float32(min(max((value - mean) * scale, -limit), limit))
    return strange == 0


@compiled(types.none(_series, *[types.intp] * 2, _series, *[types.intp] * 2))
def _write(buffer: Floats, depth: int, width: int, values: Floats, target: int, step: int) -> None:
    """Series i of (width, depth) becomes values[target + i::step], by whole blocks where there are any."""
    for t in range(0, depth, BLOCK):
        if width == BLOCK and t + BLOCK <= depth:
            transpose_block(buffer, t, depth, values, target + t * step, step)
            continue
        for lane in range(width):
            for late in range(t, min(t + BLOCK, depth)):
                values[target + late * step + lane] = buffer[lane * depth + late]


@compiled(_FILL)
def _fill(  # noqa: PLR0913, PLR0917 - flat arrays in, flat arrays out
    address: Ints,
    kind: NDArray[np.int32],
    row: Ints,
    mean: NDArray[np.float64],
    scale: NDArray[np.float64],
    own: bool,  # noqa: FBT001
    limit: float,
    tiles: Tiles,
    interleaved: bool,  # noqa: FBT001
    first: int,
    last: int,
) -> bool:
    """Copy windows at (n * lanes,) addresses into tiles `first` to `last`; False where a value is not finite."""
    finite, lanes = True, tiles.lengths.shape[1]
    buffer = np.empty(BLOCK * max(tiles.depth), np.float32)
    for tile in range(first, last):
        depth = tiles.depth[tile]
        step = lanes * tiles.stored[tile] if interleaved else lanes
        for c in range(tiles.slots.shape[1]):
            slot = tiles.slots[tile, c]
            if slot < 0:
                continue
            target = tiles.start[tile] + slot * lanes * (1 if interleaved else depth)
            for group in range(0, lanes, BLOCK):
                width = min(BLOCK, lanes - group)
                for lane in range(width):
                    item, length = tile * lanes + group + lane, tiles.lengths[tile, group + lane]
                    r = row[kind[item], c]
                    if r >= 0:
                        series = carray(floats_at(address[item] + 4 * length * r), length)
                        centre, factor = _moments(series) if own else (mean[kind[item], c], scale[kind[item], c])
                        finite &= _scale(series, centre, factor, limit, buffer[lane * depth : (lane + 1) * depth])
                    # Zeros after the end of a series: no path to its last column sees them, and bounds stay bounds.
                    for t in range(length if r >= 0 else 0, depth):
                        buffer[lane * depth + t] = 0
                _write(buffer, depth, width, tiles.values, target + group, step)
    return finite
