"""Windows as tiles: scaled, on a common channel axis, and laid out with one series per lane.

A tile holds as many windows as a vector has lanes, of any length and channels. Only the channels that one of them has
are stored. Reading, scaling and transposing are one pass over the values, so that a corpus that is larger than memory
can be streamed through a few tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numba import carray, types
from numpy.typing import NDArray

from readbench.kernels.compiling import compiled
from readbench.kernels.memory import BLOCK, aligned, floats_at, transpose_block
from readbench.kernels.threads import Team
from readbench.retrieve.kernels.dtw_lanes import LANES
from readbench.windows import Normalisation, WindowSet
from readbench.windows.reconcile import LARGEST_SCORE, Alignment, ChannelStats

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_RESOLUTION = float(np.finfo(np.float32).eps)
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
class Rows:
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
    def of(
        cls,
        windows: WindowSet,
        axis: tuple[str, ...],
        align: Alignment,
        norm: Normalisation,
        stats: ChannelStats | None,
    ) -> Rows:
        """Rows matched to the axis by name or position; `stats` scale them unless the mode does without."""
        shape = len(windows.channel_sets), len(axis)
        row, mean, scale = np.full(shape, -1, np.int64), np.zeros(shape), np.ones(shape)
        place = {name: c for c, name in enumerate(axis)}
        for s, names in enumerate(windows.channel_sets):
            for r, name in enumerate(names):
                c = place.get(name, -1) if align == "name" else r
                if 0 <= c < len(axis):
                    row[s, c] = r
                    if stats is not None:
                        mean[s, c], scale[s, c] = _location_scale(stats, name)
        return cls(windows, row, mean, scale, own=norm == "window", limit=np.inf if norm == "none" else LARGEST_SCORE)


def _location_scale(stats: ChannelStats, name: str) -> tuple[float, float]:
    """Mean and inverse deviation, which is zero where the spread is below what float32 resolves."""
    mean, std = stats.mean.get(name, 0.0), stats.std.get(name, 0.0)
    return mean, 1 / std if std > abs(mean) * _RESOLUTION else 0.0


def pack(
    rows: Rows,
    items: Ints,
    team: Team,
    *,
    lanes: int = LANES,
    interleaved: bool = False,
    memory: Callable[[int], Floats] = aligned,
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
    start = lanes + np.cumsum(size) - size
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
    buffers = np.array([buffer.ctypes.data for buffer in windows.chunks])
    where = buffers[windows.chunk[filled]] + 4 * windows.offset[filled], windows.channel_set[filled]
    how = rows.row, rows.mean, rows.scale, rows.own, rows.limit

    def work(first: int, last: int) -> None:
        if not _fill(*where, *how, tiles, interleaved, first, last):  # type: ignore[arg-type]
            windows[items[first * lanes : last * lanes]].require_finite()

    team.share(work, count)
    return tiles


def selected(tiles: Tiles, chosen: slice | Ints) -> Tiles:
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
    return mean, 1 / std if std > abs(mean) * _RESOLUTION else 0.0


@compiled(types.boolean(_series, _double, _double, _double, types.float32[::1]))
def _scale(series: Floats, mean: float, scale: float, limit: float, target: Floats) -> bool:
    """Write the scaled series; False where a value is not finite."""
    strange = 0
    for t in range(len(series)):
        value = np.float64(series[t])
        strange += not abs(value) <= _LARGEST
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
                    for t in range(length if r >= 0 else 0, depth):
                        buffer[lane * depth + t] = 0
                _write(buffer, depth, width, tiles.values, target + group, step)
    return finite
