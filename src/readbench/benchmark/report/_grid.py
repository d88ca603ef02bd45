"""Tables that cross methods with metrics, levels or stages.

The method of a column is a template: `{0}`, `{1}` stand for the parts of the row, so a row ("charm+nr", "dtw-i") under
a column "{0}|ws|{1}" is the method `charm+nr|ws|dtw-i`. Rows and columns without values are left out, and tables with
too few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from readbench.benchmark.report._methods import Methods, canonical, coverage, describe, under
from readbench.benchmark.report._paper_values import CHANGE, FULL, SPREAD, published_values
from readbench.benchmark.report._results import Figure, Results
from readbench.benchmark.report._table import Mark, ReportTable

Among = Literal["column", "row", "block", "none"]
"""Groups of cells in which the best and the second best are marked."""
PAPER_CHANGES = {(0, 20), (0, 0)}
"""Levels of the paper's changes: from clean to 20 %, or from capped to full corpus, both clean."""
PAPER_METRIC = "NDCG@10"
"""Metric of the paper's changes, deviations and full-corpus values."""
NONE = "–"
"""Text of an empty cell."""


@dataclass(frozen=True, eq=False)
class TableStudy:
    """Runs of one report.

    Args:
        results: the run.
        full: results of the same methods on the full corpora.
        others: runs over other axes, such as label budgets, for curves.
    """

    results: Results
    full: Results | None = None
    others: tuple[Results, ...] = ()

    @cached_property
    def methods(self) -> Methods:
        """The methods of the run by their parts."""
        return Methods(self.results)


@dataclass(frozen=True)
class GridColumn:
    """Content of a column.

    Args:
        title: heading.
        method: template of the method.
        rho: pollution level in percent; by default that of the row, else the first of the run.
        metric: column of `scores.csv`, or the deviation over datasets; by default the headline.
        over: heading shared with neighbours.
        full: True for values of the run on the full corpora.
        minus: column to subtract; the column is then a change.
        best: which end is marked as best; the other end if smaller headlines are better.
    """

    title: str
    method: str = "{0}"
    rho: int | None = None
    metric: str = ""
    over: str = ""
    full: bool = False
    minus: GridColumn | None = None
    best: Literal["high", "low", ""] = "high"


@dataclass(frozen=True)
class GridRow:
    """Content of a row.

    Args:
        labels: names in the first columns.
        parts: values for the templates of the columns.
        block: name of its block of rows.
        dataset: single dataset; empty for the mean over all.
        rho: pollution level if the column has none.
        reference: True if it is never marked as best.
    """

    labels: tuple[str, ...]
    parts: tuple[str, ...]
    block: str = ""
    dataset: str = ""
    rho: int | None = None
    reference: bool = False


@dataclass(frozen=True)
class TableGrid:
    """Definition of a table; `report_tables.csv` lists them.

    Args:
        name: name of its files.
        title: caption; `{first}` is the first level of the run, `{headline}` its metric.
        heads: headings of the label columns.
        rows: from a study to the possible rows.
        columns: from a study to the possible columns.
        beside: label of the paper's table with the same cells.
        among: groups of cells in which the best is marked.
        filled_by: command or methods that a run needs for it.
        needs: fewest rows and columns.
        spread: True to show the deviation over split seeds.
    """

    name: str
    title: str
    heads: tuple[str, ...]
    rows: Callable[[TableStudy], Sequence[GridRow]]
    columns: Callable[[TableStudy], Sequence[GridColumn]]
    filled_by: str = ""
    beside: str = ""
    among: Among = "column"
    needs: tuple[int, int] = (1, 1)
    spread: bool = False


@dataclass(frozen=True, eq=False)
class _Cells:
    """Rows and columns that have values, and the values."""

    rows: list[GridRow]
    columns: list[GridColumn]
    figures: list[list[Figure | None]] = field(repr=False)


def grid_tables(grid: TableGrid, study: TableStudy) -> list[ReportTable]:
    """The table, then the paper's values in the same places if any; empty if the run lacks it."""
    cells = _cells(grid, study)
    if len(cells.rows) < grid.needs[0] or len(cells.columns) < grid.needs[1]:
        return []
    own = _own(grid, cells, study.results)
    beside = _beside(grid, cells, study.results) if grid.beside else None
    return [own, beside] if beside else [own]


def value(study: TableStudy, row: GridRow, column: GridColumn) -> Figure | None:
    """Value of a cell; None if the run lacks it."""
    results = study.full if column.full else study.results
    method = _method(row, column)
    if results is None or method not in results.methods:
        return None
    rho = _level(row, column, results)
    if rho not in results.levels:
        return None
    found = _figure(results, column.metric, rho, results.methods.index(method), row.dataset)
    if column.minus is None or found is None:
        return found
    other = value(study, row, column.minus)
    return Figure(found.mean - other.mean, float("nan")) if other else None


def _figure(results: Results, metric: str, rho: int, method: int, dataset: str) -> Figure | None:
    wanted = [results.datasets.index(dataset)] if dataset else range(len(results.datasets))
    found = results.at(results.headline if metric in {"", SPREAD} else metric, rho)[:, :, method]
    values = found[list(wanted)]
    if np.isnan(values).any():
        return None
    if metric != SPREAD:
        return results.summarise(found, wanted)
    return Figure(float(values.mean(axis=1).std(ddof=1)), float("nan")) if len(values) > 1 else None


def _method(row: GridRow, column: GridColumn) -> str:
    text = column.method
    for place, part in enumerate(row.parts):
        text = text.replace(f"{{{place}}}", part)
    return canonical(text)


