"""From per-timestep labels to one label per window (Eq. 2 of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readbench.errors import DataError
from readbench.windows import NORMAL, UNLABELLED


def merge_onsets(labels: NDArray[np.int32], codes: tuple[tuple[int, int], ...]) -> NDArray[np.int32]:
    """Replace each onset code by the code of the same fault's steady phase.

    >>> merge_onsets(np.array([0, 101, 1], np.int32), ((101, 1),)).tolist()
    [0, 1, 1]
    """
    merged = labels.copy()
    for onset, steady in codes:
        merged[labels == onset] = steady
    return merged


def check_vocabulary(labels: NDArray[np.int32], classes: int, where: str) -> None:
    """Raise `DataError` at the first label outside 0 .. classes - 1 (and -1, unlabelled)."""
    wrong = np.flatnonzero((labels < UNLABELLED) | (labels >= classes))
    if wrong.size:
        raise DataError(
            f"{where}: label {labels[wrong[0]]} at step {wrong[0]} is outside the vocabulary 0..{classes - 1}. "
            "Add the class to the source, or map the code to one it has."
        )


def majority_labels(labels: NDArray[np.int32], starts: NDArray[np.intp], length: int) -> NDArray[np.int32]:
    """Label of each window by strict majority of its timesteps; normal where no fault has one.

    A window of which at least half is unlabelled is itself unlabelled: it must not pass as normal.

    Args:
        labels: (T,) per timestep.
        starts: (W,) first step of each window.
        length: timesteps per window.

    Returns:
        (W,) class indices.

    >>> majority_labels(np.array([0, 0, 2, 2, 2, 0], np.int32), np.array([0, 2]), 4).tolist()
    [0, 2]
    """
    result = np.full(len(starts), NORMAL, np.int32)
    for fault in _faults(labels):
        result[_counts(labels == fault, starts, length) * 2 > length] = fault
    unknown = _counts(labels == UNLABELLED, starts, length)
    result[unknown * 2 >= length] = UNLABELLED
    return result


def coverage_labels(
    labels: NDArray[np.int32], starts: NDArray[np.intp], length: int, min_coverage: float = 0.0
) -> NDArray[np.int32]:
    """Majority, or else the fault that fills more than half of its own extent inside the window.

    The extent of a fault is the span from its first to its last step inside the window. Among several such faults the
    one with most timesteps wins, ties go to the lower index.

    Args:
        labels: (T,) per timestep.
        starts: (W,) first step of each window.
        length: timesteps per window.
        min_coverage: share of the window that a fault must fill to claim it this way.

    >>> coverage_labels(np.array([0, 0, 0, 3, 0, 0], np.int32), np.array([0]), 6).tolist()
    [3]
    """
    result = majority_labels(labels, starts, length)
    undecided = result == NORMAL
    best = np.zeros(len(starts), np.intp)
    for fault in _faults(labels):
        count = _counts(labels == fault, starts, length)
        extent = np.diff(_bounds(labels == fault, starts, length), axis=1)[:, 0]
        claims = undecided & (count * 2 > extent) & (count > best) & (count / length >= min_coverage)
        result[claims] = fault
        best[claims] = count[claims]
    return result


def fault_spans(
    labels: NDArray[np.int32], starts: NDArray[np.intp], length: int, window_labels: NDArray[np.int32]
) -> NDArray[np.int32]:
    """(W, 2) first and one past the last step of each window's own fault inside it; (0, 0) for normal windows.

    >>> fault_spans(np.array([0, 0, 2, 2, 0], np.int32), np.array([0]), 5, np.array([2], np.int32)).tolist()
    [[2, 4]]
    """
    spans = np.zeros((len(starts), 2), np.int32)
    for fault in _faults(window_labels):
        own = window_labels == fault
        spans[own] = _bounds(labels == fault, starts[own], length)
    return spans


def _faults(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.unique(labels[labels > NORMAL])


def _counts(present: NDArray[np.bool_], starts: NDArray[np.intp], length: int) -> NDArray[np.intp]:
    total = np.concatenate([[0], np.cumsum(present)])
    counts: NDArray[np.intp] = total[starts + length] - total[starts]
    return counts


def _bounds(present: NDArray[np.bool_], starts: NDArray[np.intp], length: int) -> NDArray[np.intp]:
    """(W, 2) first and one past the last occurrence inside each window, counted from its start; (0, 0) for none."""
    steps = np.flatnonzero(present)
    first = np.searchsorted(steps, starts)
    last = np.searchsorted(steps, starts + length) - 1
    inside = first <= last
    bounds = np.zeros((len(starts), 2), np.intp)
    bounds[inside, 0] = steps[first[inside]] - starts[inside]
    bounds[inside, 1] = steps[last[inside]] + 1 - starts[inside]
    return bounds
