"""`readbench ucr`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from readbench.cli.options import Root, output
from readbench.experiment.archive import accuracy, archive_sets
from readbench.paths import cache_root, data_root
from readbench.spec import parse, split_specs


def ucr_command(
    methods: Annotated[list[str], typer.Option(help="A method; give the option once for each.")],
    out: Annotated[Path | None, typer.Option(help="Write a CSV with every dataset, too.")] = None,
    root: Root = None,
) -> None:
    """Nearest-neighbour accuracy on the UCR archive's own train and test sides, where its files are at hand (`ctsr`).

    Example: `readbench ucr --methods sonde --methods rocket --methods euclidean`
    """
    specs = [str(parse(text)) for text in split_specs(methods)]
    found: dict[str, list[float]] = {}
    for dataset in track(list(archive_sets(data_root(root))), "datasets", console=Console(stderr=True)):
        found[dataset.name] = [accuracy(spec, dataset, cache_root()) for spec in specs]
    means = np.mean(list(found.values()), axis=0)
    table = Table("Method", f"Mean over {len(found)} datasets", title="1-NN accuracy, UCR archive")
    for spec, mean in zip(specs, means, strict=True):
        table.add_row(spec, f"{mean:.3f}")
    output().print(table)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        rows = [",".join([name, *(f"{value:.6f}" for value in values)]) for name, values in found.items()]
        out.write_text("\n".join([",".join(["dataset", *(f'"{spec}"' for spec in specs)]), *rows]) + "\n")
