"""`readbench report`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from readbench.cli.options import output
from readbench.evaluate import DEFAULT_METRIC
from readbench.report import Results, read_results, show_report, write_report
from readbench.report.site import write_site
from readbench.report.tables import Study

PICTURE_WIDTH = 108


def report_command(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[Path | None, typer.Option(help="Where to write.", show_default="FOLDER/report")] = None,
    full: Annotated[
        Path | None, typer.Option(help="A run of the same methods on full corpora (--cap none).", show_default=False)
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option("--with", help="A run over label budgets, noise or pollution to show too; may be repeated."),
    ] = None,
    metric: Annotated[str, typer.Option(help="What methods are ordered by.")] = DEFAULT_METRIC,
    picture: Annotated[Path | None, typer.Option(help="Also save what is printed as SVG.", show_default=False)] = None,
) -> None:
    """Print the leaderboard of a run; write its site, every table (markdown, CSV, LaTeX) and figure (SVG, PNG) it has.

    Example: `readbench report runs/quick --picture leaderboard.svg`
    """
    results = read_results(folder, metric)
    console = output()
    show_report(results, console)
    if picture:
        _save_picture(results, folder, picture)
    target = out or folder / "report"
    others = tuple(read_results(other, metric) for other in beside or ())
    study = Study(results, read_results(full, metric) if full else None, others)
    files = write_report(study, target)
    console.print(
        f"wrote {write_site(folder, target, files, metric)}, and {len(files)} tables and figures beside it",
        highlight=False,
    )


def _save_picture(results: Results, folder: Path, picture: Path) -> None:
    canvas = Console(record=True, width=PICTURE_WIDTH, file=io.StringIO())
    show_report(results, canvas)
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(canvas.export_svg(title=f"readbench report {folder}"))
