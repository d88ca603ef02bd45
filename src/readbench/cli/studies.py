"""`readbench study`: run a study; print its tables, write tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from readbench.cli.options import Jobs, Plugins, Root, many_datasets, many_methods, numbers, output
from readbench.cli.progress import resumable


def study_command(  # noqa: PLR0917 - typer reads options from the signature
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a study (`readbench list studies`).")],
    datasets: Annotated[list[str] | None, many_datasets("of the study")] = None,
    methods: Annotated[list[str] | None, many_methods("of the study")] = None,
    seeds: Annotated[
        str, typer.Option("--seeds", "--seed", help="Split seeds, separated by commas.", show_default="of the study")
    ] = "",
    rho: Annotated[
        str, typer.Option(help="Pollution levels in percent, separated by commas.", show_default="of the study")
    ] = "",
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Setting of the study; repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results and finished cells.", show_default="runs/NAME")
    ] = None,
    jobs: Jobs = 1,
    root: Root = None,
    plugin: Plugins = None,  # noqa: ARG001 - loaded as it is read
) -> None:
    """Run a study: a grid of datasets, methods, seeds and levels with its metric and figure.

    Run again with the same folder, it continues. Options that do not apply to the study are refused.
    Example: `readbench study opinions --datasets sim_ecg --seeds 0 --methods "rocket+verdict" --set novelty=false`
    """
    chosen: dict[str, Sequence[Any]] = {"seeds": numbers(seeds, "--seeds"), "levels": numbers(rho, "--rho")}
    from readbench.benchmark.report import show_table
    from readbench.benchmark.runs import executor_of
    from readbench.common.files import data_root
    from readbench.engine.spec import split_specs
    from readbench.errors import UsageError
    from readbench.studies import STUDIES, run_study, write_study

    study = STUDIES.get(name)
    if study.alone and jobs > 1:
        raise UsageError(f"--jobs does not apply to the study {study.name}: it measures one cell after the other.")
    chosen |= {"datasets": split_specs(datasets or ()), "methods": split_specs(methods or ())}
    grid = study.grid(chosen, setting or (), out=out, root=data_root(root))
    console = Console(stderr=True)
    with resumable(console, grid.out) as progress:
        found = run_study(study, grid, executor_of(workers=jobs), progress)
    if found.results:
        for table in study.show(found.results, briefly=True):
            show_table(table, output())
        files = write_study(study, found.results, grid)
        console.print(f"wrote {', '.join(files)} into {grid.out}", highlight=False)
    for failure in found.failures:
        console.print(f"{failure.cell}: {failure.reason}", style="bold red", markup=False)
    if found.failures:
        raise typer.Exit(1)
