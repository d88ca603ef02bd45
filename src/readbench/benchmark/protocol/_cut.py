"""From one clean recording to its labelled windows.

Per-timestep labels become one label per window (Eq. 2 of the paper): by majority, or by coverage of the fault. The
rules of labelling come first, then the cutting (`windows_of`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol._clean import clean
from readbench.benchmark.protocol._source import BeforeRule, Protocol, Recording
from readbench.engine.context import Context, Matrix
from readbench.engine.windows import NORMAL, UNLABELLED, WindowSet
from readbench.errors import DataError

LEAST_BEFORE = 0.25
"""Shortest time before a window that is worth keeping, as a share of the window's length."""


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


def windows_of(
    recording: Recording, protocol: Protocol, classes: tuple[str, ...], units: Mapping[str, str] | None = None
) -> WindowSet | None:
    """Clean, cut and label one recording; None where it is too short or nothing of it is labelled.

    Window ids are `<recording id>@<first step>`, counted after cleaning.

    Args:
        recording: as its source wrote it.
        protocol: how it is cut and labelled, and what windows bring as the time before them.
        classes: class names, normal first.
        units: of channels, by name.
    """
    recording = clean(recording, protocol.missing)
    if not recording.values.size:
        return None
    labels = merge_onsets(recording.labels, protocol.onset_codes)
    check_vocabulary(labels, len(classes), f"Recording {recording.id}")
    length = protocol.length or recording.values.shape[1]
    if recording.cuts is None:
        starts = window_starts(recording.values.shape[1], length, _stride(protocol, labels, length))
        window_labels = _label(labels, starts, length, protocol, recording.id)
    else:
        starts, window_labels = recording.cuts.starts, recording.cuts.labels
        check_vocabulary(window_labels, len(classes), f"Recording {recording.id}, cuts")
        _check_fit(starts, length, recording)
    kept = window_labels != UNLABELLED
    starts, window_labels = starts[kept], window_labels[kept]
    if not len(starts):
        return None
    values = recording.values.astype(np.float32)
    spans = fault_spans(labels, starts, length, window_labels)
    return WindowSet.from_arrays(
        [values[:, s : s + length] for s in starts],
        channels=recording.channels,
        labels=window_labels,
        classes=classes,
        ids=[f"{recording.id}@{s}" for s in starts],
        groups=[recording.group] * len(starts),
        assets=[recording.asset] * len(starts),
        times=recording.start + recording.step * starts,
        spans=spans,
        context=Context.of(
            len(starts),
            befores=_befores(recording, labels, starts, spans, kept, protocol),
            rates=[recording.rate] * len(starts),
            units=[[(units or {}).get(name, "") for name in recording.channels]] * len(starts),
            facts=_facts(recording, kept),
        ),
    )


