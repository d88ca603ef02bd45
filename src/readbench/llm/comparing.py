"""How a candidate differs from a query, in numbers and as an overlay: the evidence that `-evidence` models see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.llm.exhibits import Exhibit
from readbench.windows import resample

MOST_CHANNELS = 8
"""Residuals told in words, the largest ones."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A candidate beside a query.

    Args:
        lag: steps that the query is shifted to the right to agree best.
        residuals: for each channel that both show: its name, and how far the two are apart, 0 for equal channels and
            about 1.4 for unrelated ones of the same level.
        overlay: (C, P) the shifted query on the candidate's channels and steps; NaN where it has none.
    """

    lag: int
    residuals: tuple[tuple[str, float], ...]
    overlay: NDArray[np.float32]


def compare(query: Exhibit, candidate: Exhibit) -> Comparison:
    """Shift the query to where it agrees best with the candidate, at most a quarter of the window, and measure."""
    length = candidate.values.shape[1]
    asked = dict(zip(query.channels, resample(query.values, length), strict=True))
    shared = [place for place, name in enumerate(candidate.channels) if name in asked]
    overlay = np.full(candidate.values.shape, np.nan, np.float32)
    if not shared:
        return Comparison(0, (), overlay)
    own = candidate.values[shared].astype(np.float64)
    other = np.stack([asked[candidate.channels[place]] for place in shared]).astype(np.float64)
    lag = best_lag(other, own)
    overlay[shared] = shifted(other, lag)
    apart = _residuals(shifted(other, lag), own)
    names = [candidate.channels[place] for place in shared]
    return Comparison(lag, tuple(zip(names, apart.tolist(), strict=True)), overlay)


def best_lag(query: Floats, candidate: Floats) -> int:
    """The shift to the right with the least mean residual; the smallest of equal ones.

    Args:
        query: (C, P).
        candidate: (C, P).
    """
    reach = query.shape[1] // 4
    lags = sorted(range(-reach, reach + 1), key=lambda lag: (abs(lag), lag))
    return min(lags, key=lambda lag: float(_residuals(shifted(query, lag), candidate).mean()))


def shifted(values: Floats, lag: int) -> Floats:
    """(C, P) values moved to the right by `lag` steps, NaN where nothing moved in.

    >>> shifted(np.array([[1.0, 2.0, 3.0]]), 1).tolist()
    [[nan, 1.0, 2.0]]
    """
    moved = np.full(values.shape, np.nan)
    stop = values.shape[1]
    moved[:, max(lag, 0) : stop + min(lag, 0)] = values[:, max(-lag, 0) : stop - max(lag, 0)]
    return moved


def _residuals(query: Floats, candidate: Floats) -> Floats:
    """(C,) root mean square difference over both deviations; 0 where both are constant and equal."""
    spread = np.sqrt((np.nanvar(query, axis=1) + candidate.var(axis=1)) / 2)
    apart = np.sqrt(np.nanmean((query - candidate) ** 2, axis=1))
    scale = np.where(spread > 0, spread, np.where(apart > 0, apart, 1.0))
    result: Floats = apart / scale
    return result
