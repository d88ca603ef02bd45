"""The nearest windows of each query so far."""

from __future__ import annotations

import numpy as np
from numba import types

from readbench.kernels.compiling import compiled
from readbench.retrieve.kernels.dtw import Floats, Ints
from readbench.retrieve.kernels.heap import behind, replace_root

_floats, _ints, _table = types.float32[::1], types.int64[::1], types.float32[:, ::1]


class Nearest:
    """The k nearest windows of each query so far; of equally near ones, those that come first in the corpus.

    Attributes:
        within: (Q,) no farther window can be among the nearest.
    """

    def __init__(self, queries: int, k: int) -> None:
        self.within = np.full(queries, np.inf, np.float32)
        self._items = np.full((queries, k), np.iinfo(np.int64).max)
        self._scores = np.full((queries, k), -np.inf, np.float32)

    @property
    def k(self) -> int:
        """How many are looked for."""
        return self._items.shape[1]

    def offer(self, queries: Ints, items: Ints, distances: Floats) -> None:
        """Take in windows that were not offered before.

        Args:
            queries: (m,) which queries.
            items: (n,) positions in the corpus; negative ones are passed over.
            distances: (m, n).
        """
        _offer(queries, items, distances, self._scores, self._items, self.within)

    def ranked(self) -> tuple[Ints, Floats]:
        """Positions (Q, k) and distances (Q, k), nearest first; nothing can be offered after this."""
        _rank(self._scores, self._items)
        return self._items, np.negative(self._scores)


@compiled(types.none(_ints, _ints, _table, _table, types.int64[:, ::1], _floats))
def _offer(queries: Ints, items: Ints, distances: Floats, heap: Floats, heap_items: Ints, within: Floats) -> None:
    """Update the heaps (Q, k) of negative distances, and what is within reach of them."""
    for row in range(len(queries)):
        query = queries[row]
        for place in range(len(items)):
            distance, item = distances[row, place], items[place]
            if distance > within[query] or item < 0:
                continue
            if behind(heap[query, 0], heap_items[query, 0], -distance, item):
                replace_root(heap[query], heap_items[query], -distance, item)
                within[query] = min(within[query], -heap[query, 0])


@compiled(types.none(_table, types.int64[:, ::1]))
def _rank(heap: Floats, heap_items: Ints) -> None:
    """Sort heaps (Q, k) in place, best first: the worst of what is left goes behind the rest, again and again."""
    for query in range(len(heap)):
        scores, items = heap[query], heap_items[query]
        for last in range(len(scores) - 1, 0, -1):
            score, item = scores[last], items[last]
            scores[last], items[last] = scores[0], items[0]
            replace_root(scores[:last], items[:last], score, item)
