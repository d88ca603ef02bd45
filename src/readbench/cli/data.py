"""`readbench data build`, `describe` and `verify`: make datasets ready and look at them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from readbench.cli.data_exchange import export_command, fetch_command, import_command, status_command
from readbench.cli.options import Json, Root, SplitUnit, output
from readbench.cli.progress import Terminal
from readbench.errors import UsageError

if TYPE_CHECKING:
    from readbench.benchmark.protocol import DataOrigin, Source, SourceInfo, Task, TaskAudit
    from readbench.benchmark.studies import Shortcuts

app = typer.Typer(help="Get, build, look at, import and export data.", no_args_is_help=True)
FACTS = ("channels", "length", "classes", "corpus", "queries", "relevant_per_query", "imbalance", "normals_pool")
COLUMNS = ("channels", "length", "classes", "corpus", "queries", "relevant_per_query", "imbalance")
Names = Annotated[list[str], typer.Argument(help="Dataset names.")]
app.command("status")(status_command)
app.command("fetch")(fetch_command)


@app.command("verify")
def verify_command(
    names: Names,
    seed: Annotated[int, typer.Option(help="Split seed.")] = 0,
    split_by: Annotated[SplitUnit, typer.Option(help="Hold out split groups, or assets.")] = "group",
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Compare the composition with the paper's, look for leaks, and measure what shortcuts would score.

    Exits with 1 when anything of a query stands in its corpus. Example: `readbench data verify sim_ecg sim_can`
    """
    from readbench.engine.spec import split_specs

    facts = [_verify(name, seed, split_by, root) for name in split_specs(names)]
    if as_json:
        print(json.dumps(facts, indent=1))  # noqa: T201 - this is the output
    else:
        _show_verified(facts, output())
    if not all(fact["sound"] for fact in facts):
        raise typer.Exit(1)


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
    from readbench.benchmark.protocol import build, composition_facts, fault_panels, find_origin
    from readbench.common.plots import gallery, save

    built = build(name, root)
    facts = composition_facts(built, seed)
    if figure:
        save(gallery(fault_panels(built), f"{built.info.title}: one window of each fault"), figure)
    if as_json:
        print(json.dumps(facts, indent=1))  # noqa: T201 - this is the output
        return
    _show_described(built.info, find_origin(name, root), facts, output())


def _show_described(info: SourceInfo, origin: DataOrigin, facts: dict[str, Any], console: Console) -> None:
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
    for key in (*FACTS, "shape_separation", "notes"):
        console.print(f"{key.replace('_', ' ')}: {facts[key]}", highlight=False)
    for line in _tell_context(facts["context"]):
        console.print(line, highlight=False)


def _verify(name: str, seed: int, split_by: SplitUnit, root: Path | None) -> dict[str, Any]:
    from readbench.benchmark.protocol import (
        PAPER_COMPOSITION,
        Composition,
        audit,
        build,
        compose_task,
        composition_row,
        context_row,
        find_origin,
    )
    from readbench.benchmark.studies import probe_shortcuts

    built = build(name, root)
    task = compose_task(built, seed=seed, settings=Composition(split_by=split_by))
    found, shortcuts = audit(task), probe_shortcuts(task)
    return {
        "name": name,
        "seed": seed,
        "split_by": split_by,
        "fingerprint": task.fingerprint(),
        "composition": composition_row(task),
        "paper": asdict(PAPER_COMPOSITION[name]) if name in PAPER_COMPOSITION else None,
        **_leaks(found),
        **_shortcuts(shortcuts),
        "context": context_row(built, task),
        "notes": _notes(find_origin(name, root), task),
    }


def _notes(origin: DataOrigin, task: Task) -> list[str]:
    return list(task.notes) if origin == "real" else [f"{origin} data", *task.notes]


def _leaks(found: TaskAudit) -> dict[str, Any]:
    return {"sound": found.sound, "leaks": asdict(found)}


def _shortcuts(shortcuts: Shortcuts) -> dict[str, Any]:
    return {"shortcuts": asdict(shortcuts)}


def _show_verified(facts: list[dict[str, Any]], console: Console) -> None:
    from readbench.benchmark.metrics import DEFAULT_METRIC

    composition = Table("Dataset", *COLUMNS, title="Composition, and the paper's where it differs", box=SIMPLE_HEAD)
    shortcuts = Table("Dataset", "chance", title=f"{DEFAULT_METRIC} of shortcut probes at ρ=0%", box=SIMPLE_HEAD)
    for probe in facts[0]["shortcuts"]["ndcg"]:
        shortcuts.add_column(probe, justify="right")
    shortcuts.add_column("own asset in top 10", justify="right")
    shortcuts.add_column("at random", justify="right")
    for fact in facts:
        composition.add_row(fact["name"], *(_beside(fact, column) for column in COLUMNS))
        found = fact["shortcuts"]
        numbers = [found["chance"], *found["ndcg"].values(), found["own_asset"], found["own_asset_expected"]]
        shortcuts.add_row(fact["name"], *("-" if n != n else f"{n:.3f}" for n in numbers))  # noqa: PLR0124 - NaN
    console.print(composition)
    console.print(shortcuts)
    for fact in facts:
        console.print(_verdict(fact), highlight=False, style="" if fact["sound"] else "bold red")
        for note in (*_tell_context(fact["context"]), *fact["notes"]):
            console.print(f"  {note}", highlight=False)


def _tell_context(context: dict[str, Any]) -> list[str]:
    """Sentences on what windows bring along."""
    counts = ", ".join(f"{_tell_count(context[part])} {part}" for part in ("queries", "corpus", "normals"))
    low, high = context["rate"] or (None, None)
    rate = "unknown" if low is None else f"{low:g} Hz" if low == high else f"{low:g} to {high:g} Hz"
    known = f"rate {rate}; units of {len(context['units'])} channels; facts: {', '.join(context['facts']) or 'none'}"
    return [f"time before, rule {context['before']}, at most {context['before_steps']} steps: {counts}", known]


def _tell_count(counts: dict[str, int]) -> str:
    lent = f" and {counts['lent']} lent by normals of their asset" if counts["lent"] else ""
    return f"{counts['own']} own{lent} of {counts['windows']}"


def _beside(fact: dict[str, Any], column: str) -> str:
    ours = _text(fact["composition"][column])
    paper = _text(fact["paper"][column]) if fact["paper"] else ours
    return ours if ours == paper else f"{ours} (paper {paper})"


def _text(value: Any) -> str:  # noqa: ANN401
    return "/".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _verdict(fact: dict[str, Any]) -> str:
    leaks = fact["leaks"]
    if fact["sound"]:
        constant = f" ({leaks['constant']} constant queries)" if leaks["constant"] else ""
        return f"{fact['name']}: no leak{constant}; task fingerprint {fact['fingerprint']}"
    parts = [f"{len(leaks[kind])} {kind.replace('_', ' ')}" for kind in ("shared_groups", "overlaps", "duplicates")]
    first = next((leaks[kind][0] for kind in ("duplicates", "overlaps", "shared_groups") if leaks[kind]), "")
    return f"{fact['name']}: LEAK: {', '.join(parts)}; the first: {first}"
