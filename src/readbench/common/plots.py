"""Drawing primitives of all figures: style, colours per family and method, lines, panels, saving.

matplotlib is imported inside the functions, since it is slow to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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
"""Colours where a figure compares several methods of one family; repeated after the last."""
NAMED_COLOURS = {
    "random": "#BBBBBB",
    "majority": "#7F7F7F",
    "channel-presence": "#C9B458",
    "stats": "#E69F00",
    "euclidean": "#88CCEE",
    "sbd-i": "#6699CC",
    "sbd-d": "#0072B2",
    "dtw-i": "#332288",
    "dtw-d": "#7762C4",
    "sax-bm25": "#44AA99",
    "sfa-bm25": "#117733",
    "rocket": "#DDAA33",
    "sonde": "#D55E00",
    "departure": "#999933",
    "ts2vec": "#AA4499",
    "charm": "#CC6677",
    "mantis": "#882255",
    "chronos-2": "#661100",
    "tirex": "#AA4466",
    "ours": "#CC3311",
    "ours-dtw": "#BB5566",
    "ours-before": "#EE7733",
    "flagship": "#000000",
    "flagship-spread": "#444444",
    "flagship-fast": "#7A6A4F",
    "flagship-window": "#555577",
    "flagship-pool": "#884466",
    "mr-hydra": "#006655",
    "rdst": "#225588",
}
"""Colour of a method in every figure and on the site; after Tol (2021) and Okabe and Ito, so that neighbours differ in
lightness too. Other methods have the colour of their family."""
NORMAL_INK = "#3C3C3C"
"""Colour of normal operation where it is drawn over a fault."""
FAULT, NORMAL_GREY, REFERENCE_GREY, GRID_GREY, SPAN = "#B2182B", "#8C8C8C", "#595959", "#E6E6E6", "#F4A58266"
TEXT_LINE_HEIGHT = 0.055
"""Height of a line of text as a share of an axis's height."""
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.grid": False,
    "figure.dpi": 150,
    "savefig.bbox": "tight",
    "pdf.fonttype": 42,  # TrueType, which publishers require; the default is Type 3
    "ps.fonttype": 42,
    "svg.fonttype": "path",  # outlines, so that a figure looks the same where the font is not installed
    "svg.hashsalt": "readbench",
    "text.parse_math": False,  # a dollar sign in a name is no formula
}


def colour_of(family: str, method: str = "") -> str:
    """Colour of a method, else of its family, else grey."""
    return NAMED_COLOURS.get(method, FAMILY_COLOURS.get(family, REFERENCE_GREY))


def marker_of(family: str) -> str:
    """Marker of a family; a hexagon for an unknown one."""
    return FAMILY_MARKERS.get(family, "h")


