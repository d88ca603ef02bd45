"""Box plot: how the scores of each method spread over the datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from readbench.plots import FAMILY_COLOURS, GRID_GREY, entitle, sheet, styled
from readbench.report.figures.choice import shown
from readbench.report.leaderboard import dataset_scores
from readbench.report.tables import Study, describe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST = 3
"""Datasets from which a box says something."""


@styled
def boxes(study: Study) -> Figure | None:
    """One box a method, by median: solid the median, dashed the mean, dots the datasets; None with few datasets."""
    results = study.results
    if len(results.datasets) < FEWEST:
        return None
    scores = dataset_scores(results, results.levels[0])
    texts = sorted(shown(study), key=lambda text: float(np.median(scores[:, results.methods.index(text)])))
    columns = [scores[:, results.methods.index(text)] for text in texts]
    figure = sheet(7.2, 1.3 + 0.3 * len(texts))
    axis = figure.subplots()
    drawn = axis.boxplot(
        columns,
        orientation="horizontal",
        showmeans=True,
        meanline=True,
        showfliers=False,
        patch_artist=True,
        widths=0.6,
        medianprops={"color": "black", "linewidth": 1.4},
        meanprops={"color": "black", "linestyle": (0, (2, 1.5)), "linewidth": 1.0},
    )
    for height, (text, patch, column) in enumerate(zip(texts, drawn["boxes"], columns, strict=True), start=1):
        colour = FAMILY_COLOURS[study.methods.family(text)]
        patch.set(facecolor=colour, alpha=0.35, edgecolor=colour)
        axis.plot(column, np.full(len(column), height), "o", color=colour, markersize=3.2, zorder=4)
    axis.set_yticks(range(1, len(texts) + 1), [results.title(text) for text in texts])
    axis.set_xlabel(f"{results.headline}; solid: median, dashed: mean, dots: datasets")
    axis.grid(axis="x", color=GRID_GREY, linewidth=0.8)
    axis.set_axisbelow(True)
    entitle(figure, f"Spread over the datasets at ρ={results.levels[0]}%, {describe(results)}")
    return figure
