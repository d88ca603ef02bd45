"""The most cells of the DTW recursion that the registers of this machine allow.

A cell is a difference, two minima and a fused square and sum. Here these run on numbers that never leave the registers,
in so many independent chains that no result is waited for. A kernel that also reads series and rows, and walks the
edges of a band, cannot be faster; its share of this rate says what is left to gain.

Each cell needs those of the step before, and the last are stored: a compiler can leave out nothing. The tests compare
the results with a slow twin, and the time with the number of steps.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np
from numba import types
from numpy.typing import NDArray

from readbench.kernels.compiling import Node, compiled, inlined
from readbench.kernels.lanes import add_square, least_cost, loading, splatting, store, subtract, wide_registers
from readbench.kernels.threads import Team
from readbench.retrieve.kernels.dtw_lanes import LANES

Floats = NDArray[np.float32]

CHAINS: Final = 5
WIDTH: Final = LANES if wide_registers() else LANES // 2
"""Numbers in a vector: so many that the costs of all chains just stay in registers."""
STEPS = 100_000
TRIALS = 3
_ONE = np.float32(1)
_load, _splat = loading(WIDTH), splatting(WIDTH)


def cells_per_second(threads: int = 1) -> float:
    """Cells of the recursion per second on so many threads: the best of a few trials."""
    return max(_rate(threads) for _ in range(TRIALS))


def first_state(seed: int = 0) -> Floats:
    """(CHAINS, WIDTH) random costs below 1, flat."""
    return np.random.default_rng(seed).random(CHAINS * WIDTH, np.float32)


def _rate(threads: int) -> float:
    with Team(threads) as team:
        team.share(lambda _first, _last: advance(first_state(), 1), threads)  # threads start, clocks rise
        began = time.perf_counter()
        team.share(lambda _first, _last: advance(first_state(), STEPS), threads)
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
