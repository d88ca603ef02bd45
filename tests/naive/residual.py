"""Normal-residual scoring, straight from Eq. 3, one vector at a time."""

from __future__ import annotations

import math


def unit(vector: list[float]) -> list[float]:
    norm = math.sqrt(sum(x * x for x in vector))
    return [x / norm for x in vector] if norm > 1e-12 else [0.0] * len(vector)


def residual(vector: list[float], normals: list[list[float]], k: int) -> list[float]:
    own = unit(vector)
    others = [n for n in map(unit, normals) if n != own]
    if not normals:
        return own
    nearest = sorted(others, key=lambda n: -sum(x * y for x, y in zip(own, n, strict=True)))[:k]
    expected = [sum(column) / max(1, len(nearest)) for column in zip(*nearest, strict=True)] or [0.0] * len(own)
    return unit([x - e for x, e in zip(own, expected, strict=True)])
