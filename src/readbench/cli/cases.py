"""`readbench cases ...`: ask the case library, and say what cases were."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from readbench.cli import cases_intake, cases_service
from readbench.cli.cases_views import (
    show_answer,
    show_cases,
    show_doubts,
    show_evidence,
    show_history,
    show_suggestions,
    show_summary,
)
from readbench.cli.options import (
    DEFAULT_METHOD,
    AsOf,
    Asset,
    Channels,
    First,
    Json,
    K,
    Last,
    Method,
    Name,
    Time,
    Where,
    open_library,
    output,
    roles,
    say,
)
from readbench.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from readbench.engine.window_tables import Roles
    from readbench.engine.windows import WindowSet

R = TypeVar("R", bound="BaseModel")
app = typer.Typer(help="Keep resolved cases, and find the one that explains a new window.", no_args_is_help=True)


@app.command("init")
def init_command(where: Where) -> None:
    """Make an empty library.

    Example: `readbench cases init plant`
    """
    from readbench.cases import CaseLibrary

    CaseLibrary.create(where)
    say(f"made an empty library at {where}")


app.command("add")(cases_intake.add_command)
app.command("normals")(cases_intake.normals_command)


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
    from readbench.cases import Filter, parse_time

    library = open_library(where, as_of=as_of)
    asked = _window(window, roles(time, "", channels), (parse_time(first), parse_time(last)))
    chosen = Filter(
        asset=asset or None, label=label or None, tag=tag or None, since=parse_time(since), until=parse_time(until)
    )
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
    from readbench.cases import parse_time

    library = open_library(where)
    asked = _window(window, roles(time, "", channels), (parse_time(first), parse_time(last)))
    evidence = library.explain(asked if isinstance(asked, str) else _of_asset(asked, asset), case)
    if figure:
        from readbench.cases import draw_evidence
        from readbench.common.plots import save

        save(draw_evidence(evidence), figure)
    if not _as_json(evidence, as_json):
        show_evidence(evidence, output())


@app.command("label")
def label_command(where: Where, case: Name, label: Annotated[str, typer.Argument(help='"" for none.')]) -> None:
    """Say what a case was; the next search knows it.

    Example: `readbench cases label plant case-12ab leak`
    """
    open_library(where).label(case, label or None)
    say(f"{case} is now {label or 'without label'}")


@app.command("next")
def next_command(where: Where, k: K = 10, method: Method = DEFAULT_METHOD, as_json: Json = False) -> None:
    """Which open cases should be labelled next? Those that tell most about the others, first.

    Example: `readbench cases next plant -k 5`
    """
    _listed(open_library(where).next_to_label(k, method), show_suggestions, "every case has a label", as_json)


@app.command("doubtful")
def doubtful_command(where: Where, k: K = 20, method: Method = DEFAULT_METHOD, as_json: Json = False) -> None:
    """Which labels look wrong? Those that cases of other recordings contradict most, first.

    Example: `readbench cases doubtful plant`
    """
    nothing = "every label fits what other recordings say"
    _listed(open_library(where).doubtful(k, method), show_doubts, nothing, as_json)


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


@app.command("undo")
def undo_command(where: Where) -> None:
    """Take the last change back that still stands."""
    change = open_library(where).undo()
    say(f"took back change {change.number}: {change.what} of {change.cases} cases")


@app.command("history")
def history_command(where: Where) -> None:
    """All changes; `search --as-of NUMBER` asks the library as it was."""
    show_history(open_library(where).history(), output())


@app.command("list")
def list_command(where: Where, asset: Asset = "", label: str = "", tag: str = "", as_of: AsOf = None) -> None:
    """List cases."""
    from readbench.cases import Filter

    chosen = Filter(asset=asset or None, label=label or None, tag=tag or None)
    show_cases(open_library(where, as_of=as_of).cases(chosen), output())


@app.command("find")
def find_command(where: Where, text: Annotated[str, typer.Argument(help="Words of the notes.")], k: K = 10) -> None:
    """Cases whose notes speak of something."""
    show_cases(open_library(where).find(text, k), output())


@app.command("stats")
def stats_command(where: Where, as_json: Json = False) -> None:
    """What the library holds."""
    summary = open_library(where).stats()
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


app.command("warm")(cases_intake.warm_command)
app.command("demo")(cases_intake.demo_command)
app.command("bench")(cases_intake.bench_command)
app.command("serve")(cases_service.serve_command)
app.command("mcp")(cases_service.mcp_command)
app.add_typer(cases_service.keys_app, name="key")


def _window(window: str, roles: Roles, interval: tuple[float | None, float | None]) -> WindowSet | str:
    """The window in a file, or the name of a case."""
    from readbench.cases import windows_from

    if not Path(window).is_file():
        if Path(window).suffix:
            raise UsageError(f"There is no file {window}. Give a CSV, Parquet or NPZ file, or the name of a case.")
        return window
    return windows_from(Path(window), roles, interval)


def _of_asset(windows: WindowSet, asset: str) -> WindowSet:
    """The windows as those of an asset; "" leaves them as they are."""
    from readbench.engine.windows import strings

    return replace(windows, assets=strings([asset] * len(windows), len(windows))) if asset else windows


def _as_json(model: BaseModel, wanted: bool) -> bool:
    """Print a result for programs where that is wanted, and say whether it was."""
    if wanted:
        print(model.model_dump_json(indent=1))  # noqa: T201 - this is the output
    return wanted


def _listed(found: Sequence[R], show: Callable[[Sequence[R], Console], None], nothing: str, as_json: bool) -> None:
    """Print results: one JSON array for programs; for people a table, or a word where there are none."""
    if as_json:
        print(json.dumps([one.model_dump(mode="json") for one in found], indent=1))  # noqa: T201 - this is the output
    elif found:
        show(found, output())
    else:
        say(nothing)
