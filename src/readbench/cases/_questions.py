"""Questions to a library: each a function and the text of its answer (`_asking`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from readbench.cases._asking import (
    DEFAULT_METHOD,
    QUESTIONS,
    AskedWindow,
    Count,
    MethodText,
    Most,
    Sheet,
    Shown,
    question,
)
from readbench.engine.parameters import ParameterRange

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from readbench.cases._library import Library
    from readbench.cases._models import (
        Case,
        CaseDetails,
        Change,
        Doubt,
        Evidence,
        LibraryOverview,
        Remark,
        Separation,
        Suggestion,
        Summary,
        WindowCheck,
    )

__all__ = ["QUESTIONS"]
ChangeCount = Annotated[int, ParameterRange(1), Most(1000)]
CANNOT_BE_JUDGED = "This window cannot be judged: no fault type can be read from it as it is."
PairCount = Annotated[int, ParameterRange(1), Most(300)]
MAX_NOTE_CHARS = 60
"""Longest note in a table, in characters."""
MAX_LISTED_CHANNELS = 8


@question("stats")
def stats(library: Library) -> Summary:
    """Number of cases by fault type and by asset."""
    return library.stats()


@stats.view
def show_stats(summary: Summary) -> Shown:
    """One table per kind of count."""
    counts = ("Fault", summary.labels), ("Asset", summary.assets), ("Normals of", summary.normal_assets)
    return [
        f"{summary.cases} cases, {summary.normals} normal windows, {summary.change} changes",
        *(Sheet((what, "Windows"), _count_rows(numbers)) for what, numbers in counts if numbers),
    ]


@question("history")
def history(library: Library, limit: ChangeCount = 100) -> list[Change]:
    """List the last changes, newest first.

    Args:
        library: the library.
        limit: largest number of changes; `search --as-of NUMBER` searches the library as it was after one.
    """
    return library.describe_changes(library.history()[: -limit - 1 : -1])


@history.view
def show_history(changes: list[Change]) -> Shown:
    """One row per change."""
    rows = [
        (
            str(change.number),
            f"undo of {change.takes_back}" if change.takes_back else change.what,
            str(change.cases),
            change.detail,
            _format_time(change.time),
            change.author,
            "undone" if change.undone else "",
        )
        for change in changes
    ]
    return [Sheet(("Change", "What", "Cases", "In detail", "When", "By", ""), rows)]


@question("next")
def next_to_label(library: Library, k: Count = 10, method: MethodText = DEFAULT_METHOD) -> list[Suggestion]:
    """List the open cases to label next, the most informative first.

    Example: `readbench cases review plant -k 5`

    Args:
        library: the library.
        k: largest number of cases.
        method: retrieval method whose similarity is used.
    """
    return library.next_to_label(k, method)


@next_to_label.view
def show_suggestions(suggestions: list[Suggestion]) -> Shown:
    """One row per case to label."""
    if not suggestions:
        return ["every case has a label"]
    columns = "", "Case", "Recording", "Asset", "When", "Likely fault", "Uncertainty", "Similar open cases"
    rows = []
    for place, suggestion in enumerate(suggestions, start=1):
        facts = (
            suggestion.case.id,
            suggestion.case.group,
            suggestion.case.asset,
            _format_time(suggestion.case.time, suggestion.case.zone),
        )
        rows.append((str(place), *facts, suggestion.guess or "?", f"{suggestion.doubt:.0%}", str(suggestion.tells)))
    return [Sheet(columns, rows)]


@question("doubtful")
def doubtful(library: Library, k: Count = 20, method: MethodText = DEFAULT_METHOD) -> list[Doubt]:
    """List the resolved cases whose label contradicts other recordings, the least likely label first.

    Example: `readbench cases review plant --what doubtful`

    Args:
        library: the library.
        k: largest number of cases.
        method: retrieval method whose similarity is used.
    """
    return library.doubtful(k, method)


@doubtful.view
def show_doubts(doubts: list[Doubt]) -> Shown:
    """One row per label that is likely wrong."""
    if not doubts:
        return ["every label agrees with the other recordings"]
    columns = "Case", "Recording", "Fault", "Probability", "By others", "Probability", "When"
    rows = []
    for doubt in doubts:
        says, others = (doubt.case.label or "?", doubt.probability), (doubt.rather, doubt.rather_probability)
        texts = [text for label, share in (says, others) for text in (label, f"{share:.0%}")]
        rows.append((doubt.case.id, doubt.case.group, *texts, _format_time(doubt.case.time, doubt.case.zone)))
    return [Sheet(columns, rows)]


@question("overview")
def overview(library: Library) -> LibraryOverview:
    """Map of the latest cases by fault type, and their near-duplicates.

    Example: `readbench cases review plant --what overview --json`
    """
    return library.overview()


@overview.view
def show_overview(found: LibraryOverview) -> Shown:
    """Centre of each fault type on the map, and the near-duplicates."""
    left = f"; {found.left_out} older ones are left out" if found.left_out else ""
    shown: list[Sheet | str] = [f"{len(found.points)} cases on the map{left}"]
    if found.points:
        rows = [_centre(found, label) for label in sorted({point.case.label or "" for point in found.points})]
        shown.append(Sheet(("Fault", "Cases", "Around x", "Around y"), rows))
    if not found.twins:
        return [*shown, "no two cases are near-duplicates"]
    pairs = [(twin.first.id, twin.second.id, f"{twin.likeness:.3f}") for twin in found.twins]
    return [*shown, Sheet(("Case", "Near-duplicate", "Similarity"), pairs)]


@question("find")
def find(library: Library, text: str, k: Count = 10) -> list[Case]:
    """Find cases by a part of their name or by words in their notes, best first.

    Example: `readbench cases list plant --text "worn impeller"`

    Args:
        library: the library.
        text: part of the name, or words of the notes.
        k: largest number of cases.
    """
    return library.find(text, k)


@find.view
def show_cases(cases: list[Case]) -> Shown:
    """One row per case."""
    rows = [
        (case.id, case.label or "?", case.asset, _format_time(case.time, case.zone), shorten_note(case.notes))
        for case in cases
    ]
    return [Sheet(("Case", "Fault", "Asset", "When", "Notes"), rows)]


@question("show")
def show(library: Library, case: str) -> CaseDetails:
    """Show one case: its facts, its window and the context of the window.

    Example: `readbench cases show plant case-12ab`

    Args:
        library: the library.
        case: name of the case.
    """
    return library.details(case)


@show.view
def show_details(details: CaseDetails) -> Shown:
    """Facts of the case, then its window and context."""
    case = details.case
    known = {
        "Fault": case.label or "?",
        "Asset": case.asset,
        "When": _format_time(case.time, case.zone),
        "Until": _format_time(case.end, case.zone),
        "Recording": case.group,
        "Not": ", ".join(case.rejected),
        "Tags": ", ".join(case.tags),
        "Links": ", ".join(case.links),
        "Notes": case.notes,
        "Window": f"{details.steps} steps of {', '.join(details.channels)}",
        "Before": f"{details.before} steps" if details.before else "",
        "Rate": "" if details.rate is None else f"{details.rate:g} Hz",
        "Units": ", ".join(filter(None, details.units)),
        "Facts": ", ".join(f"{name} = {number:g}" for name, number in details.facts.items()),
    }
    return [Sheet(("Case", case.id), [(what, text) for what, text in known.items() if text])]


@question("check")
def check(library: Library, window: AskedWindow) -> WindowCheck:
    """Check the quality of a window: length, channels, units, gaps, dead or noisy signals.

    Example: `readbench cases check plant new.csv --time t`

    Args:
        library: the library.
        window: a window, or the name of a case.
    """
    return library.check(window)


@check.view
def show_check(found: WindowCheck) -> Shown:
    """Whether the window can be judged, and one row per oddity."""
    rows = [(str(remark.severity), remark.words) for remark in found.plausibility] or [("", "nothing is odd about it")]
    return [*([] if found.judgeable else [CANNOT_BE_JUDGED]), Sheet(("Severity", "What is odd"), rows)]


def describe_oddities(remarks: Sequence[Remark], *, judgeable: bool) -> list[str]:
    """Oddities of a window as sentences."""
    return [*([] if judgeable else [CANNOT_BE_JUDGED]), *(remark.words for remark in remarks)]


@question("explain")
def explain(library: Library, window: AskedWindow, like: str) -> Evidence:
    """Explain why a case matches a window: channels that depart from normal in the same way, and the alignment.

    Example: `readbench cases explain plant new.csv case-12ab --time t --figure why.png`

    Args:
        library: the library.
        window: a window, or the name of a case.
        like: name of the matching case.
    """
    return library.explain(window, like)


@explain.view
def show_evidence(evidence: Evidence) -> Shown:
    """One row per channel, those that depart in the same way first."""
    rows = [
        (
            channel.name,
            f"{channel.window:.1f} sd",
            f"{channel.case:.1f} sd",
            f"{channel.agreement:+.2f}",
            "for" if channel.same_way else "against" if channel.against else "",
        )
        for channel in evidence.channels[:MAX_LISTED_CHANNELS]
    ]
    lacking = ("the case lacks", evidence.only_window), ("the window lacks", evidence.only_case)
    return [
        f"{evidence.case.id}: compared with {evidence.reference}; support {evidence.support:+.2f}",
        Sheet(("Channel", "Window", "Case", "Agreement", "Evidence"), rows),
        *(f"{what}: {', '.join(names)}" for what, names in lacking if names),
        *([f"notes: {evidence.case.notes}"] if evidence.case.notes else []),
    ]


@explain.figure
def draw_match(evidence: Evidence) -> Figure:
    """Figure of window and aligned case."""
    from readbench.cases._evidence import draw_evidence  # noqa: PLC0415 - computes

    return draw_evidence(evidence)


@question("separation")
def separation(library: Library, pairs: PairCount = 200) -> Separation:
    """Measure how well evidence separates pairs of cases with the same fault from pairs with different ones.

    Example: `readbench cases review plant --what separation --pairs 300`

    Args:
        library: the library.
        pairs: largest number of pairs of each kind.
    """
    from readbench.cases._evidence import measure_separation  # noqa: PLC0415 - computes

    return measure_separation(library.snapshot(), pairs)


@separation.view
def show_separation(found: Separation) -> Shown:
    """Area under the ROC curve, of the support and of the channels that depart in the same way."""
    if found.support is None or found.same_way is None:
        return ["no two recordings with the same fault, or none with different faults: label more cases"]
    rows = [("support", f"{found.support:.3f}"), ("channels that depart in the same way", f"{found.same_way:.3f}")]
    return [f"{found.same} pairs of one fault, {found.other} of two", Sheet(("Evidence", "AUC"), rows)]


def _count_rows(numbers: dict[str, int]) -> list[tuple[str, str]]:
    return [(name or "(unknown)", str(count)) for name, count in numbers.items()]


def _centre(found: LibraryOverview, label: str) -> tuple[str, ...]:
    """Row of the map: number of cases of a fault type, and their centre."""
    points = [point for point in found.points if (point.case.label or "") == label]
    middle = sum(point.x for point in points) / len(points), sum(point.y for point in points) / len(points)
    return (label or "?", str(len(points)), *(f"{place:.2f}" for place in middle))


def _format_time(time: float | None, zone: str = "") -> str:
    from readbench.cases._intake import format_time  # noqa: PLC0415 - its module computes

    return format_time(time, zone)


def shorten_note(note: str, most: int = MAX_NOTE_CHARS) -> str:
    """Shorten a note to `most` characters for a table."""
    return note if len(note) <= most else f"{note[: most - 3]}..."
