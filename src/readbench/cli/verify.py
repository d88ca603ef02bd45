"""`readbench data verify`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from readbench.cli.options import Json, Root, output
from readbench.data import Built, Composition, Task, build, compose_task
from readbench.data.audit import Audit, audit
from readbench.data.describe import composition_row
from readbench.data.paper import PAPER_COMPOSITION
from readbench.evaluate import DEFAULT_METRIC
from readbench.experiment.shortcuts import Shortcuts, probe_shortcuts
from readbench.paths import cache_root, data_root
from readbench.spec import build_source, split_specs

COLUMNS = ("channels", "length", "classes", "corpus", "queries", "relevant_per_query", "imbalance")


def verify_command(
    names: Annotated[list[str], typer.Argument(help="Dataset names.")],
    seed: Annotated[int, typer.Option(help="Split seed.")] = 0,
    split_by: Annotated[Literal["group", "asset"], typer.Option(help="Hold out split groups, or assets.")] = "group",
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Compare the composition with the paper's, look for leaks, and measure what shortcuts would score.

    Exits with 1 when anything of a query stands in its corpus. Example: `readbench data verify sim_ecg sim_can`
    """
    facts = [_verify(name, seed, split_by, root) for name in split_specs(names)]
    if as_json:
        print(json.dumps(facts, indent=1))  # noqa: T201 - this is the output
    else:
        _show(facts, output())
    if not all(fact["sound"] for fact in facts):
        raise typer.Exit(1)


def _verify(name: str, seed: int, split_by: Literal["group", "asset"], root: Any) -> dict[str, Any]:  # noqa: ANN401
    built = build(build_source(name), data_root(root), cache_root())
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
        "notes": _notes(built, task),
    }


def _notes(built: Built, task: Task) -> list[str]:
    simulated = ("simulated data",) if built.info.simulated else ()
    return [*simulated, *task.notes]


def _leaks(found: Audit) -> dict[str, Any]:
    return {"sound": found.sound, "leaks": asdict(found)}


def _shortcuts(shortcuts: Shortcuts) -> dict[str, Any]:
    return {"shortcuts": asdict(shortcuts)}


def _show(facts: list[dict[str, Any]], console: Console) -> None:
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
        for note in fact["notes"]:
            console.print(f"  {note}", highlight=False)


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
