"""Missing readings, per recording, before cutting and never across a fault boundary.

Two conventions, as in the paper's curation protocol. `fill`: a gap takes the last valid reading, a leading gap the
next one, a wholly absent channel is zero. `drop`: rows with a gap are left out, absent channels are no channels.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol._source import Missing, Recording
from readbench.engine.preparation import fill_gaps, is_reading


def clean(recording: Recording, convention: Missing) -> Recording:
    """The recording without NaN, by the source's convention.

    >>> r = Recording("r", np.array([[np.nan, 1.0, np.nan, 5.0]]), ("x",), np.array([0, 0, 0, 1], np.int32), "g")
    >>> clean(r, "fill").values.tolist()
    [[1.0, 1.0, 1.0, 5.0]]
    """
    if convention == "drop":
        return drop_missing(recording)
    return fill_missing(recording)


def fill_missing(recording: Recording) -> Recording:
    """Forward-fill, then back-fill, inside each stretch of constant label; what stays empty becomes zero."""
    if recording.before is not None:
        filled = fill_gaps(recording.before, is_reading(recording.before))
        recording = replace(recording, before=filled)
    readings = is_reading(recording.values)
    if readings.all():
        return recording
    values = recording.values.copy()
    for start, stop in pairwise(find_boundaries(recording.labels)):
        values[:, start:stop] = fill_gaps(values[:, start:stop], readings[:, start:stop])
    return replace(recording, values=values)


def drop_missing(recording: Recording) -> Recording:
    """Leave out channels never recorded, then rows in which a remaining channel has no reading."""
    read = is_reading(recording.values)
    present = read.any(axis=1)
    rows = read[present].all(axis=0)
    before = recording.before
    if before is not None:
        before = before[present]
        before = before[:, is_reading(before).all(axis=0)]
    return replace(
        recording,
        values=recording.values[present][:, rows],
        channels=tuple(recording.channels[c] for c in np.flatnonzero(present)),
        labels=recording.labels[rows],
        before=before,
    )


def find_boundaries(labels: NDArray[np.int32]) -> NDArray[np.intp]:
    """Edges of the stretches of constant label: 0, every change, and the length."""
    changes = np.flatnonzero(np.diff(labels)) + 1
    return np.concatenate([[0], changes, [len(labels)]]).astype(np.intp)
