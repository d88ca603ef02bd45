"""Input checks shared by all significance tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.errors import NotFiniteError, ParameterError, UsageError

DECIMALS = 12
"""Scores are compared after rounding to this many decimals.

Means of the same per-query values in another order differ in the last bit; rank tests must see them as a tie.
"""


def score_table(scores: ArrayLike, test: str) -> NDArray[np.float64]:
    """Check a table of scores and round it to `DECIMALS`.

    Args:
        scores: (n, m) one row per dataset, one column per method; larger is better.
        test: name of the test, for error messages.

    Returns:
        (n, m) float64, finite, n and m at least 2.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2:
        raise UsageError(f"{test} needs a table of scores (datasets, methods); got shape {table.shape}.")
    if min(table.shape) < 2:
        datasets, methods = table.shape
        raise UsageError(f"{test} needs at least 2 datasets and 2 methods; got {datasets} and {methods} of them.")
    absent = np.argwhere(~np.isfinite(table))
    if len(absent):
        row, column = absent[0]
        raise NotFiniteError(
            f"{test} found {table[row, column]} at row {row} (dataset), column {column} (method)."
            " Every method needs a score on every dataset: complete the run, or leave that row or column out."
        )
    return np.round(table, DECIMALS)


def paired_differences(a: ArrayLike, b: ArrayLike, test: str) -> NDArray[np.float64]:
    """Differences a - b of two equally long vectors of finite numbers, at least 2 of them."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise UsageError(
            f"{test} compares pairs: give two vectors of equal length; got {first.shape} and {second.shape}."
        )
    if len(first) < 2:
        raise UsageError(f"{test} needs at least 2 pairs; got {len(first)}.")
    absent = np.flatnonzero(~(np.isfinite(first) & np.isfinite(second)))
    if absent.size:
        at = int(absent[0])
        raise NotFiniteError(f"{test} found {first[at]} against {second[at]} at pair {at}. Leave incomplete pairs out.")
    return first - second


def require_probability(name: str, value: float, test: str) -> None:
    """Refuse a level outside the open interval (0, 1)."""
    if not 0.0 < value < 1.0:
        raise ParameterError(
            f"The {name!r} parameter of {test} must be a float in the range (0, 1). Got {value} instead."
        )
