"""Three ways to make one ranking of two: by ranks, by scores, or one after the other."""

from __future__ import annotations

from typing import Annotated, Protocol

import numpy as np

from readbench.engine.parameters import ParameterRange
from readbench.engine.protocols import Scores
from readbench.engine.ranking import places, rank
from readbench.engine.registry import FUSIONS


class Fusion(Protocol):
    """Combines the scores of two legs over the same corpus."""

    def combine(self, first: Scores, second: Scores) -> Scores:
        """(Q, N) fused scores of two (Q, N) matrices, larger is better."""
        ...


@FUSIONS.register("rrf", title="RRF", positional="k0")
class ReciprocalRank:
    """Sum of 1 / (k0 + rank) over both legs (Cormack et al., 2009)."""

    def __init__(self, k0: Annotated[float, ParameterRange(0)] = 60.0) -> None:
        self.k0 = k0

    def combine(self, first: Scores, second: Scores) -> Scores:
        """(Q, N) fused scores; ranks count from 1, ties keep corpus order."""
        fused = 1.0 / (self.k0 + ranks(first)) + 1.0 / (self.k0 + ranks(second))
        return fused.astype(np.float32)


@FUSIONS.register("ws", title="WS", positional="alpha")
class WeightedSum:
    """alpha z(first) + (1 - alpha) z(second), z-scored per query."""

    def __init__(self, alpha: Annotated[float, ParameterRange(0, 1)] = 0.5) -> None:
        self.alpha = alpha

    def combine(self, first: Scores, second: Scores) -> Scores:
        """(Q, N) fused scores; a leg without any spread adds nothing."""
        return (self.alpha * standardise_rows(first) + (1 - self.alpha) * standardise_rows(second)).astype(np.float32)


@FUSIONS.register("2step", title="2-step", positional="k")
class Cascade:
    """The k best of the first leg in the order of the second; the rest stays below in the first leg's order."""

    def __init__(self, k: Annotated[int, ParameterRange(1)] = 100) -> None:
        self.k = k

    def combine(self, first: Scores, second: Scores) -> Scores:
        """(Q, N) negative places: 0 for the first, -1 for the second, ..."""
        order = rank(first)
        shortlist = order[:, : self.k]
        inner = rank(np.take_along_axis(second, shortlist, axis=1))
        order[:, : self.k] = np.take_along_axis(shortlist, inner, axis=1)
        return places(order)


def ranks(scores: Scores) -> Scores:
    """(Q, N) rank of each item, 1 for the best; ties keep corpus order.

    >>> ranks(np.array([[0.2, 0.9, 0.2]], np.float32)).tolist()
    [[2.0, 1.0, 3.0]]
    """
    return 1 - places(rank(scores))


def standardise_rows(scores: Scores) -> Scores:
    """Each row with mean 0 and deviation 1; zero where a row has no spread."""
    wide = scores.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    spread = centred.std(axis=1, keepdims=True)
    scaled: Scores = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12).astype(np.float32)
    return scaled
