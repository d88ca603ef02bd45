"""Normal-residual scoring: what a window's embedding is beyond what normal operation would explain.

r(u) = û - mean of the k normal embeddings nearest to û, renormalised; two windows are compared by the cosine of their
residuals (Eq. 3 of the paper). A fault is thus a departure from the normals near the same operating point.
"""

from __future__ import annotations

from typing import Annotated, Protocol, Self

import numpy as np

from readbench.encoders import Metric, Vectors, unit
from readbench.kernels.threads import Team
from readbench.parameters import Interval
from readbench.ranking import rank
from readbench.registry import TRANSFORMS

BLOCK = 512
"""Vectors compared with the pool at a time."""


class Transform(Protocol):
    """Changes embeddings in the light of normal ones."""

    @property
    def metric(self) -> Metric:
        """How the results are compared."""
        ...

    def fit(self, normals: Vectors) -> Self:
        """Learn from the embeddings of normal windows (M, D); M may be 0."""
        ...

    def apply(self, vectors: Vectors) -> Vectors:
        """(N, D) transformed embeddings."""
        ...


@TRANSFORMS.register("nr", title="NR", positional="k")
class NormalResidual:
    """Departure from the k nearest normal embeddings.

    With fewer than k normals in the pool all of them are used; with none the residual is the unit embedding itself. A
    window that is in the pool is never its own neighbour. A residual of length zero stays zero, with cosine 0 to all.
    """

    metric: Metric = "cosine"

    def __init__(self, k: Annotated[int, Interval(1)] = 30) -> None:
        self.k = k

    def fit(self, normals: Vectors) -> Self:
        """Keep the unit embeddings of the pool."""
        self.pool_ = unit(normals)
        return self

    def apply(self, vectors: Vectors) -> Vectors:
        """(N, D) unit residuals."""
        units = unit(vectors)
        if not len(self.pool_):
            return units
        out = np.empty_like(units)

        def work(start: int) -> None:
            rows = units[start : start + BLOCK]
            out[start : start + BLOCK] = unit(rows - self._expected(rows))

        with Team() as team:
            team.each(work, range(0, len(units), BLOCK))
        return out

    def _expected(self, rows: Vectors) -> Vectors:
        """(B, D) mean of the nearest normals of each row."""
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import

        similarity = rows @ self.pool_.T
        for row, normal in np.argwhere(similarity > 1 - 1e-5):
            if np.array_equal(rows[row], self.pool_[normal]):
                similarity[row, normal] = -np.inf
        nearest = rank(similarity, min(self.k, len(self.pool_)))
        kept = np.isfinite(np.take_along_axis(similarity, nearest, axis=1))
        first = np.arange(len(rows) + 1) * nearest.shape[1]
        chosen = csr_array((kept.ravel().astype(np.float32), nearest.ravel(), first), shape=similarity.shape)
        expected: Vectors = (chosen @ self.pool_ / np.maximum(kept.sum(axis=1, keepdims=True), 1)).astype(np.float32)
        return expected
