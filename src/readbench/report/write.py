"""Report files of a run, and the first tables for the terminal.

```
leaderboard.md      leaderboard, datasets, comparisons, what the tests allow to be said, the figures
tables.md           the paper's tables for this run, each followed by the paper's values; what the run has nothing for
methods.md          every metric of every method, on each dataset at each level
tables/NAME.csv, .tex      each of these tables; those of single methods in tables/methods/
figures/NAME.svg, .png     each figure
```
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from readbench.plots import save
from readbench.report.budgets import budget_table, curves
from readbench.report.figures import absent_figures, all_curves, figures
from readbench.report.leaderboard import leaderboard
from readbench.report.paired import comparisons
from readbench.report.results import Results
from readbench.report.significance import sentence
from readbench.report.tables import (
    Study,
    Table,
    absent_tables,
    comparison_table,
    dataset_table,
    latex,
    leaderboard_table,
    method_tables,
    paper_tables,
    remarks,
)

STYLES = {"best": "bold", "second": "underline"}
"""How marked cells look in a terminal."""
MOST_ROWS = 40
"""Rows of a table in a terminal; the files have all of them."""


@dataclass(frozen=True)
class Overview:
    """What a reader sees first.

    Args:
        tables: leaderboard, datasets, curves as numbers, comparisons.
        remarks: what must be said beside them.
        findings: what the tests allow to be said of the best method against each other.
    """

    tables: list[Table]
    remarks: list[str]
    findings: list[str]


@lru_cache(maxsize=2)
def overview(results: Results) -> Overview:
    """The first tables of a run, and what may be said of them; remembered, because its tests draw many resamples."""
    board = leaderboard(results)
    compared = comparisons(results, board)
    tables = [leaderboard_table(results, board), dataset_table(results, board)]
    tables += [budget_table(curve) for curve in curves(results)]
    tables += [comparison_table(results, compared)] if compared else []
    return Overview(tables, remarks(results, board), [sentence(results, one) for one in compared])


def write_report(study: Study, folder: Path) -> list[Path]:
    """Write the files of a report into a folder.

    Args:
        study: a run, and others that belong into its report.
        folder: is made where it is not there.

    Returns:
        What was written, the page to begin with first.
    """
    first, beside = overview(study.results), _beside(study)
    tables, single = paper_tables(study), method_tables(study)
    drawings = _write_figures(study, folder / "figures")
    absent = absent_tables(tables) | absent_figures(path.stem for path in drawings)
    pages = {
        "leaderboard": [
            *_markdown([*first.tables, *beside]),
            *_listed(first.remarks),
            *_listed(first.findings),
            *_shown(drawings),
        ],
        "tables": [*_markdown(tables), *_absences(absent)],
        "methods": _markdown(single),
    }
    files = [_write(folder / f"{name}.md", "\n".join(parts) + "\n") for name, parts in pages.items()]
    files += _write_tables([*first.tables, *beside, *tables], folder / "tables")
    return files + _write_tables(single, folder / "tables" / "methods") + drawings


def show_report(results: Results, console: Console) -> None:
    """Print the first tables and remarks."""
    first = overview(results)
    for table in first.tables:
        show_table(table, console, MOST_ROWS)
    for line in first.remarks:
        console.print(line, style="dim", highlight=False)


def show_table(table: Table, console: Console, most: int | None = None) -> None:
    """Print one table, or its first rows; where it is too wide, names are broken rather than numbers."""
    view = RichTable(title=table.caption, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(table.columns):
        named = i < table.labels
        view.add_column(name, justify="left" if named else "right", no_wrap=not named, overflow="fold")
    for r, row in enumerate(table.rows[:most]):
        marks = [table.marks.get((r, c)) for c in range(len(row))]
        view.add_row(*(Text(cell, STYLES[mark] if mark else "") for cell, mark in zip(row, marks, strict=True)))
    console.print(view)
    if most is not None and len(table.rows) > most:
        console.print(f"and {len(table.rows) - most} more, in {table.name}.csv", style="dim", highlight=False)


def _beside(study: Study) -> list[Table]:
    """The curves of the other runs as tables; those of the run itself are in its overview."""
    own = {curve.name for curve in curves(study.results)}
    return [budget_table(curve) for curve in all_curves(study) if curve.name not in own]


def _absences(absent: dict[str, str]) -> list[str]:
    """What a run has nothing for, and what would fill it."""
    lines = [f"`{name}`: {filled_by}" for name, filled_by in absent.items()]
    return ["**Not in this run**\n", *_listed(lines)] if lines else []


def _write_tables(tables: Iterable[Table], folder: Path) -> list[Path]:
    return [
        _write(folder / f"{table.name}.{suffix}", text)
        for table in tables
        for suffix, text in (("csv", table.csv()), ("tex", latex(table)))
    ]


def _write_figures(study: Study, folder: Path) -> list[Path]:
    files = []
    for drawn in figures(study):
        for suffix in ("svg", "png"):
            files.append(folder / f"{drawn.name}.{suffix}")
            save(drawn.figure, files[-1])
    return files


def _markdown(tables: Iterable[Table]) -> list[str]:
    return [table.markdown() for table in tables]


def _listed(lines: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {line}" for line in lines) + "\n"] if lines else []


def _shown(drawings: Iterable[Path]) -> list[str]:
    return [f"![{path.stem}](figures/{path.name})\n" for path in drawings if path.suffix == ".svg"]


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
