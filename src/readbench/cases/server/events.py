"""The life of one case, in words, from the library's journal."""

from __future__ import annotations

from typing import Any

import pyarrow.compute

from readbench.cases.library import CaseLibrary
from readbench.cases.server.bodies import Body

FIELDS = ("label", "asset", "time", "group", "notes", "tags", "links", "rejected")
LONG = 60


class CaseEvent(Body):
    """One change of a case.

    Args:
        change: its number in the library.
        time: seconds since the epoch.
        words: what it did.
        undone: it was taken back later.
    """

    change: int
    time: float
    words: str
    undone: bool


def events_of(library: CaseLibrary, case: str) -> list[CaseEvent]:
    """All changes of a case, newest first."""
    journal = library.store.journal()
    rows = journal.filter(pyarrow.compute.equal(journal["id"], case)).sort_by("step").to_pylist()
    undone = {change.number for change in library.history() if change.undone}
    events, before = [], dict.fromkeys(FIELDS)
    for row in rows:
        taken_back = row["change"] in undone
        events.append(CaseEvent(change=row["change"], time=row["stamp"], words=_words(row, before), undone=taken_back))
        before = before if taken_back else row
    return events[::-1]


def _words(row: dict[str, Any], before: dict[str, Any]) -> str:
    if row["what"] == "delete":
        return "taken out"
    if row["what"] in {"add", "normals"}:
        return f"added as {row['label']}" if row["label"] else "added, not resolved"
    said = [_said(name, row[name]) for name in FIELDS if repr(row[name]) != repr(before[name])]
    return "; ".join(said) or "written again"


def _said(field: str, value: object) -> str:
    """What a field now is.

    >>> _said("label", "leak"), _said("rejected", ["leak"]), _said("notes", "")
    ('resolved as leak', 'known not to be leak', 'notes taken out')
    """
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")
    short = text if len(text) <= LONG else f"{text[: LONG - 1]}…"
    if field == "label":
        return f"resolved as {short}" if short else "not resolved any more"
    if field == "rejected":
        return f"known not to be {short}" if short else "nothing is ruled out"
    return f"{field}: {short}" if short else f"{field} taken out"
