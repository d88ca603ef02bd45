"""The report of a run as files.

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
from pathlib import Path

from readbench.benchmark.report._budgets import budget_table, curves
from readbench.benchmark.report._figures import absent_figures, all_curves, figures
from readbench.benchmark.report._grid import TableStudy
from readbench.benchmark.report._overview import overview
from readbench.benchmark.report._paper_tables import absent_tables, method_tables, paper_tables
from readbench.benchmark.report._table import ReportTable, bullets, latex
from readbench.common.files import write_text
from readbench.common.plots import save


def write_report(study: TableStudy, folder: Path, suffixes: Sequence[str] = ("svg", "png")) -> list[Path]:
    """Write the files of a report into a folder, figures in each format; returns them, the main page first."""
    first, known = overview(study.results), {curve.name for curve in curves(study.results)}
    beside = [budget_table(curve) for curve in all_curves(study) if curve.name not in known]
    tables, single = paper_tables(study), method_tables(study)
    drawings = _write_figures(study, folder / "figures", suffixes)
    absent = absent_tables(tables) | absent_figures(path.stem for path in drawings)
    pages = {
        "leaderboard": [
            *_markdown([*first.tables, *beside]),
            *bullets(first.remarks),
            *bullets(first.findings),
            *(f"![{path.stem}](figures/{path.name})\n" for path in drawings if path.suffix == ".svg"),
        ],
        "tables": [
            *_markdown(tables),
            *(["**Not in this run**\n"] if absent else []),
            *bullets(f"`{name}`: {needed}" for name, needed in absent.items()),
        ],
        "methods": _markdown(single),
    }
    files = [_write(folder / f"{name}.md", "\n".join(parts) + "\n") for name, parts in pages.items()]
    files += _write_tables([*first.tables, *beside, *tables], folder / "tables")
    return files + _write_tables(single, folder / "tables" / "methods") + drawings


def _write_tables(tables: Iterable[ReportTable], folder: Path) -> list[Path]:
    return [
        _write(folder / f"{table.name}.{suffix}", text)
        for table in tables
        for suffix, text in (("csv", table.csv()), ("tex", latex(table)))
    ]


def _write_figures(study: TableStudy, folder: Path, suffixes: Sequence[str]) -> list[Path]:
    files = []
    for drawn in figures(study):
        for suffix in suffixes:
            files.append(folder / f"{drawn.name}.{suffix}")
            save(drawn.figure, files[-1])
    return files


def _markdown(tables: Iterable[ReportTable]) -> list[str]:
    return [table.markdown() for table in tables]


def _write(path: Path, text: str) -> Path:
    write_text(path, text)
    return path
