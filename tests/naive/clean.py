"""Slow twin of `readbench.benchmark.protocol`: one cell at a time, as the curation protocol words it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

LARGEST = 3.4028234663852886e38
"""Largest float32: windows are float32, so that beyond it there is no reading."""


def is_reading(value: float) -> bool:
    return not math.isnan(value) and abs(value) <= LARGEST


def filled_cell(row: Sequence[float], labels: Sequence[int], t: int) -> float:
    """The reading at t; else the last before it, else the next after it, under its label; else the normal level."""
    if is_reading(row[t]):
        return row[t]
    back = t
    while back > 0 and labels[back - 1] == labels[t]:
        back -= 1
        if is_reading(row[back]):
            return row[back]
    ahead = t
    while ahead < len(row) - 1 and labels[ahead + 1] == labels[t]:
        ahead += 1
        if is_reading(row[ahead]):
            return row[ahead]
    known = [value for value, label in zip(row, labels, strict=True) if label == 0 and is_reading(value)]
    return statistics.median(known) if known else 0.0


def fill(rows: Sequence[Sequence[float]], labels: Sequence[int]) -> list[list[float]]:
    return [[filled_cell(row, labels, t) for t in range(len(labels))] for row in rows]


def drop(rows: Sequence[Sequence[float]], labels: Sequence[int]) -> tuple[list[int], list[int]]:
    """Which channels and which timesteps stay."""
    channels = [c for c, row in enumerate(rows) if any(is_reading(value) for value in row)]
    steps = [t for t in range(len(labels)) if all(is_reading(rows[c][t]) for c in channels)]
    return channels, steps
