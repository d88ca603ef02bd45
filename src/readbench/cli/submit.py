"""`readbench submit` and `readbench leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from readbench.cli.options import output
from readbench.errors import UnknownNameError, UsageError
from readbench.evaluate import DEFAULT_METRIC
from readbench.registry import SOURCES
from readbench.report import read_results, show_table
from readbench.report.bundle import SUFFIX, Declared, write_bundle
from readbench.report.bundle_check import read_bundle
from readbench.report.standings import rank_submissions
from readbench.report.standings_page import rejected_table, standings_table, write_standings


def submit_command(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    name: Annotated[str, typer.Option(help="Name on the leaderboard.", show_default="of the folder")] = "",
    authors: Annotated[str, typer.Option(help="Who made the system.", show_default=False)] = "",
    url: Annotated[str, typer.Option(help="Where to read about it.", show_default=False)] = "",
    trained_on: Annotated[
        str,
        typer.Option(help="Datasets that any part was trained or chosen on, or none.", show_default="not declared"),
    ] = "",
    out: Annotated[Path | None, typer.Option(help="File to write.", show_default=f"NAME{SUFFIX}")] = None,
) -> None:
    """Pack a run into one small file for a leaderboard, and check it as a leaderboard will.

    Example: `readbench submit runs/quick --name our-encoder --authors "A. Author" --trained-on none`
    """
    try:
        declared = Declared(
            name=name or folder.resolve().name, authors=authors, url=url, trained_on=_datasets(trained_on)
        )
    except ValueError as error:
        raise UsageError("--name takes up to 60 letters, digits, dots, hyphens and underscores.") from error
    path = out or Path(f"{declared.name}{SUFFIX}")
    partial = path.with_name(path.name + ".partial")
    try:
        write_bundle(read_results(folder), declared, partial)
        unchecked = read_bundle(partial).unchecked
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    said = f" (not checked, because not installed here: {', '.join(unchecked)})" if unchecked else ""
    typer.echo(f"wrote {path} ({path.stat().st_size / 1024:.0f} kB); its numbers follow from its lists{said}")


def leaderboard_command(
    folder: Annotated[Path, typer.Argument(help=f"Folder with submissions (*{SUFFIX}).")],
    out: Annotated[Path | None, typer.Option(help="Where to write.", show_default="FOLDER/leaderboard")] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="The submission whose tasks are the right ones.", show_default="those most share"),
    ] = None,
    metric: Annotated[str, typer.Option(help="What methods are ordered by.")] = DEFAULT_METRIC,
) -> None:
    """Make a leaderboard from many submissions; those that cannot be believed are named with the reason.

    Example: `readbench leaderboard submissions`
    """
    board = rank_submissions(sorted(folder.glob(f"*{SUFFIX}")), reference, metric)
    console = output()
    show_table(standings_table(board), console)
    if board.rejected:
        show_table(rejected_table(board), console)
    written = write_standings(board, out or folder / "leaderboard")
    Console(stderr=True).print(f"wrote {', '.join(map(str, written))}", highlight=False)


def _datasets(text: str) -> tuple[str, ...] | None:
    """Names of datasets; nothing said is not the same as none."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names or names == ("none",):
        return () if names else None
    for name in names:
        if name not in SOURCES:
            raise UnknownNameError("dataset", name, [entry.name for entry in SOURCES])
    return names
