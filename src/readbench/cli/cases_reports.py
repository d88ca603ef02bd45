"""`readbench cases backtest` and `report`: a replay of the resolved cases, and the report of one case."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from readbench.cli.options import LIBRARY_METHOD, AsOf, Json, Method, Name, Where, open_library, output, say
from readbench.cli.progress import Terminal

Out = Annotated[
    Path | None, typer.Option("--out", help="File to write, .html or .pdf; PDF needs Chromium.", show_default=False)
]
Minutes = Annotated[float, typer.Option(min=0, help="Assumed minutes of an engineer, for the estimate of time saved.")]


def backtest_command(  # noqa: PLR0917 - typer reads options from the signature
    where: Where,
    method: Method = LIBRARY_METHOD,
    first: Annotated[
        int, typer.Option(min=2, help="Number of resolved cases in the library before the first is tested.")
    ] = 10,
    unaided: Minutes = 60.0,
    aided: Minutes = 10.0,
    misled: Minutes = 20.0,
    out: Out = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Back-test the library: search for each resolved case among those before it.

    Prints stated and realised precision, coverage, detection of new faults, and the time saved, assuming `--unaided`
    minutes to find a cause alone, `--aided` to check a right answer and `--misled` lost to a wrong one.
    Example: `readbench cases backtest plant --unaided 90 --out backtest.html`
    """
    from readbench.cases import Assumptions, list_backtest, replay_history, report_backtest, write_page

    assumptions = Assumptions(unaided=unaided, aided=aided, misled=misled)
    with Terminal() as progress:
        library = open_library(where, as_of=as_of)
        found = replay_history(library, method=method, first=first, assumptions=assumptions, progress=progress)
    if out:
        write_page(report_backtest(found), out)
    if as_json:
        print(found.model_dump_json(indent=1))  # noqa: T201 - this is the output
        return
    table = Table("Back-test", "", box=SIMPLE_HEAD)
    for what, value in list_backtest(found):
        table.add_row(escape(what), escape(value))
    output().print(table)
    if out:
        say(f"wrote {out}")


def report_command(
    where: Where,
    case: Name,
    out: Out = None,
    method: Method = LIBRARY_METHOD,
    address: Annotated[
        str, typer.Option(help="URL of the library's service, for links to cases and comparisons.")
    ] = "",
    as_of: AsOf = None,
) -> None:
    """Write a one-page report of a case: probable faults, similar cases, evidence, signals, remarks.

    Example: `readbench cases report plant case-12ab --out case-12ab.pdf`
    """
    from readbench.cases import report_case, write_page

    path = out or Path(f"{case.replace('/', '-')}.html")
    with Terminal() as progress:
        library = open_library(where, as_of=as_of, progress=progress)
        write_page(report_case(library, case, method=method, address=address), path)
    say(f"wrote {path}")
