"""Radar: the headline on each dataset, spokes grouped by domain."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from readbench.plots import FAMILY_COLOURS, REFERENCE_GREY, entitle, sheet, styled
from readbench.report.figures.choice import bases, best_composed
from readbench.report.leaderboard import dataset_scores
from readbench.report.tables import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes

FEWEST = 3
"""Datasets that make an area."""


@styled
def radar(study: Study) -> Figure | None:
    """Base retrievers thin in the colour of their family, the best composed method bold; None with few datasets."""
    results = study.results
    if len(results.datasets) < FEWEST:
        return None
    order = sorted(range(len(results.datasets)), key=lambda d: results.domain(results.datasets[d]))
    scores = dataset_scores(results, results.levels[0])[order]
    angles = np.linspace(0, 2 * np.pi, len(order), endpoint=False)
    figure = sheet(7.6, 6.4)
    axis = cast("PolarAxes", figure.add_subplot(projection="polar"))
    axis.set_theta_zero_location("N")
    axis.set_theta_direction(-1)
    for text in bases(study):
        _ring(axis, angles, scores[:, results.methods.index(text)], FAMILY_COLOURS[study.methods.family(text)], 1.1)
    if best := best_composed(study):
        values = scores[:, results.methods.index(best)]
        _ring(axis, angles, values, "black", 2.4)
        axis.fill(angles, values, color="black", alpha=0.05, linewidth=0)
    _spokes(axis, angles, [results.datasets[d] for d in order])
    _domains(axis, angles, [results.domain(results.datasets[d]) for d in order])
    _legend(figure, study, best)
    entitle(figure, f"{results.headline} on each dataset at ρ={results.levels[0]}%")
    return figure


def _ring(axis: PolarAxes, angles: NDArray[np.float64], values: NDArray[np.float64], colour: str, width: float) -> None:
    closed = np.append(angles, angles[:1]), np.append(values, values[:1])
    axis.plot(*closed, color=colour, linewidth=width, alpha=0.9, solid_joinstyle="round")


def _spokes(axis: PolarAxes, angles: NDArray[np.float64], names: list[str]) -> None:
    axis.set_xticks(angles, ["" for _ in names])
    axis.set_ylim(0, 1)
    axis.set_yticks([0.2, 0.4, 0.6, 0.8, 1.0], ["0.2", "0.4", "0.6", "0.8", ""], color=REFERENCE_GREY, fontsize=7)
    axis.set_rlabel_position(180 / len(names))
    axis.grid(color="#DDDDDD", linewidth=0.7)
    axis.spines["polar"].set_color("#BBBBBB")
    for angle, name in zip(angles, names, strict=True):
        _outside(axis, angle, 1.08, name, 8.5)


def _domains(axis: PolarAxes, angles: NDArray[np.float64], domains: list[str]) -> None:
    """An arc along the spokes of each domain, and its name outside."""
    margin = 0.36 * angles[1]
    for domain in dict.fromkeys(domains):
        own = angles[[d == domain for d in domains]]
        reach = np.linspace(own[0] - margin, own[-1] + margin, 60)
        axis.plot(reach, np.full(60, 1.0), color=REFERENCE_GREY, linewidth=4, solid_capstyle="butt", clip_on=False)
        _outside(axis, float(own.mean()), 1.44, fill(domain, 18), 8, color=REFERENCE_GREY, style="italic")


def _outside(axis: PolarAxes, angle: float, radius: float, text: str, size: float, **looks: Any) -> None:  # noqa: ANN401
    """Text that stands outwards from a point beyond the rim."""
    side = int(np.sign(np.round(np.sin(angle), 2)))
    axis.text(angle, radius, text, ha=("center", "left", "right")[side], va="center", fontsize=size, **looks)


def _legend(figure: Figure, study: Study, best: str) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    families = dict.fromkeys(study.methods.family(text) for text in bases(study))
    handles = [Line2D([], [], color=FAMILY_COLOURS[family], label=family) for family in families]
    if best:
        handles.append(Line2D([], [], color="black", linewidth=2.4, label=study.results.title(best)))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
