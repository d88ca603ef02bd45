"""The command line: one verb per step, thin over the package."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from readbench.cli import (
    active,
    archive,
    bench,
    cache,
    cases,
    catalogue,
    compare,
    data,
    doctor,
    export,
    merge,
    opinions,
    report,
    run,
    scale,
    serve,
    submit,
)
from readbench.errors import ReadbenchError, UsageError

app = typer.Typer(
    name="readbench",
    help="Find the historical case that explains a new fault in time-series data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command("run")(run.run_command)
app.command("merge")(merge.merge_command)
app.command("report")(report.report_command)
app.command("compare")(compare.compare_command)
app.command("export")(export.export_command)
app.command("submit")(submit.submit_command)
app.command("leaderboard")(submit.leaderboard_command)
app.command("methods")(catalogue.methods_command)
app.command("datasets")(catalogue.datasets_command)
app.command("opinions")(opinions.opinions_command)
app.command("active")(active.active_command)
app.command("ucr")(archive.ucr_command)
app.command("scale")(scale.scale_command)
app.command("bench")(bench.bench_command)
app.command("cache")(cache.cache_command)
app.command("doctor")(doctor.doctor_command)
app.add_typer(data.app, name="data")
app.add_typer(cases.app, name="cases")
serve.attach(cases.app)


def main() -> None:
    """Entry point: an error raised on purpose is printed as one sentence; 2 = wrong usage, 1 = anything else."""
    try:
        app()
    except ReadbenchError as error:
        Console(stderr=True, soft_wrap=True).print(f"Error: {error}", style="bold red", markup=False, highlight=False)
        sys.exit(2 if isinstance(error, UsageError) else 1)
