"""Reliability: stated against real certainty, one panel a method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from readbench.plots import entitle, sheet, styled
from readbench.report.opinions import draw_curve
from readbench.report.stated import by_method, read_stated
from readbench.report.tables import Study, describe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 8
COLUMNS = 4


@styled
def reliability_diagram(study: Study) -> Figure | None:
    """Queries of all datasets and seeds at the first level; None where no method of the run has an opinion."""
    results = study.results
    rho = results.levels[0]
    panels = list(by_method(read_stated(results), rho).items())[:MOST_PANELS]
    if not panels:
        return None
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = sheet(max(3.0 * columns, 4.4) + 0.4, 3.1 * rows + 0.6)
    axes = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True)).ravel()
    for axis, (method, stated) in zip(axes, panels, strict=False):
        draw_curve(
            axis, f"{results.short_title(method)}\nECE {stated.curve.error:.3f}, floor {stated.floor:.3f}", stated.curve
        )
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    figure.supxlabel("stated probability of the most likely fault type", fontsize=9)
    figure.supylabel("share of right answers", fontsize=9)
    entitle(figure, f"Reliability at ρ={rho}%, {describe(results)}")
    return figure
