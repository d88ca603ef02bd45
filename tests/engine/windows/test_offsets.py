"""Channels far from zero: what float32 still tells apart is used, and what it does not is said."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.method import Method
from readbench.engine.windows import WindowSet

METHODS = ("euclidean", "dtw-i", "sbd-i", "sbd-d", "rocket", "ours")


def walks_on(offset: float, noise: float = 0.0) -> list[NDArray[np.float64]]:
    """20 random walks of two channels on a level; with noise, the same again."""
    draws, more = np.random.default_rng(1), np.random.default_rng(2)
    walks = [draws.normal(size=(2, 64)).cumsum(axis=1) for _ in range(20)]
    return [walk + offset + noise * more.normal(size=walk.shape) for walk in walks]


@pytest.mark.parametrize("offset", [1, 1e4, 1e6, 1e7, 6e7, 1e8])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_right_case_comes_first_on_any_level_that_single_precision_carries(
    method: str, offset: float, dtype: type
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # at 1e8 one channel of one window stands still
        corpus, queries = (
            WindowSet.from_arrays([walk.astype(dtype) for walk in walks_on(offset, noise)]) for noise in (0, 0.2)
        )
    order = Method(method).fit(corpus).rank(queries, k=1).order[:, 0]
    assert (order == np.arange(20)).all()


def test_a_channel_that_rounding_moves_stays_unused() -> None:
    flicker = np.nextafter(np.float32(5e7), np.float32(6e7))
    draws = np.random.default_rng(3)
    values = [np.where(draws.random((1, 32)) < 0.5, np.float32(5e7), flicker) for _ in range(6)]
    corpus = WindowSet.from_arrays(values)
    assert not np.ptp(Method("euclidean").fit(corpus).score(corpus))


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_a_channel_that_single_precision_cannot_tell_apart_is_named(dtype: type) -> None:
    values: list[NDArray[Any]] = [
        np.stack([level + np.arange(16), np.arange(16)]).astype(dtype) for level in (0, 10**12)
    ]
    with pytest.warns(UserWarning, match=r"cannot resolve 'counter' \(window 1\).*Subtract the level"):
        WindowSet.from_arrays(values, channels=("counter", "level"))


def test_a_channel_that_does_not_move_is_not_named() -> None:
    still = np.full((1, 16), 0.1)
    still[0, 3] += 1e-17
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        WindowSet.from_arrays([still, np.full((1, 16), 1e12), still + np.linspace(0, 1, 16)])
    assert not said
