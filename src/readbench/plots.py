"""The few drawing primitives everything shares: one style, one colour per family, series with their anomalous span.

matplotlib is imported inside the functions, so that nothing else pays for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito (2008): distinguishable with colour blindness, and of different lightness when printed in grey.
FAMILY_COLOURS = {
    "trivial": "#999999",
    "shortcut": "#E69F00",
    "distance": "#0072B2",
    "symbolic": "#009E73",
    "embedder": "#D55E00",
    "fusion": "#CC79A7",
    "reranker": "#56B4E9",
    "supervised": "#000000",
}
FAULT, NORMAL_GREY, SPAN = "#B2182B", "#8C8C8C", "#F4A58266"
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.grid": False,
    "figure.dpi": 150,
    "savefig.bbox": "tight",
    "svg.hashsalt": "readbench",
}


@dataclass(frozen=True, eq=False)
class Panel:
    """One fault against normal, on one channel.

    Args:
        title: name of the fault.
        channel: name and unit of the channel.
        fault: (T,) values of a window with the fault.
        span: first and one past the last faulty step; equal where unknown.
        normal: (T,) values of a normal window, or None.
    """

    title: str
    channel: str
    fault: NDArray[np.float32]
    span: tuple[int, int]
    normal: NDArray[np.float32] | None


def gallery(panels: Sequence[Panel], caption: str, *, columns: int = 3) -> Figure:
    """Small multiples, one panel per fault: the fault in red with its span shaded, normal operation in grey."""
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    columns = min(columns, max(1, len(panels)))
    rows = -(-len(panels) // columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.3 * columns, 1.55 * rows + 0.5), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
        for axis, panel in zip(axes, panels, strict=False):
            draw_panel(axis, panel)
        for axis in axes[len(panels) :]:
            axis.set_axis_off()
        figure.suptitle(caption, fontsize=10, fontweight="bold", x=0.01, ha="left")
    return figure


def draw_panel(axis: Axes, panel: Panel) -> None:
    """Draw one fault against normal."""
    if panel.normal is not None:
        axis.plot(panel.normal, color=NORMAL_GREY, linewidth=0.8, zorder=1)
    start, stop = panel.span
    if stop > start:
        axis.axvspan(start, stop, color=SPAN, linewidth=0, zorder=0)
    axis.plot(panel.fault, color=FAULT, linewidth=0.9, zorder=2)
    axis.set_title(fill(panel.title, 36), fontweight="bold")
    axis.set_ylabel(panel.channel, fontsize=7)
    axis.tick_params(labelsize=7)
    axis.margins(x=0.01)


def save(figure: Any, path: Path) -> None:  # noqa: ANN401 - a matplotlib figure
    """Write a figure as PNG, SVG or PDF by its suffix; the same figure gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    figure.savefig(path, metadata=metadata.get(path.suffix, {}))
