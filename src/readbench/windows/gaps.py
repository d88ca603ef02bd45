"""The one rule for missing readings: a gap takes the last valid reading, a leading gap the next one.

The benchmark applies it inside each stretch of constant label of a recording, the case library to each window.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Readings = NDArray[np.floating[Any]]


def is_reading(values: Readings) -> NDArray[np.bool_]:
    """Where there is a number that a window, which is float32, can hold; sentinels such as -1.18e42 are gaps."""
    readings: NDArray[np.bool_] = np.abs(values) <= np.finfo(np.float32).max
    return readings


def fill_gaps(values: Readings, readings: NDArray[np.bool_]) -> Readings:
    """(C, T) values without gaps: filled forward, then backward; a channel without any reading is zero.

    Args:
        values: (C, T).
        readings: (C, T) where there is one.

    >>> nan = float("nan")
    >>> gaps = np.array([[nan, 1.0, nan, 4.0], [nan, nan, nan, nan]])
    >>> fill_gaps(gaps, is_reading(gaps)).tolist()
    [[1.0, 1.0, 1.0, 4.0], [0.0, 0.0, 0.0, 0.0]]
    """
    steps = np.arange(values.shape[1])
    last = np.maximum.accumulate(np.where(readings, steps, -1), axis=1)
    following = np.minimum.accumulate(np.where(readings, steps, len(steps))[:, ::-1], axis=1)[:, ::-1]
    nearest = np.where(last >= 0, last, np.where(following < len(steps), following, 0))
    filled: Readings = np.take_along_axis(values, nearest, axis=1)
    filled[~readings.any(axis=1)] = 0
    return filled
