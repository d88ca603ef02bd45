"""Slow twins of the shape-based distances: every lag is tried, one product at a time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32] | NDArray[np.float64]


def correlation(x: Values, y: Values, lag: int) -> float:
    """Sum of x[t + lag] * y[t] over the steps t that both series have."""
    return math.fsum(float(x[t + lag]) * float(y[t]) for t in range(len(y)) if 0 <= t + lag < len(x))


def norm(x: Values) -> float:
    return math.sqrt(math.fsum(float(v) ** 2 for v in x.ravel()))


def sbd_dependent(x: Values, y: Values) -> float:
    """Distance of two windows (C, T) with the same channels, one lag for all."""
    scale = norm(x) * norm(y)
    if scale == 0:
        return 1.0
    lags = range(1 - y.shape[1], x.shape[1])
    return 1 - max(math.fsum(correlation(a, b, lag) for a, b in zip(x, y, strict=True)) for lag in lags) / scale


def sbd_independent(x: Values, y: Values) -> float:
    """Distance of two windows (C, T) with the same channels, a lag for each."""
    return math.fsum(sbd_dependent(a[None], b[None]) for a, b in zip(x, y, strict=True))
