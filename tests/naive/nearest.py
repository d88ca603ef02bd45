"""Nearness of labelled incidents, one window and one incident at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def nearness(
    likeness: Matrix, kernel: Matrix, labels: list[int], groups: list[int], allowed: Callable[[int], list[int]]
) -> Matrix:
    """(M, K) by the formula: rows of likeness (M, L) to the cases, of which window m may use `allowed(m)`."""
    incidents = list(zip(labels, groups, strict=True))
    between = [kernel[i, j] for i in range(len(labels)) for j in range(len(labels)) if incidents[i] != incidents[j]]
    mean, spread = float(np.mean(between)), float(np.std(between))
    classes = sorted(set(labels))
    relative = len(set(incidents)) / len(classes) / 2.5
    out = np.zeros((len(likeness), len(classes)))
    for m, row in enumerate(likeness):
        for k, label in enumerate(classes):
            best = -3.0
            for incident in {own for own in incidents if own[0] == label}:
                values = sorted(row[i] for i in allowed(m) if incidents[i] == incident)
                if values:
                    best = max(best, (float(np.mean(values[len(values) // 2 :])) - mean) / spread)
            out[m, k] = min(1.0, relative**-2) * best
    return out
