"""Options shared by several commands, and parsing of their values."""

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

PIPE_WIDTH = 120
"""Columns of output that does not go to a terminal."""

# Copies of values whose modules are slow to import; a test keeps them equal.
LIBRARY_METHOD = "flagship-spread"
"""Default method of a case library."""
DEFAULT_SEEDS = "0,1,2"
MAX_SEED = 2**32 - 1
MAX_STEPS = 2**31 - 1
WHOLE_RUN = "1/1"
SUBMISSION_SUFFIX = ".readbench.zip"
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
        help="Python file that registers methods, datasets or metrics; repeatable.",
        callback=_load_plugins,
        is_eager=True,
        show_default=False,
    ),
]
SplitBy = Annotated[SplitUnit, typer.Option(help="Unit that is held out for queries.")]
Jobs = Annotated[int, typer.Option(min=1, help="Number of processes.")]
Address = Annotated[str | None, typer.Option(help="Address of a running Ray cluster.", show_default="a new one")]
Gpus = Annotated[float, typer.Option(min=0, help="GPUs per Ray worker.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=MAX_SEED, help="Split seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


# Case library.
Where = Annotated[str, typer.Argument(metavar="LIBRARY", help="Folder or address of the library.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="CASE", help="Name of a case.", show_default=False)]
File = Annotated[Path, typer.Argument(help="CSV, Excel, Parquet or NPZ file.", show_default=False)]
Time = Annotated[str, typer.Option(help="Time column; - for none.", show_default="detected")]
Zone = Annotated[str, typer.Option(help="Time zone of dates without one, such as +01:00 or Europe/Berlin.")]
CaseColumn = Annotated[str, typer.Option(help="Column with the case name of each row.")]
Channels = Annotated[
    str, typer.Option(help="Channel columns, separated by commas.", show_default="all numeric columns")
]
First = Annotated[str, typer.Option("--from", help="Start of the interval: seconds, date, or row number.")]
Last = Annotated[str, typer.Option("--to", help="End of the interval: seconds, date, or row number.")]
Onset = Annotated[
    str,
    typer.Option(help="Onset of the fault: seconds, date, time of day, or row number. Earlier rows become context."),
]
OnsetColumn = Annotated[
    str, typer.Option(help="Column that flags the rows after the onset, or holds the time of the onset.")
]
Before = Annotated[
    Path | None,
    typer.Option(
        help="File with the readings before the window, in the same channels, as context.", show_default=False
    ),
]
Rate = Annotated[
    float | None, typer.Option(help="Samples per second.", show_default="from the time column, else unknown")
]
KnownFacts = Annotated[
    list[str] | None,
    typer.Option("--fact", help="Known quantity, NAME=NUMBER, such as speed=29.5; repeatable.", show_default=False),
]
Method = Annotated[str, typer.Option("--method", "--methods", help="Retrieval method (`readbench list methods`).")]
AsOf = Annotated[
    int | None, typer.Option(min=0, help="Read the library as it was after this change number.", show_default=False)
]
K = Annotated[
    int, typer.Option("-k", min=1, help="Largest number of hits; up to three of each possible fault type are added.")
]
Asset = Annotated[str, typer.Option(help="Asset: machine, well, production line.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Tag; repeatable.", show_default=False)]
Workers = Annotated[
    ExecutorName | None,
    typer.Option(
        "--executor", help="Encode all cases now, with this executor.", show_default="encode when a search needs them"
    ),
]


def output() -> Console:
    """Console for results on standard output."""
    console = Console()
    return console if console.is_terminal else Console(width=PIPE_WIDTH)


def say(text: str) -> None:
    """Print text without markup and control characters, which data may contain."""
    output().print(clean_lines(text), highlight=False, markup=False, soft_wrap=True)


def many_datasets(shown: str) -> Callable[..., Any]:
    """Option that takes several datasets; `shown`: the default as help shows it."""
    option: Callable[..., Any] = typer.Option(
        "--datasets", "--dataset", help="Dataset names, separated by commas; repeatable.", show_default=shown
    )
    return option


def many_methods(shown: str, what: str = "A method") -> Callable[..., Any]:
    """Option that takes several methods.

    Args:
        shown: the default as help shows it.
        what: first words of the help text.
    """
    option: Callable[..., Any] = typer.Option(
        "--methods", "--method", help=f"{what}; repeatable.", show_default=shown or False
    )
    return option


def numbers(text: str, option: str) -> tuple[int, ...]:
    """Parse integers from 0 to `MAX_SEED`, separated by commas; `option` names the option in errors."""
    try:
        found = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise UsageError(f"{option} takes whole numbers separated by commas. Got {text!r}.") from error
    if any(not 0 <= number <= MAX_SEED for number in found):
        raise UsageError(f"{option} takes numbers from 0 to {MAX_SEED}. Got {text!r}.")
    return found


def roles(
    time: str, case: str, channels: str, *, label: str = "", asset: str = "", onset: str = "", zone: str = ""
) -> Roles:
    """Column roles of a table; `channels` are names separated by commas."""
    from readbench.engine.window_tables import Roles

    names = tuple(name.strip() for name in channels.split(",") if name.strip())
    return Roles(time=time, case=case, channels=names, label=label, asset=asset, onset=onset, zone=zone)


def parse_context(onset: str, before: Path | None, rate: float | None, facts: list[str] | None) -> ToldContext:
    """Context of the windows of a file, from the options of the command."""
    from readbench.cases import ToldContext, parse_facts

    if before is not None and not before.is_file():
        raise UsageError(f"There is no file {before}. Give a table with the readings before the window.")
    return ToldContext(onset=onset, before=before, rate=rate, facts=parse_facts(facts) if facts else None)


def open_library(
    where: str, as_of: int | None = None, progress: Progress = SILENT, *, background: bool = False
) -> Library:
    """Open the case library at a folder or address.

    Args:
        where: folder or address.
        as_of: number of the change after which to read it; None for now.
        progress: callback for long work.
        background: learn from changes in a background thread, for services.
    """
    from readbench.cases import Library

    as_of = None if as_of is None else min(as_of, sys.maxsize)  # no library has as many changes
    return Library.open(where, as_of=as_of, progress=progress, background=background)


@contextmanager
def workers(executor: ExecutorName | None, jobs: int, address: str | None, gpus: float) -> Iterator[InOrder | None]:
    """Executor for bulk work inside the block; None if no option asks for one."""
    from readbench.benchmark.runs import InOrder, RayCluster, executor_of

    chosen = executor_of(executor, jobs, address, gpus)
    if executor is None and chosen.name == "local":
        yield None
        return
    with chosen.connected() if isinstance(chosen, RayCluster) else nullcontext():
        yield InOrder(chosen)
