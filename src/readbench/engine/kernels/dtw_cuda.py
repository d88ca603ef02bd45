"""DTW of queries with all windows of a corpus on a GPU.

Tiles are packed as on the CPU, and `dtw_cuda.cu` is compiled for the bands at hand. Torch brings the memory, and the
compiler (NVRTC). Results equal those of the CPU up to rounding: cells are the same sums of squares in float32, in the
same order along a path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from readbench.engine.kernels.dtw import TileRows, Tiles, pack, radius
from readbench.engine.kernels.dtw_corpus import TiledCorpus
from readbench.engine.kernels.dtw_search import Nearest
from readbench.engine.kernels.sending import Lane, Transfer, prefetch
from readbench.engine.kernels.threads import Team
from readbench.errors import UsageError

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Tensor = Any
"""Of torch, an optional package: its types cannot be named here."""

LANES: Final = 32
"""Windows of a tile: the threads of a warp."""
WARPS: Final = 4
BLOCK_BYTES = 2**28
"""Tiles that are packed and sent at a time."""
KEPT_SHARE = 0.5
"""Of the GPU's free memory that tiles may take between calls."""
REGISTERS = 110
"""Cells of the recursion that a thread keeps in registers."""
WIDEST = 100
"""Radius up to which a row fits in registers."""
ROWS: Final = 128
"""Rows of the recursion between two loads of the windows into shared memory."""
DEEP = 4
"""Rows that are worked out at once."""
STEP = 8
"""Radii that differ between windows are rounded up to a multiple: few kernels are compiled."""


