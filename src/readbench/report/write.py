"""Report files of a run, and the same tables for the terminal."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from readbench.plots import save
from readbench.report.budgets import budget_curve, budget_table, draw_budgets
from readbench.report.leaderboard import leaderboard
from readbench.report.paired import comparisons
from readbench.report.results import Results
from readbench.report.tables import Table, comparison_table, dataset_table, leaderboard_table, remarks


def write_report(results: Results, folder: Path) -> list[Path]:
    """Write `leaderboard.md`, one CSV per table and the figures into a folder; returns what was written."""
    tables, lines = _content(results)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "leaderboard.md"
    page.write_text("\n".join([table.markdown() for table in tables] + [f"- {line}" for line in lines]) + "\n")
    files = [page]
    for table in tables:
        path = folder / f"{table.name}.csv"
        path.write_text(table.csv())
        files.append(path)
    return files + _write_figures(results, folder)


def _write_figures(results: Results, folder: Path) -> list[Path]:
    """The curve over the label budget, where a run has several budgets, as SVG and PNG."""
    curve = budget_curve(results)
    if curve is None:
        return []
    files = [folder / f"budgets.{suffix}" for suffix in ("svg", "png")]
    for path in files:
        save(draw_budgets(curve), path)
    return files


def show_report(results: Results, console: Console) -> None:
    """Print the tables and remarks."""
    tables, lines = _content(results)
    for table in tables:
        show_table(table, console)
    for line in lines:
        console.print(line, style="dim", highlight=False)


def _content(results: Results) -> tuple[list[Table], list[str]]:
    board = leaderboard(results)
    tables = [leaderboard_table(results, board), dataset_table(results, board)]
    if curve := budget_curve(results):
        tables.append(budget_table(curve))
    if compared := comparisons(results, board):
        tables.append(comparison_table(results, board, compared))
    return tables, remarks(results, board)


def show_table(table: Table, console: Console) -> None:
    """Print one table."""
    view = RichTable(title=table.caption, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(table.header):
        view.add_column(name, justify="left" if i < table.labels else "right", no_wrap=True)
    for row in table.rows:
        view.add_row(*row)
    console.print(view)
