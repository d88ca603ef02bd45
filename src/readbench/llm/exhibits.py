"""A window as a model sees it: its liveliest channels, at most so many points, the same in pictures and in numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.llm.seasonal import deseasonalised
from readbench.windows import WindowSet

MOST_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Exhibit:
    """One window, reduced.

    Args:
        channels: names.
        values: (C, P) float32.
        notes: what was done to each channel; empty where nothing was.
    """

    channels: tuple[str, ...]
    values: NDArray[np.float32]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Reduction:
    """How windows are reduced.

    Args:
        channels: how many channels are shown, those with the highest variance.
        points: most points of a channel, means over equal stretches; None for all.
        tsad: take the season off each channel.
    """

    channels: int = 20
    points: int | None = 128
    tsad: bool = False

    def __call__(self, windows: WindowSet, position: int) -> Exhibit:
        """One window of a set."""
        values, names = windows.values(position), windows.channels(position)
        chosen = liveliest(values, self.channels)
        rows, notes = values[chosen], [""] * len(chosen)
        if self.tsad:
            found = [deseasonalised(row) for row in rows]
            rows = np.stack([row for row, _ in found])
            notes = [f"season of {period} steps removed" if period else "raw values" for _, period in found]
        return Exhibit(tuple(names[c] for c in chosen), shortened(rows, self.points), tuple(notes))


def liveliest(values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Positions of the channels with the highest variance, in their own order; ties go to the earlier channel.

    >>> liveliest(np.array([[0, 1], [5, 5], [0, 9]], np.float32), 2).tolist()
    [0, 2]
    """
    variance = values.var(axis=1, dtype=np.float64)
    return np.sort(np.argsort(-variance, kind="stable")[:count])


def spread(count: int, most: int) -> list[int]:
    """At most so many positions, evenly over all.

    >>> spread(9, 3), spread(2, 3)
    ([0, 4, 8], [0, 1])
    """
    return [int(position) for position in np.linspace(0, count - 1, min(count, most))]


def shortened(values: NDArray[np.float32], points: int | None) -> NDArray[np.float32]:
    """(C, min(T, P)) means over P stretches of equal length, up to one step.

    >>> shortened(np.array([[1, 3, 5, 7, 9]], np.float32), 2).tolist()
    [[2.0, 7.0]]
    """
    length = values.shape[1]
    if points is None or length <= points:
        return values
    starts = np.arange(points) * length // points
    widths = np.diff(np.append(starts, length))
    sums = np.add.reduceat(values.astype(np.float64), starts, axis=1)
    return (sums / widths).astype(np.float32)


def numbers(values: NDArray[np.float32]) -> str:
    """A channel as text, to about a hundredth of its deviation.

    >>> numbers(np.array([1000.1, 1000.2, 1000.4], np.float32)), numbers(np.array([0.0, 25000.0], np.float32))
    ('1000.100 1000.200 1000.400', '0 25000')
    """
    deviation = float(values.std(dtype=np.float64)) or float(np.abs(values).max(initial=0.0)) or 1.0
    decimals = max(0, 2 - math.floor(math.log10(deviation)))
    if decimals > MOST_DECIMALS:
        return " ".join(f"{value:.4g}" for value in values.tolist())
    return " ".join(f"{value:.{decimals}f}" for value in values.tolist())
