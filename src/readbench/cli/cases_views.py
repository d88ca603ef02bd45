"""How the case library shows itself on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from readbench.cases import Answer, Case, Change, Doubt, Evidence, Suggestion, Summary

MOST_FAULTS = 5
MOST_CHANNELS = 8
NOTE = 60
"""Characters of a note in a table."""


def show_answer(answer: Answer, console: Console) -> None:
    """The options of what it may be, then the cases."""
    from readbench.cases import UNLIKE

    if answer.faults:
        table = Table("What it may be", "Probability", "Cannot be ruled out", box=SIMPLE_HEAD)
        for fault in (f for place, f in enumerate(answer.faults) if place < MOST_FAULTS or f.label == UNLIKE):
            table.add_row(escape(fault.label), f"{fault.probability:.0%}", "yes" if fault.possible else "")
        console.print(table)
    table = Table("", "Case", "Fault", "Same fault", "Asset", "When", "Notes", box=SIMPLE_HEAD)
    for hit in answer.hits:
        likely = "" if hit.probability is None else f"{hit.probability:.0%}"
        table.add_row(str(hit.place), *_named(hit.case), likely, *_facts(hit.case))
    console.print(table)
    for remark in answer.remarks:
        console.print(escape(remark), style="yellow", highlight=False)
    console.print(f"method {answer.method}; change {answer.change}", style="dim", highlight=False, markup=False)


def show_cases(cases: Sequence[Case], console: Console) -> None:
    """One row a case."""
    table = Table("Case", "Fault", "Asset", "When", "Notes", box=SIMPLE_HEAD)
    for case in cases:
        table.add_row(*_named(case), *_facts(case))
    console.print(table)


def show_suggestions(suggestions: Sequence[Suggestion], console: Console) -> None:
    """One row a case to label, and why."""
    from readbench.cases import format_time

    table = Table("", "Case", "Recording", "Asset", "When", "May be", "Doubt", "Tells about others", box=SIMPLE_HEAD)
    for place, own in enumerate(suggestions, start=1):
        case = own.case
        facts = escape(case.id), escape(case.group), escape(case.asset), format_time(case.time)
        table.add_row(str(place), *facts, escape(own.guess or "?"), f"{own.doubt:.0%}", str(own.tells))
    console.print(table)


def show_doubts(doubts: Sequence[Doubt], console: Console) -> None:
    """One row a label that looks wrong."""
    from readbench.cases import format_time

    table = Table("Case", "Recording", "Fault", "Probability", "Others say", "Probability", "When", box=SIMPLE_HEAD)
    for own in doubts:
        says = escape(own.case.label or "?"), f"{own.probability:.0%}"
        others = escape(own.rather), f"{own.rather_probability:.0%}"
        table.add_row(escape(own.case.id), escape(own.case.group), *says, *others, format_time(own.case.time))
    console.print(table)


def show_evidence(evidence: Evidence, console: Console) -> None:
    """Channels, those that depart in the same way first."""
    console.print(f"{evidence.case.id}: departures from {evidence.reference}", markup=False, highlight=False)
    table = Table("Channel", "Window", "Case", "Agreement", "Same way", box=SIMPLE_HEAD)
    for channel in evidence.channels[:MOST_CHANNELS]:
        numbers = f"{channel.window:.1f} sd", f"{channel.case:.1f} sd", f"{channel.agreement:+.2f}"
        table.add_row(escape(channel.name), *numbers, "yes" if channel.same_way else "")
    console.print(table)
    for what, names in (("the case lacks", evidence.only_window), ("the window lacks", evidence.only_case)):
        if names:
            console.print(f"{what}: {', '.join(names)}", markup=False, highlight=False)
    if evidence.case.notes:
        console.print(f"notes: {evidence.case.notes}", markup=False, highlight=False)


def show_history(changes: Sequence[Change], console: Console) -> None:
    """One row a change."""
    from readbench.cases import format_time

    table = Table("Change", "What", "Cases", "When", "", box=SIMPLE_HEAD)
    for change in changes:
        table.add_row(
            str(change.number),
            change.what,
            str(change.cases),
            format_time(change.time),
            "undone" if change.undone else "",
        )
    console.print(table)


def show_summary(summary: Summary, console: Console) -> None:
    """Counts."""
    console.print(f"{summary.cases} cases, {summary.normals} normal windows, {summary.change} changes", highlight=False)
    for what, counts in (("Fault", summary.labels), ("Asset", summary.assets), ("Normals of", summary.normal_assets)):
        table = Table(what, "Windows", box=SIMPLE_HEAD)
        for name, count in counts.items():
            table.add_row(escape(name) or "(unknown)", str(count))
        if counts:
            console.print(table)


def _named(case: Case) -> tuple[str, str]:
    return escape(case.id), escape(case.label or "?")


def _facts(case: Case) -> tuple[str, str, str]:
    from readbench.cases import format_time

    note = case.notes if len(case.notes) <= NOTE else f"{case.notes[: NOTE - 3]}..."
    return escape(case.asset), format_time(case.time), escape(note)
