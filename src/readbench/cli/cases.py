"""`readbench cases ...`: ask the case library, and say what cases were."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from readbench.cases import QUESTIONS
from readbench.cli import cases_connect, cases_intake, cases_reports, cases_service
from readbench.cli.cases_questions import add_column, add_questions, print_answer, print_shown, read_window, show_answer
from readbench.cli.options import (
    LIBRARY_METHOD,
    AsOf,
    Asset,
    Before,
    Channels,
    Json,
    K,
    KnownFacts,
    Last,
    Method,
    Name,
    Onset,
    OnsetColumn,
    Rate,
    Time,
    Where,
    Zone,
    open_library,
    roles,
    say,
    told_context,
)
from readbench.cli.progress import Terminal

app = typer.Typer(help="Keep resolved cases, and find the one that explains a new window.", no_args_is_help=True)


@app.command("init")
def init_command(where: Where) -> None:
    """Make an empty library.

    Example: `readbench cases init plant`
    """
    from readbench.cases import Library

    with cases_intake.whole_library(where):
        made = Library.create(where).store.where
    say(f"made an empty library at {made}")


app.command("add")(cases_intake.add_command)
app.command("normals")(cases_intake.normals_command)


@app.command("search")
def search_command(
    where: Where,
    window: Annotated[
        str, typer.Argument(help="A file, or the name of a case; none for a range of a source.", show_default=False)
    ] = "",
    *,
    k: K = 10,
    method: Method = LIBRARY_METHOD,
    asset: Asset = "",
    label: Annotated[str, typer.Option(help="List only this fault type.")] = "",
    tag: Annotated[str, typer.Option(help="List only cases with this tag.")] = "",
    since: Annotated[str, typer.Option(help="List only cases from then on.")] = "",
    until: Annotated[str, typer.Option(help="List only cases until then.")] = "",
    time: Time = "",
    zone: Zone = "",
    channels: Channels = "",
    first: Annotated[
        str, typer.Option("--from", help="Of a file, the first time of the interval; else a source: address or name.")
    ] = "",
    last: Last = "",
    start: Annotated[str, typer.Option(help="First time of a range of a source: 14:02, -20m, a date.")] = "",
    end: Annotated[str, typer.Option(help="Last time of the range.", show_default="now")] = "",
    secret: cases_connect.SecretOption = "",
    sources: cases_connect.SourcesOption = None,
    onset: Onset = "",
    onset_column: OnsetColumn = "",
    before: Before = None,
    rate: Rate = None,
    fact: KnownFacts = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Which cases is a window like, and what may it be?

    Example: `readbench cases search plant new.csv --time t --onset 14:02 -k 5`, or
    `readbench cases search plant --from prometheus://127.0.0.1:9090 --asset rig-3 --start 14:02 --end 14:20`
    """
    from readbench.cases import Filter, parse_time

    library = open_library(where, as_of=as_of)
    asked: Any
    if window:
        asked = read_window(
            window,
            roles(time, "", channels, onset=onset_column, zone=zone),
            (first, last),
            told_context(onset, before, rate, fact),
        )
    else:
        asked = cases_connect.read_asked_range(
            library, where, first, (start, end), (secret, sources), asset=asset, onset=onset, rate=rate, zone=zone
        )
        asset = ""  # whose range it is, not whose cases are listed
    chosen = Filter(
        asset=asset or None, label=label or None, tag=tag or None, since=parse_time(since), until=parse_time(until)
    )
    with Terminal() as progress:
        library.progress = progress
        answer = library.search(asked, k=k, method=method, where=chosen)
    print_answer(answer, show_answer(answer), as_json)


@app.command("label")
def label_command(where: Where, case: Name, label: Annotated[str, typer.Argument(help='"" for none.')]) -> None:
    """Say what a case was; the next search knows it.

    Example: `readbench cases label plant case-12ab leak`
    """
    open_library(where).label(case, label or None)
    say(f"{case} is now {label or 'without label'}")


@app.command("confirm")
def confirm_command(
    where: Where, case: Name, like: Annotated[str, typer.Argument(help="The case it is like.")]
) -> None:
    """Say that a case has the fault of another one."""
    say(f"{case} is now {open_library(where).confirm(case, like).label}")


@app.command("reject")
def reject_command(
    where: Where, case: Name, like: Annotated[str, typer.Argument(help="The case it is not like.")]
) -> None:
    """Say that a case does not have the fault of another one."""
    say(f"{case} is not {open_library(where).reject(case, like).rejected[-1]}")


@app.command("note")
def note_command(
    where: Where, case: Name, notes: Annotated[str, typer.Argument(help="What was found and done.")]
) -> None:
    """Replace the notes of a case."""
    open_library(where).edit(case, notes=notes)
    say(f"{case} has new notes")


@app.command("delete")
def delete_command(where: Where, cases: Annotated[list[str], typer.Argument(help="Names.")]) -> None:
    """Take cases out; `undo` brings them back."""
    open_library(where).delete(cases)
    say(f"deleted {len(cases)} cases")


ChangeNumber = Annotated[int | None, typer.Argument(help="Its number in `history`; the last one by default.")]


@app.command("undo")
def undo_command(where: Where, change: ChangeNumber = None) -> None:
    """Take a change back that still stands; what later changes said of the same cases stays."""
    taken = open_library(where).undo(change)
    say(f"took back change {taken.number}: {taken.what} of {taken.cases} cases")


@app.command("redo")
def redo_command(where: Where, change: ChangeNumber = None) -> None:
    """Make a change again that was taken back."""
    again = open_library(where).redo(change)
    say(f"change {again.number} counts again: {again.what} of {again.cases} cases")


@app.command("list")
def list_command(where: Where, asset: Asset = "", label: str = "", tag: str = "", as_of: AsOf = None) -> None:
    """List cases, and what their windows brought along; `show` tells all of one."""
    from readbench.cases import Filter

    chosen = Filter(asset=asset or None, label=label or None, tag=tag or None)
    library = open_library(where, as_of=as_of)
    cases = library.cases(chosen)
    print_shown(add_column(QUESTIONS["find"].show(cases), "Brings along", library.describe_contexts(cases)))


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
    open_library(where).name_channel(name, unit, alias or ())
    say(f"{name} has {len(alias or ())} other names")


app.command("export")(cases_intake.export_command)
app.command("import")(cases_intake.import_command)


@app.command("optimise")
def optimise_command(where: Where) -> None:
    """Merge small files and index the windows; nothing that can be read changes."""
    store = open_library(where).store
    before = store.size()
    with store.writing():
        store.optimise()
    say(f"{before / 1e6:.0f} MB before, {store.size() / 1e6:.0f} MB now; merged files stay for half an hour")


add_questions(app)
app.command("connect")(cases_connect.connect_command)
app.command("watch")(cases_connect.watch_command)
app.command("warm")(cases_intake.warm_command)
app.command("demo")(cases_intake.demo_command)
app.command("bench")(cases_intake.bench_command)
app.command("backtest")(cases_reports.backtest_command)
app.command("report")(cases_reports.report_command)
app.command("serve")(cases_service.serve_command)
app.command("mcp")(cases_service.mcp_command)
app.add_typer(cases_service.keys_app, name="key")
