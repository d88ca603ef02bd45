"""MiniRocket by its definition: one kernel, one window, one point at a time, in float64."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from readbench.engine.kernels.rocket import Bank

Numbers = NDArray[np.float64]


def response(series: Numbers, dilation: int, heavy: tuple[int, ...]) -> Numbers:
    """Kernel of nine taps, 2 at the heavy ones and -1 elsewhere, centred at each point; zeros beyond the ends."""
    out = np.zeros(len(series))
    for t in range(len(series)):
        for tap in range(9):
            at = t + (tap - 4) * dilation
            if 0 <= at < len(series):
                out[t] += (2 if tap in heavy else -1) * series[at]
    return out


def features(bank: Bank, windows: NDArray[np.float32]) -> Numbers:
    """(N, F) share of responses above each level; every second kernel leaves out what touches an edge."""
    kernels = list(combinations(range(9), 3))
    rows = []
    for window in windows.astype(np.float64):
        shares: list[float] = []
        for j, dilation in enumerate(bank.dilations):
            for k, heavy in enumerate(kernels):
                c = j * len(kernels) + k
                own = bank.channels[bank.begins[c] : bank.begins[c + 1]]
                answer = response(window[own].sum(axis=0), int(dilation), heavy)
                if (j + k) % 2:
                    answer = answer[4 * dilation : len(answer) - 4 * dilation]
                levels = bank.levels[len(shares) : len(shares) + bank.widths[j]]
                shares += [float(np.mean(answer > level)) for level in levels]
        rows.append(shares)
    return np.array(rows)
