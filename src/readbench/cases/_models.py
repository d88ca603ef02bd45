"""What the library says: cases, answers, evidence. Frozen models, which any program can read as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from textwrap import shorten
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

UNLIKE = "unlike anything here"
"""Name of the option that no known fault type explains a window."""
NORMAL_OPERATION = "normal operation"
"""Name of the option that a window shows no fault; it exists where a library knows enough normal windows."""


MAX_REPR_CHARS = 80
"""Characters of a field in a representation; of a longer one its beginning or its size is shown."""


class Record(BaseModel):
    """Base of everything here: frozen, and nothing beside the declared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Fields that hold something, in short."""
        shown = ((name, value) for name, value in super().__repr_args__() if value not in (None, "", (), {}))
        return ((name, _Brief(value)) for name, value in shown)

    def __str__(self) -> str:
        return repr(self)


class _Brief:
    """A value whose representation is never long."""

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
    """What is known of one case; its window is `Library.window(case.id)`.

    Args:
        id: unique name.
        label: fault type; None where nobody resolved it; `normal` for a false alarm.
        asset: the machine it comes from.
        time: when its window begins, in seconds since the epoch; None where unknown.
        end: when its window ends, likewise.
        zone: of its clock: `UTC`, an offset such as `+01:00` or a region; "" where unknown.
        group: the recording it was cut from: cases of one recording are no evidence for each other.
        notes: what was found and done.
        tags: words to filter by.
        links: addresses of attachments.
        rejected: fault types that it is known not to be.
        changed: seconds since the epoch when it was last written.
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
        """Its group; a case that names none is a recording of its own."""
        return self.group or self.id


class CaseDetails(Record):
    """A case, and what its window is and brings along.

    Args:
        case: what is known of it.
        channels: of the window.
        steps: of the window.
        before: steps of the time before that it brought; 0 where it brought none.
        rate: samples a second; None where unknown.
        units: of the channels; empty where unknown.
        facts: numbers that were known beforehand.
    """

    case: Case
    channels: tuple[str, ...]
    steps: int
    before: int
    rate: float | None
    units: tuple[str, ...]
    facts: dict[str, float]


class Filter(Record):
    """Which cases are listed; the opinion on the fault type is formed on all.

    Args:
        asset: only this asset.
        label: only this fault type.
        tag: only with this tag.
        since: not before, in seconds since the epoch.
        until: not after.
    """

    asset: str | None = None
    label: str | None = None
    tag: str | None = None
    since: float | None = None
    until: float | None = None

    def admits(self, case: Case) -> bool:
        """Whether a case is listed; one without a time is not, where a time is asked for."""
        time = case.time
        return (
            (self.asset is None or case.asset == self.asset)
            and (self.label is None or case.label == self.label)
            and (self.tag is None or self.tag in case.tags)
            and (self.since is None or (time is not None and time >= self.since))
            and (self.until is None or (time is not None and time <= self.until))
        )


class Hit(Record):
    """One place of a ranking.

    Args:
        place: 1 is the best.
        case: what is known of it.
        score: of the method; larger is better, comparable within one answer only.
        probability: that it shares the fault type of the window; None where no case has a label.
    """

    place: int
    case: Case
    score: float
    probability: float | None


class Fault(Record):
    """One option of what a window may be.

    Args:
        label: fault type, or `UNLIKE`.
        probability: all options of an answer sum to one.
        possible: it cannot be ruled out: the possible types miss the true one in a tenth of new cases at most.
    """

    label: str
    probability: float
    possible: bool


class HitGroup(Record):
    """The best cases of one fault type.

    Args:
        label: fault type; None for cases that nobody resolved.
        probability: share of the belief that the type has, as in `Answer.faults`; None where it has none.
        hits: best first. Those beyond `Answer.hits` have the places that they have in the whole ranking.
    """

    label: str | None
    probability: float | None
    hits: tuple[Hit, ...]


class Vote(Record):
    """What one resolved case says about the most likely fault type: `weight` is positive for it, negative against."""

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
    """What is odd about a window, found before anything is said of its fault.

    Args:
        kind: what was looked at.
        words: a sentence for people.
        severity: `note`: worth knowing; `warning`: look at it; `serious`: the window cannot be judged.
        channels: that it speaks of; empty where it speaks of the window.
    """

    kind: RemarkKind
    words: str
    severity: Severity
    channels: tuple[str, ...] = ()

    @property
    def judgeable(self) -> bool:
        """Whether the window can be judged in spite of it."""
        return self.severity != "serious"


