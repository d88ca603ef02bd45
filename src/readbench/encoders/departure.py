"""Which channels depart from normal operation, and how: a better use of the normals than one residual per window.

The vector e_c of channel c is measured by the normal vectors of the same channel:

    r_c = (e_c - mean_c) / deviation_c          per dimension
    d_c = r_c / |r_c| * log(1 + |r_c|^2 / D)^2  its direction, and how far it went

A channel that behaves as usual has |r_c|^2 / D near one and little weight; one that departs speaks louder, but only
with the square of the logarithm of how far it went, so that no single channel drowns the others.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.encoders.base import Vectors

LEAST_DEVIATION = 1e-2
"""Added to every deviation: a dimension that never moved in normal operation must not decide alone."""
FEWEST = 8
"""Vectors that a channel needs before its own statistics are trusted."""


@dataclass(frozen=True, eq=False)
class NormalOperation:
    """Mean and deviation of each channel's vectors in normal operation.

    Args:
        names: K channels.
        mean: (K, D).
        deviation: (K, D).
    """

    names: tuple[str, ...]
    mean: Vectors
    deviation: Vectors

    @classmethod
    def of(cls, vectors: Vectors, names: NDArray[np.str_]) -> NormalOperation:
        """From the vectors (M, D) of M channels with these names; channels that were seen too rarely are left out.

        >>> rng = np.random.default_rng(0)
        >>> usual = NormalOperation.of(rng.normal(size=(100, 4)).astype(np.float32), np.repeat(["a", "b"], 50))
        >>> usual.names, usual.mean.shape
        (('a', 'b'), (2, 4))
        """
        kept, means, deviations = [], [], []
        for name in np.unique(names):
            rows = vectors[names == name]
            if len(rows) >= FEWEST:
                kept.append(str(name))
                means.append(rows.mean(axis=0, dtype=np.float64))
                deviations.append(rows.std(axis=0, dtype=np.float64))
        shape = (len(kept), vectors.shape[1])
        return cls(
            tuple(kept),
            np.array(means, np.float32).reshape(shape),
            np.array(deviations, np.float32).reshape(shape),
        )

    def departures(self, vectors: Vectors, names: NDArray[np.str_]) -> Vectors:
        """(M, D) departures of the channels' vectors; unknown channels are measured by the mean of the known ones.

        Where no channel is known, nothing is usual: the vectors stay as they are.
        """
        if not self.names:
            return vectors
        place = {name: row for row, name in enumerate(self.names)}
        rows = np.array([place.get(str(name), len(self.names)) for name in names], np.intp)
        mean = np.vstack([self.mean, self.mean.mean(axis=0)])[rows]
        deviation = np.vstack([self.deviation, self.deviation.mean(axis=0)])[rows]
        residual = (vectors - mean) / (deviation + LEAST_DEVIATION)
        energy = np.mean(residual**2, axis=1, keepdims=True)
        loud: Vectors = residual * (np.log1p(energy) ** 2 / np.sqrt(energy + 1e-6))
        return loud.astype(np.float32)

    def fingerprint(self) -> str:
        """Hash of all numbers."""
        digest = hashlib.sha256(repr(self.names).encode())
        digest.update(self.mean.tobytes())
        digest.update(self.deviation.tobytes())
        return digest.hexdigest()[:16]
