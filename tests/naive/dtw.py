"""Slow twin of the DTW kernels: one pair, one cell at a time, in float64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def radius(left: int, right: int, band: float) -> int:
    """Share of the longer length, at least one step, and one more than the difference of the lengths."""
    return max(1, round(band * max(left, right)), abs(left - right) + 1)


def cheapest_path(cost: Matrix, reach: int) -> float:
    """Least sum of costs from the first to the last cell, by steps down, right or both, within `reach`."""
    rows, columns = cost.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0.0
    for i in range(rows):
        for j in range(columns):
            if abs(i - j) <= reach:
                total[i + 1, j + 1] = cost[i, j] + min(total[i, j], total[i, j + 1], total[i + 1, j])
    return float(total[rows, columns])


def costs(left: Matrix, right: Matrix) -> list[Matrix]:
    """Squared differences of all pairs of points, for each channel of (C, T1) and (C, T2)."""
    return [(a[:, None] - b) ** 2 for a, b in zip(left, right, strict=True)]


def dtw_i(left: Matrix, right: Matrix, band: float) -> float:
    """Each channel on its own path."""
    reach = radius(left.shape[1], right.shape[1], band)
    return sum(cheapest_path(cost, reach) for cost in costs(left, right))


def dtw_d(left: Matrix, right: Matrix, band: float) -> float:
    """All channels on one path."""
    reach = radius(left.shape[1], right.shape[1], band)
    return cheapest_path(sum(costs(left, right), np.zeros((left.shape[1], right.shape[1]))), reach)


def on_axis(values: NDArray[np.floating], names: Sequence[str], axis: Sequence[str]) -> Matrix:
    """Rows in the order of the axis; one that the window lacks is zero."""
    rows = dict(zip(names, values, strict=True))
    return np.array([rows.get(name, np.zeros(values.shape[1])) for name in axis], np.float64)
