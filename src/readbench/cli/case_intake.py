"""`readbench cases add` and `readbench cases normals`: what comes into a library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from readbench.cases import DEFAULT_METHOD, Case, CaseLibrary
from readbench.cases.bulk import encode_cases, read_files, together
from readbench.cases.library import facts_of
from readbench.cases.reading import windows_from
from readbench.cases.times import moment
from readbench.cli.case_options import (
    Address,
    Asset,
    CaseColumn,
    Channels,
    File,
    First,
    Gpus,
    Jobs,
    Last,
    Tags,
    Time,
    Where,
    Workers,
    roles,
    say,
    workers,
)
from readbench.errors import UsageError
from readbench.spec import parse
from readbench.windows import WindowSet


def add_command(
    where: Where,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="CSV, Parquet or NPZ.", show_default=False)],
    *,
    label: Annotated[str, typer.Option(help="What it was; leave out where nobody knows.")] = "",
    notes: Annotated[str, typer.Option(help="What was found and done.")] = "",
    tag: Tags = None,
    link: Annotated[list[str] | None, typer.Option("--link", help="Address of an attachment.")] = None,
    asset: Asset = "",
    group: Annotated[str, typer.Option(help="The recording it comes from.")] = "",
    name: Annotated[str, typer.Option(help="Name of the case.", show_default="made up")] = "",
    time: Time = "",
    case: CaseColumn = "",
    label_column: Annotated[str, typer.Option(help="Column of the fault of each case.")] = "",
    asset_column: Annotated[str, typer.Option(help="Column of the asset of each case.")] = "",
    channels: Channels = "",
    first: First = "",
    last: Last = "",
    executor: Workers = None,
    jobs: Jobs = 1,
    address: Address = None,
    gpus: Gpus = 0,
    method: Annotated[str, typer.Option(help="The method to encode for, with `--executor`.")] = DEFAULT_METHOD,
) -> None:
    """Add the case in each file, or with `--case` a case for each name in that column.

    All of them come in, in the order given, or none. With `--executor`, files are read there, too.
    Example: `readbench cases add plant pump.csv --time t --from 1200 --to 1800 --label leak --notes "New seal."`
    """
    columns = roles(time, case, channels, label=label_column, asset=asset_column)
    given = {"label": label, "notes": notes, "asset": asset, "group": group, "id": name}
    lists = {"tags": tuple(tag or ()), "links": tuple(link or ())}
    update = {key: value for key, value in given.items() if value} | lists
    with workers(executor, jobs, address, gpus) as each:
        parts = read_files(files, columns, (moment(first), moment(last)), each or map)
        facts = [fact.model_copy(update=update) for part in parts for fact in _facts(part, named=bool(columns.case))]
        if name and len(facts) > 1:
            raise UsageError(f"{', '.join(map(str, files[:3]))}: {len(facts)} cases, and --name is for one.")
        library = CaseLibrary.open(where)
        names = library.add(together(parts), facts)
        say(f"added {names[0]}" if len(names) == 1 else f"added {len(names)} cases")
        if each:
            say(f"computed {encode_cases(library.snapshot(), parse(method), each)} vectors")


def normals_command(
    where: Where,
    file: File,
    *,
    asset: Asset = "",
    time: Time = "",
    case: CaseColumn = "",
    channels: Channels = "",
    first: First = "",
    last: Last = "",
    length: Annotated[int, typer.Option(min=0, help="Cut the recording into windows of so many rows.")] = 0,
) -> None:
    """Show the library what normal looks like.

    Example: `readbench cases normals plant quiet-week.csv --time t --length 256 --asset "pump 2"`
    """
    windows = windows_from(file, roles(time, case, channels), (moment(first), moment(last)))
    names = CaseLibrary.open(where).add_normals(_pieces(windows, length), asset or None)
    say(f"added {len(names)} normal windows")


def _facts(windows: WindowSet, *, named: bool) -> list[Case]:
    """What a file says of its cases; the name of a file is no name of a case."""
    facts = facts_of(windows)
    return facts if named or len(facts) > 1 else [fact.model_copy(update={"id": "", "group": ""}) for fact in facts]


def _pieces(windows: WindowSet, length: int) -> WindowSet:
    """Recordings cut into windows of `length` steps; what is left over at the end is dropped."""
    if not length:
        return windows
    pieces = [
        (windows.values(i)[:, start : start + length], i)
        for i in range(len(windows))
        for start in range(0, int(windows.lengths[i]) - length + 1, length)
    ]
    if not pieces:
        raise UsageError(f"No recording is as long as {length} rows.")
    return WindowSet.from_arrays(
        [values for values, _ in pieces],
        channels=[windows.channels(i) for _, i in pieces],
        assets=[str(windows.assets[i]) for _, i in pieces],
    )
