"""Commands built from the questions declared in `readbench.cases`, and printing of their answers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from readbench.cases import QUESTIONS, GivenBy, Question, QuestionParameter, Sheet, Shown
from readbench.cli.options import (
    LIBRARY_METHOD,
    Before,
    Channels,
    First,
    Json,
    KnownFacts,
    Last,
    Method,
    Onset,
    OnsetColumn,
    Rate,
    Time,
    Where,
    Zone,
    open_library,
    output,
    parse_context,
    roles,
    say,
)
from readbench.cli.progress import Terminal
from readbench.errors import UsageError

if TYPE_CHECKING:
    from readbench.cases import Answer, ReadRecording, ToldContext
    from readbench.engine.window_tables import Roles

MAX_LISTED_FAULTS = 5
WINDOW_OPTIONS: dict[str, tuple[Any, Any]] = {
    "asset": (
        Annotated[str, typer.Option(help="Asset of the window in the file, compared with the asset's normal windows.")],
        "",
    ),
    "time": (Time, ""),
    "zone": (Zone, ""),
    "channels": (Channels, ""),
    "first": (First, ""),
    "last": (Last, ""),
    "onset": (Onset, ""),
    "onset_column": (OnsetColumn, ""),
    "before": (Before, None),
    "rate": (Rate, None),
    "fact": (KnownFacts, None),
}
"""Options that select and describe a window in a file, with their defaults."""
REVIEW_QUESTIONS = ("next", "doubtful", "overview", "separation")
"""Questions answered by `cases review`."""
LIST_QUESTIONS = ("find", "stats")
"""Questions answered by `cases list`."""


def add_questions(app: typer.Typer) -> None:
    """Add a command per declared question; `review` and `list` answer several each."""
    app.command("review")(review_command)
    for question in QUESTIONS.values():
        if question.name in (*REVIEW_QUESTIONS, *LIST_QUESTIONS):
            continue
        build = build_check if question.name == "check" else build_command
        app.command(question.name)(build(question))


def review_command(
    where: Where,
    what: Annotated[
        Literal["next", "doubtful", "overview", "separation"],
        typer.Option(
            help="next: open cases to label first; doubtful: labels that are likely wrong; overview: map of the faults;"
            " separation: how well evidence tells same from different faults."
        ),
    ] = "next",
    k: Annotated[
        int | None, typer.Option("-k", "--k", help="For next and doubtful: number of cases.", show_default=False)
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", "--methods", help="For next and doubtful: retrieval method.", show_default=LIBRARY_METHOD
        ),
    ] = None,
    pairs: Annotated[
        int | None, typer.Option(help="For separation: number of pairs of each kind.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """List the cases that a person should review.

    Example: `readbench cases review plant --what doubtful -k 5`
    """
    question = QUESTIONS[what]
    given = {name: value for name, value in {"k": k, "method": method, "pairs": pairs}.items() if value is not None}
    for name, value in given.items():
        if name not in question.parameters:
            raise UsageError(f"{'-k' if name == 'k' else f'--{name}'} does not apply to --what {what}. Leave it out.")
        question.parameters[name].declared.check(what, value)
    asked = {name: parameter.declared.default for name, parameter in question.parameters.items()} | given
    with Terminal() as progress:
        answer = question(open_library(where, progress=progress), **asked)
    print_answer(answer, question.show(answer), as_json)


def build_command(question: Question[Any]) -> Callable[..., None]:
    """The command of a question: required parameters are arguments, the others options."""

    def ask(where: str, *, as_json: bool, figure: Path | None = None, **given: Any) -> None:  # noqa: ANN401
        if figure:
            from readbench.common.plots import check_figure_name, save

            check_figure_name(figure)
        asked = {parameter.name: _read_parameter(parameter, given) for parameter in question.parameters.values()}
        with Terminal() as progress:
            answer = question(open_library(where, progress=progress), **asked)
        if figure and question.draw:
            save(question.draw(answer), figure)
        print_answer(answer, question.show(answer), as_json)

    command: Any = ask
    command.__signature__ = Signature(_command_parameters(question))
    command.__doc__ = "\n\n".join(part for part in (question.summary, question.example) if part)
    return ask


def build_check(question: Question[Any]) -> Callable[..., None]:
    """The command that checks a window, or the library if no window is given."""
    ask: Any = build_command(question)

    def check(where: str, *, window: str, repair: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401
        if not window:
            _check_library(where, repair, as_json)
            return
        if repair:
            raise UsageError("--repair applies to a library. Leave the window out.")
        ask(where, window=window, as_json=as_json, **given)

    command: Any = check
    parameters = dict(signature(ask).parameters)
    parameters["window"] = parameters["window"].replace(
        annotation=Annotated[str, typer.Argument(help="File or case name; leave out to check the library.")],
        default="",
    )
    repair = Annotated[
        bool, typer.Option("--repair", help="Rebuild damaged parts of the library; stop services first.")
    ]
    parameters["repair"] = Parameter("repair", Parameter.KEYWORD_ONLY, annotation=repair, default=False)
    command.__signature__ = Signature(list(parameters.values()))
    command.__doc__ = "\n\n".join(
        (
            question.summary,
            "Without a window: compare the library's files and contents with their checksums.",
            *([question.example] if question.example else []),
        )
    )
    return check


def _check_library(where: str, repair: bool, as_json: bool) -> None:
    """Print the damage found in a library; exit with 1 if any is left."""
    from readbench.cases import check_library

    with Terminal() as progress:
        checked = check_library(where, repair=repair, progress=progress)
    left = [finding for finding in checked.findings if not finding.done]
    if as_json:
        print(json.dumps(asdict(checked), indent=1))  # noqa: T201 - this is the output
    else:
        for finding in checked.findings:
            say(f"{finding.what} {finding.done}".strip())
        say(
            f"checked {checked.changes} rows of the journal, {checked.windows} windows, {checked.contexts} contexts and"
            f" {checked.vectors} vectors; {len(checked.findings)} are damaged, {len(left)} not repaired"
        )
    if left:
        raise typer.Exit(1)


def read_window(window: str, roles: Roles, interval: tuple[str, str], told: ToldContext) -> ReadRecording | str:
    """Read the window in a file, with its context; any other text is returned as the name of a case."""
    from readbench.cases import read_recording

    if not Path(window).is_file():
        if Path(window).suffix:
            raise UsageError(
                f"There is no file {window}. Give a CSV, Excel, Parquet or NPZ file, or the name of a case."
            )
        return window
    return read_recording(Path(window), roles, interval, told=told)


def print_answer(answer: Any, shown: Shown, as_json: bool) -> None:  # noqa: ANN401 - a model, or a list of them
    """Print an answer as JSON, or as sentences and tables."""
    if not as_json:
        print_shown(shown)
    elif isinstance(answer, list):
        print(json.dumps([item.model_dump(mode="json") for item in answer], indent=1))  # noqa: T201 - this is the output
    else:
        print(answer.model_dump_json(indent=1))  # noqa: T201 - this is the output


def print_shown(shown: Shown) -> None:
    """Print sentences and tables."""
    console = output()
    for part in shown:
        if isinstance(part, Sheet):
            table = Table(*part.columns, box=SIMPLE_HEAD)
            for row in part.rows:
                table.add_row(*map(escape, row))
            console.print(table)
        else:
            console.print(part, highlight=False, markup=False, soft_wrap=True)


def add_column(shown: Shown, name: str, texts: Sequence[str]) -> Shown:
    """Append a column to the table in `shown`; unchanged where all texts are empty."""
    if not any(texts):
        return shown
    sheet = next(part for part in shown if isinstance(part, Sheet))
    return [Sheet((*sheet.columns, name), [(*row, text) for row, text in zip(sheet.rows, texts, strict=True)])]


def show_answer(answer: Answer) -> Shown:
    """Oddities of the window, probable fault types, similar cases by fault type, and remarks."""
    from readbench.cases import NORMAL_OPERATION, UNLIKE, describe_oddities, format_time, shorten_note

    special = UNLIKE, NORMAL_OPERATION
    listed = [fault for place, fault in enumerate(answer.faults) if place < MAX_LISTED_FAULTS or fault.label in special]
    options = [(fault.label, f"{fault.probability:.0%}", "yes" if fault.possible else "") for fault in listed]
    rows = []
    for group in answer.groups:
        share = "" if group.probability is None else f"{group.probability:.0%}"
        for hit in group.hits:
            head = (group.label or "?", share) if hit is group.hits[0] else ("", "")
            facts = hit.case.asset, format_time(hit.case.time, hit.case.zone), shorten_note(hit.case.notes)
            rows.append((*head, str(hit.place), hit.case.id, *facts))
    return [
        *describe_oddities(answer.plausibility, judgeable=answer.judgeable),
        *([Sheet(("Fault", "Probability", "Cannot be ruled out"), options)] if options else []),
        Sheet(("Fault", "Probability", "Rank", "Case", "Asset", "When", "Notes"), rows),
        *answer.remarks,
        f"method {answer.method}; change {answer.change}",
    ]


def _command_parameters(question: Question[Any]) -> list[Parameter]:
    hints: dict[str, tuple[Any, Any]] = {"where": (Where, Parameter.empty)}
    parameters = question.parameters.values()
    for parameter in sorted(
        parameters, key=lambda parameter: (parameter.given_by is not GivenBy.WINDOW, not parameter.required)
    ):
        hints[parameter.name] = _hint(parameter), Parameter.empty if parameter.required else parameter.declared.default
        if parameter.given_by is GivenBy.WINDOW:
            hints |= WINDOW_OPTIONS
    if question.draw:
        hints["figure"] = Annotated[Path | None, typer.Option(help="Also save a figure: PNG, SVG or PDF file.")], None
    hints["as_json"] = Json, False
    return [
        Parameter(n, Parameter.KEYWORD_ONLY, annotation=hint, default=default) for n, (hint, default) in hints.items()
    ]


def _hint(parameter: QuestionParameter) -> Any:  # noqa: ANN401 - a type with what typer needs
    if parameter.given_by is GivenBy.WINDOW:
        return Annotated[str, typer.Argument(help="File or case name.", show_default=False)]
    if parameter.given_by is GivenBy.METHOD:
        return Method
    interval = parameter.declared.interval
    ends = (interval.low, interval.high) if interval else (-math.inf, math.inf)
    least, most = (parameter.declared.kind(end) if math.isfinite(end) else None for end in ends)
    if parameter.required:
        return Annotated[parameter.hint, typer.Argument(help=parameter.help, min=least, max=most, show_default=False)]
    flags = (f"-{parameter.name}",) if len(parameter.name) == 1 else ()
    return Annotated[parameter.hint, typer.Option(*flags, help=parameter.help, min=least, max=most)]


def _read_parameter(parameter: QuestionParameter, given: dict[str, Any]) -> Any:  # noqa: ANN401 - as the question declares it
    if parameter.given_by is not GivenBy.WINDOW:
        return given[parameter.name]
    interval = given["first"], given["last"]
    columns = roles(given["time"], "", given["channels"], onset=given["onset_column"], zone=given["zone"])
    told = parse_context(given["onset"], given["before"], given["rate"], given["fact"])
    window = read_window(given[parameter.name], columns, interval, told)
    return window if isinstance(window, str) or not given["asset"] else _set_asset(window, given["asset"])


def _set_asset(read: ReadRecording, asset: str) -> ReadRecording:
    """The recording with its asset replaced."""
    from readbench.engine.windows import strings

    count = len(read.windows)
    return replace(read, windows=replace(read.windows, assets=strings([asset] * count, count)))
