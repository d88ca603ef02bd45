"""How fast something grows with the corpus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float | None:
    """The p of values ~ size^p: slope of the straight line through their logarithms, by least squares.

    None where fewer than two sizes have a positive value.

    >>> exponent([10, 100, 1000], [3.0, 30.0, 300.0])
    1.0
    >>> exponent([10, 100], [5.0, 0.0]) is None
    True
    """
    known = [(size, value) for size, value in zip(sizes, values, strict=True) if value > 0]
    if len({size for size, _ in known}) < 2:
        return None
    x, y = np.log(np.array(known, np.float64)).T
    x -= x.mean()
    return round(float(x @ y / (x @ x)), 6)
