"""Thinning a window for drawing, stretch by stretch."""

from __future__ import annotations


def thinned(channel: list[float], points: int) -> list[float]:
    """The least and the greatest value of each stretch, whichever comes first in front."""
    if len(channel) <= points:
        return channel
    width = 1
    while width * (points // 2) < len(channel):
        width += 1
    kept = []
    for start in range(0, len(channel), width):
        stretch = channel[start : start + width]
        least, greatest = stretch.index(min(stretch)), stretch.index(max(stretch))
        kept += [stretch[min(least, greatest)], stretch[max(least, greatest)]]
    return kept
