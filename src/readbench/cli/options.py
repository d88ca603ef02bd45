"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from readbench.errors import UsageError

WIDTH = 120

Root = Annotated[
    Path | None,
    typer.Option(
        "--root", help="Folder with one sub-folder per data source.", envvar="READBENCH_DATA", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def output() -> Console:
    """Where results are printed; a pipe or file is as wide as the tables need."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def numbers(text: str, option: str) -> tuple[int, ...]:
    """Whole numbers separated by commas."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise UsageError(f"{option} takes whole numbers separated by commas. Got {text!r}.") from error
