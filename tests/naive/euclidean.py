"""Euclidean distances, pair by pair in double precision."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def euclidean_distances(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """(Q, N) root of the summed squared differences, rounded once."""
    out = np.empty((len(left), len(right)), np.float32)
    for q, query in enumerate(left.astype(np.float64)):
        for n, row in enumerate(right.astype(np.float64)):
            out[q, n] = np.sqrt(((query - row) ** 2).sum())
    return out
