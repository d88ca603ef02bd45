"""Frozen pydantic models of the case library: cases, answers, evidence, changes."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from textwrap import shorten
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

UNLIKE = "unlike anything here"
"""Label of the option that a window shows an unknown fault type."""
NORMAL_OPERATION = "normal operation"
"""Label of the option that a window shows no fault; needs enough normal windows."""


MAX_REPR_CHARS = 80
"""Longest field in a representation; of a longer one the beginning or the size is shown."""


class Record(BaseModel):
    """Base model: frozen, without undeclared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Fields with a value, shortened."""
        shown = ((name, value) for name, value in super().__repr_args__() if value not in (None, "", (), {}))
        return ((name, _Brief(value)) for name, value in shown)

    def __str__(self) -> str:
        return repr(self)


class _Brief:
    """A value with a shortened representation."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        whole = repr(self.value)
        if len(whole) <= MAX_REPR_CHARS:
            return whole
        if isinstance(self.value, Record):
            begun = whole[:MAX_REPR_CHARS].rpartition(", ")[0]
            return f"{begun}, ...)" if begun else f"{type(self.value).__name__}(...)"
        if isinstance(self.value, str) or not isinstance(self.value, Sized):
            return f"{whole[:MAX_REPR_CHARS]}..."
        return f"<{len(self.value)}>"


class Case(Record):
    """Facts of one case; its window is `Library.window(case.id)`.

    Args:
        id: unique name.
        label: fault type; None for an open case; `normal` for a false alarm.
        asset: machine, well or line.
        time: start of the window, in seconds since 1970; None if unknown.
        end: end of the window, in seconds since 1970; None if unknown.
        zone: time zone: `UTC`, an offset such as `+01:00` or a region; "" if unknown.
        group: recording that the window was cut from; cases of one recording are no evidence for each other.
        notes: notes on cause and repair.
        tags: words to filter by.
        links: URLs of attachments.
        rejected: excluded fault types.
        changed: time of the last change, in seconds since 1970.
    """

    id: str
    label: str | None = None
    asset: str = ""
    time: float | None = None
    end: float | None = None
    zone: str = ""
    group: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    changed: float = 0.0

    @property
    def recording(self) -> str:
        """The group, or the name of the case if it has none."""
        return self.group or self.id


class CaseDetails(Record):
    """A case, its window and the context of the window.

    Args:
        case: facts of the case.
        channels: (C,) channel names of the window.
        steps: T, length of the window.
        before: number of steps kept before the window.
        rate: samples per second; None if unknown.
        units: (C,) units of the channels; empty if unknown.
        facts: known quantities, by name.
    """

    case: Case
    channels: tuple[str, ...]
    steps: int
    before: int
    rate: float | None
    units: tuple[str, ...]
    facts: dict[str, float]


class Filter(Record):
    """Filter of the listed cases; fault probabilities follow from all cases.

    Args:
        asset: only this asset.
        label: only this fault type.
        tag: only cases with this tag.
        since: earliest start, in seconds since 1970.
        until: latest start, in seconds since 1970.
    """

    asset: str | None = None
    label: str | None = None
    tag: str | None = None
    since: float | None = None
    until: float | None = None

    def admits(self, case: Case) -> bool:
        """True if a case passes; one without a time fails a filter by time."""
        time = case.time
        return (
            (self.asset is None or case.asset == self.asset)
            and (self.label is None or case.label == self.label)
            and (self.tag is None or self.tag in case.tags)
            and (self.since is None or (time is not None and time >= self.since))
            and (self.until is None or (time is not None and time <= self.until))
        )


class Hit(Record):
    """One case in a ranking.

    Args:
        place: rank, from 1.
        case: facts of the case.
        score: score of the method; larger is better; comparable within one answer only.
        probability: probability that it shares the fault type of the window; None without labels.
    """

    place: int
    case: Case
    score: float
    probability: float | None


