"""Curves of the headline metric over label budgets, wrong labels or pollution levels, as table and figure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from readbench.benchmark.metrics import ConfidenceInterval, mean_interval
from readbench.benchmark.report._methods import describe
from readbench.benchmark.report._results import Figure, Results
from readbench.benchmark.report._table import ReportTable
from readbench.benchmark.runs import ALL, open_folder, parse_budget
from readbench.common.plots import METHOD_COLOURS, REFERENCE_GREY, Line, lines

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure as Picture

RESAMPLES = 2000
MIN_LEVELS = 4
"""Fewest pollution levels of a curve; the leaderboard shows three."""


@dataclass(frozen=True)
class CurveKind:
    """A curve of the catalogue: name of its files, caption, and the sweep that it needs."""

    name: str
    shows: str
    suite: str

    @property
    def filled_by(self) -> str:
        """The commands that produce it."""
        return f"`readbench run --sweep {self.suite}`, then `readbench report RUN --with runs/{self.suite}`"


CURVES = (
    CurveKind("budgets", "The headline over the number of labels that a query may know", "budget"),
    CurveKind("shares", "The headline over the labelled share of the corpus", "share"),
    CurveKind("noise", "The headline over the share of wrong labels", "noise"),
    CurveKind("pollution", "The headline over many pollution levels", "pollution"),
)


@dataclass(frozen=True)
class BudgetLine:
    """One method: mean and 95 % interval over split groups at each tick; `flat` if the axis does not affect it."""

    title: str
    figures: tuple[Figure, ...]
    intervals: tuple[ConfidenceInterval, ...]
    flat: bool


@dataclass(frozen=True)
class BudgetCurve:
    """The headline along one axis of a run.

    Args:
        name: name of its files: `budgets`, `shares`, `noise` or `pollution`.
        caption: what is shown, over which data.
        unit: unit of the axis.
        budgets: ticks in plan order.
        lines: one per method in plan order.
        metric: the headline.
    """

    name: str
    caption: str
    unit: str
    budgets: tuple[str, ...]
    lines: tuple[BudgetLine, ...]
    metric: str


def curves(results: Results) -> list[BudgetCurve]:
    """The curves that a run has: over several label budgets, over many pollution levels."""
    return [curve for curve in (budget_curve(results), pollution_curve(results)) if curve is not None]


def budget_curve(results: Results) -> BudgetCurve | None:
    """The curve over the label budgets at the first level; None where the run has a single budget."""
    if len(results.labels) < 2:
        return None
    name, unit, ticks = _label_axis(results.labels)
    rho, flat = results.levels[0], {method for method in results.methods if results.budgets(method) == (str(ALL),)}
    places = {m: [(rho, str(ALL) if m in flat else labels) for labels in results.labels] for m in results.methods}
    found = _lines(results, results.values[results.headline][:, :, 0], places, flat)
    caption = f"{results.headline} at ρ={rho}%, {_over(results)}"
    return BudgetCurve(name, caption, unit, ticks, found, results.headline)


def pollution_curve(results: Results) -> BudgetCurve | None:
    """The curve over the pollution levels under the last label budget; None where the run has few levels."""
    if len(results.levels) < MIN_LEVELS:
        return None
    places = {m: [(rho, results.budgets(m)[-1]) for rho in results.levels] for m in results.methods}
    found = _lines(results, results.values[results.headline][:, :, :, -1], places)
    unit, ticks = "normal windows in the corpus, ρ", tuple(f"{rho}%" for rho in results.levels)
    return BudgetCurve("pollution", f"{results.headline}, {_over(results)}", unit, ticks, found, results.headline)


def _lines(
    results: Results,
    values: NDArray[np.float64],
    places: Mapping[str, Sequence[tuple[int, str]]],
    flat: Collection[str] = (),
) -> tuple[BudgetLine, ...]:
    """One line per method.

    Args:
        results: of the run.
        values: (datasets, seeds, ticks, methods) headline.
        places: method -> pollution level and label budget of each tick.
        flat: methods that the axis does not concern.
    """
    return tuple(
        BudgetLine(
            results.title(method),
            tuple(results.summarise(values[:, :, tick, m]) for tick in range(values.shape[2])),
            _intervals(results, method, places[method]),
            method in flat,
        )
        for m, method in enumerate(results.methods)
    )


def budget_table(curve: BudgetCurve) -> ReportTable:
    """The headline metric at each tick, with its spread over the seeds."""
    rows = [[name, *map(str, line.figures)] for name, line in zip(_names(curve), curve.lines, strict=True)]
    return ReportTable(curve.name, f"{curve.caption}, by {curve.unit}", ["Method", *curve.budgets], rows, labels=1)


def draw_budgets(curve: BudgetCurve) -> Picture:
    """Figure of a curve with intervals as bands; methods that read no label are flat dashed lines."""
    colours = iter(METHOD_COLOURS * len(curve.lines))
    drawn = [
        Line(
            title=name,
            values=np.array([figure.mean for figure in line.figures]),
            colour=REFERENCE_GREY if line.flat else next(colours),
            reference=line.flat,
            band=None if line.flat else np.array([[i.low for i in line.intervals], [i.high for i in line.intervals]]),
        )
        for name, line in zip(_names(curve), curve.lines, strict=True)
    ]
    note = "bands: 95 % intervals over split groups"
    note += "; dashed: reads no label" if any(line.flat for line in curve.lines) else ""
    return lines(drawn, curve.budgets, (curve.unit, curve.metric), curve.caption, note, _places(curve.budgets))


def _places(ticks: Sequence[str]) -> list[float] | None:
    """Positions of ticks that are numbers; None if any is not."""
    numbers = [text.removesuffix("%") for text in ticks]
    if not all(number.replace(".", "", 1).isdigit() for number in numbers):
        return None
    return [float(number) for number in numbers]


def _label_axis(labels: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    """Name, unit and ticks of an axis of label budgets."""
    budgets = [parse_budget(text) for text in labels]
    if len({budget.extent for budget in budgets}) == 1:
        return "noise", f"wrong labels, {budgets[0].words.split(',')[0]} known", tuple(f"{b.wrong:g}%" for b in budgets)
    if any(budget.percent is not None for budget in budgets):
        return "shares", "labelled share of the corpus", tuple(labels)
    return "budgets", "known labels a query", tuple(labels)


def _over(results: Results) -> str:
    return f"mean over {describe(results)} and {results.told_seeds}"


def _intervals(results: Results, method: str, places: Sequence[tuple[int, str]]) -> tuple[ConfidenceInterval, ...]:
    """Interval of a method at each (level, budget); NaN if it failed."""
    filters = [("method", "=", method), ("metric", "=", results.headline)]
    table = open_folder(results.folder).read_per_query(filters)
    found: dict[tuple[int, str], ConfidenceInterval] = {}
    for rho, labels in places:
        if (rho, labels) not in found:
            found[rho, labels] = _interval(table, rho, labels)
    return tuple(found[place] for place in places)


def _interval(table: pa.Table, rho: int, labels: str) -> ConfidenceInterval:
    here = pc.and_(pc.equal(table["rho"], rho), pc.equal(table["labels"].cast("string"), labels))
    own = table.filter(here)
    if not len(own):
        nan = float("nan")
        return ConfidenceInterval(nan, nan, nan, 0, 0.95)
    columns = (own[name].cast("string").to_pylist() for name in ("dataset", "group"))
    return mean_interval(own["value"].to_numpy(), *columns, seed=0, resamples=RESAMPLES)


def _names(curve: BudgetCurve) -> list[str]:
    """Titles without the prefix that all share with the only flat method."""
    titles = [line.title for line in curve.lines]
    flat = [line.title for line in curve.lines if line.flat]
    if len(flat) == 1 and all(title.startswith(flat[0]) for title in titles):
        return [title.removeprefix(flat[0]) or title for title in titles]
    return titles