def _befores(
    recording: Recording,
    labels: NDArray[np.int32],
    starts: NDArray[np.intp],
    spans: NDArray[np.int32],
    kept: NDArray[np.bool_],
    protocol: Protocol,
) -> list[Matrix | None]:
    """The time before each window, as the source gives it or the protocol takes it from the recording's rows."""
    if protocol.before == "none":
        return [None] * len(starts)
    if recording.cuts is not None and recording.cuts.befores is not None:
        return [recording.cuts.befores[i] for i in np.flatnonzero(kept)]
    earlier = np.empty((len(recording.channels), 0)) if recording.before is None else recording.before
    rows = np.concatenate([earlier, recording.values], axis=1).astype(np.float32)
    lead = earlier.shape[1]
    usable = find_usable(np.concatenate([np.full(lead, NORMAL), labels]), protocol.before)
    if protocol.before == "preceding":
        ends = starts + lead
    else:
        ends = known_normal_until(labels, starts, spans, max(1, protocol.before_steps // 2)) + lead
    least = protocol.before_least or max(1, int(LEAST_BEFORE * (protocol.length or recording.values.shape[1])))
    taken: dict[int, Matrix | None] = {}
    for end in np.unique(ends).tolist():
        last = int(np.searchsorted(usable, end))
        chosen = usable[max(0, last - protocol.before_steps) : last]
        taken[end] = np.ascontiguousarray(rows[:, chosen]) if len(chosen) >= least else None
    return [taken[end] for end in ends.tolist()]


def find_usable(labels: NDArray[np.int32], rule: BeforeRule) -> NDArray[np.intp]:
    """The steps that a rule takes for the time before a window, wherever that is.

    >>> find_usable(np.array([0, 0, 1, -1, 0], np.int32), "onset").tolist()
    [0, 1, 4]
    """
    steps = np.arange(len(labels))
    return {"onset": steps[labels == NORMAL], "preceding": steps, "none": steps[:0]}[rule]


def rows_before(labels: NDArray[np.int32], stop: int, protocol: Protocol) -> NDArray[np.intp]:
    """The steps of a series that are the time before step `stop`, for sources that hand it out in parts.

    >>> rows_before(np.array([0, 0, 1, 0, 1], np.int32), 4, Protocol(length=4, before_steps=2)).tolist()
    [1, 3]
    """
    return find_usable(labels[:stop], protocol.before)[-protocol.before_steps :]


def known_normal_until(
    labels: NDArray[np.int32], starts: NDArray[np.intp], spans: NDArray[np.int32], grain: int
) -> NDArray[np.intp]:
    """(W,) the step until which somebody who knows when the fault began takes the time before each window.

    That is the first step of the stretch of faulty steps that the window lies in, or the window's own first step where
    that comes earlier. A normal window has no onset: its own first step counts, on a grid of `grain` steps, so that
    neighbours share what is before them.

    >>> known_normal_until(np.array([0, 0, 0, 1, 1, 1], np.int32), np.array([0, 4]), np.array([[0, 0], [0, 2]]), 2)
    array([0, 3])
    """
    faulty = labels != NORMAL
    onsets = np.flatnonzero(faulty & ~np.concatenate([[False], faulty[:-1]]))
    first = starts + spans[:, 0]
    own = onsets[np.maximum(np.searchsorted(onsets, first, side="right") - 1, 0)] if len(onsets) else starts
    shared = np.where(starts >= grain, starts // grain * grain, starts)
    has_fault = spans[:, 1] > spans[:, 0]
    return np.where(has_fault, np.minimum(own, starts), shared).astype(np.intp)


def _facts(recording: Recording, kept: NDArray[np.bool_]) -> list[dict[str, float]]:
    """What is known of each window beforehand."""
    own = recording.cuts.facts if recording.cuts is not None else {}
    return [
        {**recording.facts, **{name: float(column[i]) for name, column in own.items()}} for i in np.flatnonzero(kept)
    ]


def window_starts(steps: int, length: int, stride: int) -> NDArray[np.intp]:
    """First steps of all windows that fit.

    >>> window_starts(10, 4, 3).tolist()
    [0, 3, 6]
    """
    return np.arange(0, max(0, steps - length + 1), stride, dtype=np.intp)


def _check_fit(starts: NDArray[np.intp], length: int, recording: Recording) -> None:
    steps = recording.values.shape[1]
    outside = starts[(starts < 0) | (starts + length > steps)]
    if len(outside):
        raise DataError(
            f"Recording {recording.id}: a window of {length} steps at step {outside[0]} does not fit into {steps}."
        )


def _stride(protocol: Protocol, labels: NDArray[np.int32], length: int) -> int:
    faulty = bool((labels > NORMAL).any())
    stride = protocol.stride if faulty else protocol.normal_stride or protocol.stride
    return stride or length


def _label(
    labels: NDArray[np.int32], starts: NDArray[np.intp], length: int, protocol: Protocol, where: str
) -> NDArray[np.int32]:
    if protocol.label_rule == "majority":
        return majority_labels(labels, starts, length)
    if protocol.label_rule == "majority-or-coverage":
        return coverage_labels(labels, starts, length, protocol.min_coverage)
    if len(np.unique(labels)) > 1:
        raise DataError(f"Recording {where}: a native label must be the same at every step; found several.")
    return np.full(len(starts), labels[0], np.int32)
