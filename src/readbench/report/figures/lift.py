"""Lift: each pool and the same pool reranked by GPC, as an arrow, with the supervised reference as a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from readbench.plots import FAMILY_COLOURS, FAULT, GRID_GREY, REFERENCE_GREY, entitle, sheet, styled
from readbench.report.figures.choice import headline
from readbench.report.tables import Study, describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def lift(study: Study) -> Figure | None:
    """Arrows from pools to their GPC-reranked selves at the first level, lowest pool first; None without any."""
    pairs = [(headline(study, pool), headline(study, f"{pool}+gpc"), pool) for pool in study.methods.reranked]
    pairs = sorted(pair for pair in pairs if np.isfinite(pair[:2]).all())
    if not pairs:
        return None
    figure = sheet(6.4, 1.3 + 0.32 * len(pairs))
    axis = figure.subplots()
    for height, (base, lifted, _) in enumerate(pairs):
        _arrow(axis, height, base, lifted, better=bool(study.results.orient(np.array(lifted - base)) >= 0))
    axis.set_yticks(range(len(pairs)), [study.results.title(pool) for *_, pool in pairs])
    axis.set_ylim(-0.7, len(pairs) - 0.3)
    axis.update_datalim([(value, 0) for pair in pairs for value in pair[:2]])
    axis.autoscale_view(scaley=False)
    axis.margins(x=0.12)
    axis.set_xlabel(study.results.headline)
    axis.grid(axis="x", color=GRID_GREY, linewidth=0.8)
    axis.set_axisbelow(True)
    _references(axis, study)
    entitle(
        figure, f"From each pool to the same reranked by GPC, ρ={study.results.levels[0]}%, {describe(study.results)}"
    )
    return figure


def _arrow(axis: Axes, height: int, base: float, lifted: float, *, better: bool) -> None:
    colour = FAMILY_COLOURS["distance"] if better else FAULT
    axis.plot(base, height, "o", color="white", markeredgecolor=colour, markersize=5, zorder=3)
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.8, "shrinkA": 3, "shrinkB": 0}
    axis.annotate("", (lifted, height), (base, height), arrowprops=style)
    axis.annotate(
        f"{lifted - base:+.3f}",
        (max(base, lifted), height),
        (5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        color=colour,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )


def _references(axis: Axes, study: Study) -> None:
    top = axis.get_ylim()[1]
    for text in study.methods.references:
        if np.isfinite(at := headline(study, text)):
            axis.axvline(at, color=REFERENCE_GREY, linestyle=(0, (4, 2)), linewidth=1.4, zorder=1)
            name = study.results.title(text)
            axis.annotate(name, (at, top), (0, 2), textcoords="offset points", ha="center", color=REFERENCE_GREY)
