"""`readbench compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from readbench.cli.options import Json, output
from readbench.evaluate import DEFAULT_METRIC
from readbench.report import read_results, show_table
from readbench.report.compare import check_data, compare, pairs_of
from readbench.report.compare_text import as_json, difference_table, markdown
from readbench.spec import parse, split_specs


def compare_command(  # noqa: PLR0917 - typer reads options from the signature
    first: Annotated[Path, typer.Argument(help="A run folder.")],
    second: Annotated[Path | None, typer.Argument(help="Another; without it, two methods of the first.")] = None,
    methods: Annotated[
        list[str] | None, typer.Option(help="A method; twice for one of each side.", show_default="all they share")
    ] = None,
    metric: Annotated[str, typer.Option(help="What to compare.")] = DEFAULT_METRIC,
    rho: Annotated[int | None, typer.Option(help="Pollution level.", show_default="the first")] = None,
    other_data: Annotated[
        bool, typer.Option("--other-data", help="Compare what runs on different data share.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Where to write compare.md and compare.json.", show_default=False)
    ] = None,
    json_output: Json = False,
) -> None:
    """Compare two runs, or two methods of one, on the same queries: second minus first.

    Example: `readbench compare runs/quick --methods euclidean --methods dtw-i --out runs/quick/compare`
    """
    one, two = read_results(first), read_results(second) if second else None
    if two is not None and not other_data:
        check_data(one, two)
    named = [str(parse(text)) for text in split_specs(methods or [])]
    compared = [compare(a, b, metric=metric, rho=rho) for a, b in pairs_of(one, two, named)]
    folder = out or Path()
    if json_output:
        typer.echo(as_json(compared, folder), nl=False)
    else:
        show_table(difference_table(compared), output())
    if out:
        out.mkdir(parents=True, exist_ok=True)
        (out / "compare.md").write_text(markdown(compared, out))
        (out / "compare.json").write_text(as_json(compared, out))
        Console(stderr=True).print(f"wrote compare.md and compare.json into {out}", highlight=False)