@dataclass(frozen=True)
class Band:
    """What a kernel is compiled for.

    Args:
        radius: of the widest pair.
        checked: whether some pair's is smaller.
        joint: all channels on one path.
    """

    radius: int
    checked: bool
    joint: bool

    @property
    def queries(self) -> int:
        """Queries that a warp compares at once."""
        return 1 if self.joint else min(4, max(1, REGISTERS // (2 * self.radius + 1)))

    @property
    def settings(self) -> dict[str, int]:
        """The constants of the source."""
        wide = self.joint or self.radius > WIDEST  # a joint cost reads all channels: the row is the least of it
        return {
            "RADIUS": self.radius,
            "CHECKED": int(self.checked),
            "JOINT": int(self.joint),
            "WIDE": int(wide),
            "QUERIES": self.queries,
            "WARPS": WARPS,
            "ROWS": ROWS,
            "DEEP": DEEP,
        }


class CudaCorpus:
    """The windows of a set in tiles on a GPU.

    Args:
        rows: the windows, at least one, and how they come to the common axis.
        joint: DTW-D instead of DTW-I.
        band: radius as a share of the longer length.
    """

    def __init__(self, rows: TileRows, *, joint: bool, band: float) -> None:
        self.rows, self.joint, self.band = rows, joint, band
        windows = rows.windows
        order = np.lexsort((windows.channel_set, windows.lengths))
        size = np.cumsum(windows.lengths[order].astype(np.int64) * rows.row.shape[1] * 4)
        blocks = size[LANES - 1 :: LANES] // BLOCK_BYTES
        self._blocks: list[Ints] = np.split(order, (np.flatnonzero(np.diff(blocks)) + 1) * LANES)
        self._fits = bool(size[-1] < KEPT_SHARE * torch_with_cuda().cuda.mem_get_info()[0])
        self._kept: list[OnGpu] = []

    def __len__(self) -> int:
        return len(self.rows.windows)

    def distances(self, queries: Tiles, team: Team) -> Floats:
        """(Q, N) distances of all queries to all windows."""
        out = np.empty((len(queries.start), len(self)), np.float32)
        there = OnGpu.of(queries)
        for tiles in self._tiles(team):
            items = tiles.host.items[tiles.host.items >= 0]
            out[:, _places(items)] = self._scan(there, tiles)[:, : len(items)]
        return out

    def among(self, queries: Tiles, items: Ints, team: Team) -> Floats:
        """(Q, m) distances of each query to windows (Q, m) of its own, on the CPU: each pair is compared once."""
        return TiledCorpus(self.rows, joint=self.joint, band=self.band).among(queries, items, team)

    def nearest(self, queries: Tiles, k: int, team: Team, seeds: Ints | None) -> tuple[Ints, Floats]:  # noqa: ARG002
        """(Q, k) nearest windows of each query and their distances, of all pairs: seeds would save nothing."""
        nearest, there, every = Nearest(len(queries.start), k), OnGpu.of(queries), np.arange(len(queries.start))
        for tiles in self._tiles(team):
            nearest.offer(every, tiles.host.items.reshape(-1), self._scan(there, tiles))
        return nearest.rank()

    def _tiles(self, team: Team) -> Iterator[OnGpu]:
        """All tiles, a block at a time; they stay on the GPU where they fit."""
        if self._kept:
            yield from self._kept
            return
        seen = []
        for tiles in self._sent(team):
            if self._fits:
                seen.append(tiles)
            yield tiles
        self._kept = seen

    def _sent(self, team: Team) -> Iterator[OnGpu]:
        """All tiles; the next ones are packed and sent while some are in use."""
        lane = Lane("cuda")

        def send(items: Ints) -> tuple[Tiles, Transfer]:
            tiles = pack(self.rows, items, team, lanes=LANES, interleaved=self.joint, memory=lane.buffer)
            return tiles, lane.send()

        for tiles, values in prefetch(send, self._blocks):
            yield OnGpu.of(tiles, values.arrived())

    def _scan(self, queries: OnGpu, tiles: OnGpu) -> Floats:
        """(Q, lanes) distances of queries to the windows in all lanes."""
        torch = torch_with_cuda()
        out = torch.empty((len(queries.host.start), tiles.host.items.size), dtype=torch.float32, device="cuda")
        for length in np.unique(queries.host.depth).tolist():
            own = np.flatnonzero(queries.host.depth == length)
            reach = _radii(length, tiles.host.lengths, self.band)
            radii = torch.from_numpy(reach).cuda()
            for band, chosen in bands(reach, joint=self.joint):
                _launch(band, queries, own, tiles, chosen, radii, length, out)
        found: Floats = out.cpu().numpy()
        return found


@dataclass(frozen=True, eq=False)
class OnGpu:
    """Tiles on the GPU; here is all of them but the values."""

    host: Tiles
    values: Tensor
    start: Tensor
    depth: Tensor
    stored: Tensor
    slots: Tensor
    lengths: Tensor

    @classmethod
    def of(cls, tiles: Tiles, values: Tensor = None) -> OnGpu:
        """Send tiles there, unless their values are there already."""
        host = tiles._replace(values=np.empty(0, np.float32))
        names = ("start", "depth", "stored", "slots", "lengths")
        shape = (torch_with_cuda().from_numpy(getattr(tiles, name)).cuda() for name in names)
        return cls(host, torch_with_cuda().from_numpy(tiles.values).cuda() if values is None else values, *shape)


def bands(radii: Ints, *, joint: bool) -> Iterator[tuple[Band, Ints]]:
    """Kernels for tiles whose windows have these radii (n, lanes), and the numbers of the tiles that each serves.

    >>> [(band.radius, band.checked, tiles.tolist()) for band, tiles in bands(np.array([[3, 3], [3, 9]]), joint=False)]
    [(3, False, [0]), (16, True, [1])]
    """
    widest = radii.max(axis=1)
    checked = radii.min(axis=1) < widest
    widest = np.where(checked, -(-widest // STEP) * STEP, widest)
    for reach, uneven in sorted(set(zip(widest.tolist(), checked.tolist(), strict=True))):
        yield Band(reach, uneven, joint), np.flatnonzero((widest == reach) & (checked == uneven))


def _radii(length: int, lengths: Ints, band: float) -> Ints:
    """(n, lanes) radius of a query of this length and every window."""
    others, which = np.unique(lengths, return_inverse=True)
    return np.array([radius(length, int(other), band) for other in others])[which].reshape(lengths.shape)


def _places(items: Ints) -> slice | Ints:
    """Positions as a slice, where they follow each other: that many columns are copied several times faster."""
    first, count = int(items[0]), len(items)
    return slice(first, first + count) if (np.diff(items) == 1).all() else items


def _launch(  # noqa: PLR0913, PLR0917 - what the kernel takes
    band: Band, queries: OnGpu, own: Ints, tiles: OnGpu, chosen: Ints, radii: Tensor, length: int, out: Tensor
) -> None:
    torch = torch_with_cuda()
    here, there = (torch.from_numpy(numbers.astype(np.int32)).cuda() for numbers in (chosen, own))
    per_block = WARPS * band.queries
    kernel(band)(
        grid=(len(chosen), -(-len(own) // per_block), 1),
        block=(WARPS * LANES, 1, 1),
        args=[
            *(tiles.values, tiles.start, tiles.depth, tiles.stored, tiles.slots, tiles.lengths, radii, here),
            *(tiles.slots.shape[1], queries.values, queries.start, queries.slots, there, len(own)),
            *(length, queries.slots.shape[1], out, out.shape[1]),
        ],
    )


@lru_cache(maxsize=64)
def kernel(band: Band) -> Any:  # noqa: ANN401 - a function of torch
    """The kernel for a band, compiled for the GPU at hand."""
    source = files("readbench.engine.kernels").joinpath("dtw_cuda.cu").read_text()
    settings = "".join(f"#define {name} {value}\n" for name, value in band.settings.items())
    return torch_with_cuda().cuda._compile_kernel(settings + source, "warp_tiles")  # noqa: SLF001 - torch has no public one yet


@lru_cache(maxsize=1)
def torch_with_cuda() -> Any:  # noqa: ANN401 - an optional package
    """Torch, where it can use a GPU."""
    try:
        import torch  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UsageError("device=cuda needs torch, in a build for CUDA: see pytorch.org.") from error
    if not torch.cuda.is_available():
        raise UsageError("device=cuda finds no CUDA GPU that torch can use here. Use device=cpu.")
    return torch
