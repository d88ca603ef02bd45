"""Season of a channel, one number at a time."""

from __future__ import annotations


def autocorrelation(values: list[float], lag: int) -> float:
    mean = sum(values) / len(values)
    centred = [value - mean for value in values]
    own = sum(value * value for value in centred)
    return sum(a * b for a, b in zip(centred, centred[lag:], strict=False)) / own if own else 0.0


def period(values: list[float]) -> int:
    """Lag of the highest positive peak of the autocorrelation, at least 8; 0 where there is none."""
    curve = [autocorrelation(values, lag) for lag in range(len(values) // 2 + 1)]
    peaks = [
        lag
        for lag in range(1, len(curve) - 1)
        if curve[lag] > curve[lag - 1] and curve[lag] >= curve[lag + 1] and curve[lag] > 0
    ]
    if not peaks:
        return 0
    best = max(8, max(peaks, key=lambda lag: (round(curve[lag], 9), -lag)))
    return best if 2 * best <= len(values) else 0


def without_season(values: list[float], length: int) -> list[float]:
    """The classical additive decomposition: a centred moving average, means of the phases, which sum to zero."""
    phases: list[list[float]] = [[] for _ in range(length)]
    half = length // 2
    for t in range(half, len(values) - half):
        window = values[t - half : t + half + 1]
        total = sum(window) if length % 2 else sum(window) - (window[0] + window[-1]) / 2
        phases[t % length].append(values[t] - total / length)
    means = [sum(own) / len(own) if own else 0.0 for own in phases]
    level = sum(means) / length
    return [value - (means[t % length] - level) for t, value in enumerate(values)]
