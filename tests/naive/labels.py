"""Slow twin of `readbench.benchmark.protocol`: one window at a time, straight from Eq. 2 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

NORMAL = 0
UNLABELLED = -1


def count(window: Sequence[int], label: int) -> int:
    return sum(1 for step in window if step == label)


def faults(window: Sequence[int]) -> list[int]:
    """Faults in the window, lowest index first."""
    return sorted({step for step in window if step not in {NORMAL, UNLABELLED}})


def by_majority(window: Sequence[int]) -> int:
    """First case of Eq. 2, else normal; a window of which half or more is unlabelled has no label."""
    if Fraction(count(window, UNLABELLED), len(window)) >= Fraction(1, 2):
        return UNLABELLED
    for fault in faults(window):
        if Fraction(count(window, fault), len(window)) > Fraction(1, 2):
            return fault
    return NORMAL


def by_coverage(window: Sequence[int], min_coverage: Fraction = Fraction(0)) -> int:
    """Both cases of Eq. 2; among several faults that fill their extent the most frequent, then the lowest index."""
    decided = by_majority(window)
    if decided != NORMAL:
        return decided
    best, most = NORMAL, 0
    for fault in faults(window):
        occurrences = [t for t, step in enumerate(window) if step == fault]
        extent = range(min(occurrences), max(occurrences) + 1)
        inside = sum(1 for t in extent if window[t] == fault)
        fills_extent = Fraction(inside, len(extent)) > Fraction(1, 2)
        fills_window = Fraction(len(occurrences), len(window)) >= min_coverage
        if fills_extent and fills_window and len(occurrences) > most:
            best, most = fault, len(occurrences)
    return best


def span(window: Sequence[int], label: int) -> tuple[int, int]:
    """First and one past the last step of a fault; nothing for a normal window or a fault that is not there."""
    steps = [t for t, step in enumerate(window) if step == label]
    return (min(steps), max(steps) + 1) if label > NORMAL and steps else (0, 0)


def windows(labels: Sequence[int], starts: Sequence[int], length: int) -> list[Sequence[int]]:
    return [labels[start : start + length] for start in starts]
