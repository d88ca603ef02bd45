"""What the commands of the case library share: options, and what they become."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from readbench.cli.options import output
from readbench.experiment.executors import ExecutorName, InOrder, RayCluster, executor_of
from readbench.tables import Roles

Where = Annotated[str, typer.Argument(metavar="LIBRARY", help="Folder or address of the library.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="CASE", help="Name of a case.", show_default=False)]
File = Annotated[Path, typer.Argument(help="CSV, Parquet or NPZ.", show_default=False)]
Time = Annotated[str, typer.Option(help="Column of the time.")]
CaseColumn = Annotated[str, typer.Option(help="Column that names the case of each row.")]
Channels = Annotated[str, typer.Option(help="Columns of the channels, separated by commas.", show_default="numbers")]
First = Annotated[str, typer.Option("--from", help="First time of the interval: seconds, a date, or a row.")]
Last = Annotated[str, typer.Option("--to", help="Last time of the interval.")]
Method = Annotated[str, typer.Option(help="Any method of the grammar.")]
AsOf = Annotated[int | None, typer.Option(help="The library after this change.", show_default=False)]
K = Annotated[int, typer.Option("-k", min=1, help="Most hits.")]
Asset = Annotated[str, typer.Option(help="Machine, well, line ...")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="May be repeated.", show_default=False)]
Workers = Annotated[
    ExecutorName | None,
    typer.Option("--executor", help="Where to encode all cases now.", show_default="as searches need them"),
]
Jobs = Annotated[int, typer.Option(min=1, help="Processes of `--executor processes`.")]
Address = Annotated[str | None, typer.Option(help="A running Ray cluster.", show_default="a new one")]
Gpus = Annotated[float, typer.Option(min=0, help="GPUs that each worker on Ray needs.")]


def roles(time: str, case: str, channels: str, *, label: str = "", asset: str = "") -> Roles:
    """Roles of the columns of a table; channels are separated by commas."""
    names = tuple(name.strip() for name in channels.split(",") if name.strip())
    return Roles(time=time, case=case, channels=names, label=label, asset=asset)


@contextmanager
def workers(executor: ExecutorName | None, jobs: int, address: str | None, gpus: float) -> Iterator[InOrder | None]:
    """Where bulk work runs, inside the block; None where nothing of it was asked for."""
    chosen = executor_of(executor, jobs, address, gpus)
    if executor is None and chosen.name == "local":
        yield None
        return
    with chosen.connected() if isinstance(chosen, RayCluster) else nullcontext():
        yield InOrder(chosen)


def say(text: str) -> None:
    """Print a line as it is."""
    output().print(text, highlight=False, markup=False, soft_wrap=True)
