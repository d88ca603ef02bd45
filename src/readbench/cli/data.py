"""`readbench data ...`."""

from __future__ import annotations

import json
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from readbench.cli.options import Json, Root, output
from readbench.data import Built, Composition, Source, build, compose_task
from readbench.paths import cache_root, data_root
from readbench.registry import SOURCES

app = typer.Typer(help="Build and look at data.", no_args_is_help=True)
Names = Annotated[list[str], typer.Argument(help="Dataset names.")]


@app.command("build")
def build_command(names: Names, root: Root = None) -> None:
    """Build the windows of datasets into the cache; what is there already is kept.

    Example: `readbench data build sim_tanks`
    """
    console = output()
    for name in names:
        source: Source = SOURCES.get(name).build()
        with console.status(f"building {name}") as status:
            built = build(
                source,
                data_root(root),
                cache_root(),
                lambda r, w, s=status, n=name: s.update(f"building {n}: {r} recordings, {w} windows"),  # type: ignore[misc]
            )
        console.print(f"{name}: {len(built.windows)} windows in {built.folder}", highlight=False, soft_wrap=True)


@app.command("describe")
def describe_command(
    name: Annotated[str, typer.Argument(help="Dataset name.")],
    seed: Annotated[int, typer.Option(help="Split seed.")] = 0,
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Show what a dataset is: sensors, labels, protocol, and the composition of its task.

    Example: `readbench data describe sim_tanks --seed 1`
    """
    source: Source = SOURCES.get(name).build()
    built = build(source, data_root(root), cache_root())
    facts = _facts(source, built, seed)
    if as_json:
        print(json.dumps(facts, indent=1))  # noqa: T201 - this is the output
        return
    _show(source, facts, output())


def _facts(source: Source, built: Built, seed: int) -> dict[str, object]:
    info = source.info
    task = compose_task(built, info, seed=seed, settings=Composition())
    corpus, queries, windows = task.corpus_at(0), task.queries, built.windows
    relevant = [(corpus.labels == label).sum() for label in queries.labels]
    counts = np.bincount(corpus.labels, minlength=len(info.classes))[1:]
    present = counts[counts > 0]
    return {
        "name": info.name,
        "simulated": info.simulated,
        "windows": len(windows),
        "groups": len(np.unique(windows.groups)),
        "channels": f"{windows.channel_counts.min()}-{windows.channel_counts.max()}",
        "lengths": f"{windows.lengths.min()}-{windows.lengths.max()}",
        "classes": {
            name: {
                "windows": int((windows.labels == k).sum()),
                "groups": len(np.unique(windows.groups[windows.labels == k])),
                "corpus": int((task.corpus.labels == k).sum()),
                "queries": int((queries.labels == k).sum()),
            }
            for k, name in enumerate(info.classes)
        },
        "corpus": {f"rho {rho}": len(items) for rho, items in task.levels.items()},
        "queries": len(queries),
        "relevant_per_query": round(float(np.mean(relevant)), 1),
        "imbalance": round(float(present.max() / present.min()), 1),
        "normals_pool": len(task.normals),
        "notes": list(task.notes),
        "fingerprint": task.fingerprint(),
    }


def _show(source: Source, facts: dict[str, object], console: Console) -> None:
    info, protocol = source.info, source.info.protocol
    kind = "simulated" if info.simulated else "real"
    console.print(f"[bold]{info.title}[/bold] ({info.name}, {kind}, {info.domain})")
    console.print(info.description)
    console.print(f"Licence: {info.licence}. Source: {info.citation}", highlight=False)
    console.print(
        f"Windows of {protocol.length or 'native'} steps, stride {protocol.stride or protocol.length}, labelled by"
        f" {protocol.label_rule}; split by {info.split_unit}.",
        highlight=False,
    )
    table = Table("Class", "Windows", "Groups", "Corpus", "Queries")
    for name, counts in facts["classes"].items():  # type: ignore[attr-defined]
        table.add_row(name, *(str(value) for value in counts.values()))
    console.print(table)
    for key in ("channels", "lengths", "corpus", "queries", "relevant_per_query", "imbalance", "normals_pool", "notes"):
        console.print(f"{key.replace('_', ' ')}: {facts[key]}", highlight=False)
