"""`readbench cases ...`: search, label and manage a case library."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from readbench.cases import QUESTIONS
from readbench.cli import cases_connect, cases_intake, cases_reports, cases_service
from readbench.cli.cases_questions import add_column, add_questions, print_answer, read_window, show_answer
from readbench.cli.former import refuse_others
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
    parse_context,
    roles,
    say,
)
from readbench.cli.progress import Terminal
from readbench.errors import UsageError

app = typer.Typer(help="Case library: store resolved cases, search them for a new window.", no_args_is_help=True)


app.command("init")(cases_intake.init_command)
app.command("add")(cases_intake.add_command)
app.command("normals")(cases_intake.normals_command)


@app.command("search")
def search_command(
    where: Where,
    window: Annotated[
        str, typer.Argument(help="File or case name; leave out with --from SOURCE.", show_default=False)
    ] = "",
    *,
    k: K = 10,
    method: Method = LIBRARY_METHOD,
    asset: Asset = "",
    label: Annotated[str, typer.Option(help="Only cases with this fault type.")] = "",
    tag: Annotated[str, typer.Option(help="Only cases with this tag.")] = "",
    since: Annotated[str, typer.Option(help="Only cases at or after this time.")] = "",
    until: Annotated[str, typer.Option(help="Only cases at or before this time.")] = "",
    time: Time = "",
    zone: Zone = "",
    channels: Channels = "",
    first: Annotated[
        str, typer.Option("--from", help="With a file: start of the interval. Without: signal source, name or address.")
    ] = "",
    last: Last = "",
    start: Annotated[str, typer.Option(help="Start of the range in the source: 14:02, -20m or a date.")] = "",
    end: Annotated[str, typer.Option(help="End of the range in the source.", show_default="now")] = "",
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
    """Find the cases most similar to a window, with the probability of each fault type.

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
            parse_context(onset, before, rate, fact),
        )
    else:
        asked = cases_connect.read_asked_range(
            library, where, first, (start, end), (secret, sources), asset=asset, onset=onset, rate=rate, zone=zone
        )
        asset = ""  # --asset selects the signals here; it does not filter the cases
    chosen = Filter(
        asset=asset or None, label=label or None, tag=tag or None, since=parse_time(since), until=parse_time(until)
    )
    with Terminal() as progress:
        library.progress = progress
        answer = library.search(asked, k=k, method=method, where=chosen)
    print_answer(answer, show_answer(answer), as_json)


@app.command("label")
def label_command(
    where: Where,
    case: Name,
    label: Annotated[str | None, typer.Argument(help='Fault type; "" removes it.', show_default=False)] = None,
    like: Annotated[str, typer.Option(help="Name of a case with the same fault type.")] = "",
    unlike: Annotated[str, typer.Option(help="Name of a case whose fault type does not apply.")] = "",
    note: Annotated[str | None, typer.Option(help="New notes; replace the present ones.")] = None,
) -> None:
    """Set the fault type of a case, directly or by a similar case, or its notes.

    Example: `readbench cases label plant case-12ab leak --note "Drain fitting re-seated."`
    """
    if label is not None and like:
        raise UsageError("Give either a label or --like, not both.")
    if label is None and note is None and not like and not unlike:
        raise UsageError("Nothing to change. Give a label, --like, --unlike or --note.")
    library = open_library(where)
    if label is not None:
        library.label(case, label or None)
        say(f"{case} is now {label or 'without label'}")
    if like:
        say(f"{case} is now {library.confirm(case, like).label}")
    if unlike:
        say(f"{case} is not {library.reject(case, unlike).rejected[-1]}")
    if note is not None:
        library.edit(case, notes=note)
        say(f"{case} has new notes")


@app.command("delete")
def delete_command(where: Where, cases: Annotated[list[str], typer.Argument(help="Names of the cases.")]) -> None:
    """Delete cases; `undo` restores them."""
    open_library(where).delete(cases)
    say(f"deleted {len(cases)} cases")


ChangeNumber = Annotated[int | None, typer.Argument(help="Number of the change in `history`; by default the last.")]


@app.command("undo")
def undo_command(
    where: Where,
    change: ChangeNumber = None,
    redo: Annotated[bool, typer.Option("--redo", help="Reapply a reverted change.")] = False,
) -> None:
    """Revert one change; later changes to the same cases are kept."""
    library = open_library(where)
    found = library.redo(change) if redo else library.undo(change)
    done = f"reapplied change {found.number}" if redo else f"reverted change {found.number}"
    say(f"{done}: {found.what} of {found.cases} cases")


@app.command("list")
def list_command(  # noqa: PLR0917 - typer reads options from the signature
    ctx: typer.Context,
    where: Where,
    asset: Asset = "",
    label: Annotated[str, typer.Option(help="Only cases with this fault type.")] = "",
    tag: Annotated[str, typer.Option(help="Only cases with this tag.")] = "",
    text: Annotated[str, typer.Option(help="Only cases with these words in name or notes.")] = "",
    counts: Annotated[
        bool, typer.Option("--counts", help="Print only the number of cases per fault type and asset.")
    ] = False,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """List cases with their fault type, asset, time and notes; `show` prints one in full.

    Example: `readbench cases list plant --text "worn impeller"`
    """
    from readbench.cases import Filter

    library = open_library(where, as_of=as_of)
    if counts:
        refuse_others(ctx, "--counts", "where", "counts", "as_of", "as_json")
        answer = QUESTIONS["stats"](library)
        print_answer(answer, QUESTIONS["stats"].show(answer), as_json)
        return
    cases = library.cases(Filter(asset=asset or None, label=label or None, tag=tag or None))
    if text:
        known = {case.id for case in cases}
        cases = [case for case in library.find(text, len(library)) if case.id in known]
    shown = QUESTIONS["find"].show(cases)
    print_answer(cases, add_column(shown, "Context", library.describe_contexts(cases)), as_json)


@app.command("channel")
def channel_command(
    where: Where,
    name: Annotated[str, typer.Argument(help="Name of the channel in the library.")],
    unit: Annotated[str, typer.Option(help="Unit in which its readings are stored.")] = "",
    alias: Annotated[
        list[str] | None,
        typer.Option(
            "--alias", help='Other name of the channel, with its unit where that differs: "PT-101 [kPa]"; repeatable.'
        ),
    ] = None,
) -> None:
    """Set a channel's name, unit and aliases.

    Example: `readbench cases channel plant pressure --unit bar --alias "PT-101 [kPa]"`
    """
    open_library(where).name_channel(name, unit, alias or ())
    say(f"added {len(alias or ())} aliases of {name}")


app.command("export")(cases_intake.export_command)
app.command("import")(cases_intake.import_command)


app.command("optimise")(cases_intake.optimise_command)
add_questions(app)
app.command("connect")(cases_connect.connect_command)
app.command("watch")(cases_connect.watch_command)
app.command("backtest")(cases_reports.backtest_command)
app.command("report")(cases_reports.report_command)
app.command("serve")(cases_service.serve_command)
app.command("mcp")(cases_service.mcp_command)
app.command("key")(cases_service.key_command)