def with_style(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function to draw with `STYLE`."""

    @wraps(draw)
    def drawn(*given: P.args, **named: P.kwargs) -> R:
        import matplotlib as mpl  # noqa: PLC0415

        with mpl.rc_context(STYLE):
            return draw(*given, **named)

    return drawn


_column: ContextVar[float | None] = ContextVar("column", default=None)


@contextmanager
def column_width(inches: float | None) -> Iterator[None]:
    """Limit figures in the block to a paper's column width, with type of the same size; None sets no limit."""
    token = _column.set(inches)
    try:
        yield
    finally:
        _column.reset(token)


def sheet(width: float, height: float) -> Figure:
    """Create an empty figure of this size in inches; inside `column_width`, narrower and lower."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    if (column := _column.get()) is not None and column < width:
        width, height = column, height * (column / width) ** 0.5
    return Figure(figsize=(width, height), layout="constrained")


CHARACTERS_PER_INCH = 12.5
"""Average number of characters per inch in the bold type of titles."""


def entitle(figure: Figure, title: str) -> None:
    """Write a figure's title above it, left-aligned and wrapped to its width."""
    figure.suptitle(
        fill(title, int(CHARACTERS_PER_INCH * figure.get_figwidth())), fontsize=10, fontweight="bold", x=0.01, ha="left"
    )


def spread_labels(wanted: Sequence[float], gap: float) -> NDArray[np.float64]:
    """Move positions apart until neighbours differ by at least `gap`, keeping their order.

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
    """Lowest (-1) or highest (+1) position of labels spaced `gap` around their mean."""
    return float(np.mean(block)) + side * gap * (len(block) - 1) / 2


@dataclass(frozen=True, eq=False)
class Panel:
    """A faulty and a normal window on one channel.

    Args:
        title: name of the fault.
        channel: name and unit of the channel.
        fault: (T,) values of a window with the fault.
        span: first faulty step and one past the last; equal if unknown.
        normal: (T,) values of a normal window, or None.
        steps: length of the window in steps, if the values are a sketch of it; 0 if the values are the steps.
    """

    title: str
    channel: str
    fault: NDArray[np.float32]
    span: tuple[int, int]
    normal: NDArray[np.float32] | None
    steps: int = 0


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
    """Values of one method over the ticks of an axis.

    Args:
        title: name, written at the end of the line.
        values: (K,) one per tick; NaN where missing.
        colour: of line and name.
        reference: draw a dashed line without markers.
        band: (2, K) lower and upper ends of the intervals, shaded behind the line.
    """

    title: str
    values: NDArray[np.float64]
    colour: str
    reference: bool = False
    band: NDArray[np.float64] | None = None


@with_style
def lines(
    drawn: Sequence[Line],
    ticks: Sequence[str],
    labels: tuple[str, str],
    caption: str,
    note: str,
    at: Sequence[float] | None = None,
) -> Figure:
    """Draw lines over ticks, each named at its end in its colour.

    Args:
        drawn: lines to draw.
        ticks: labels of the ticks.
        labels: labels of the x and y axis.
        caption: title.
        note: text below the title.
        at: positions of the ticks; evenly spaced by default.
    """
    places = np.arange(len(ticks), dtype=np.float64) if at is None else np.asarray(at, np.float64)
    figure = sheet(7.2, 4.0)
    axis = figure.subplots()
    for line, marker in zip(drawn, cycle("osD^vP"), strict=False):
        draw_line(axis, line, marker, places)
    axis.set_xticks(places, ticks)
    axis.set_xlabel(labels[0])
    axis.set_ylabel(labels[1])
    axis.set_title(note, color=REFERENCE_GREY)
    axis.grid(axis="y", color=GRID_GREY, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.margins(x=0.02)
    _name_lines(axis, [line for line in drawn if not np.isnan(line.values[-1])], float(places[-1]))
    entitle(figure, caption)
    return figure


def draw_line(axis: Axes, line: Line, marker: str, at: NDArray[np.float64]) -> None:
    """Draw one line over ticks at these positions."""
    if line.band is not None:
        axis.fill_between(at, *line.band, color=line.colour, alpha=0.12, linewidth=0, zorder=1)
    if line.reference:
        axis.plot(at, line.values, color=line.colour, linewidth=1.6, linestyle=(0, (4, 2)), zorder=2)
    else:
        axis.plot(at, line.values, color=line.colour, linewidth=2.0, marker=marker, markersize=5, zorder=3)


def _name_lines(axis: Axes, drawn: Sequence[Line], end: float) -> None:
    """Write each name to the right of its line's end, moved apart where names would overlap."""
    bottom, top = axis.get_ylim()
    heights = spread_labels([float(line.values[-1]) for line in drawn], (top - bottom) * TEXT_LINE_HEIGHT)
    for line, height in zip(drawn, heights, strict=True):
        axis.annotate(
            line.title,
            (end, height),
            xytext=(8, 0),
            textcoords="offset points",
            color=line.colour,
            va="center",
            annotation_clip=False,
        )


def draw_panel(axis: Axes, panel: Panel) -> None:
    """Draw a faulty window over a normal one."""
    start, stop = panel.span
    if stop > start:
        axis.axvspan(start, stop, color=SPAN, linewidth=0, zorder=0)
    axis.plot(_steps(panel, panel.fault), panel.fault, color=FAULT, linewidth=1.1, alpha=0.85, zorder=1)
    if panel.normal is not None:  # thin and above the fault, so that neither hides the other
        axis.plot(_steps(panel, panel.normal), panel.normal, color=NORMAL_INK, linewidth=0.6, zorder=2)
    axis.set_title(fill(panel.title, 36), fontweight="bold")
    axis.set_xlabel("step", fontsize=7)
    axis.set_ylabel(panel.channel, fontsize=7)
    axis.tick_params(labelsize=7)
    axis.margins(x=0.01)


FIGURE_METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Figure formats, and the metadata to leave out so that the same figure gives the same bytes."""


def check_figure_name(path: Path | None) -> None:
    """Raise `UsageError` unless a figure can be written to this path; call it before the work that is drawn."""
    if path is not None and path.suffix.lower() not in FIGURE_METADATA:
        raise UsageError(f"A figure is a file that ends with .png, .svg or .pdf. Got {path.name!r}.")
    if path is not None:
        require_folder(path.parent)


def _steps(panel: Panel, values: NDArray[np.float32]) -> NDArray[np.float64]:
    """(len(values),) step of each point."""
    return np.linspace(0, (panel.steps or len(values)) - 1, len(values))


LAYOUT_PASSES = 3
"""Layout passes: with a single one, labels overlap on axes of equal scales."""


def save(figure: Any, path: Path) -> None:  # noqa: ANN401 - a matplotlib figure
    """Write a figure as PNG, SVG or PDF by its suffix; the same figure gives the same bytes."""
    import matplotlib as mpl  # noqa: PLC0415

    path = Path(path)
    check_figure_name(path)
    with mpl.rc_context(STYLE), write_atomically(path) as partial:
        kind = path.suffix.lower()
        for _ in range(LAYOUT_PASSES - 1):
            figure.draw_without_rendering()
        figure.savefig(partial, format=kind[1:], metadata=FIGURE_METADATA[kind])
