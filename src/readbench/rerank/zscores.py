"""Terms of different scales brought onto one: z-scores over the candidates of each query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def zscored(values: NDArray[np.floating[Any]], known: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Each row with mean 0 and deviation 1 over its known values.

    Args:
        values: (Q, K) one term of a score.
        known: (Q, K) which values count; all by default.

    Returns:
        (Q, K); zero where a value is unknown, that is neither rewarded nor punished, and in rows without spread.

    >>> zscored(np.array([[1.0, 3.0, 9.0]]), np.array([[True, True, False]])).tolist()
    [[-1.0, 1.0, 0.0]]
    """
    known = np.ones(values.shape, bool) if known is None else known
    wide = np.where(known, values, 0.0).astype(np.float64)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    centred = np.where(known, wide - wide.sum(axis=1, keepdims=True) / count, 0.0)
    spread = np.sqrt((centred**2).sum(axis=1, keepdims=True) / count)
    # What is left of equal values after subtracting their mean is rounding, not spread.
    real = spread > 1e-9 * np.abs(wide).max(axis=1, keepdims=True, initial=0.0)
    scaled: NDArray[np.float64] = np.divide(centred, spread, out=np.zeros_like(centred), where=real)
    return scaled
