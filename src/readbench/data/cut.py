"""From one clean recording to its labelled windows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readbench.data.clean import clean
from readbench.data.label import check_vocabulary, coverage_labels, fault_spans, majority_labels, merge_onsets
from readbench.data.recording import Recording
from readbench.data.source import Protocol
from readbench.errors import DataError
from readbench.windows import NORMAL, UNLABELLED, WindowSet


def windows_of(recording: Recording, protocol: Protocol, classes: tuple[str, ...]) -> WindowSet | None:
    """Clean, cut and label one recording; None where it is too short or nothing of it is labelled.

    Window ids are `<recording id>@<first step>`, counted after cleaning.
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
    return WindowSet.from_arrays(
        [values[:, s : s + length] for s in starts],
        channels=recording.channels,
        labels=window_labels,
        classes=classes,
        ids=[f"{recording.id}@{s}" for s in starts],
        groups=[recording.group] * len(starts),
        assets=[recording.asset] * len(starts),
        times=recording.start + recording.step * starts,
        spans=fault_spans(labels, starts, length, window_labels),
    )


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