class Fault(Record):
    """One option of an answer.

    Args:
        label: fault type, `UNLIKE` or `NORMAL_OPERATION`.
        probability: probability; the options of an answer sum to 1.
        possible: True if it cannot be ruled out; the true type is possible in at least nine of ten new cases.
    """

    label: str
    probability: float
    possible: bool


class HitGroup(Record):
    """The best cases of one fault type.

    Args:
        label: fault type; None for open cases.
        probability: probability of the type, as in `Answer.faults`; None if it is not an option.
        hits: hits, best first; those beyond `Answer.hits` keep their place in the whole ranking.
    """

    label: str | None
    probability: float | None
    hits: tuple[Hit, ...]


class Vote(Record):
    """Weight of a resolved case for (positive) or against (negative) the most likely fault type."""

    case: Case
    weight: float


RemarkKind = Literal[
    "length",
    "rate",
    "channels",
    "missing",
    "constant",
    "frozen",
    "clipped",
    "unit",
    "range",
    "spread",
    "roughness",
    "swapped",
    "reversed",
]
Severity = Literal["note", "warning", "serious"]


class Remark(Record):
    """An oddity of a window.

    Args:
        kind: the property that is odd.
        words: description, one sentence.
        severity: `note`, `warning`, or `serious`: the window cannot be judged.
        channels: the odd channels; empty for the whole window.
    """

    kind: RemarkKind
    words: str
    severity: Severity
    channels: tuple[str, ...] = ()

    @property
    def judgeable(self) -> bool:
        """True unless the oddity is serious."""
        return self.severity != "serious"


class Answer(Record):
    """Answer of a search for one window.

    Args:
        hits: cases, best first.
        faults: options with their probabilities, most likely first, including `UNLIKE`; empty without labels.
        novelty: 1 - p-value of the window's distance among held-out cases of the library; None without labels.
        novel: True if the novelty exceeds 0.95.
        votes: resolved cases with the largest weight on the most likely fault type.
        method: canonical text of the method.
        change: number of the last change of the searched library.
        compared: number of cases that the method compared: all, or a shortlist.
        total: number of cases in the library.
        remarks: limits of the answer, as sentences.
        plausibility: oddities of the window, the most serious first.
        judgeable: False if a serious oddity forbids a judgement; then no option is ruled out.
        groups: hits by fault type, the likeliest type first, with the best cases of each type that cannot be ruled
            out; open cases last.
    """

    hits: tuple[Hit, ...]
    faults: tuple[Fault, ...]
    novelty: float | None
    novel: bool
    votes: tuple[Vote, ...]
    method: str
    change: int
    compared: int
    total: int
    remarks: tuple[str, ...] = ()
    plausibility: tuple[Remark, ...] = ()
    judgeable: bool = True
    groups: tuple[HitGroup, ...] = ()

    def __repr__(self) -> str:
        likely = ", ".join(f"{fault.label} {fault.probability:.2f}" for fault in self.faults[:4])
        first = ", ".join(f"{hit.case.id} ({hit.case.label or 'open'})" for hit in self.hits[:3])
        odd = " ".join(remark.words for remark in self.plausibility)
        told = {
            "faults": likely,
            "hits": first,
            "odd" if self.judgeable else "cannot be judged": odd,
            "remarks": " ".join(self.remarks),
        }
        head = f"Answer({len(self.hits)} hits; {self.compared} of {self.total} cases compared; change {self.change})"
        return "\n".join([head, *(f"  {name}: {shorten(text, 300)}" for name, text in told.items() if text)])


class AddedCase(Case):
    """An added case, with remarks on its file and oddities of its window."""

    remarks: tuple[str, ...] = ()
    plausibility: tuple[Remark, ...] = ()


class WindowCheck(Record):
    """Oddities of a window, the most serious first, and whether it can be judged."""

    plausibility: tuple[Remark, ...]
    judgeable: bool


