"""Envelope spectra on the axis of shaft orders, line by line."""

from __future__ import annotations

import cmath
import math
import statistics
from collections.abc import Sequence


def transform(series: Sequence[complex]) -> list[complex]:
    """The discrete Fourier transform, by its definition."""
    steps = len(series)
    return [
        sum(value * cmath.exp(-2j * math.pi * k * t / steps) for t, value in enumerate(series)) for k in range(steps)
    ]


def envelope(series: Sequence[float], rate: float) -> list[float]:
    """Magnitude of the analytic signal of what lies above 1 kHz, or above a tenth of the band where that is lower."""
    steps = len(series)
    lines = transform(series)
    kept = [
        2 * line if min(1000.0, rate / 20) < k * rate / steps and 2 * k < steps else 0.0 for k, line in enumerate(lines)
    ]
    return [abs(value.conjugate()) / steps for value in transform([complex(line).conjugate() for line in kept])]


def orders(series: Sequence[float], rate: float, speed: float, elements: float, reach: float) -> list[float]:
    """Logarithm of how far the lines around each point stand above the median point; points .1, .15, ..., 3.6."""
    steps = len(series)
    course = envelope(series, rate)
    mean = sum(course) / steps
    hann = [0.5 - 0.5 * math.cos(2 * math.pi * t / (steps - 1)) for t in range(steps)]
    lines = transform([(value - mean) * weight for value, weight in zip(course, hann, strict=True)])
    found = [k * rate / steps / speed / (elements / 2) for k in range(steps // 2 + 1)]
    around = []
    for point in (0.05 * p for p in range(2, 73)):
        weights = [max(0.0, 1 - abs(order - point) / max(reach, found[1])) for order in found]
        total = sum(weight * abs(line) for weight, line in zip(weights, lines, strict=False))
        around.append(total / sum(weights))
    usual = statistics.median(around)
    return [math.log(max(1.0, value / usual)) for value in around]
