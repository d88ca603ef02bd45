"""Which channels depart from normal operation, and how: a better use of the normals than one residual per window.

The vector e_c of channel c is measured by the normal vectors of the same channel:

    r_c = (e_c - mean_c) / (deviation_c + 0.01)   per dimension, D of them
    a_c = |r_c|^2 / D                             how far it went
    d_c = r_c / sqrt(a_c) * log(1 + a_c)^p        its direction, as loud as it went far
    p = 3/2 log10(1 + C)                          in a window of C channels

A channel that behaves as usual has a_c near one and little weight; one that departs speaks louder, but only with a
power of the logarithm of how far it went, so that no single channel drowns the others. The more channels there are,
the more of them have nothing to do with the fault, and the quieter those must be: p is 0.7 for two and 2.6 for fifty.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.encoders.base import Vectors

LEAST_DEVIATION = 1e-2
"""Added to every deviation: a dimension that never moved in normal operation must not decide alone."""
SHARPNESS = 1.5
"""How much quieter usual channels are with every tenfold number of channels."""
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

    def departures(self, vectors: Vectors, names: NDArray[np.str_], channels: NDArray[np.integer]) -> Vectors:
        """(M, D) departures of the channels' vectors.

        Unknown channels are measured by the mean of the known ones. Where no channel is known, nothing is usual: the
        vectors stay as they are.

        Args:
            vectors: (M, D).
            names: (M,) of the channels.
            channels: (M,) how many the window of each has.
        """
        if not self.names:
            return vectors
        place = {name: row for row, name in enumerate(self.names)}
        rows = np.array([place.get(str(name), len(self.names)) for name in names], np.intp)
        mean = np.vstack([self.mean, self.mean.mean(axis=0)])[rows]
        deviation = np.vstack([self.deviation, self.deviation.mean(axis=0)])[rows]
        residual = (vectors - mean) / (deviation + LEAST_DEVIATION)
        away = np.mean(residual**2, axis=1, keepdims=True)
        power = SHARPNESS * np.log10(1 + channels)[:, None]
        loud: Vectors = residual * (np.log1p(away) ** power / np.sqrt(away + 1e-6))
        return loud.astype(np.float32)

    def fingerprint(self) -> str:
        """Hash of all numbers."""
        digest = hashlib.sha256(repr(self.names).encode())
        digest.update(self.mean.tobytes())
        digest.update(self.deviation.tobytes())
        return digest.hexdigest()[:16]
