"""Windows small enough to be drawn in a browser: few points, few bits, spikes kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

D = TypeVar("D", bound=np.generic)
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


def thinned(values: NDArray[D], points: int) -> NDArray[D]:
    """(C, T) -> (C, at most `points`): the least and the greatest value of each stretch, in the order they occur.

    A mean would flatten a spike of one step; this keeps it. A window that is short enough stays as it is.
    """
    count, length = values.shape
    if length <= points:
        return values
    width = -(-length // (points // 2))
    stretches = -(-length // width)
    padded = np.pad(values, ((0, 0), (0, stretches * width - length)), mode="edge").reshape(count, stretches, width)
    ends = np.sort(np.stack([padded.argmin(axis=2), padded.argmax(axis=2)], axis=2), axis=2)
    return np.take_along_axis(padded, ends, axis=2).reshape(count, 2 * stretches)


def points_within(budget: int, channels: int) -> int:
    """The finest halving of `FINEST` at which that many channels stay within a budget of values.

    >>> points_within(1_000_000, 1_000), points_within(100_000, 1_000), points_within(1, 1_000)
    (512, 64, 64)
    """
    points = FINEST
    while points > COARSEST and points * channels > budget:
        points //= 2
    return points
