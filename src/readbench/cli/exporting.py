"""`readbench data export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from readbench.cli.options import Root, numbers, output
from readbench.data import Composition, load_task
from readbench.data.exported import Form, export_task
from readbench.paths import cache_root, data_root
from readbench.spec import build_source


def export_command(
    name: Annotated[str, typer.Argument(help="Dataset name.")],
    form: Annotated[Form, typer.Option("--format", help="Layout: hf (datasets, MTEB) or beir.")] = "hf",
    out: Annotated[Path | None, typer.Option(help="A new folder.", show_default="NAME-FORMAT")] = None,
    seed: Annotated[int, typer.Option(help="Split seed.")] = 0,
    rho: Annotated[str, typer.Option(help="Pollution levels in percent.")] = "0,10,20",
    private: Annotated[
        bool, typer.Option("--private", help="Also where the licence does not let the data be passed on.")
    ] = False,
    root: Root = None,
) -> None:
    """Write one task as corpus, queries and judgments with a dataset card.

    Example: `readbench data export sim_tanks --format hf --out tanks`
    """
    settings = Composition(rho=numbers(rho, "--rho"))
    task = load_task(build_source(name), seed=seed, root=data_root(root), cache=cache_root(), settings=settings)
    folder = out or Path(f"{task.info.name}-{form}")
    export_task(task, folder, form, private=private)
    output().print(
        f"{folder}: {len(task.queries)} queries, {len(task.corpus)} corpus items, fingerprint {task.fingerprint()}",
        highlight=False,
        soft_wrap=True,
    )
