"""Dynamic time warping, straight from the paper's recursion, one pair at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Series = NDArray[np.float64]


def radius(left: int, right: int, band: float) -> int:
    """Share of the longer length, at least 1, and wide enough that a path exists."""
    share = int(np.floor(band * max(left, right) + 0.5))
    return max(1, share, abs(left - right) + 1 if left != right else 0)


def warp(left: Series, right: Series, band: float) -> float:
    """Accumulated squared cost of the best path inside the band; series are (C, T), one path for all channels."""
    rows, columns = left.shape[1], right.shape[1]
    reach = radius(rows, columns, band)
    table = np.full((rows + 1, columns + 1), np.inf)
    table[0, 0] = 0.0
    for i in range(1, rows + 1):
        for j in range(max(1, i - reach), min(columns, i + reach) + 1):
            cost = float(((left[:, i - 1] - right[:, j - 1]) ** 2).sum())
            table[i, j] = cost + min(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1])
    return float(table[rows, columns])


def dtw_i(left: Series, right: Series, band: float) -> float:
    """Each channel on its own path."""
    return sum(warp(left[c : c + 1], right[c : c + 1], band) for c in range(len(left)))
