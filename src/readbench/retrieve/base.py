"""What a retriever is, and the search every retriever has."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from readbench.abilities import Hits
from readbench.errors import MethodError
from readbench.windows import WindowSet

Scores = NDArray[np.float32]
__all__ = ["Hits", "Retriever", "Scores", "checked_scores"]


class Retriever(Protocol):
    """Anything that scores a corpus for queries (no base class to inherit from)."""

    @property
    def uses_labels(self) -> bool:
        """It reads the labels of the corpus; without this, the corpus it is given has none."""
        ...

    @property
    def corpus_dependent(self) -> bool:
        """A score depends on more of the corpus than the one item (an IDF, a fitted model).

        Such a method is fitted anew at each pollution level; a pairwise one is scored once.
        """
        ...

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Remember or index a corpus of N windows; `normals` show normal operation and may be empty."""
        ...

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) float32, larger is better, finite."""
        ...


def checked_scores(scores: Scores, queries: int, items: int, name: str) -> Scores:
    """The scores as float32 if they keep the contract, else `MethodError`."""
    scores = np.asarray(scores)
    if scores.shape != (queries, items):
        raise MethodError(f"{name} returned scores of shape {scores.shape}; expected ({queries}, {items}).")
    if not np.isfinite(scores).all():
        row, column = np.argwhere(~np.isfinite(scores))[0]
        raise MethodError(f"{name} returned {scores[row, column]} for query {row} and corpus item {column}.")
    return scores.astype(np.float32, copy=False)
