"""The few drawing primitives everything shares: one style, one colour per family, series with their anomalous span.

matplotlib is imported inside the functions, so that nothing else pays for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from readbench.common.files import require_folder, write_atomically
from readbench.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")

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
FAMILY_MARKERS = {
    "trivial": "x",
    "shortcut": "P",
    "distance": "o",
    "symbolic": "s",
    "embedder": "D",
    "fusion": "^",
    "reranker": "*",
    "supervised": "v",
}
METHOD_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""One colour a method where a figure compares several of one family; after the last they begin again."""
FAULT, NORMAL_GREY, REFERENCE_GREY, GRID_GREY, SPAN = "#B2182B", "#8C8C8C", "#595959", "#E6E6E6", "#F4A58266"
LINE_OF_TEXT = 0.055
"""Height of a line of text as a share of an axis."""
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


def colour_of(family: str) -> str:
    """The colour of a family everywhere; grey for one that a plug-in made up."""
    return FAMILY_COLOURS.get(family, REFERENCE_GREY)


def marker_of(family: str) -> str:
    """The marker of a family everywhere; likewise."""
    return FAMILY_MARKERS.get(family, "h")


def with_style(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorator: what the function draws has the one style of all figures."""

    @wraps(draw)
    def drawn(*given: P.args, **named: P.kwargs) -> R:
        import matplotlib as mpl  # noqa: PLC0415

        with mpl.rc_context(STYLE):
            return draw(*given, **named)

    return drawn


def sheet(width: float, height: float) -> Figure:
    """An empty figure of a size in inches."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(figsize=(width, height), layout="constrained")


LETTERS_AN_INCH = 12.5
"""Of the bold type of titles, on average."""


def entitle(figure: Figure, title: str) -> None:
    """Write the title of a figure above it, from the left, in as many lines as its width needs."""
    figure.suptitle(
        fill(title, int(LETTERS_AN_INCH * figure.get_figwidth())), fontsize=10, fontweight="bold", x=0.01, ha="left"
    )


def spread_labels(wanted: Sequence[float], gap: float) -> NDArray[np.float64]:
    """Positions near the wanted ones, in their order, and at least a gap apart.

    >>> spread_labels([1.0, 1.1, 3.0], 0.5)
    array([0.8, 1.3, 3. ])
    """
    order = np.argsort(np.asarray(wanted, np.float64), kind="stable")
    blocks: list[list[float]] = []
    for value in np.asarray(wanted, np.float64)[order]:
        blocks.append([float(value)])
        while len(blocks) > 1 and _edge(blocks[-1], gap, -1) - _edge(blocks[-2], gap, +1) < gap - 1e-12:
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    placed = [np.mean(block) + gap * (i - (len(block) - 1) / 2) for block in blocks for i in range(len(block))]
    positions = np.empty(len(order))
    positions[order] = placed
    return positions


def _edge(block: list[float], gap: float, side: int) -> float:
    """Lowest (-1) or highest (+1) position of texts that stand a gap apart around their mean."""
    return float(np.mean(block)) + side * gap * (len(block) - 1) / 2


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


@with_style
def gallery(panels: Sequence[Panel], caption: str, *, columns: int = 3) -> Figure:
    """Small multiples, one panel per fault: the fault in red with its span shaded, normal operation in grey."""
    columns = min(columns, max(1, len(panels)))
    rows = -(-len(panels) // columns)
    figure = sheet(3.3 * columns, 1.55 * rows + 0.5)
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for axis, panel in zip(axes, panels, strict=False):
        draw_panel(axis, panel)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    entitle(figure, caption)
    return figure


@dataclass(frozen=True, eq=False)
class Line:
    """One method over the ticks of an axis.

    Args:
        title: its name, written at the end of the line.
        values: (K,) one a tick; NaN where there is none.
        colour: of line and name.
        reference: drawn as a dashed line without markers, to compare the others with.
        band: (2, K) lower and upper ends of its intervals, shaded behind it.
    """

    title: str
    values: NDArray[np.float64]
    colour: str
    reference: bool = False
    band: NDArray[np.float64] | None = None


@with_style
def lines(drawn: Sequence[Line], ticks: Sequence[str], labels: tuple[str, str], caption: str, note: str) -> Figure:
    """Lines over ticks at equal distances, each named at its end in its own colour; `labels` name both axes."""
    figure = sheet(7.2, 4.0)
    axis = figure.subplots()
    for line, marker in zip(drawn, cycle("osD^vP"), strict=False):
        draw_line(axis, line, marker)
    axis.set_xticks(range(len(ticks)), ticks)
    axis.set_xlabel(labels[0])
    axis.set_ylabel(labels[1])
    axis.set_title(note, color=REFERENCE_GREY)
    axis.grid(axis="y", color=GRID_GREY, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.margins(x=0.02)
    _name_lines(axis, [line for line in drawn if not np.isnan(line.values[-1])])
    entitle(figure, caption)
    return figure


def draw_line(axis: Axes, line: Line, marker: str) -> None:
    """Draw one method over its ticks."""
    at = np.arange(len(line.values))
    if line.band is not None:
        axis.fill_between(at, *line.band, color=line.colour, alpha=0.12, linewidth=0, zorder=1)
    if line.reference:
        axis.plot(at, line.values, color=line.colour, linewidth=1.6, linestyle=(0, (4, 2)), zorder=2)
    else:
        axis.plot(at, line.values, color=line.colour, linewidth=2.0, marker=marker, markersize=5, zorder=3)


def _name_lines(axis: Axes, drawn: Sequence[Line]) -> None:
    """Write each name right of its line's end, pushed apart where they would overlap."""
    bottom, top = axis.get_ylim()
    heights = spread_labels([float(line.values[-1]) for line in drawn], (top - bottom) * LINE_OF_TEXT)
    for line, height in zip(drawn, heights, strict=True):
        axis.annotate(
            line.title,
            (len(line.values) - 1, height),
            xytext=(8, 0),
            textcoords="offset points",
            color=line.colour,
            va="center",
            annotation_clip=False,
        )


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


UNDATED: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Files that a figure may be, and what must be left out of them for the same bytes every time."""


def check_figure_name(path: Path | None) -> None:
    """Raise an error unless a figure can be written into a file of this name: before the work that is drawn."""
    if path is not None and path.suffix.lower() not in UNDATED:
        raise UsageError(f"A figure is a file that ends with .png, .svg or .pdf. Got {path.name!r}.")
    if path is not None:
        require_folder(path.parent)


def save(figure: Any, path: Path) -> None:  # noqa: ANN401 - a matplotlib figure
    """Write a figure as PNG, SVG or PDF by its suffix; the same figure gives the same bytes."""
    import matplotlib as mpl  # noqa: PLC0415

    path = Path(path)
    check_figure_name(path)
    with mpl.rc_context(STYLE), write_atomically(path) as partial:
        kind = path.suffix.lower()
        figure.savefig(partial, format=kind[1:], metadata=UNDATED[kind])
