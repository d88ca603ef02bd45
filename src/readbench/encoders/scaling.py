"""Scaling of windows before they are encoded, by statistics that are settled once, when an encoder is fitted."""

from __future__ import annotations

from readbench.errors import ParameterError, UsageError
from readbench.windows import ChannelStats, Normalisation, WindowSet, normalise


def scaling_statistics(norm: Normalisation, corpus: WindowSet, normals: WindowSet) -> ChannelStats | None:
    """What `scale` needs: statistics of the corpus or of the normals; nothing for `none` and `window`.

    Statistics that a task fixes on its corpus (`corpus.stats`) come first: they are the same at all pollution levels.
    """
    if norm == "channel":
        return corpus.stats or ChannelStats.of(corpus)
    if norm == "normals":
        if not len(normals):
            raise ParameterError("norm=normals needs normal windows, and this task has none. Use norm=channel.")
        return ChannelStats.of(normals)
    return None


def scale(windows: WindowSet, norm: Normalisation, stats: ChannelStats | None) -> WindowSet:
    """Windows scaled by settled statistics.

    >>> import numpy as np
    >>> ws = WindowSet.from_arrays([[[1.0, 3.0]]], channels=("level",))
    >>> scale(ws, "channel", ChannelStats.of(ws)).values(0).tolist()
    [[-1.0, 1.0]]
    """
    if stats is not None:
        return normalise(windows, "channel", corpus=windows.with_stats(stats))
    if norm in ("channel", "normals"):
        raise UsageError(f"Fit the encoder first: norm={norm} scales windows by what it is fitted on.")
    return normalise(windows, norm, corpus=windows)
