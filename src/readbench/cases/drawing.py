"""A window and a case laid over each other, channel by channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from readbench.cases.answers import Evidence
from readbench.plots import FAULT, NORMAL_GREY, REFERENCE_GREY, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 6


def draw_evidence(evidence: Evidence) -> Figure:
    """The channels that tell most: the window, and the case moved onto its steps by the alignment."""
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    channels = evidence.channels[:MOST_PANELS]
    path = np.array(evidence.path, np.intp).reshape(-1, 2)
    rows = max(1, -(-len(channels) // 2))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 1.6 * rows + 0.9), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, 2, sharex=True)).ravel()
        for axis, channel in zip(axes, channels, strict=False):
            axis.axhspan(-2, 2, color=NORMAL_GREY, alpha=0.18, lw=0)
            axis.plot(path[:, 0], np.array(channel.case_series)[path[:, 1]], color=REFERENCE_GREY, lw=1.2, ls="--")
            axis.plot(np.arange(len(channel.window_series)), channel.window_series, color=FAULT, lw=1.2)
            same = ", same way" if channel.same_way else ""
            axis.set_title(f"{channel.name} (agreement {channel.agreement:+.2f}{same})")
        for axis in axes[len(channels) :]:
            axis.set_visible(False)
        for axis in axes[-2:]:
            axis.set_xlabel("step of the window")
        figure.supylabel("departure from normal, standard deviations", fontsize=9)
        label = evidence.case.label or "unresolved"
        figure.suptitle(
            f"red: the window; dashed: {evidence.case.id} ({label}), aligned; grey: normal operation, ±2 sd",
            fontsize=9,
            x=0.01,
            ha="left",
        )
    return figure
