"""Lock-step Euclidean distance on a common grid."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.registry import RETRIEVERS
from readbench.retrieve.base import Scores
from readbench.windows import Normalisation, WindowSet, channel_axis, dense, normalise
from readbench.windows.reconcile import Alignment

BLOCK = 64
"""Queries compared at once: bounds the memory of the products, not of the result."""


@RETRIEVERS.register("euclidean", title="ED", family="distance", aliases=("ed",))
class Euclidean:
    """Lock-step Euclidean distance over all channels and timesteps.

    Args:
        norm: scaling of the raw windows before comparing.
        align: match channels by `name`, or by `position` with zeros on the right, as the paper words it.
    """

    uses_labels = False
    corpus_dependent = False

    def __init__(self, norm: Normalisation = "channel", align: Alignment = "name") -> None:
        self.norm = norm
        self.align = align

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Keep the scaled corpus; the grid is settled when the queries are known."""
        self.corpus_, self.normals_ = corpus, normals
        self.scaled_ = normalise(corpus, self.norm, corpus=corpus, normals=normals)
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) negative distances, on the union of channels and the longest length of both sides."""
        scaled = normalise(queries, self.norm, corpus=self.corpus_, normals=self.normals_)
        axis = self._axis(scaled)
        length = int(max(self.scaled_.lengths.max(initial=1), scaled.lengths.max(initial=1)))
        left, right = (
            dense(windows, channels=axis, length=length, align=self.align).reshape(len(windows), -1)
            for windows in (scaled, self.scaled_)
        )
        return -euclidean_distances(left, right)

    def _axis(self, queries: WindowSet) -> tuple[str, ...]:
        if self.align == "name":
            return channel_axis(self.scaled_, queries)
        widest = max(self.scaled_.channel_counts.max(initial=1), queries.channel_counts.max(initial=1))
        return tuple(f"ch{c}" for c in range(int(widest)))


def euclidean_distances(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """(Q, N) distances between the rows of (Q, D) and (N, D).

    By the expanded square, centred first so that little is cancelled; equal rows get exactly zero only up to
    rounding, so distances below what float32 can resolve are set to zero.
    """
    centre = right.mean(axis=0, dtype=np.float64).astype(np.float32) if len(right) else np.float32(0)
    left, right = left - centre, right - centre
    squares = np.einsum("nd,nd->n", right, right)
    out = np.empty((len(left), len(right)), np.float32)
    for start in range(0, len(left), BLOCK):
        rows = left[start : start + BLOCK]
        own = np.einsum("qd,qd->q", rows, rows)[:, None]
        squared = own + squares - 2 * (rows @ right.T)
        noise = 4 * np.finfo(np.float32).eps * (own + squares)
        out[start : start + BLOCK] = np.sqrt(np.where(squared > noise, squared, 0))
    return out
