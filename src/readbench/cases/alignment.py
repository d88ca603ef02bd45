"""Which steps of two windows belong together: the path of dynamic time warping."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BAND = 0.1
Steps = NDArray[np.int64]


def warping_path(left: NDArray[np.floating], right: NDArray[np.floating], band: float = BAND) -> tuple[Steps, float]:
    """The cheapest path through the squared differences, all channels on one path (DTW-D).

    Args:
        left: (C, T).
        right: (C, T').
        band: radius as a share of the longer one, as in `dtw-d`.

    Returns:
        (L, 2) pairs of steps from first to last, and the sum of squares along them.

    >>> path, cost = warping_path(np.array([[0.0, 0, 1, 0]]), np.array([[0.0, 1, 0, 0]]), band=0.5)
    >>> path.tolist(), cost
    ([[0, 0], [1, 0], [2, 1], [3, 2], [3, 3]], 0.0)
    """
    rows, columns = left.shape[1], right.shape[1]
    longest = max(rows, columns)
    radius = max(1, round(band * longest), abs(rows - columns) + 1)
    costs = np.full((rows + 1, columns + 1), np.inf)
    costs[0, 0] = 0.0
    for i in range(rows):
        first, last = max(0, i - radius), min(columns, i + radius + 1)
        local = ((left[:, i, None] - right[:, first:last]) ** 2).sum(axis=0)
        above = np.minimum(costs[i, first:last], costs[i, first + 1 : last + 1])
        own = costs[i + 1]
        for j, (cost, best) in enumerate(zip(local.tolist(), above.tolist(), strict=True), start=first):
            own[j + 1] = cost + min(best, own[j])
    return _walk_back(costs), float(costs[rows, columns])


def _walk_back(costs: NDArray[np.float64]) -> Steps:
    i, j = costs.shape[0] - 1, costs.shape[1] - 1
    path = [(i - 1, j - 1)]
    while (i, j) != (1, 1):
        steps = ((i - 1, j - 1), (i - 1, j), (i, j - 1))
        i, j = min(steps, key=lambda step: costs[step])
        path.append((i - 1, j - 1))
    return np.array(path[::-1], np.int64)
