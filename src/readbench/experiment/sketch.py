"""Windows small enough to be drawn in a browser: few points, few bits, spikes kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.windows.thinning import thinned

FINEST = 512
"""Most points of a channel; more than a drawing has pixels."""
COARSEST = 64
"""Fewest points that a channel is thinned to."""
LEVELS = 65_535
"""Steps between the lowest and the highest value of a channel."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """Some channels of one window, each on its own scale.

    Args:
        low: (C,) value of code 0.
        high: (C,) value of the highest code; equal to `low` where a channel is constant.
        codes: (C, P) little-endian uint16, P at most `FINEST`.
    """

    low: NDArray[np.float32]
    high: NDArray[np.float32]
    codes: NDArray[np.uint16]

    def values(self) -> NDArray[np.float64]:
        """(C, P) the values again, to 1/65535 of the channel's range."""
        low = self.low.astype(np.float64)[:, None]
        return low + self.codes / LEVELS * (self.high.astype(np.float64)[:, None] - low)


def sketch(values: NDArray[np.float32], points: int = FINEST) -> Sketch:
    """Thin a window (C, T) to at most `points` values a channel and code them.

    >>> drawn = sketch(np.array([[0, 1, 5, 1, 0, 0]], np.float32), points=4)
    >>> drawn.values().round(3).tolist()
    [[0.0, 5.0, 1.0, 0.0]]
    """
    thin = thinned(values, points).astype(np.float64)
    low, high = thin.min(axis=1), thin.max(axis=1)
    scale = np.where(high > low, high - low, 1.0)
    codes = np.rint((thin - low[:, None]) / scale[:, None] * LEVELS).astype("<u2")
    return Sketch(low.astype(np.float32), high.astype(np.float32), codes)


def points_within(budget: int, channels: int) -> int:
    """The finest halving of `FINEST` at which that many channels stay within a budget of values.

    >>> points_within(1_000_000, 1_000), points_within(100_000, 1_000), points_within(1, 1_000)
    (512, 64, 64)
    """
    points = FINEST
    while points > COARSEST and points * channels > budget:
        points //= 2
    return points
