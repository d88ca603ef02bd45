"""Shortcut encoders: what reveals the class without the fault itself.

`before-level` sees only the time before the window: operating point and available sensors. `presence` sees only which
channels a window has. With `+verdict` they show what labels can learn from these alone.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.files import digest
from readbench.engine.abilities import UsesContext
from readbench.engine.preparation import LevelScale, channel_axis, measure_levels
from readbench.engine.protocols import BatchEncoder, Metric, Vectors
from readbench.engine.registry import ENCODERS
from readbench.engine.windows import WindowSet


@ENCODERS.register("before-level", title="Before alone", family="shortcut", abilities=(UsesContext,))
class BeforeLevel(BatchEncoder):
    """Mean and standard deviation of each channel in the time before a window; nothing of the window.

    Scaled as in `stats`, with an indicator per channel of whether it has a time before.
    """

    metric: Metric = "euclidean"
    corpus_dependent = True
    uses_context = True

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        """Determine channels and scale."""
        axis = channel_axis(corpus)
        self.scale_ = LevelScale.of(axis, _levels_before(corpus, axis))
        return self

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(N, 3C) scaled means and deviations, and 1 for each present channel."""
        raw = _levels_before(windows, self.scale_.axis)
        present = ~np.isnan(raw[:, : len(self.scale_.axis)])
        return np.concatenate([self.scale_(raw), present.astype(np.float32)], axis=1)

    def fingerprint(self) -> str:
        """Hash of channels and scale."""
        return digest("before-level", self.scale_.axis, self.scale_.mean.tolist(), self.scale_.spread.tolist())


@ENCODERS.register("presence", title="Presence", family="shortcut")
class Presence(BatchEncoder):
    """Which channels of the corpus a window has, as ones and zeros."""

    metric: Metric = "cosine"
    corpus_dependent = True

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        """Determine the channels."""
        self.axis_ = channel_axis(corpus)
        return self

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(N, C) ones and zeros."""
        known = np.array([[name in names for name in self.axis_] for names in windows.channel_sets], np.float32)
        return known.reshape(len(windows.channel_sets), len(self.axis_))[windows.channel_set]

    def fingerprint(self) -> str:
        """Hash of the channels."""
        return digest("presence", self.axis_)


def _levels_before(windows: WindowSet, axis: tuple[str, ...]) -> NDArray[np.float64]:
    context, places = windows.context, range(len(windows))
    befores = [None if context is None else context.before_of(i) for i in places]
    return measure_levels(befores, [windows.channels(i) for i in places], axis)
