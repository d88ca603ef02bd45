"""The figures of a report, as one list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from readbench.errors import UsageError
from readbench.report.budgets import CURVES, BudgetCurve, curves, draw_budgets
from readbench.report.figures.boxes import boxes
from readbench.report.figures.cases import fault_against_shape, fault_strip, fault_types
from readbench.report.figures.lift import lift
from readbench.report.figures.radar import radar
from readbench.report.figures.ranks import critical_difference_diagram
from readbench.report.figures.reliability import reliability_diagram
from readbench.report.figures.robustness import robustness
from readbench.report.figures.runtime import runtime
from readbench.report.tables import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Kind:
    """A figure that a report may have.

    Args:
        name: of its files.
        draw: from a study to the figure; None where the run does not hold what it shows.
        shows: what is to be seen.
        filled_by: what a run needs for it.
    """

    name: str
    draw: Callable[[Study], Figure | None]
    shows: str
    filled_by: str


WINDOWS = "a dataset whose licence lets its windows be shown"
FIGURES = (
    Kind("radar", radar, "The headline on each dataset, spokes grouped by domain", "three datasets"),
    Kind(
        "robustness",
        robustness,
        "Normal-residual variants over pollution, against the band of all other base retrievers",
        "`readbench run --suite nr`, two levels at least",
    ),
    Kind("lift", lift, "From each pool to the same reranked by GPC", "`readbench run --suite rerank`"),
    Kind("runtime", runtime, "Accuracy against wall time", "three methods"),
    Kind("boxes", boxes, "How the scores of each method spread over the datasets", "three datasets"),
    Kind("ranks", critical_difference_diagram, "Critical-difference diagram", "three datasets and three methods"),
    Kind(
        "reliability",
        reliability_diagram,
        "Stated against real certainty of methods with an opinion on the fault type",
        "`readbench run --suite flagship`",
    ),
    Kind("fault-strip", fault_strip, "Fault signatures by domain, the faulty span shaded", WINDOWS),
    Kind("fault-types", fault_types, "Fault types by dataset, each against a normal window", WINDOWS),
    Kind(
        "fault-against-shape",
        fault_against_shape,
        "A relevant hit that looks different beside a wrong one that looks alike",
        WINDOWS,
    ),
)
SHOWS = {kind.name: kind.shows for kind in FIGURES} | {curve.name: curve.shows for curve in CURVES}
"""Name of its files -> what a figure shows."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure and the name of its files."""

    name: str
    figure: Figure


def figures(study: Study) -> Iterator[Drawn]:
    """All figures that a run, and those beside it, have something for, one at a time."""
    for kind in FIGURES:
        if figure := kind.draw(study):
            yield Drawn(kind.name, figure)
    for curve in all_curves(study):
        yield Drawn(curve.name, draw_budgets(curve))


def all_curves(study: Study) -> list[BudgetCurve]:
    """The curves of a run and of those beside it; each may be there once."""
    found: dict[str, BudgetCurve] = {}
    for results in (study.results, *study.others):
        for curve in curves(results):
            if curve.name in found:
                raise UsageError(f"{results.folder} has the curve {curve.name!r}, as another run of this report has.")
            found[curve.name] = curve
    return list(found.values())


def absent_figures(names: Iterable[str]) -> dict[str, str]:
    """Figures of the catalogue that are not among the names, and what would fill each."""
    present = set(names)
    wanted = {kind.name: kind.filled_by for kind in FIGURES}
    wanted |= {curve.name: curve.filled_by for curve in CURVES}
    return {name: filled_by for name, filled_by in wanted.items() if name not in present}
