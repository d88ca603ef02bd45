"""Vectors of any width compute what numpy computes, and touch nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from readbench.engine.kernels import compiling as lanes
from readbench.engine.kernels.compiling import Node

Floats = NDArray[np.float32]
WIDTHS = (8, 16, 64)
START = 3
"""Vectors begin anywhere."""


def kernel(operation: Callable[..., Node], width: int) -> Callable[[Floats, Floats, Floats], None]:
    """target[START : START + width] = operation(left, right) there."""
    load, store = lanes.make_load(width), lanes.store

    @njit  # type: ignore[untyped-decorator]
    def run(left: Floats, right: Floats, target: Floats) -> None:
        store(target, START, operation(load(left, START), load(right, START)))

    compiled: Callable[[Floats, Floats, Floats], None] = run
    return compiled


TWINS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "least": np.minimum,
    "greatest": np.maximum,
    "add_square": lambda left, right: (left + right.astype(np.float64) ** 2).astype(np.float32),
}


def pair(width: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(width)
    left, right = rng.standard_normal((2, width + 10)).astype(np.float32)
    right[5] = left[5]
    return left, right


def check(name: str, twin: Callable[..., Any], width: int, left: Floats, right: Floats) -> None:
    target = np.zeros(width + 10, np.float32)
    kernel(getattr(lanes, name), width)(left, right, target)
    inside = slice(START, START + width)
    np.testing.assert_allclose(target[inside], twin(left, right)[inside], rtol=2e-7, atol=1e-7)
    assert not np.delete(target, np.arange(START, START + width)).any()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", TWINS)
def test_every_lane_is_computed_and_nothing_beside(name: str, width: int) -> None:
    check(name, TWINS[name], width, *pair(width))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_smaller_cost_is_found_by_its_bits(width: int) -> None:
    left, right = map(np.abs, pair(width))
    left[4], right[6], left[7], right[7] = np.inf, np.inf, 0, 1e-40
    check("least_cost", np.minimum, width, left, right)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_number_fills_all_lanes(width: int) -> None:
    splat, store = lanes.make_splat(width), lanes.store

    @njit  # type: ignore[untyped-decorator]
    def run(number: np.float32, target: Floats) -> None:
        store(target, 0, splat(number))

    target = np.zeros(width + 1, np.float32)
    run(np.float32(2.5), target)
    assert target.tolist() == [2.5] * width + [0]
