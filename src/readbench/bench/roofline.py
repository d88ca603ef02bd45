"""The most that one core could do: the operations of a DTW cell on registers alone."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

LANES = 16
CHAINS = 8
"""Independent chains, so that the latency of one hides behind the others."""
ROUNDS = 200_000


def dtw_roof() -> float:
    """Gcell/s of one thread: a difference, two minima and a fused multiply-add per cell, nothing read or written."""
    kernel = _kernel()
    start = np.linspace(0.1, 1.0, LANES * CHAINS).astype(np.float32)
    kernel(start, np.float32(0.3), 100)
    best = np.inf
    for _ in range(5):
        began = time.perf_counter()
        kernel(start, np.float32(0.3), ROUNDS)
        best = min(best, time.perf_counter() - began)
    return LANES * CHAINS * ROUNDS / best / 1e9


def _kernel() -> Any:  # noqa: ANN401 - compiled
    import numba  # noqa: PLC0415

    @numba.njit(fastmath={"contract"}, error_model="numpy")
    def cells(start: Any, query: Any, rounds: int) -> Any:  # noqa: ANN401
        lane = np.empty(LANES * CHAINS, np.float32)
        for i in range(LANES * CHAINS):
            lane[i] = start[i]
        for _ in range(rounds):
            for i in range(LANES * CHAINS):
                value = lane[i]
                difference = query - value
                least = difference if difference < value else value  # noqa: FURB136 - compiles to one instruction
                least = least if least < query else query  # noqa: FURB136
                lane[i] = difference * difference + least
        return lane.sum()

    return cells
