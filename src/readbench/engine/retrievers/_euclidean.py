"""Lock-step Euclidean distance on a common grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.abilities import Hits, ScalesWindows, Searcher
from readbench.engine.preparation import Alignment, Normalisation, Scaler, common_axis, on_grid
from readbench.engine.protocols import Scores
from readbench.engine.registry import RETRIEVERS
from readbench.engine.retrievers._search import Block, best_of, fill_scores, require_places, score_blocks
from readbench.engine.windows import WindowSet

BLOCK = 64
"""Queries compared at once: bounds the memory of the products, not of the result."""
PIECE_BYTES = 16 * 2**20
"""Corpus windows on the grid that a thread holds at a time."""
CANCELLED = 2.0**-16
"""Share of the squared lengths below which a squared distance is not taken from the expanded square. That one is off by
some 2**-46 of them (16,000 dimensions, float64), so what remains is right to 2**-30, below the rounding to float32."""


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
        self.scale_ = Scaler.of(self.norm, corpus, normals)
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) negative distances, on the union of channels and the longest length of both sides."""
        return fill_scores(self._blocks(queries), np.empty((len(queries), len(self.corpus_)), np.float32))

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

        return score_blocks(len(self.corpus_), size, work)

    def _flat(self, windows: WindowSet, axis: tuple[str, ...], length: int) -> NDArray[np.float32]:
        """(N, C T) scaled windows on the grid."""
        return on_grid(self.scale_(windows), axis, length, self.align).reshape(len(windows), -1)


def euclidean_distances(
    left: NDArray[np.float32], right: NDArray[np.float32], centre: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """(Q, N) distances between the rows of (Q, D) and (N, D), exact but for one rounding to float32.

    The expanded square, in double precision and around a point amid the rows, serves where little of it cancels; pairs
    that are far nearer to each other than to that point are compared by their differences. Equal rows get zero.

    Args:
        left: (Q, D).
        right: (N, D).
        centre: (D,) the point; default the mean of `right`.
    """
    if centre is None:
        centre = right.mean(axis=0, dtype=np.float64).astype(np.float32) if len(right) else np.zeros(1, np.float32)
    around = right - centre.astype(np.float64)  # in float32 the shift itself would be rounded
    squares = np.einsum("nd,nd->n", around, around)
    out = np.empty((len(left), len(right)), np.float32)
    for start in range(0, len(left), BLOCK):
        rows = left[start : start + BLOCK] - centre.astype(np.float64)
        sizes = np.einsum("qd,qd->q", rows, rows)[:, None] + squares
        squared = rows @ around.T
        squared *= -2
        squared += sizes
        sizes *= CANCELLED
        near = np.argwhere(squared < sizes)
        out[start : start + BLOCK] = np.sqrt(np.maximum(squared, 0, out=squared), out=squared)
        if len(near):
            _compare_pairs(left[start : start + BLOCK], right, near, out[start : start + BLOCK])
    return out


def _compare_pairs(
    left: NDArray[np.float32], right: NDArray[np.float32], pairs: NDArray[np.int64], out: NDArray[np.float32]
) -> None:
    """Write the distances of some pairs (P, 2) of a row of `left` and a row of `right`, taken from differences."""
    from readbench.engine.kernels.nearest import distances_of_pairs  # noqa: PLC0415 - compiles

    distances_of_pairs(np.ascontiguousarray(left), np.ascontiguousarray(right), np.ascontiguousarray(pairs), out)
