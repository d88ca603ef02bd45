"""`readbench cases ...`: the case library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

from readbench.cases import DEFAULT_METHOD, Case, CaseLibrary, Filter
from readbench.cases.archive import export_library, import_library
from readbench.cases.library import facts_of
from readbench.cases.reading import windows_from
from readbench.cases.times import moment
from readbench.cli.case_trials import bench_command, demo_command
from readbench.cli.case_views import show_answer, show_cases, show_evidence, show_history, show_summary
from readbench.cli.options import Json, output
from readbench.errors import UsageError
from readbench.tables import Roles
from readbench.windows import WindowSet
from readbench.windows.container import strings

app = typer.Typer(help="Keep resolved cases, and find the one that explains a new window.", no_args_is_help=True)

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


@app.command("init")
def init_command(where: Where) -> None:
    """Make an empty library.

    Example: `readbench cases init plant`
    """
    CaseLibrary.create(where)
    _say(f"made an empty library at {where}")


@app.command("add")
def add_command(
    where: Where,
    file: File,
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
) -> None:
    """Add the case in a file, or with `--case` a case for each name in that column.

    Example: `readbench cases add plant pump.csv --time t --from 1200 --to 1800 --label leak --notes "New seal."`
    """
    roles = _roles(time, case, channels, label=label_column, asset=asset_column)
    windows = windows_from(file, roles, (moment(first), moment(last)))
    if name and len(windows) > 1:
        raise UsageError(f"{file} holds {len(windows)} cases: --name is for one.")
    given = {"label": label, "notes": notes, "asset": asset, "group": group, "id": name}
    lists = {"tags": tuple(tag or ()), "links": tuple(link or ())}
    update = {key: value for key, value in given.items() if value} | lists
    facts = [fact.model_copy(update=update) for fact in _single_name(windows, roles)]
    names = CaseLibrary.open(where).add(windows, facts)
    _say(f"added {names[0]}" if len(names) == 1 else f"added {len(names)} cases")


@app.command("normals")
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
    windows = windows_from(file, _roles(time, case, channels), (moment(first), moment(last)))
    names = CaseLibrary.open(where).add_normals(_pieces(windows, length), asset or None)
    _say(f"added {len(names)} normal windows")


@app.command("search")
def search_command(
    where: Where,
    window: Annotated[str, typer.Argument(help="A file, or the name of a case.", show_default=False)],
    *,
    k: K = 10,
    method: Method = DEFAULT_METHOD,
    asset: Asset = "",
    label: Annotated[str, typer.Option(help="List only this fault type.")] = "",
    tag: Annotated[str, typer.Option(help="List only cases with this tag.")] = "",
    since: Annotated[str, typer.Option(help="List only cases from then on.")] = "",
    until: Annotated[str, typer.Option(help="List only cases until then.")] = "",
    time: Time = "",
    channels: Channels = "",
    first: First = "",
    last: Last = "",
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Which cases is a window like, and what may it be?

    Example: `readbench cases search plant new.csv --time t -k 5`
    """
    library = CaseLibrary.open(where, as_of=as_of)
    asked = _window(window, _roles(time, "", channels), (moment(first), moment(last)))
    chosen = Filter(asset=asset or None, label=label or None, tag=tag or None, since=moment(since), until=moment(until))
    answer = library.search(asked, k=k, method=method, where=chosen)
    if not _as_json(answer, as_json):
        show_answer(answer, output())


@app.command("explain")
def explain_command(
    where: Where,
    window: Annotated[str, typer.Argument(help="A file, or the name of a case.", show_default=False)],
    case: Name,
    *,
    figure: Annotated[Path | None, typer.Option(help="Draw both, laid over each other: PNG, SVG or PDF.")] = None,
    asset: Annotated[str, typer.Option(help="Asset of the window in the file: its normals are the measure.")] = "",
    time: Time = "",
    channels: Channels = "",
    first: First = "",
    last: Last = "",
    as_json: Json = False,
) -> None:
    """Why does a case resemble a window?

    Example: `readbench cases explain plant new.csv case-12ab --time t --figure why.png`
    """
    library = CaseLibrary.open(where)
    asked = _window(window, _roles(time, "", channels), (moment(first), moment(last)))
    evidence = library.explain(asked if isinstance(asked, str) else _of_asset(asked, asset), case)
    if figure:
        from readbench.cases.drawing import draw_evidence  # noqa: PLC0415 - draws
        from readbench.plots import save  # noqa: PLC0415

        save(draw_evidence(evidence), figure)
    if not _as_json(evidence, as_json):
        show_evidence(evidence, output())


@app.command("label")
def label_command(where: Where, case: Name, label: Annotated[str, typer.Argument(help='"" for none.')]) -> None:
    """Say what a case was; the next search knows it.

    Example: `readbench cases label plant case-12ab leak`
    """
    CaseLibrary.open(where).label(case, label or None)
    _say(f"{case} is now {label or 'without label'}")


@app.command("confirm")
def confirm_command(
    where: Where, case: Name, like: Annotated[str, typer.Argument(help="The case it is like.")]
) -> None:
    """Say that a case has the fault of another one."""
    _say(f"{case} is now {CaseLibrary.open(where).confirm(case, like).label}")


