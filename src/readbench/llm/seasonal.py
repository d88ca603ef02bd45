"""What is left of a channel without its season (TSAD): the deviation rather than the shared rhythm.

The period is the lag of the highest peak of the autocorrelation, at least 8 steps. An additive decomposition then
estimates the season: the mean of each phase, after a moving average over one period is taken off. The season is
subtracted and the trend stays, since a level may be the fault.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SHORTEST_PERIOD = 8
Floats = NDArray[np.float64]


def deseasonalised(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], int]:
    """A channel without its season, and the period; as it is, and 0, where no season can be told.

    Args:
        values: (T,).

    >>> clean, period = deseasonalised(np.tile(np.arange(10, dtype=np.float32), 6))
    >>> period, bool(np.ptp(clean) < 1e-4)
    (10, True)
    """
    period = season_of(values)
    if not period:
        return values, 0
    exact = values.astype(np.float64)
    return (exact - _season(exact, period)).astype(np.float32), period


def season_of(values: NDArray[np.float32]) -> int:
    """The period in steps: the lag of the highest peak of the autocorrelation, at least 8; 0 where there is none.

    A peak is positive and higher than both its neighbours, and two periods must fit into the channel.
    """
    correlation = autocorrelation(values.astype(np.float64))
    inner = correlation[1:-1]
    peaks = 1 + np.flatnonzero((inner > correlation[:-2]) & (inner >= correlation[2:]) & (inner > 0))
    if not len(peaks):
        return 0
    period = max(SHORTEST_PERIOD, int(peaks[correlation[peaks].argmax()]))
    return period if 2 * period <= len(values) else 0


def autocorrelation(values: Floats) -> Floats:
    """(T // 2 + 1,) correlation of a channel with itself, at lags from 0; zeros for a constant one."""
    centred = values - values.mean()
    scale = np.abs(centred).max(initial=0.0)
    lags = len(values) // 2 + 1
    if scale <= 1e-6 * np.abs(values).max(initial=0.0):
        return np.zeros(lags)
    spectrum = np.fft.rfft(centred / scale, 2 * len(values))
    products = np.fft.irfft(spectrum * spectrum.conj())[:lags]
    result: Floats = products / products[0]
    return result


def _season(values: Floats, period: int) -> Floats:
    """(T,) the season: means of the phases of what a centred moving average leaves, with mean zero."""
    weights = np.ones(period + 1 - period % 2)
    if period % 2 == 0:
        weights[[0, -1]] = 0.5
    half = len(weights) // 2
    rest = values[half : len(values) - half] - np.convolve(values, weights / period, mode="valid")
    phase = np.arange(half, len(values) - half) % period
    means = np.bincount(phase, rest, period) / np.maximum(np.bincount(phase, minlength=period), 1)
    season: Floats = (means - means.mean())[np.arange(len(values)) % period]
    return season
