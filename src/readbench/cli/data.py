"""`readbench data build` and `describe`; `verify` is in `audit`, the others in `data_exchange`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from readbench.cli.audit import audit_command
from readbench.cli.data_exchange import export_command, fetch_command, import_command, status_command
from readbench.cli.options import Json, Root, Seed, output
from readbench.cli.progress import Terminal
from readbench.errors import UsageError

if TYPE_CHECKING:
    from readbench.benchmark.protocol import DataOrigin, Source, SourceInfo

app = typer.Typer(help="Fetch, build, describe, verify, import and export datasets.", no_args_is_help=True)
FACTS = ("channels", "length", "classes", "corpus", "queries", "relevant_per_query", "imbalance", "normals_pool")
Names = Annotated[list[str], typer.Argument(help="Dataset names.")]
app.command("status")(status_command)
app.command("fetch")(fetch_command)


app.command("verify")(audit_command)
app.command("import")(import_command)
app.command("export")(export_command)


@app.command("build")
def build_command(
    names: Names,
    windows: Annotated[
        int | None, typer.Option(min=1, help="Smallest number of windows (simulated data only).", show_default=False)
    ] = None,
    root: Root = None,
) -> None:
    """Build the windows of datasets into the cache; an interrupted build continues.

    Example: `readbench data build sim_tanks --windows 100000`
    """
    from readbench.benchmark.protocol import build
    from readbench.engine.spec import split_specs

    for name in split_specs(names):
        with Terminal() as progress:
            built = build(_sized(name, windows), root, progress=progress)
        output().print(f"{name}: {len(built.windows)} windows in {built.folder}", highlight=False, soft_wrap=True)


def _sized(name: str, windows: int | None) -> Source:
    from readbench.benchmark.protocol import find_source
    from readbench.benchmark.simulators import Simulator

    source = find_source(name)
    if windows is None:
        return source
    if not isinstance(source, Simulator):
        raise UsageError(f"--windows applies to simulated data; the size of {name} is that of its files. Leave it out.")
    return source.sized(windows)


@app.command("describe")
def describe_command(
    name: Annotated[str, typer.Argument(help="Dataset name.")],
    seed: Seed = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Save a figure with one window per fault type: PNG, SVG or PDF file.")
    ] = None,
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Describe a dataset: source, protocol, licence, and the composition of its task by class.

    Example: `readbench data describe sim_tanks --figure tanks.png`
    """
    from readbench.benchmark.protocol import build, composition_facts, fault_panels, find_origin
    from readbench.common.plots import check_figure_name, gallery, save

    check_figure_name(figure)
    built = build(name, root)
    facts = composition_facts(built, seed)
    if figure:
        save(gallery(fault_panels(built), f"{built.info.title}: one window of each fault"), figure)
    if as_json:
        print(json.dumps(facts, indent=1))  # noqa: T201 - this is the output
        return
    _show_described(built.info, find_origin(name, root), facts, output())


def _show_described(info: SourceInfo, origin: DataOrigin, facts: dict[str, Any], console: Console) -> None:
    from readbench.benchmark.report import tell_context

    protocol = info.protocol
    console.print(f"[bold]{info.title}[/bold] ({info.name}, {origin}, {info.domain})")
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
    for key in (*FACTS, "shape_separation"):
        numbers = facts[key] if isinstance(facts[key], list) else [facts[key]]
        console.print(f"{key.replace('_', ' ')}: {', '.join(map(str, numbers))}", highlight=False)
    for note in facts["notes"]:
        console.print(f"Mind: {note}.", highlight=False, markup=False)
    for line in tell_context(facts["context"]):
        console.print(line, highlight=False)
