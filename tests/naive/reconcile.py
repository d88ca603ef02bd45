"""Slow twins of `readbench.engine.preparation`: one window, one channel, one number at a time, in float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readbench.engine.preparation import MAX_SCORE
from readbench.engine.windows import WindowSet

Numbers = NDArray[np.float64]


def channel_stats(windows: WindowSet) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of each channel, from all its samples laid end to end."""
    samples: dict[str, list[float]] = {}
    for window in windows:
        for name, row in zip(window.channels, window.values, strict=True):
            samples.setdefault(name, []).extend(float(x) for x in row)
    return {name: (float(np.mean(xs)), float(np.std(xs))) for name, xs in samples.items()}


def normalise(windows: WindowSet, mode: str, reference: WindowSet) -> list[Numbers]:
    """Z-scores; a spread that rounding to float32 can make of a constant counts as constant and becomes zero.

    That is half the distance to the next number; within one window, the number's relative precision.
    """
    known = channel_stats(reference)
    resolution = float(np.finfo(np.float32).eps)
    out = []
    for window in windows:
        scaled = np.zeros(window.values.shape)
        for c, name in enumerate(window.channels):
            row = window.values[c].astype(np.float64)
            if mode == "none":
                scaled[c] = row
                continue
            mean, std = (float(row.mean()), float(row.std())) if mode == "window" else known.get(name, (0.0, 0.0))
            step = float(np.spacing(np.float32(abs(mean)))) / 2
            if std > (abs(mean) * resolution if mode == "window" else step):
                for t, value in enumerate(row):
                    scaled[c, t] = min(max((value - mean) / std, -MAX_SCORE), MAX_SCORE)
        out.append(scaled)
    return out


def resample(values: NDArray[np.float32], length: int) -> Numbers:
    """Row by row with `numpy.interp`; the first and the last sample stay where they are."""
    steps = values.shape[1]
    grid = np.linspace(0, steps - 1, length)
    return np.array([np.interp(grid, np.arange(steps), row.astype(np.float64)) for row in values])


def dense(windows: WindowSet, channels: tuple[str, ...], length: int, *, by_name: bool) -> Numbers:
    """(N, C, T): each row looked up by name or by position, zeros where a window has none."""
    out = np.zeros((len(windows), len(channels), length))
    for i, window in enumerate(windows):
        for c, name in enumerate(channels):
            if by_name and name in window.channels:
                row = window.channels.index(name)
            elif not by_name and c < len(window.channels):
                row = c
            else:
                continue
            out[i, c] = resample(window.values[row : row + 1], length)[0]
    return out
