"""Dynamic time warping of one query against `LANES` series at once.

The recursion D(i, j) = cost(i, j) + min(D(i-1, j), D(i, j-1), D(i-1, j-1)) leaves little to vectorise inside one pair
of series. Across pairs everything is alike: each lane of a vector holds its own series, and all lanes walk the same
band. Two rows are computed in one pass, so that a column of the series and of the row before is read once for two
cells, and the row is updated in place.

Series of different length share a tile. A lane's result stands in its own last column, which later columns cannot
reach. Where the lanes' bands differ in width, a penalty of infinity closes the cells outside a lane's own band, in the
few columns at the edges where that can happen.

All sums are of squares, in float32: the relative error of a distance over C channels is below
(T1 + T2 + C + 2) 2^-24. It does not depend on which series share a tile.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from readbench.kernels.compiling import Node, compiled, inlined
from readbench.kernels.lanes import add, add_square, least_cost, store, subtract
from readbench.retrieve.kernels.dtw_lanes import LANES, load, splat

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
    odd = len(query) % 2
    if odd:
        total, point = splat(_ZERO), splat(query[0])
        for j in range(min(depth, wide + 1)):
            total = _closed(add_square(total, subtract(point, load(series, j * LANES))), penalty, j)
            store(row, (j + 1) * LANES, total)
    else:
        store(row, 0, splat(_ZERO))
    for i in range(odd, len(query), 2):
        first, second = splat(query[i]), splat(query[i + 1])
        start, stop = max(0, i - wide), min(depth, i + wide + 2)
        left0 = left1 = splat(_INF)
        diagonal = load(row, start * LANES)
        for j in range(start, stop):
            value, above = load(series, j * LANES), load(row, (j + 1) * LANES)
            edge = j <= i - narrow or j > i + narrow
            new0 = add_square(least_cost(least_cost(above, diagonal), left0), subtract(first, value))
            if edge:
                new0 = _closed(new0, penalty, i - j)
            left1 = add_square(least_cost(least_cost(left0, left1), new0), subtract(second, value))
            if edge:
                left1 = _closed(left1, penalty, i + 1 - j)
            left0, diagonal = new0, above
            store(row, (j + 1) * LANES, left1)
        if i == 0:
            store(row, 0, splat(_INF))


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
