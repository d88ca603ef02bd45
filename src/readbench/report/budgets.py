"""What labels are worth: the headline metric over the label budget, as numbers and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from readbench.experiment.budget import ALL, parse_budget
from readbench.plots import METHOD_COLOURS, REFERENCE_GREY, Line, lines
from readbench.report.leaderboard import HEADLINE, Figure, figure_of
from readbench.report.results import Results
from readbench.report.tables import Table, describe

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


@dataclass(frozen=True)
class BudgetLine:
    """One method: its figure under each budget; `flat` where it reads no label."""

    title: str
    figures: tuple[Figure, ...]
    flat: bool


@dataclass(frozen=True)
class BudgetCurve:
    """The headline at the first level under each budget, methods in plan order.

    Args:
        caption: what is shown, over which data.
        unit: what a budget counts.
        budgets: from the first to the last of the plan.
        lines: one a method.
    """

    caption: str
    unit: str
    budgets: tuple[str, ...]
    lines: tuple[BudgetLine, ...]


def budget_curve(results: Results) -> BudgetCurve | None:
    """The curve of a run; None where it has a single budget."""
    if len(results.labels) < 2:
        return None
    values = results.values[HEADLINE][:, :, 0]
    rows = [
        BudgetLine(
            title=results.title(method),
            figures=tuple(figure_of(values[:, :, b, m]) for b in range(len(results.labels))),
            flat=results.budgets(method) == (str(ALL),),
        )
        for m, method in enumerate(results.methods)
    ]
    shares = any(parse_budget(text).percent is not None for text in results.labels)
    unit = "labelled share of the corpus" if shares else "known labels a query"
    seeds = f"{len(results.seeds)} split seed{'s' if len(results.seeds) > 1 else ''}"
    caption = f"{HEADLINE} at ρ={results.levels[0]}%, mean over {describe(results)} and {seeds}"
    return BudgetCurve(caption, unit, results.labels, tuple(rows))


def budget_table(curve: BudgetCurve) -> Table:
    """The headline metric under each label budget, with its spread over the seeds."""
    rows = [[name, *map(str, line.figures)] for name, line in zip(_names(curve), curve.lines, strict=True)]
    return Table("budgets", f"{curve.caption}, by {curve.unit}", ["Method", *curve.budgets], rows, labels=1)


def draw_budgets(curve: BudgetCurve) -> Picture:
    """The curve as a picture; what reads no label is a flat dashed line."""
    colours = iter(METHOD_COLOURS * len(curve.lines))
    drawn = [
        Line(
            title=name,
            values=np.array([figure.mean for figure in line.figures]),
            colour=REFERENCE_GREY if line.flat else next(colours),
            reference=line.flat,
        )
        for name, line in zip(_names(curve), curve.lines, strict=True)
    ]
    note = "dashed: reads no label" if any(line.flat for line in curve.lines) else ""
    return lines(drawn, curve.budgets, (curve.unit, HEADLINE), curve.caption, note)


def _names(curve: BudgetCurve) -> list[str]:
    """Titles, cut down to what each adds to the one method that all build on, where there is one."""
    titles = [line.title for line in curve.lines]
    flat = [line.title for line in curve.lines if line.flat]
    if len(flat) == 1 and all(title.startswith(flat[0]) for title in titles):
        return [title.removeprefix(flat[0]) or title for title in titles]
    return titles
