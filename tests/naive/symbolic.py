"""Slow twins of the symbolic words: one word window at a time, by the definitions."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist, fmean, pstdev


def word_windows(series: Sequence[float], window: int, stride: int) -> list[list[float]]:
    size = min(window, len(series))
    return [list(series[start : start + size]) for start in range(0, len(series) - size + 1, stride)]


def standardised(part: Sequence[float]) -> list[float]:
    mean, deviation = fmean(part), pstdev(part)
    return [(v - mean) / deviation if deviation > 1e-6 * abs(mean) else 0.0 for v in part]


def segment_means(part: Sequence[float], segments: int) -> list[float]:
    """Every step is split into as many equal pieces as there are segments; a segment is the mean of its pieces."""
    pieces = [v for v in part for _ in range(segments)]
    each = len(pieces) // segments
    return [math.fsum(pieces[k * each : (k + 1) * each]) / each for k in range(segments)]


def fourier_parts(part: Sequence[float], letters: int, *, mean: bool) -> list[float]:
    """Real and imaginary parts in turn, without those that are zero by definition or beyond the highest frequency."""
    size = len(part)
    parts: list[float] = []
    for frequency in range(0 if mean else 1, letters + 1):
        turn = -2j * math.pi * frequency / size
        coefficient = sum(v * cmath.exp(turn * t) for t, v in enumerate(part))
        parts.append(coefficient.real if Fraction(frequency, size) <= Fraction(1, 2) else 0.0)
        if frequency:
            parts.append(coefficient.imag if Fraction(frequency, size) < Fraction(1, 2) else 0.0)
    return parts[:letters]


def normal_edges(alphabet: int) -> list[float]:
    return [NormalDist().inv_cdf(k / alphabet) for k in range(1, alphabet)]


def equal_depth_edges(values: Sequence[float], alphabet: int) -> list[float]:
    ordered = sorted(values)
    return [ordered[k * len(ordered) // alphabet] for k in range(1, alphabet)]


def letter(value: float, edges: Sequence[float]) -> int:
    return sum(value >= edge for edge in edges)


def word(letters: Sequence[int], alphabet: int) -> int:
    """Letters read as the digits of a number."""
    return sum(digit * alphabet**power for power, digit in enumerate(reversed(letters)))


def sax_words(series: Sequence[float], window: int, stride: int, length: int, alphabet: int) -> list[int]:
    edges = normal_edges(alphabet)
    return [
        word([letter(v, edges) for v in segment_means(standardised(part), length)], alphabet)
        for part in word_windows(series, window, stride)
    ]
