"""The highest possible rate of DTW cells: all of the work is done, and takes its time."""

from __future__ import annotations

import time

import numpy as np
import pytest

from research.speed import roof
from research.speed.contests import cases
from research.speed.measure import Contest


@pytest.mark.parametrize("steps", [0, 1, 2, 17])
def test_every_cell_is_computed(steps: int) -> None:
    found = roof.first_state(3)
    roof.advance(found, steps)
    costs = roof.first_state(3).reshape(roof.CHAINS, roof.WIDTH).astype(np.float64)
    for _ in range(steps):
        costs = np.minimum(np.minimum(costs, np.roll(costs, -1, axis=0)), 1) + (1 - costs) ** 2
    np.testing.assert_allclose(found.reshape(costs.shape), costs, rtol=1e-5)


@pytest.mark.parametrize("steps", [0, 1, 2, 17])
def test_every_product_is_computed(steps: int) -> None:
    found = roof.first_state(3)
    roof.multiply(found, steps)
    numbers = roof.first_state(3).astype(np.float64)
    for _ in range(steps):
        numbers = numbers**2 - 0.5
    np.testing.assert_allclose(found, numbers, atol=1e-5)
    assert roof.products_per_second() > 1e8


def test_costs_stay_numbers() -> None:
    state = roof.first_state()
    roof.advance(state, 10_000)
    assert ((state >= 0.5) & (state < 2)).all()


def test_time_grows_with_the_steps() -> None:
    """Work that were hoisted out of the loop, or folded, would not take longer the more there is of it."""

    def fastest(steps: int) -> float:
        taken = []
        for _ in range(7):
            state, began = roof.first_state(), time.thread_time()
            roof.advance(state, steps)
            taken.append(time.thread_time() - began)
        return min(taken)

    assert 2 < fastest(400_000) / fastest(100_000) < 8


def test_more_threads_have_a_roof_of_their_own() -> None:
    assert roof.cells_per_second(1) > 0
    assert roof.cells_per_second(2) > 0


@pytest.mark.parametrize("name", ["dtw", "dtw-threads", "gpc"])
def test_only_dtw_has_a_known_roof(name: str) -> None:
    case: Contest = cases(1)[name]()
    assert (case.roof is not None) == name.startswith("dtw")
