"""The library for agents: tools of the Model Context Protocol. Short answers, every one cited by case id.

Every declared question is a tool of its name, which answers as the question does. `SHORTENED` holds those whose answers
are cut and rounded for agents: the name and the words of such a tool are those of the function that shortens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict

from readbench.cases import (
    DEFAULT_METHOD,
    QUESTIONS,
    AddedCase,
    Case,
    Doubt,
    Evidence,
    Filter,
    GivenBy,
    Library,
    LibraryOverview,
    Question,
    QuestionParameter,
    ReadRecording,
    Suggestion,
    ToldContext,
    read_recording,
)
from readbench.common.tables import Limits
from readbench.engine.window_tables import Roles
from readbench.errors import ReadbenchError, UsageError

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

P = ParamSpec("P")
R = TypeVar("R")
INSTRUCTIONS = (
    "A library of resolved faults in time-series data. Ask find_similar_cases about a recording or a stored case, then"
    " explain_match about the best ones, and read their notes with get_case. Cite cases by id. Probabilities are"
    " calibrated; 'unlike anything here' is a real option."
)
MOST_HITS = 20
FEW = 5
"""How many an agent gets that does not say."""
ASKED: dict[str, tuple[Any, Any]] = {
    "case": (str, ""),
    "file": (str, ""),
    "time_column": (str, ""),
    "onset": (str, ""),
    "before_file": (str, ""),
    "rate": (float | None, None),
    "facts": (dict[str, float] | None, None),
}
"""How an agent says what it asks about: types and defaults."""
MOST_CHANNELS = 8
NOTE = 300
LIMITS = Limits(max_bytes=256 * 2**20, max_rows=2_000_000, max_columns=2_000)


class Brief(BaseModel):
    """Base of the answers: frozen."""

    model_config = ConfigDict(frozen=True)


class FoundCase(Brief):
    """One case of a ranking."""

    id: str
    fault: str | None
    same_fault_probability: float | None
    asset: str
    notes: str


class FoundFault(Brief):
    """The best cases of one fault type, and its share of the belief; fault is null for cases that nobody resolved."""

    fault: str | None
    probability: float | None
    cases: list[str]


class FoundCases(Brief):
    """Cases, best first; the best of each fault type, the likeliest type first; and what the window may be."""

    cases: list[FoundCase]
    by_fault: list[FoundFault]
    may_be: dict[str, float]
    novel: bool
    judgeable: bool
    oddities: list[str]
    remarks: list[str]


class NextCase(Brief):
    """An open case to label: the likeliest fault, the doubt about it, and how many open cases it tells about."""

    id: str
    may_be: str | None
    doubt: float
    tells_about: int
    asset: str
    notes: str


class DoubtfulLabel(Brief):
    """A case whose label other recordings contradict."""

    id: str
    fault: str | None
    fault_probability: float
    rather: str
    rather_probability: float


class ChannelMatch(Brief):
    """How far one channel departs from normal, in standard deviations; whether both do so alike, or one contradicts."""

    name: str
    window: float
    case: float
    agreement: float
    departs_alike: bool
    speaks_against: bool


class Match(Brief):
    """Why a case resembles a window; support is from -1 to 1, over all channels."""

    case: str
    fault: str | None
    support: float
    channels: list[ChannelMatch]
    other_channels: int
    only_in_window: list[str]
    only_in_case: list[str]
    normal_is: str


class Twins(Brief):
    """Two cases that are almost the same."""

    first: str
    second: str
    likeness: float


class Glance(Brief):
    """Cases by fault, and near-duplicates among the latest."""

    faults: dict[str, int]
    near_duplicates: list[Twins]
    older_cases_left_out: int


def explain_match(evidence: Evidence) -> Match:
    """Say why the stored case `like` resembles a stored case or a recording: the channels that depart alike."""
    return Match(
        case=evidence.case.id,
        fault=evidence.case.label,
        support=round(evidence.support, 2),
        channels=[
            ChannelMatch(
                name=channel.name,
                window=round(channel.window, 2),
                case=round(channel.case, 2),
                agreement=round(channel.agreement, 2),
                departs_alike=channel.same_way,
                speaks_against=channel.against,
            )
            for channel in evidence.channels[:MOST_CHANNELS]
        ],
        other_channels=max(0, len(evidence.channels) - MOST_CHANNELS),
        only_in_window=list(evidence.only_window[:MOST_CHANNELS]),
        only_in_case=list(evidence.only_case[:MOST_CHANNELS]),
        normal_is=evidence.reference,
    )


def cases_to_label_next(found: list[Suggestion]) -> list[NextCase]:
    """List the open cases whose fault an expert should find out first, at most 20: they tell most about others."""
    return [
        NextCase(
            id=own.case.id,
            may_be=own.guess,
            doubt=round(own.doubt, 3),
            tells_about=own.tells,
            asset=own.case.asset,
            notes=_shorten(own.case.notes),
        )
        for own in found
    ]


def doubtful_labels(found: list[Doubt]) -> list[DoubtfulLabel]:
    """List resolved cases, at most 20, whose fault looks wrong to all other recordings; a reason to look again."""
    return [
        DoubtfulLabel(
            id=own.case.id,
            fault=own.case.label,
            fault_probability=round(own.probability, 3),
            rather=own.rather,
            rather_probability=round(own.rather_probability, 3),
        )
        for own in found
    ]


def library_overview(found: LibraryOverview) -> Glance:
    """See the library at a glance: how many of the latest cases have which fault, and which are near-duplicates."""
    return Glance(
        faults=dict(Counter(point.case.label or "" for point in found.points)),
        near_duplicates=[
            Twins(first=own.first.id, second=own.second.id, likeness=round(own.likeness, 3)) for own in found.twins
        ],
        older_cases_left_out=found.left_out,
    )


SHORTENED: dict[str, Callable[[Any], Any]] = {
    "explain": explain_match,
    "next": cases_to_label_next,
    "doubtful": doubtful_labels,
    "overview": library_overview,
}
"""How the answers to some questions become short enough for an agent."""


class Tools:
    """What an agent may call.

    Args:
        library: that is asked.
        method: of every search.
    """

    def __init__(self, library: Library, method: str = DEFAULT_METHOD) -> None:
        self.library = library
        self.method = method

    def find_similar_cases(  # noqa: PLR0913 - what an agent may say
        self,
        *,
        case: str = "",
        file: str = "",
        time_column: str = "",
        k: int = 5,
        fault: str = "",
        asset: str = "",
        onset: str = "",
        before_file: str = "",
        rate: float | None = None,
        facts: dict[str, float] | None = None,
    ) -> FoundCases:
        """Find the cases most like a stored case or a recording (path of a CSV, Excel, Parquet or NPZ file).

        Give `case` or `file`; the column of the time is looked for unless `time_column` names it. `fault` and `asset`
        limit what is listed. Of a file, `onset` says when it began (seconds,
        a date, a time of day, or a row): rows before are the time before; or `before_file` holds these. `rate` is in
        samples a second, `facts` are numbers known beforehand. Returns at most 20 cases, best first, the best cases of
        each fault type that cannot be ruled out with the calibrated probability of the type, and remarks that matter
        for judging them. Where `judgeable` is false, name no fault: `oddities` say what is wrong with the recording.
        """
        where = Filter(label=fault or None, asset=asset or None)
        asked = read_asked(case, file, time_column, told_by(onset, before_file, rate, facts))
        answer = self.library.search(asked, k=max(1, min(k, MOST_HITS)), method=self.method, where=where)
        return FoundCases(
            cases=[
                FoundCase(
                    id=hit.case.id,
                    fault=hit.case.label,
                    same_fault_probability=None if hit.probability is None else round(hit.probability, 3),
                    asset=hit.case.asset,
                    notes=_shorten(hit.case.notes),
                )
                for hit in answer.hits
            ],
            by_fault=[
                FoundFault(
                    fault=group.label,
                    probability=None if group.probability is None else round(group.probability, 3),
                    cases=[hit.case.id for hit in group.hits],
                )
                for group in answer.groups
            ],
            may_be={option.label: round(option.probability, 3) for option in answer.faults if option.possible},
            novel=answer.novel,
            judgeable=answer.judgeable,
            oddities=[remark.words for remark in answer.plausibility],
            remarks=list(answer.remarks),
        )

    def get_case(self, case: str) -> Case:
        """Read what is known of a case: fault, asset, time, notes, tags, links."""
        return self.library.case(case)

    def add_case(  # noqa: PLR0913 - what an agent may say
        self,
        *,
        file: str,
        fault: str = "",
        asset: str = "",
        notes: str = "",
        time_column: str = "",
        onset: str = "",
        before_file: str = "",
        rate: float | None = None,
        facts: dict[str, float] | None = None,
    ) -> AddedCase:
        """Add the recording in a file as a case; without `fault` it stays open. The rest as for find_similar_cases.

        `remarks` say what was understood of the file: its time, channels, gaps, and what was left out. `plausibility`
        says what is odd about the window: look at that before you rely on the case.
        """
        read = _read(file, time_column, told_by(onset, before_file, rate, facts))
        known = Case(id="", label=fault or None, asset=asset, notes=notes, **read.dates())
        return self.library.add_checked(read, known, read.remarks)

    def label_case(self, case: str, fault: str) -> Case:
        """Say what a case was; "" where nobody knows any more. Counts in the next search."""
        return self.library.label(case, fault or None)

    def question(self, question: Question[Any]) -> Callable[..., Any]:
        """The tool of a declared question: its parameters, in which a window is a case or a file, and few results."""
        shorten = SHORTENED.get(question.name)

        def ask(**given: Any) -> Any:  # noqa: ANN401 - as the question declares them
            asked: dict[str, Any] = {}
            for own in question.parameters.values():
                if own.given_by is GivenBy.WINDOW:
                    told = told_by(given["onset"], given["before_file"], given["rate"], given["facts"])
                    asked[own.name] = read_asked(given["case"], given["file"], given["time_column"], told)
                elif own.given_by is GivenBy.METHOD:
                    asked[own.name] = self.method
                else:
                    asked[own.name] = max(1, min(given[own.name], MOST_HITS)) if own.counts else given[own.name]
            answer = question(self.library, **asked)
            return shorten(answer) if shorten else answer

        tool: Any = ask
        tool.__name__ = shorten.__name__ if shorten else question.name.replace("-", "_")
        tool.__doc__ = shorten.__doc__ if shorten else question.summary
        result = get_type_hints(shorten)["return"] if shorten else question.result
        tool.__signature__ = Signature(_tool_parameters(question), return_annotation=result)
        return ask


def agent_server(library: Library, *, method: str = DEFAULT_METHOD, writable: bool = False) -> MCPServer:
    """A server with the tools; those that change the library only where it is `writable`."""
    from mcp.server.mcpserver import MCPServer  # noqa: PLC0415 - optional package
    from mcp.types import ToolAnnotations  # noqa: PLC0415

    tools = Tools(library, method)
    server = MCPServer("readbench-cases", instructions=INSTRUCTIONS)
    asking: list[Callable[..., Any]] = [tools.find_similar_cases, tools.get_case]
    asking += [tools.question(question) for question in QUESTIONS.values()]
    for reading in asking:
        server.add_tool(_tell_errors(reading), annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    for writing in (tools.add_case, tools.label_case) if writable else ():
        server.add_tool(
            _tell_errors(writing), annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False)
        )
    return server


def _tell_errors(tool: Callable[P, R]) -> Callable[P, R]:
    """A tool whose errors on purpose reach the agent as sentences."""
    from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 - optional package

    @wraps(tool)
    def tell(*args: P.args, **given: P.kwargs) -> R:
        try:
            return tool(*args, **given)
        except ReadbenchError as error:
            raise ToolError(str(error)) from error

    return tell


def _tool_parameters(question: Question[Any]) -> list[Parameter]:
    """What an agent may say: what is needed first, then the window, then the rest."""
    needed: list[Parameter] = []
    others: list[Parameter] = []
    for own in question.parameters.values():
        if own.given_by is GivenBy.WINDOW:
            others += [
                Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
                for name, (kind, default) in ASKED.items()
            ]
        elif own.given_by is None:
            chosen = needed if own.required else others
            chosen.append(Parameter(own.name, Parameter.KEYWORD_ONLY, default=_default(own), annotation=own.hint))
    return [*needed, *others]


def _default(own: QuestionParameter) -> Any:  # noqa: ANN401 - of any type
    if own.required:
        return Parameter.empty
    default: Any = own.declared.default
    return min(default, FEW) if own.counts else default


def read_asked(case: str, file: str, time_column: str, told: ToldContext) -> ReadRecording | str:
    """What an agent asks about: a stored case, or the one window in a file."""
    if bool(case) == bool(file):
        raise UsageError("Give either the id of a case or the path of a file.")
    return case or _read(file, time_column, told)


def told_by(onset: str, before_file: str, rate: float | None, facts: dict[str, float] | None) -> ToldContext:
    """What an agent tells of the window in a file."""
    before = _path_of(before_file) if before_file else None
    return ToldContext(onset=onset, before=before, rate=rate, facts=facts or None)


def _read(file: str, time_column: str, told: ToldContext) -> ReadRecording:
    read = read_recording(_path_of(file), Roles(time=time_column), limits=LIMITS, told=told)
    if len(read.windows) != 1:
        raise UsageError(f"{file} holds {len(read.windows)} windows. Give one at a time.")
    return read


def _path_of(file: str) -> Path:
    path = Path(file).expanduser()
    if not path.is_file():
        raise UsageError(f"There is no file {file}. Give the path of a CSV, Excel, Parquet or NPZ file.")
    return path


def _shorten(text: str) -> str:
    return text if len(text) <= NOTE else f"{text[: NOTE - 1]}…"
