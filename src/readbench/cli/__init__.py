"""The command line: parses options, calls the package, prints results.

A command imports the modules it needs when it runs, so that `--help` stays fast.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from readbench.cli import bench, cache, cases, catalogue, data, doctor, models, report, run, studies
from readbench.cli.failures import complain, replace_letters
from readbench.cli.former import Group
from readbench.cli.options import Plugins
from readbench.errors import ReadbenchError
from readbench.version import __version__

app = typer.Typer(
    name="readbench",
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command("run")(run.run_command)
app.command("study")(studies.study_command)
app.command("report")(report.report_command)
app.command("compare")(report.compare_command)
app.command("leaderboard")(report.leaderboard_command)
app.command("submit")(report.submit_command)
app.command("list")(catalogue.list_command)
app.command("doctor")(doctor.doctor_command)
app.command("bench")(bench.bench_command)
app.command("cache")(cache.cache_command)
app.add_typer(data.app, name="data")
app.add_typer(models.app, name="models")
app.add_typer(cases.app, name="cases")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"readbench {__version__}")
        raise typer.Exit


@app.callback()
def readbench(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    plugin: Plugins = None,
) -> None:
    """Find the historical case that explains a new fault in time-series data."""


def main() -> None:
    """Entry point: an expected error is printed as one sentence; exit code 2 for wrong usage, 1 for any other."""
    replace_letters()
    try:
        app()
    except (ReadbenchError, OSError, UnicodeEncodeError) as error:
        sys.exit(complain(error))
