"""The roof of a kernel: how fast its arithmetic is on numbers that never leave the registers, on a CPU and on a GPU.

A cell of the DTW recursion is a difference, two minima and a fused square and sum. Here these run on numbers that never
leave the registers, in so many independent chains that no result is waited for. A kernel that also reads series and
rows, and walks the edges of a band, cannot be faster; its share of this rate says what is left to gain. For a network
the arithmetic is a multiplication with an addition.

Each cell needs those of the step before, and the last are stored: a compiler can leave out nothing. The tests compare
the results with a slow twin, and the time with the number of steps.

On a GPU the cells are those of its own kernel without windows and edges. `bytes_per_second` is the most that its bus
allows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numba import types
from numpy.typing import NDArray

from readbench.engine.kernels.compiling import (
    Node,
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
from readbench.engine.kernels.dtw import LANES
from readbench.engine.kernels.dtw_cuda import LANES as CUDA_LANES, WARPS, torch_with_cuda
from readbench.engine.kernels.threads import Team

Floats = NDArray[np.float32]

CHAINS: Final = 5
WIDTH: Final = LANES if wide_registers() else LANES // 2
"""Numbers in a vector: so many that the costs of all chains just stay in registers."""
STEPS = 100_000
TRIALS = 3
_ONE, _LESS = np.float32(1), np.float32(-0.5)
_load, _splat = make_load(WIDTH), make_splat(WIDTH)


def cells_per_second(threads: int = 1) -> float:
    """Cells of the recursion per second on so many threads: the best of a few trials."""
    return max(_rate(threads, advance) for _ in range(TRIALS))


def products_per_second(threads: int = 1) -> float:
    """Multiplications, each with its addition, per second on so many threads: the best of a few trials."""
    return max(_rate(threads, multiply) for _ in range(TRIALS))


def first_state(seed: int = 0) -> Floats:
    """(CHAINS, WIDTH) random costs below 1, flat."""
    return np.random.default_rng(seed).random(CHAINS * WIDTH, np.float32)


def _rate(threads: int, work: Callable[[Floats, int], None]) -> float:
    """Numbers that a kernel computes per second on so many threads."""
    with Team(threads) as team:
        team.share(lambda _first, _last: work(first_state(), 1), threads)  # threads start, clocks rise
        began = time.perf_counter()
        team.share(lambda _first, _last: work(first_state(), STEPS), threads)
        return threads * STEPS * CHAINS * WIDTH / (time.perf_counter() - began)


@inlined
def _cell(left: Node, above: Node, one: Node) -> Node:
    """A cell whose series is the cost before it; costs that begin below 1 stay below 2."""
    return add_square(least_cost(least_cost(left, above), one), subtract(one, left))


@compiled(types.none(types.float32[::1], types.intp))
def advance(state: Floats, steps: int) -> None:
    """Compute `CHAINS * WIDTH` cells `steps` times; the state from `first_state` is overwritten by the last."""
    one = _splat(_ONE)
    a, b, c = _load(state, 0), _load(state, WIDTH), _load(state, 2 * WIDTH)
    d, e = _load(state, 3 * WIDTH), _load(state, 4 * WIDTH)
    for _ in range(steps):
        a, b, c, d, e = _cell(a, b, one), _cell(b, c, one), _cell(c, d, one), _cell(d, e, one), _cell(e, a, one)
    store(state, 0, a)
    store(state, WIDTH, b)
    store(state, 2 * WIDTH, c)
    store(state, 3 * WIDTH, d)
    store(state, 4 * WIDTH, e)


@compiled(types.none(types.float32[::1], types.intp))
def multiply(state: Floats, steps: int) -> None:
    """Square `CHAINS * WIDTH` numbers and take away one half, `steps` times: from 0 to 1 they stay between -1 and 1."""
    less = _splat(_LESS)
    a, b, c = _load(state, 0), _load(state, WIDTH), _load(state, 2 * WIDTH)
    d, e = _load(state, 3 * WIDTH), _load(state, 4 * WIDTH)
    for _ in range(steps):
        a, b, c = add_square(less, a), add_square(less, b), add_square(less, c)
        d, e = add_square(less, d), add_square(less, e)
    store(state, 0, a)
    store(state, WIDTH, b)
    store(state, 2 * WIDTH, c)
    store(state, 3 * WIDTH, d)
    store(state, 4 * WIDTH, e)


CELLS, QUERIES = 53, 2
"""Of a row, and rows of a thread, as the kernel has them for windows of 256 points."""
CUDA_STEPS = 20_000

BUS_BYTES = 2**28
BLOCKS = 8
"""Of each multiprocessor, so that none of them is ever idle."""

SOURCE = """
__device__ __forceinline__ float least(float a, float b, float c) {
    return __int_as_float(min(min(__float_as_int(a), __float_as_int(b)), __float_as_int(c)));
}
extern "C" __global__ void advance(const float *seed, float *out, int steps) {
    const float far = __int_as_float(0x7f800000);
    float row[QUERIES][CELLS], value[8], here[QUERIES], sum = 0;
    for (int k = 0; k < 8; k++) value[k] = seed[k];
    for (int q = 0; q < QUERIES; q++) {
        here[q] = seed[8 + q];
#pragma unroll
        for (int k = 0; k < CELLS; k++) row[q][k] = seed[16 + k];
    }
    for (int step = 0; step < steps; step++) {
        float left[QUERIES];
        for (int q = 0; q < QUERIES; q++) left[q] = far;
#pragma unroll
        for (int k = 0; k < CELLS; k++) {
#pragma unroll
            for (int q = 0; q < QUERIES; q++) {
                const float best = least(row[q][k], k + 1 < CELLS ? row[q][k + 1] : far, left[q]);
                row[q][k] = left[q] = fmaf(here[q] - value[k % 8], here[q] - value[k % 8], best);
            }
        }
        for (int q = 0; q < QUERIES; q++) here[q] *= 0.999f;
    }
    for (int q = 0; q < QUERIES; q++)
        for (int k = 0; k < CELLS; k++) sum += row[q][k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


def cuda_cells_per_second() -> float:
    """Cells of the recursion per second on the GPU at hand: the best of a few trials."""
    torch = torch_with_cuda()
    blocks = BLOCKS * torch.cuda.get_device_properties(0).multi_processor_count
    threads = WARPS * CUDA_LANES
    seed = torch.rand(16 + CELLS, device="cuda")
    out = torch.empty(blocks * threads, device="cuda")

    def seconds(steps: int) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        _kernel()(grid=(blocks, 1, 1), block=(threads, 1, 1), args=[seed, out, steps])
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    seconds(CUDA_STEPS // 10)  # clocks rise
    return blocks * threads * CELLS * QUERIES * CUDA_STEPS / min(seconds(CUDA_STEPS) for _ in range(TRIALS))


def bytes_per_second() -> float:
    """Bytes that come from pinned memory onto the GPU at hand in a second: the best of a few trials."""
    torch = torch_with_cuda()
    here = torch.empty(BUS_BYTES, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(BUS_BYTES, dtype=torch.uint8, device="cuda")

    def seconds() -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        there.copy_(here, non_blocking=True)
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    return BUS_BYTES / min(seconds() for _ in range(1 + TRIALS))


@lru_cache(maxsize=1)
def _kernel() -> Any:  # noqa: ANN401 - a function of torch
    settings = f"#define CELLS {CELLS}\n#define QUERIES {QUERIES}\n"
    return torch_with_cuda().cuda._compile_kernel(settings + SOURCE, "advance")  # noqa: SLF001 - no public one yet
