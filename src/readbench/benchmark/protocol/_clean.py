"""Missing readings, per recording, before cutting and never across a fault boundary.

Two conventions, as in the paper's curation protocol. `fill`: a gap takes the last valid reading, a leading gap the
next one, a wholly absent channel is zero. `drop`: rows with a gap are left out, absent channels are no channels.

The paper leaves open what a channel is in a stretch of one label without any reading of it, where other stretches have
some. Zero would mark the stretch, and so its label; here it is the channel's median over the normal steps of the
recording, and zero where these have no reading either: nothing of a fault passes into another stretch.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol._source import Missing, Recording
from readbench.engine.preparation import Readings, fill_gaps, is_reading
from readbench.engine.windows import NORMAL


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
    """Forward-fill, then back-fill, inside each stretch of constant label and inside the time before.

    A channel without any reading in one of them takes the median of its normal readings, and zero where it has none.
    """
    readings = is_reading(recording.values)
    known = recording.before is None or is_reading(recording.before).all()
    if readings.all() and known:
        return recording
    usual = usual_levels(recording)
    values = recording.values.copy()
    for start, stop in pairwise(find_boundaries(recording.labels)):
        values[:, start:stop] = fill_stretch(values[:, start:stop], usual)
    before = None if recording.before is None else fill_stretch(recording.before, usual)
    return replace(recording, values=values, before=before)


def fill_stretch(values: Readings, usual: NDArray[np.float64]) -> Readings:
    """(C, T) values without gaps; a channel without any reading is at its usual level (C,)."""
    readings = is_reading(values)
    filled = fill_gaps(values, readings)
    absent = ~readings.any(axis=1)
    filled[absent] = usual[absent, None]
    return filled


def usual_levels(recording: Recording) -> NDArray[np.float64]:
    """(C,) median of each channel's readings in normal steps, the time before among them; zero where there are none."""
    parts = [recording.values[:, recording.labels == NORMAL]]
    normal = np.concatenate(parts if recording.before is None else [*parts, recording.before], axis=1)
    medians = [np.median(row[own]) if own.any() else 0.0 for row, own in zip(normal, is_reading(normal), strict=True)]
    return np.array(medians, np.float64)


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
