"""Lock-step Euclidean distance on a common grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.abilities import ScalesWindows, Searcher
from readbench.registry import RETRIEVERS
from readbench.retrieve.base import Hits, Scores
from readbench.retrieve.blocks import Block, best_of, filled, require_places, scored
from readbench.retrieve.rows import Scaler, common_axis, on_grid
from readbench.windows import Normalisation, WindowSet
from readbench.windows.reconcile import Alignment

BLOCK = 64
"""Queries compared at once: bounds the memory of the products, not of the result."""
PIECE_BYTES = 16 * 2**20
"""Corpus windows on the grid that a thread holds at a time."""


@RETRIEVERS.register("euclidean", title="ED", family="distance", aliases=("ed",), abilities=(Searcher, ScalesWindows))
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
        """Keep the corpus and the statistics to scale it by; the grid is settled when the queries are known."""
        self.corpus_ = corpus
        self.scale_ = Scaler(self.norm, corpus, normals)
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) negative distances, on the union of channels and the longest length of both sides."""
        return filled(self._blocks(queries), np.empty((len(queries), len(self.corpus_)), np.float32))

    def search(self, queries: WindowSet, k: int) -> Hits:
        """The k best of the corpus for each query, exactly those at the top of `score`, without the whole matrix."""
        require_places(k)
        return best_of(self._blocks(queries), len(queries), k)

    def _blocks(self, queries: WindowSet) -> Iterator[Block]:
        """Scores block by block of the corpus, around the mean of its first windows."""
        axis = common_axis(self.align, self.corpus_, queries)
        length = int(max(self.corpus_.lengths.max(initial=1), queries.lengths.max(initial=1)))
        size = max(1, PIECE_BYTES // (4 * len(axis) * length))
        asked = self._flat(queries, axis, length)
        centre = self._flat(self.corpus_[:size], axis, length).mean(axis=0, dtype=np.float64).astype(np.float32)

        def work(items: slice) -> Scores:
            near = self._flat(self.corpus_[items], axis, length)
            return np.negative(euclidean_distances(asked, near, centre))

        return scored(len(self.corpus_), size, work)

    def _flat(self, windows: WindowSet, axis: tuple[str, ...], length: int) -> NDArray[np.float32]:
        """(N, C T) scaled windows on the grid."""
        return on_grid(self.scale_(windows), axis, length, self.align).reshape(len(windows), -1)


def euclidean_distances(
    left: NDArray[np.float32], right: NDArray[np.float32], centre: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """(Q, N) distances between the rows of (Q, D) and (N, D).

    By the expanded square, taken around a point amid the rows so that little is cancelled; equal rows get exactly zero
    only up to rounding, so distances below what float32 can resolve are set to zero.

    Args:
        left: (Q, D).
        right: (N, D).
        centre: (D,) the point; default the mean of `right`.
    """
    if centre is None:
        centre = right.mean(axis=0, dtype=np.float64).astype(np.float32) if len(right) else np.zeros(1, np.float32)
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
