"""`readbench data ...`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from readbench.cli.exporting import export_command
from readbench.cli.fetching import fetch_command, status_command
from readbench.cli.importing import import_command
from readbench.cli.options import Json, Root, output
from readbench.cli.progress import BuildProgress
from readbench.cli.verify import verify_command
from readbench.data import Source, SourceInfo, build
from readbench.data.describe import composition_facts, fault_panels
from readbench.data.simulators.base import Simulator
from readbench.errors import UsageError
from readbench.paths import cache_root, data_root
from readbench.plots import gallery, save
from readbench.spec import build_source, split_specs

app = typer.Typer(help="Get, build, look at, import and export data.", no_args_is_help=True)
FACTS = ("channels", "length", "classes", "corpus", "queries", "relevant_per_query", "imbalance", "normals_pool")
Names = Annotated[list[str], typer.Argument(help="Dataset names.")]
app.command("status")(status_command)
app.command("fetch")(fetch_command)
app.command("verify")(verify_command)
app.command("import")(import_command)
app.command("export")(export_command)


@app.command("build")
def build_command(
    names: Names,
    windows: Annotated[
        int | None, typer.Option(min=1, help="At least so many windows (simulated data only).", show_default=False)
    ] = None,
    root: Root = None,
) -> None:
    """Build the windows of datasets into the cache; what is there already is kept, an interrupted build goes on.

    Example: `readbench data build sim_tanks --windows 100000`
    """
    for name in split_specs(names):
        source = _sized(name, windows)
        with BuildProgress(Console(stderr=True), name, total=getattr(source, "runs", None)) as progress:
            built = build(source, data_root(root), cache_root(), progress.update)
        output().print(f"{name}: {len(built.windows)} windows in {built.folder}", highlight=False, soft_wrap=True)


def _sized(name: str, windows: int | None) -> Source:
    source: Source = build_source(name)
    if windows is None:
        return source
    if not isinstance(source, Simulator):
        raise UsageError(f"--windows is for simulated data; {name} is as large as its files.")
    return source.sized(windows)


@app.command("describe")
def describe_command(
    name: Annotated[str, typer.Argument(help="Dataset name.")],
    seed: Annotated[int, typer.Option(help="Split seed.")] = 0,
    figure: Annotated[Path | None, typer.Option(help="Draw a window of each fault: PNG, SVG or PDF.")] = None,
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Show what a dataset is: sensors, labels, protocol, the composition of its task, and how its faults look.

    Example: `readbench data describe sim_tanks --figure tanks.png`
    """
    built = build(build_source(name), data_root(root), cache_root())
    facts = composition_facts(built, seed)
    if figure:
        save(gallery(fault_panels(built), f"{built.info.title}: one window of each fault"), figure)
    if as_json:
        print(json.dumps(facts, indent=1))  # noqa: T201 - this is the output
        return
    _show(built.info, facts, output())


def _show(info: SourceInfo, facts: dict[str, Any], console: Console) -> None:
    protocol = info.protocol
    kind = "simulated" if info.simulated else "real"
    console.print(f"[bold]{info.title}[/bold] ({info.name}, {kind}, {info.domain})")
    console.print(info.description)
    console.print(f"Licence: {info.licence}. Source: {info.citation}", highlight=False)
    console.print(
        f"Windows of {protocol.length or 'native'} steps, stride {protocol.stride or protocol.length}, labelled by"
        f" {protocol.label_rule}; split by {info.split_unit}.",
        highlight=False,
    )
    table = Table("Class", "Windows", "Groups", "Corpus", "Queries", box=SIMPLE_HEAD)
    for name, counts in facts["counts"].items():
        table.add_row(name, *(str(value) for value in counts.values()))
    console.print(table)
    for key in (*FACTS, "shape_separation", "notes"):
        console.print(f"{key.replace('_', ' ')}: {facts[key]}", highlight=False)
