"""Rank by descending score; ties keep corpus order, so that a seed determines every result."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.errors import NotFiniteError, ParameterError, UsageError


def rank(scores: NDArray[np.floating[Any]], depth: int | None = None) -> NDArray[np.int64]:
    """Order the corpus by descending score; equal scores keep corpus order.

    Args:
        scores: (Q, N) larger is better; infinities are in order, NaN is refused.
        depth: number of places to fill; all by default.

    Returns:
        (Q, min(depth, N)) corpus positions, exactly the first columns of the full stable order.

    >>> rank(np.array([[0.5, 0.9, 0.5, 0.9]]), depth=3)
    array([[1, 3, 0]])
    """
    scores = _checked_scores(scores)
    if depth is not None and depth < 1:
        raise ParameterError(
            f"The 'depth' parameter of rank must be an int in the range [1, inf). Got {depth} instead."
        )
    if depth is None or depth >= scores.shape[1]:
        return np.argsort(-scores, axis=1, kind="stable").astype(np.int64, copy=False)
    ranking = np.empty((len(scores), depth), np.int64)
    for places, row in zip(ranking, scores, strict=True):
        places[:] = _best(row, depth)
    return ranking


def places(order: NDArray[np.int64]) -> NDArray[np.float32]:
    """Scores that reproduce a given order: 0 for the first item, -1 for the second, and so on.

    Args:
        order: (Q, N) permutations, best first.

    >>> places(np.array([[2, 0, 1]])).tolist()
    [[-1.0, -2.0, 0.0]]
    """
    scores = np.empty(order.shape, np.float32)
    np.put_along_axis(scores, order, np.arange(0, -order.shape[1], -1, dtype=np.float32)[None], axis=1)
    return scores


def _best(row: NDArray[np.floating[Any]], depth: int) -> NDArray[np.intp]:
    """First `depth` positions of a row's stable descending order, in linear time.

    Of the items that tie at the last place, the earliest win; a partial sort alone would choose arbitrarily.
    """
    last = np.partition(row, len(row) - depth)[len(row) - depth]
    above = np.flatnonzero(row > last)
    tied = np.flatnonzero(row == last)[: depth - len(above)]
    return np.concatenate([above[np.argsort(-row[above], kind="stable")], tied])


def _checked_scores(scores: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    scores = np.asarray(scores)
    if scores.ndim != 2 or not np.issubdtype(scores.dtype, np.floating):
        raise UsageError(f"Scores must be a floating-point matrix (Q, N); got {scores.dtype} of shape {scores.shape}.")
    missing = np.isnan(scores.max(axis=1, initial=-np.inf))
    if missing.any():
        raise NotFiniteError(
            f"Scores of query {int(missing.argmax())} hold NaN, which has no place in a ranking."
            " The method that made them must return finite scores."
        )
    return scores
