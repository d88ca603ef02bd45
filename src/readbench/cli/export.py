"""`readbench export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from readbench.report import read_results
from readbench.report.trec import write_trec


def export_command(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[Path | None, typer.Option(help="Where to write.", show_default="FOLDER/trec")] = None,
) -> None:
    """Write the lists and judgements of a run as TREC files, for `trec_eval`, `ir_measures` and the like.

    Example: `readbench export runs/quick --out trec`
    """
    target = out or folder / "trec"
    written = write_trec(read_results(folder), target)
    typer.echo(f"wrote {len(written)} files into {target}")
