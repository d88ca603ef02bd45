"""Fusion, straight from the paper's appendix, one query at a time."""

from __future__ import annotations


def order(scores: list[float]) -> list[int]:
    """Positions from best to worst; Python's sort is stable."""
    return sorted(range(len(scores)), key=lambda i: -scores[i])


def rrf(a: list[float], b: list[float], k0: float) -> list[float]:
    place_a, place_b = ({item: place for place, item in enumerate(order(s), start=1)} for s in (a, b))
    return [1 / (k0 + place_a[i]) + 1 / (k0 + place_b[i]) for i in range(len(a))]


def zscores(values: list[float]) -> list[float]:
    mean = sum(values) / len(values)
    spread = (sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5
    return [(v - mean) / spread if spread > 1e-12 else 0.0 for v in values]


def weighted_sum(a: list[float], b: list[float], alpha: float) -> list[float]:
    return [alpha * x + (1 - alpha) * y for x, y in zip(zscores(a), zscores(b), strict=True)]


def cascade(a: list[float], b: list[float], k: int) -> list[int]:
    """The final order."""
    first = order(a)
    shortlist = first[:k]
    return [shortlist[i] for i in order([b[item] for item in shortlist])] + first[k:]
