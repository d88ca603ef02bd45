"""The best of a corpus by any retriever."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from readbench.retrieve.base import Hits, Retriever
from readbench.retrieve.blocks import top
from readbench.windows import WindowSet


@runtime_checkable
class Searcher(Protocol):
    """A retriever that finds the best of a corpus without the whole matrix of scores."""

    def search(self, queries: WindowSet, k: int) -> Hits:
        """The k best of the corpus for each query, best first; ties keep corpus order."""
        ...


def search(retriever: Retriever, queries: WindowSet, k: int) -> Hits:
    """The k best of the corpus for each query, best first; ties keep corpus order.

    Args:
        retriever: fitted on N windows.
        queries: Q windows.
        k: how many.

    Returns:
        Positions and scores (Q, min(k, N)): by the retriever's own search, else the top of all its scores.

    >>> import numpy as np
    >>> from readbench.retrieve.euclidean import Euclidean
    >>> windows = WindowSet.from_arrays(np.arange(6.0).reshape(3, 1, 2))
    >>> search(Euclidean(norm="none").fit(windows, windows[:0]), windows[:1], 2).indices
    array([[0, 1]])
    """
    if isinstance(retriever, Searcher):
        return retriever.search(queries, k)
    return top(retriever.score(queries), k)
