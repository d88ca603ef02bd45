"""Critical-difference diagram (Demšar, 2006): mean ranks, and bars that join what the test cannot tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from readbench.evaluate import NemenyiResult, nemenyi
from readbench.plots import FAMILY_COLOURS, REFERENCE_GREY, entitle, sheet, styled
from readbench.report.figures.choice import shown
from readbench.report.leaderboard import MIN_DATASETS, dataset_scores
from readbench.report.significance import ALPHA
from readbench.report.tables import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BARS = -0.35
"""Height of the first bar below the axis."""
STEP = 0.28
"""Height between bars, and half of that between names."""


@styled
def critical_difference_diagram(study: Study) -> Figure | None:
    """Mean ranks at the first level of what other figures show too; None with few datasets or methods."""
    results, texts = study.results, shown(study)
    if len(results.datasets) < MIN_DATASETS or len(texts) < 3:
        return None
    columns = [results.methods.index(text) for text in texts]
    tested = nemenyi(results.orient(dataset_scores(results, results.levels[0])[:, columns]), ALPHA)
    half = -(-len(texts) // 2)
    depth = BARS - STEP * (len(tested.cliques) + 1) - STEP * half
    figure = sheet(7.6, 0.9 - 0.75 * depth)
    axis = figure.subplots()
    axis.set_axis_off()
    axis.set_xlim(len(texts) + 0.5, 0.5)
    axis.set_ylim(depth, 1.1)
    _scale(axis, len(texts), tested.critical_difference)
    _bars(axis, tested)
    _stems(axis, study, texts, tested)
    entitle(figure, f"Mean ranks at ρ={results.levels[0]}% over {len(results.datasets)} datasets, {_verdict(tested)}")
    return figure


def _verdict(tested: NemenyiResult) -> str:
    test = tested.friedman
    words = "bars join what Nemenyi's test cannot tell apart" if test.p_value <= ALPHA else "no difference shown"
    return f"Friedman p = {test.p_value:.2g}: {words}"


def _scale(axis: Axes, methods: int, difference: float) -> None:
    axis.plot([1, methods], [0, 0], color="black", linewidth=1.2)
    for rank in range(1, methods + 1):
        axis.plot([rank, rank], [0, 0.08], color="black", linewidth=1.0)
        axis.text(rank, 0.13, str(rank), ha="center", fontsize=8)
    axis.plot([1, min(1 + difference, methods)], [0.62, 0.62], color=REFERENCE_GREY, linewidth=2.0)
    note = f"critical difference {difference:.2f}" + (" (beyond the scale)" if 1 + difference > methods else "")
    axis.text(1 + min(difference, methods - 1) / 2, 0.72, note, ha="center", fontsize=8, color=REFERENCE_GREY)


def _bars(axis: Axes, tested: NemenyiResult) -> None:
    for number, clique in enumerate(tested.cliques):
        ranks = tested.mean_ranks[list(clique)]
        ends = [ranks.min() - 0.06, ranks.max() + 0.06]
        axis.plot(ends, [BARS + 0.1 - STEP * number] * 2, color="black", linewidth=3.6, solid_capstyle="butt")


def _stems(axis: Axes, study: Study, texts: list[str], tested: NemenyiResult) -> None:
    """The better half is named on the right, the other on the left, best and worst highest."""
    order = np.argsort(tested.mean_ranks, kind="stable")
    half = -(-len(order) // 2)
    first = BARS - STEP * len(tested.cliques)
    for place, method in enumerate(order):
        rank, right = float(tested.mean_ranks[method]), place < half
        height = first - STEP * (place if right else len(order) - 1 - place)
        end = 0.6 if right else len(order) + 0.4
        colour = FAMILY_COLOURS[study.methods.family(texts[method])]
        axis.plot([rank, rank, end], [0, height, height], color=colour, linewidth=1.1, zorder=1)
        axis.plot(rank, 0, "o", color=colour, markersize=3.5)
        axis.text(
            end,
            height,
            f" {study.results.title(texts[method])} ({rank:.2f}) ",
            ha="left" if right else "right",
            va="center",
            fontsize=8,
        )
