"""Accuracy against runtime: what each base retriever costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from readbench.experiment.store import TIMES
from readbench.plots import FAMILY_COLOURS, FAMILY_MARKERS, GRID_GREY, entitle, sheet, styled
from readbench.report.figures.choice import headline, shown
from readbench.report.tables import Study, describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST = 1e-3
"""Seconds below which a time is drawn as this."""
FEW_DECADES = 30
"""Ratio of the longest to the shortest time below which ticks between powers of ten are named too."""
BESIDE, LETTER, LINE = 0.018, 0.0115, 0.045
"""Distance of a name from its point, width of a letter and height of a line, as shares of the axis."""


@styled
def runtime(study: Study) -> Figure | None:
    """Headline over wall time at the first level, log scale; None where there are less than three methods."""
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415

    texts = [text for text in shown(study) if study.methods.family(text) != "trivial"]
    if len(texts) < 3:
        return None
    times = [max(LEAST, seconds(study, text)) for text in texts]
    scores = [headline(study, text) for text in texts]
    figure = sheet(7.2, 4.4)
    axis = figure.subplots()
    for text, time, score in zip(texts, times, scores, strict=True):
        family = study.methods.family(text)
        axis.scatter(time, score, s=42, color=FAMILY_COLOURS[family], marker=FAMILY_MARKERS[family], zorder=3)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter("{x:g}" if max(times) < FEW_DECADES * min(times) else NullFormatter())
    axis.set_xlabel("seconds a dataset: encoding, fitting, scoring and reranking (median over datasets)")
    axis.set_ylabel(study.results.headline)
    axis.grid(color=GRID_GREY, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.margins(x=0.12, y=0.1)
    axis.autoscale_view()
    _names(axis, study, texts, times, scores)
    entitle(figure, f"Accuracy against runtime at ρ={study.results.levels[0]}%, {describe(study.results)}")
    return figure


def seconds(study: Study, text: str) -> float:
    """Wall time of a method on one task: mean over seeds, median over datasets, all stages together."""
    results = study.results
    stages = [results.at(name, results.levels[0])[:, :, results.methods.index(text)] for name in TIMES]
    return float(np.median(np.sum(stages, axis=0).mean(axis=1)))


def _names(axis: Axes, study: Study, texts: list[str], times: list[float], scores: list[float]) -> None:
    """Each name right of its point, moved up or down where it would cover another, with a hair line to its point."""
    points = axis.transAxes.inverted().transform(axis.transData.transform(list(zip(times, scores, strict=True))))
    titles = [study.results.title(text) for text in texts]
    for title, point, height in zip(titles, points, clear_heights(points, list(map(len, titles))), strict=True):
        axis.annotate(
            title,
            point,
            (point[0] + BESIDE, height),
            "axes fraction",
            "axes fraction",
            va="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": "#999999", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4},
        )


def clear_heights(points: NDArray[np.float64], letters: list[int]) -> list[float]:
    """Heights of names right of points such that no name covers another or a point.

    Args:
        points: (N, 2) in shares of the axis.
        letters: length of each name.

    >>> clear_heights(np.array([[0.1, 0.5], [0.1, 0.5]]), [3, 3])
    [0.5, 0.545]
    """
    taken = [(x - 0.01, x + 0.01, y) for x, y in points]
    heights: list[float] = []
    for (x, y), count in zip(points, letters, strict=True):
        left, right = x + BESIDE, x + BESIDE + count * LETTER
        wanted = (y + LINE * (step // 2 if step % 2 == 0 else -(step + 1) // 2) for step in range(2 * len(points)))
        free = (
            h
            for h in wanted
            if not any(left < end and begin < right and abs(h - at) < LINE for begin, end, at in taken)
        )
        heights.append(float(next(free, y)))
        taken.append((left, right, heights[-1]))
    return heights
