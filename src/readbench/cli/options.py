"""Options that several commands share, and what they become."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from readbench.common.letters import clean_lines
from readbench.common.progress import SILENT, Progress
from readbench.errors import UsageError

if TYPE_CHECKING:
    from readbench.benchmark.runs import InOrder
    from readbench.cases import Library, ToldContext
    from readbench.engine.window_tables import Roles

WIDTH = 120

# The rooms say these too, but are slow to import; a test compares them with the rooms' own.
DEFAULT_METHOD = "flagship"
LIBRARY_METHOD = "flagship-spread"
"""What a library answers by: the flagship, with a list that follows the belief."""
DEFAULT_SEEDS = "0,1,2"
MOST_SEED = 2**32 - 1
MOST_STEPS = 2**31 - 1
WHOLE = "1/1"
SUFFIX = ".readbench.zip"
SUITES = ("quick", "flagship", "label-free", "classical", "paper", "full")
SWEEPS = (
    "sbd", "norm", "metric", "nr", "nr-k", "fusion", "rerank", "budget", "share", "noise", "pollution", "llm",
)  # fmt: skip
ExecutorName = Literal["local", "processes", "ray"]
SplitUnit = Literal["group", "asset"]
Form = Literal["hf", "beir"]
TimeUnit = Literal["auto", "s", "ms", "us", "ns"]
LabelRule = Literal["majority", "majority-or-coverage", "native"]
Missing = Literal["fill", "drop"]
BeforeRule = Literal["onset", "preceding", "none"]
Domain = Literal[
    "condition monitoring",
    "industrial control",
    "microservice and telecom operations",
    "automotive intrusion",
    "physiological and general signals",
    "other",
]

Root = Annotated[
    Path | None,
    typer.Option(
        "--root", help="Folder with one sub-folder per data source.", envvar="READBENCH_DATA", show_default=False
    ),
]


def _load_plugins(files: list[Path] | None) -> list[Path] | None:
    if files:
        from readbench.engine.registry import load_plugin_file

        for file in files:
            try:
                load_plugin_file(file)
            except SystemExit as error:  # a script, not a module
                raise UsageError(f"The plug-in {file} could not be loaded: SystemExit: {error}") from error
    return files


Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        help="A Python file with methods, datasets or metrics of yours; may be repeated.",
        callback=_load_plugins,
        is_eager=True,
        show_default=False,
    ),
]
Datasets = Annotated[
    list[str],
    typer.Option("--datasets", "--dataset", help="Names separated by commas; may be repeated.", show_default=False),
]
OneMethod = Annotated[
    str, typer.Option("--method", "--methods", help="A method that ends with +verdict, or one of ours that has it.")
]
Seeds = Annotated[str, typer.Option("--seeds", "--seed", help="Split seeds, separated by commas.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=MOST_SEED, help="Split seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


# Of the case library.
Where = Annotated[str, typer.Argument(metavar="LIBRARY", help="Folder or address of the library.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="CASE", help="Name of a case.", show_default=False)]
File = Annotated[Path, typer.Argument(help="CSV, Excel, Parquet or NPZ.", show_default=False)]
Time = Annotated[str, typer.Option(help="Column of the time; - for none.", show_default="looked for")]
Zone = Annotated[str, typer.Option(help="Time zone of dates that name none: +01:00, Europe/Berlin ...")]
CaseColumn = Annotated[str, typer.Option(help="Column that names the case of each row.")]
Channels = Annotated[str, typer.Option(help="Columns of the channels, separated by commas.", show_default="numbers")]
First = Annotated[str, typer.Option("--from", help="First time of the interval: seconds, a date, or a row.")]
Last = Annotated[str, typer.Option("--to", help="Last time of the interval.")]
Onset = Annotated[
    str,
    typer.Option(help="When it began: seconds, a date, a time of day, or a row. Rows before are the time before."),
]
OnsetColumn = Annotated[str, typer.Option(help="Column that marks the rows from the onset on, or holds its time.")]
Before = Annotated[
    Path | None, typer.Option(help="File with the time before the window, in the same channels.", show_default=False)
]
Rate = Annotated[
    float | None, typer.Option(help="Samples a second.", show_default="by the column of the time, else unknown")
]
KnownFacts = Annotated[
    list[str] | None,
    typer.Option("--fact", help="A number known beforehand, `speed=29.5`; may be repeated.", show_default=False),
]
Method = Annotated[str, typer.Option("--method", "--methods", help="Any method of the grammar.")]
AsOf = Annotated[int | None, typer.Option(min=0, help="The library after this change.", show_default=False)]
K = Annotated[int, typer.Option("-k", min=1, help="Most hits; beside them up to three of each possible fault.")]
Asset = Annotated[str, typer.Option(help="Machine, well, line ...")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="May be repeated.", show_default=False)]
Workers = Annotated[
    ExecutorName | None,
    typer.Option("--executor", help="Where to encode all cases now.", show_default="as searches need them"),
]
Jobs = Annotated[int, typer.Option(min=1, help="Processes of `--executor processes`.")]
Address = Annotated[str | None, typer.Option(help="A running Ray cluster.", show_default="a new one")]
Gpus = Annotated[float, typer.Option(min=0, help="GPUs that each worker on Ray needs.")]


def output() -> Console:
    """Where results are printed; a pipe or file is as wide as the tables need."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def say(text: str) -> None:
    """Print lines as they are, without control characters: a part of them may be a stranger's."""
    output().print(clean_lines(text), highlight=False, markup=False, soft_wrap=True)