def _cells(grid: TableGrid, study: TableStudy) -> _Cells:
    rows, columns = list(grid.rows(study)), list(grid.columns(study))
    figures = [[value(study, row, column) for column in columns] for row in rows]
    kept = [r for r in range(len(rows)) if any(figures[r])]
    used = [c for c in range(len(columns)) if any(figures[r][c] for r in kept)]
    return _Cells([rows[r] for r in kept], [columns[c] for c in used], [[figures[r][c] for c in used] for r in kept])


def _own(grid: TableGrid, cells: _Cells, results: Results) -> ReportTable:
    texts = [
        [_text(figure, column, spread=grid.spread) for figure, column in zip(line, cells.columns, strict=True)]
        for line in cells.figures
    ]
    marks = _marks(grid.among, cells, results)
    title = grid.title.replace("{first}", str(results.levels[0])).replace("{headline}", results.headline)
    n = len(grid.heads)
    return ReportTable(
        name=grid.name,
        caption=f"{title}; {describe(results)}{under(results)}",
        header=[*grid.heads, *(column.title for column in cells.columns)],
        rows=[[*row.labels, *line] for row, line in zip(cells.rows, texts, strict=True)],
        labels=n,
        over=("",) * n + tuple(column.over for column in cells.columns),
        marks={(r, c + n): mark for (r, c), mark in marks.items()},
        rules=_rules(cells.rows),
    )


def _beside(grid: TableGrid, cells: _Cells, results: Results) -> ReportTable | None:
    """The paper's values and the differences of the run from them."""
    values = [[_published(grid.beside, row, column, results) for column in cells.columns] for row in cells.rows]
    kept = [r for r, line in enumerate(values) if any(v is not None for v in line)]
    used = [c for c in range(len(cells.columns)) if any(values[r][c] is not None for r in kept)]
    if not kept:
        return None
    rows = [
        [*cells.rows[r].labels, *(text for c in used for text in _pair(values[r][c], cells.figures[r][c]))]
        for r in kept
    ]
    titles = [f"{cells.columns[c].over} {cells.columns[c].title}".strip() for c in used]
    return ReportTable(
        name=f"{grid.name}-paper",
        caption=f"The paper's values ({grid.beside}), and this run minus the paper. {coverage(results)}",
        header=[*grid.heads, *(title for _ in used for title in ("paper", "Δ"))],
        rows=rows,
        labels=len(grid.heads),
        over=("",) * len(grid.heads) + tuple(title for title in titles for _ in range(2)),
        rules=_rules([cells.rows[r] for r in kept]),
    )


def _published(table: str, row: GridRow, column: GridColumn, results: Results) -> float | None:
    """The paper's value of a cell; for changes only between the paper's levels."""
    if row.dataset:
        return None
    method, rho = _method(row, column), _level(row, column, results)
    if column.minus is None:
        return published_values(table, method, _paper_metric(column, results), rho)
    if results.headline != PAPER_METRIC:
        return None
    same = (_level(row, column.minus, results), rho) in PAPER_CHANGES
    return published_values(table, method, CHANGE, 0) if same else None


def _paper_metric(column: GridColumn, results: Results) -> str:
    """Name of a column's metric in the paper's tables; empty if it has none."""
    if results.headline != PAPER_METRIC and (column.full or column.metric == SPREAD):
        return ""
    return FULL if column.full else column.metric or results.headline


def _level(row: GridRow, column: GridColumn, results: Results) -> int:
    return next(level for level in (column.rho, row.rho, results.levels[0]) if level is not None)


def _pair(paper: float | None, own: Figure | None) -> tuple[str, str]:
    if paper is None:
        return NONE, NONE
    return f"{paper:.3f}", NONE if own is None else f"{own.mean - paper:+.3f}"


def _text(figure: Figure | None, column: GridColumn, *, spread: bool) -> str:
    if figure is None:
        return NONE
    if column.minus:
        return f"{figure.mean:+.3f}"
    return str(figure) if spread else f"{figure.mean:.3f}"


def _marks(among: Among, cells: _Cells, results: Results) -> dict[tuple[int, int], Mark]:
    """Marks of the best and second best printed values of each group; equal values share a mark."""
    marks: dict[tuple[int, int], Mark] = {}
    for group in _competing(among, cells, results).values():
        ranked = sorted(set(group.values()), reverse=True) if len(group) > 1 else []
        for place, number in group.items():
            if ranked and number == ranked[0]:
                marks[place] = "best"
            elif len(ranked) > 2 and number == ranked[1]:
                marks[place] = "second"
    return marks


def _competing(among: Among, cells: _Cells, results: Results) -> dict[int | str, dict[tuple[int, int], float]]:
    """Groups of printed values by place, signed so that larger is better."""
    groups: dict[int | str, dict[tuple[int, int], float]] = {}
    for r, row in enumerate(cells.rows):
        keys: dict[Among, int | str] = {"row": r, "block": row.block}
        for c, column in enumerate(cells.columns):
            figure = cells.figures[r][c]
            if among != "none" and figure and column.best and not row.reference:
                sign = -1 if column.best == "low" else 1
                if not column.metric and not results.metrics[results.headline].larger_is_better:
                    sign = -sign
                groups.setdefault(keys.get(among, c), {})[r, c] = sign * round(figure.mean, 3)
    return groups


def _rules(rows: Sequence[GridRow]) -> tuple[int, ...]:
    return tuple(r for r in range(1, len(rows)) if rows[r].block != rows[r - 1].block)
