"""The features behind the words of a series, one sliding word window after the other."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

EPSILON = float(np.finfo(np.float32).eps)
"""Spread below the resolution of float32 is rounding, not signal."""


@njit(cache=True, nogil=True, error_model="numpy")
def project(
    rows: NDArray[np.float32],
    basis: NDArray[np.float64],
    stride: int,
    standardise: bool,  # noqa: FBT001
) -> NDArray[np.float32]:
    """Inner products of every word window with the columns of a basis.

    Sums run in float64 and always in the same order, so that equal stretches of signal give equal features wherever
    they lie: a bin edge may then coincide with a value.

    Args:
        rows: (M, T) series.
        basis: (w, L), w <= T.
        stride: steps from one word window to the next.
        standardise: bring each word window to mean 0 and deviation 1 first; a constant one has features 0.

    Returns:
        (M, W, L) features, W = 1 + (T - w) // stride.
    """
    size, letters = basis.shape
    words = 1 + (rows.shape[1] - size) // stride
    features = np.empty((len(rows), words, letters), np.float32)
    sums = np.empty(letters)
    for i in range(len(rows)):
        for k in range(words):
            part = rows[i, k * stride : k * stride + size]
            shift, scale = _mean_and_scale(part) if standardise else (0.0, 1.0)
            sums[:] = 0
            level = 0.0
            for t in range(size):
                value = (part[t] - shift) * scale
                level += abs(value)
                for letter in range(letters):
                    sums[letter] += value * basis[t, letter]
            noise = EPSILON * level / size
            for letter in range(letters):
                features[i, k, letter] = sums[letter] if abs(sums[letter]) > noise else 0
    return features


@njit(cache=True, nogil=True, error_model="numpy")
def _mean_and_scale(part: NDArray[np.float32]) -> tuple[float, float]:
    """Mean, and one over the standard deviation; a constant part has scale 0."""
    mean = 0.0
    for value in part:
        mean += value
    mean /= len(part)
    square = 0.0
    for value in part:
        square += (value - mean) ** 2
    deviation = np.sqrt(square / len(part))
    return mean, 1 / deviation if deviation > EPSILON * abs(mean) else 0.0