class Answer(Record):
    """What the library knows about a window.

    Args:
        hits: cases, best first.
        faults: options of what it is, most likely first, `UNLIKE` among them; empty where no case has a label.
        novelty: 1 - p-value of how strange it is among the library's own held-out cases; None without labels.
        novel: it is stranger than 95 % of them.
        votes: resolved cases that decided the most likely fault type, the weightiest first.
        method: canonical text of the method.
        change: state of the library that was searched.
        compared: cases that the method compared: all, or those of a shortlist.
        total: cases in the library.
        remarks: what the reader must know to judge the answer, in sentences.
        plausibility: what is odd about the window, the most serious first.
        judgeable: nothing odd forbids to judge it; else no fault is offered above what that leaves (`faults`).
        groups: the hits by fault type, the likeliest type first, and the best cases of each type that cannot be ruled
            out; cases that nobody resolved last.
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
    """A case that just came in, what was understood of its file, in sentences, and what is odd about its window."""

    remarks: tuple[str, ...] = ()
    plausibility: tuple[Remark, ...] = ()


class WindowCheck(Record):
    """What is odd about a window, the most serious first, and whether it can be judged in spite of that."""

    plausibility: tuple[Remark, ...]
    judgeable: bool


class ChannelEvidence(Record):
    """How one channel behaves in the window and in the case, in standard deviations of normal operation.

    Args:
        name: of the channel.
        window: root mean square departure of the window from normal.
        case: that of the case.
        agreement: of both departures after alignment, -1 to 1: the mean of their cosine and their correlation.
        same_way: both depart from normal, in the same way.
        against: it speaks against the case: one departs and the other does not, or both depart in opposite ways.
        window_series: (T,) departures of the window, on the steps that `Evidence.path` speaks of.
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
    """Why a case resembles a window.

    Args:
        case: the case.
        channels: shared channels, those that depart in the same way first, then by how far they depart.
        support: all channels in one number, -1 to 1: whether they move alike, and whether the same ones move.
        only_window: channels that the case lacks.
        only_case: channels that the window lacks.
        path: pairs (step of the window, step of the case) that dynamic time warping lays over each other.
        distance: of the aligned departures, per step and channel, in standard deviations.
        reference: what window and case are compared with, in words: the steps before, or normal operation.
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
    """How well evidence tells pairs of cases with the same fault from pairs with different faults.

    Args:
        same: pairs with the same fault, of different recordings.
        other: pairs with different faults.
        support: area under the ROC curve of `Evidence.support`; 0.5 is chance; None without both kinds of pairs.
        same_way: that of the share of departing channels which depart in the same way.
    """

    same: int
    other: int
    support: float | None
    same_way: float | None


class Suggestion(Record):
    """A case that should be labelled next.

    Args:
        case: nobody resolved it yet.
        guess: the fault type it most likely has; None where fewer than two types are known.
        doubt: 1 - probability of the guess; 1 without one.
        tells: how many other open cases are more like it than like any labelled case or earlier suggestion.
    """

    case: Case
    guess: str | None
    doubt: float
    tells: int


class Doubt(Record):
    """A label that looks wrong.

    Args:
        case: with the label.
        probability: of its own label, by the cases of other recordings.
        rather: the fault type that these find most likely.
        rather_probability: of that.
    """

    case: Case
    probability: float
    rather: str
    rather_probability: float


class Change(Record):
    """One step in the life of a library.

    Args:
        number: 1 is the first.
        what: `add`, `normals`, `edit`, `delete` or `undo`.
        cases: how many it touched.
        time: seconds since the epoch.
        undone: it was taken back later.
        author: who made it; "" where nobody said.
        takes_back: number of the change that an undo takes back.
        detail: which cases, and what of them became what; "" where nobody asked for it.
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
    """What a library holds: counts by label (unresolved under ""), by asset, and of normals by asset.

    `named` are all labels that were ever given, in the order in which they were first.
    """

    cases: int
    normals: int
    change: int
    labels: dict[str, int]
    assets: dict[str, int]
    normal_assets: dict[str, int]
    named: tuple[str, ...] = ()


class MapPoint(Record):
    """A case on the map, 0 to 1 both ways."""

    case: Case
    x: float
    y: float


class CasePair(Record):
    """Two cases that are almost the same; `likeness` is the cosine of their features."""

    first: Case
    second: Case
    likeness: float


class LibraryOverview(Record):
    """A library at a glance.

    Args:
        points: cases on the map, on which cases of the same fault lie together.
        twins: near-duplicates, the nearest first.
        left_out: older cases that were not looked at.
    """

    points: tuple[MapPoint, ...]
    twins: tuple[CasePair, ...]
    left_out: int
