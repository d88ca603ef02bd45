"""The most that a GPU allows: cells of the DTW recursion, by its kernel without windows and edges; bytes on its bus."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from readbench.retrieve.kernels.dtw_cuda import LANES, WARPS, torch_with_cuda

CELLS, QUERIES = 53, 2
"""Of a row, and rows of a thread, as the kernel has them for windows of 256 points."""
STEPS = 20_000
TRIALS = 3
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


def cells_per_second() -> float:
    """Cells of the recursion per second on the GPU at hand: the best of a few trials."""
    torch = torch_with_cuda()
    blocks = BLOCKS * torch.cuda.get_device_properties(0).multi_processor_count
    threads = WARPS * LANES
    seed = torch.rand(16 + CELLS, device="cuda")
    out = torch.empty(blocks * threads, device="cuda")

    def seconds(steps: int) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        _kernel()(grid=(blocks, 1, 1), block=(threads, 1, 1), args=[seed, out, steps])
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    seconds(STEPS // 10)  # clocks rise
    return blocks * threads * CELLS * QUERIES * STEPS / min(seconds(STEPS) for _ in range(TRIALS))


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
