"""Sums of channels' vectors at places of their own."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Float = NDArray[np.float32]
Index = NDArray[np.intp]


@njit(cache=True, nogil=True, error_model="numpy")
def add_keyed(summed: Float, owners: Index, vectors: Float, rows: Index, places: Index, signs: Float) -> None:
    """Add the vectors of one channel to its windows' sums.

    Args:
        summed: (N, width), changed.
        owners: (m,) windows that have the channel.
        vectors: (M, d) of all channels.
        rows: (m,) which of them are of this channel.
        places: (d,) where its numbers go.
        signs: (d,) with which signs.
    """
    for k in range(len(rows)):
        target, vector = summed[owners[k]], vectors[rows[k]]
        for j in range(len(places)):
            target[places[j]] += vector[j] * signs[j]
