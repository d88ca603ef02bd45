"""The figures of a report, as one list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from readbench.report.budgets import curves, draw_budgets
from readbench.report.figures.boxes import boxes
from readbench.report.figures.cases import fault_against_shape, fault_strip, fault_types
from readbench.report.figures.lift import lift
from readbench.report.figures.radar import radar
from readbench.report.figures.ranks import critical_difference_diagram
from readbench.report.figures.robustness import robustness
from readbench.report.figures.runtime import runtime
from readbench.report.tables import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: dict[str, Callable[[Study], Figure | None]] = {
    "radar": radar,
    "robustness": robustness,
    "lift": lift,
    "runtime": runtime,
    "boxes": boxes,
    "ranks": critical_difference_diagram,
    "fault-strip": fault_strip,
    "fault-types": fault_types,
    "fault-against-shape": fault_against_shape,
}
"""Name of its files -> from a study to the figure; None where the run does not hold what it shows."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure and the name of its files."""

    name: str
    figure: Figure


def figures(study: Study) -> Iterator[Drawn]:
    """All figures that a run has something for, one at a time."""
    for name, draw in FIGURES.items():
        if figure := draw(study):
            yield Drawn(name, figure)
    for curve in curves(study.results):
        yield Drawn(curve.name, draw_budgets(curve))
