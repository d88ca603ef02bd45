"""Warping path between two windows: which steps of both belong together.

Same recursion and band (`readbench.engine.kernels.dtw.radius`) as DTW-D, in double precision, for one pair of windows;
the whole cost matrix is kept to trace the path back.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from readbench.engine.kernels.compiling import compiled
from readbench.engine.kernels.dtw import radius

Series = NDArray[np.float64]
Steps = NDArray[np.int64]
BAND = 0.1
_matrix, _steps = types.float64[:, ::1], types.int64[:, ::1]


def warping_path(left: Series, right: Series, band: float = BAND) -> tuple[Steps, float]:
    """Find the path with the least sum of squared differences, one path for all channels (DTW-D).

    Args:
        left: (C, T).
        right: (C, T').
        band: radius as a share of the longer window, as in `dtw-d`.

    Returns:
        (L, 2) pairs of steps from first to last, and the sum of squares along the path.
        (L, 2) pairs of steps from first to last, and the sum of squares along them.

    >>> path, cost = warping_path(np.array([[0.0, 0, 1, 0]]), np.array([[0.0, 1, 0, 0]]), band=0.5)
    >>> path.tolist(), cost
    ([[0, 0], [1, 0], [2, 1], [3, 2], [3, 3]], 0.0)
    """
    first, second = (np.ascontiguousarray(series, np.float64) for series in (left, right))
    costs = _accumulate(first, second, band)
    return _walk_back(costs), float(costs[-1, -1])


@compiled(_matrix(_matrix, _matrix, types.float64))
def _accumulate(left: Series, right: Series, band: float) -> Series:
    """(T + 1, T' + 1) D(i, j) = cost(i, j) + min(D(i-1, j), D(i, j-1), D(i-1, j-1)); infinity outside the band."""
    channels, rows = left.shape
    columns = right.shape[1]
    width = radius(rows, columns, band)
    costs = np.full((rows + 1, columns + 1), np.inf)
    costs[0, 0] = 0.0
    for i in range(rows):
        for j in range(max(0, i - width), min(columns, i + width + 1)):
            local = 0.0
            for c in range(channels):
                local += (left[c, i] - right[c, j]) ** 2
            costs[i + 1, j + 1] = local + min(min(costs[i, j], costs[i, j + 1]), costs[i + 1, j])  # noqa: PLW3301 - numba
    return costs


@compiled(_steps(_matrix))
def _walk_back(costs: Series) -> Steps:
    """Trace the path from the last cell to the first; ties prefer the diagonal, then the row above."""
    i, j = costs.shape[0] - 1, costs.shape[1] - 1
    path = np.empty((i + j, 2), np.int64)
    at = len(path) - 1
    path[at, 0], path[at, 1] = i - 1, j - 1
    while i != 1 or j != 1:
        diagonal, above, beside = costs[i - 1, j - 1], costs[i - 1, j], costs[i, j - 1]
        if diagonal <= above and diagonal <= beside:
            i, j = i - 1, j - 1
        elif above <= beside:
            i -= 1
        else:
            j -= 1
        at -= 1
        path[at, 0], path[at, 1] = i - 1, j - 1
    return path[at:].copy()