def many_methods(shown: str, what: str = "A method") -> Callable[..., Any]:
    """The option for several methods.

    Args:
        shown: what stands for the default.
        what: the methods are.
    """
    option: Callable[..., Any] = typer.Option(
        "--methods", "--method", help=f"{what}; may be repeated.", show_default=shown or False
    )
    return option


def numbers(text: str, option: str) -> tuple[int, ...]:
    """Whole numbers from 0 on, separated by commas; none larger than a seed may be."""
    try:
        found = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise UsageError(f"{option} takes whole numbers separated by commas. Got {text!r}.") from error
    if any(not 0 <= number <= MOST_SEED for number in found):
        raise UsageError(f"{option} takes numbers from 0 on, up to {MOST_SEED}. Got {text!r}.")
    return found


def roles(
    time: str, case: str, channels: str, *, label: str = "", asset: str = "", onset: str = "", zone: str = ""
) -> Roles:
    """Roles of the columns of a table; channels are separated by commas."""
    from readbench.engine.window_tables import Roles

    names = tuple(name.strip() for name in channels.split(",") if name.strip())
    return Roles(time=time, case=case, channels=names, label=label, asset=asset, onset=onset, zone=zone)


def told_context(onset: str, before: Path | None, rate: float | None, facts: list[str] | None) -> ToldContext:
    """What the options say of the windows of a file."""
    from readbench.cases import ToldContext, parse_facts

    if before is not None and not before.is_file():
        raise UsageError(f"There is no file {before}. Give a table with the time before.")
    return ToldContext(onset=onset, before=before, rate=rate, facts=parse_facts(facts) if facts else None)


def open_library(
    where: str, as_of: int | None = None, progress: Progress = SILENT, *, background: bool = False
) -> Library:
    """The case library at a place, as it is or as it was; `progress` is told of what takes long.

    With `background` it learns from changes beside the questions, for commands that go on for long.
    """
    from readbench.cases import Library

    as_of = None if as_of is None else min(as_of, sys.maxsize)  # no library has as many changes
    return Library.open(where, as_of=as_of, progress=progress, background=background)


@contextmanager
def workers(executor: ExecutorName | None, jobs: int, address: str | None, gpus: float) -> Iterator[InOrder | None]:
    """Where bulk work runs, inside the block; None where nothing of it was asked for."""
    from readbench.benchmark.runs import InOrder, RayCluster, executor_of

    chosen = executor_of(executor, jobs, address, gpus)
    if executor is None and chosen.name == "local":
        yield None
        return
    with chosen.connected() if isinstance(chosen, RayCluster) else nullcontext():
        yield InOrder(chosen)