@app.command("reject")
def reject_command(
    where: Where, case: Name, like: Annotated[str, typer.Argument(help="The case it is not like.")]
) -> None:
    """Say that a case does not have the fault of another one."""
    _say(f"{case} is not {CaseLibrary.open(where).reject(case, like).rejected[-1]}")


@app.command("note")
def note_command(
    where: Where, case: Name, notes: Annotated[str, typer.Argument(help="What was found and done.")]
) -> None:
    """Replace the notes of a case."""
    CaseLibrary.open(where).edit(case, notes=notes)
    _say(f"{case} has new notes")


@app.command("delete")
def delete_command(where: Where, cases: Annotated[list[str], typer.Argument(help="Names.")]) -> None:
    """Take cases out; `undo` brings them back."""
    CaseLibrary.open(where).delete(cases)
    _say(f"deleted {len(cases)} cases")


@app.command("undo")
def undo_command(where: Where) -> None:
    """Take the last change back that still stands."""
    change = CaseLibrary.open(where).undo()
    _say(f"took back change {change.number}: {change.what} of {change.cases} cases")


@app.command("history")
def history_command(where: Where) -> None:
    """All changes; `search --as-of NUMBER` asks the library as it was."""
    show_history(CaseLibrary.open(where).history(), output())


@app.command("list")
def list_command(where: Where, asset: Asset = "", label: str = "", tag: str = "", as_of: AsOf = None) -> None:
    """List cases."""
    chosen = Filter(asset=asset or None, label=label or None, tag=tag or None)
    show_cases(CaseLibrary.open(where, as_of=as_of).cases(chosen), output())


@app.command("find")
def find_command(where: Where, text: Annotated[str, typer.Argument(help="Words of the notes.")], k: K = 10) -> None:
    """Cases whose notes speak of something."""
    show_cases(CaseLibrary.open(where).find(text, k), output())


@app.command("stats")
def stats_command(where: Where, as_json: Json = False) -> None:
    """What the library holds."""
    summary = CaseLibrary.open(where).stats()
    if not _as_json(summary, as_json):
        show_summary(summary, output())


@app.command("channel")
def channel_command(
    where: Where,
    name: Annotated[str, typer.Argument(help="Name of the channel in the library.")],
    unit: Annotated[str, typer.Option(help="Unit in which it is kept.")] = "",
    alias: Annotated[list[str] | None, typer.Option("--alias", help='Other name, "PT-101 [kPa]"; repeatable.')] = None,
) -> None:
    """Say what a channel is called, in which unit it is kept, and what else it is called.

    Example: `readbench cases channel plant pressure --unit bar --alias "PT-101 [kPa]"`
    """
    CaseLibrary.open(where).name_channel(name, unit, alias or ())
    _say(f"{name} has {len(alias or ())} other names")


@app.command("export")
def export_command(where: Where, file: Annotated[Path, typer.Argument(help="Parquet file to write.")]) -> None:
    """Write the whole library into one Parquet file."""
    _say(f"wrote {export_library(CaseLibrary.open(where), file)} windows into {file}")


@app.command("import")
def import_command(where: Where, file: Annotated[Path, typer.Argument(help="Parquet or NPZ file of windows.")]) -> None:
    """Add all cases and normal windows of a file that `export` wrote."""
    _say(f"added {import_library(CaseLibrary.open(where), file)} windows")


@app.command("optimise")
def optimise_command(where: Where) -> None:
    """Merge small files and index the windows; nothing that can be read changes."""
    store = CaseLibrary.open(where).store
    before = store.size()
    with store.writing():
        store.optimise()
    _say(f"{before / 1e6:.0f} MB before, {store.size() / 1e6:.0f} MB now; merged files stay for half an hour")


@app.command("warm")
def warm_command(where: Where, method: Method = DEFAULT_METHOD) -> None:
    """Encode cases ahead of the first search."""
    _say(f"encoded {CaseLibrary.open(where).warm(method)} cases")


app.command("demo")(demo_command)
app.command("bench")(bench_command)


def _roles(time: str, case: str, channels: str, *, label: str = "", asset: str = "") -> Roles:
    names = tuple(name.strip() for name in channels.split(",") if name.strip())
    return Roles(time=time, case=case, channels=names, label=label, asset=asset)


def _window(window: str, roles: Roles, interval: tuple[float | None, float | None]) -> WindowSet | str:
    """The window in a file, or the name of a case."""
    if not Path(window).is_file():
        if Path(window).suffix:
            raise UsageError(f"There is no file {window}. Give a CSV, Parquet or NPZ file, or the name of a case.")
        return window
    return windows_from(Path(window), roles, interval)


def _single_name(windows: WindowSet, roles: Roles) -> list[Case]:
    """What the file says of its cases; the name of a file is no name of a case."""
    facts = facts_of(windows)
    return facts if roles.case or len(facts) > 1 else [facts[0].model_copy(update={"id": "", "group": ""})]


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


def _of_asset(windows: WindowSet, asset: str) -> WindowSet:
    """The windows as those of an asset; "" leaves them as they are."""
    return replace(windows, assets=strings([asset] * len(windows), len(windows))) if asset else windows


def _as_json(model: BaseModel, wanted: bool) -> bool:
    """Print a result for programs where that is wanted, and say whether it was."""
    if wanted:
        print(model.model_dump_json(indent=1))  # noqa: T201 - this is the output
    return wanted


def _say(text: str) -> None:
    output().print(text, highlight=False, markup=False, soft_wrap=True)
