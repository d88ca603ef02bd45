"""What a source gives: raw recordings with per-timestep labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from readbench.errors import DataError

Side = Literal["train", "test"]


@dataclass(frozen=True, eq=False)
class Cuts:
    """Windows that a source chose itself: `starts` (W,) first steps and `labels` (W,) class indices."""

    starts: NDArray[np.intp]
    labels: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Recording:
    """One continuous series as its source wrote it, before cleaning and cutting.

    Args:
        id: unique within the source; window ids are derived from it.
        values: (C, T) readings, NaN where there is none.
        channels: C names.
        labels: (T,) class index per timestep; 0 normal, -1 not labelled. One constant value where a recording
            carries a single native label.
        group: what must not straddle the split (run, instance, capture, patient ...).
        asset: the machine, well or patient; "" where unknown.
        start: time of the first sample in seconds; NaN where unknown.
        step: seconds between samples.
        side: the side of the source's own split, where it has one.
        cuts: where a source says itself which windows there are (around heartbeats, say): their first steps and labels.
    """

    id: str
    values: NDArray[np.float32] | NDArray[np.float64]
    channels: tuple[str, ...]
    labels: NDArray[np.int32]
    group: str
    asset: str = ""
    start: float = float("nan")
    step: float = 1.0
    side: Side | None = None
    cuts: Cuts | None = None

    def __post_init__(self) -> None:
        shape = self.values.shape
        if len(shape) != 2 or shape[0] != len(self.channels) or len(set(self.channels)) != len(self.channels):
            raise DataError(
                f"Recording {self.id}: values of shape {shape} need as many distinct channels; got {self.channels}."
            )
        if self.labels.shape != shape[1:]:
            raise DataError(f"Recording {self.id}: {shape[1]} timesteps but labels of shape {self.labels.shape}.")