class ChannelEvidence(Record):
    """Departures of one channel in window and case, in standard deviations of normal operation.

    Args:
        name: name of the channel.
        window: root mean square departure of the window from normal.
        case: root mean square departure of the case from normal.
        agreement: mean of cosine and correlation of both departures after alignment, -1 to 1.
        same_way: True if both depart from normal in the same way.
        against: True if only one departs, or both depart in opposite ways.
        window_series: (T,) departures of the window, on the steps of `Evidence.path`.
        case_series: (T',) departures of the case.
    """

    name: str
    window: float
    case: float
    agreement: float
    same_way: bool
    against: bool
    window_series: tuple[float, ...] = Field(repr=False)
    case_series: tuple[float, ...] = Field(repr=False)


class Evidence(Record):
    """Evidence that a case matches a window.

    Args:
        case: the case.
        channels: shared channels, those that depart in the same way first, then by size of the departure.
        support: evidence of all channels, -1 to 1.
        only_window: channels that the case lacks.
        only_case: channels that the window lacks.
        path: pairs (step of the window, step of the case) of the warping path.
        distance: root mean square distance of the aligned departures per step and channel, in sd.
        reference: normal operation that window and case are compared with, in words.
    """

    case: Case
    channels: tuple[ChannelEvidence, ...]
    support: float
    only_window: tuple[str, ...]
    only_case: tuple[str, ...]
    path: tuple[tuple[int, int], ...] = Field(repr=False)
    distance: float
    reference: str


class Separation(Record):
    """Separation of pairs of cases with the same fault from pairs with different faults, by evidence.

    Args:
        same: number of pairs with the same fault, of different recordings.
        other: number of pairs with different faults.
        support: area under the ROC curve of `Evidence.support`; 0.5 is chance; None without both kinds of pairs.
        same_way: area under the ROC curve of the share of departing channels that depart in the same way.
    """

    same: int
    other: int
    support: float | None
    same_way: float | None


class Suggestion(Record):
    """An open case to label next.

    Args:
        case: the open case.
        guess: most likely fault type; None with fewer than two known types.
        doubt: 1 - probability of the guess; 1 without a guess.
        tells: number of other open cases that are nearer to it than to any labelled case or earlier suggestion.
    """

    case: Case
    guess: str | None
    doubt: float
    tells: int


class Doubt(Record):
    """A label that is likely wrong.

    Args:
        case: the labelled case.
        probability: probability of its label, by the cases of other recordings.
        rather: most likely fault type by these cases.
        rather_probability: probability of that type.
    """

    case: Case
    probability: float
    rather: str
    rather_probability: float


class Change(Record):
    """One change of a library.

    Args:
        number: number of the change, from 1.
        what: `add`, `normals`, `edit`, `delete` or `undo`.
        cases: number of changed cases.
        time: time of the change, in seconds since 1970.
        undone: True if it was reverted later.
        author: name of the author; "" if unknown.
        takes_back: number of the change that an undo reverts.
        detail: the changed cases with old and new values; "" unless requested.
    """

    number: int
    what: str
    cases: int
    time: float
    undone: bool
    author: str = ""
    takes_back: int | None = None
    detail: str = ""


class Summary(Record):
    """Number of cases by label ("" for open ones) and by asset, and of normal windows by asset.

    `named` lists all labels ever given, in order of first use.
    """

    cases: int
    normals: int
    change: int
    labels: dict[str, int]
    assets: dict[str, int]
    normal_assets: dict[str, int]
    named: tuple[str, ...] = ()


class MapPoint(Record):
    """A case on the map; coordinates from 0 to 1."""

    case: Case
    x: float
    y: float


class CasePair(Record):
    """Two near-duplicate cases; `likeness` is the cosine of their features."""

    first: Case
    second: Case
    likeness: float


class LibraryOverview(Record):
    """Map and near-duplicates of the latest cases.

    Args:
        points: cases on the map, grouped by fault type.
        twins: near-duplicates, the nearest first.
        left_out: number of older cases that are left out.
    """

    points: tuple[MapPoint, ...]
    twins: tuple[CasePair, ...]
    left_out: int
