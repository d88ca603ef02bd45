"""Pseudo-relevance feedback: what lies near the first hits moves up, without any label."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from readbench.parameters import Interval
from readbench.registry import RERANKERS
from readbench.rerank.base import Pool, Scores
from readbench.rerank.zscores import zscored


@RERANKERS.register("prf", title="PRF", family="reranker", positional="k")
class PseudoRelevanceFeedback:
    """Weighs the base score against the distance to the centroid of the first k hits (after Rocchio, 1971).

    s'(q, x) = beta s(q, x) - (1 - beta) |phi(x) - c|, with c the mean of phi over the first k candidates.

    Args:
        k: how many first hits make the centroid; all candidates where there are fewer.
        beta: weight of the base score.
        scale: `printed` adds the two terms as they are, as the paper prints it; `z` z-scores both over the pool first,
            which matters for base scores of another scale than the distances, such as those of a fused list.
        pool: how many candidates are reordered.
    """

    uses_labels = False

    def __init__(
        self,
        k: Annotated[int, Interval(1)] = 10,
        beta: Annotated[float, Interval(0, 1)] = 0.5,
        scale: Literal["printed", "z"] = "printed",
        pool: Annotated[int, Interval(1)] = 20,
    ) -> None:
        self.k = k
        self.beta = beta
        self.scale = scale
        self.pool = pool

    @property
    def depth(self) -> int:
        """The pool, and at least the k hits of the centroid."""
        return max(self.pool, self.k)

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores."""
        base, distance = pool.scores.astype(np.float64), self._distance(pool)
        if self.scale == "z":
            base, distance = zscored(base), zscored(distance)
        return (self.beta * base - (1 - self.beta) * distance).astype(np.float32)

    def _distance(self, pool: Pool) -> NDArray[np.float64]:
        """(Q, K) Euclidean distance of each candidate to its query's centroid."""
        distance = np.empty(pool.candidates.shape)
        for row, candidates in zip(distance, pool.candidates, strict=True):
            vectors = pool.items[candidates].astype(np.float64)
            row[:] = np.linalg.norm(vectors - vectors[: self.k].mean(axis=0), axis=1)
        return distance
