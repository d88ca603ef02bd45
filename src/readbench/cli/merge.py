"""`readbench merge`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from readbench.cli.options import output
from readbench.experiment.merge import merge
from readbench.report import read_results, show_report


def merge_command(
    folders: Annotated[list[Path], typer.Argument(help="Folders of all parts.")],
    out: Annotated[Path, typer.Option(help="Run folder to write.")],
) -> None:
    """Put parts of one run (`readbench run --shard i/n`) together.

    Example: `readbench merge runs/part-1 runs/part-2 --out runs/whole`
    """
    plan = merge(folders, out)
    show_report(read_results(out), output())
    count = len(list(plan.cells()))
    Console(stderr=True).print(f"{count} cells of {len(folders)} parts; results in {out}")
