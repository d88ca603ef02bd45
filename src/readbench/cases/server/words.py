"""How the pages write times, shares and addresses."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote

from readbench.cases.answers import Change
from readbench.errors import UsageError

FIRST_DATE = 1e8
"""Seconds since 1970 below which a time is no date, but counted from the beginning of a recording."""
LAST_DATE = 253402300799.0


def when(time: float | None) -> str:
    """A date, or seconds where the recording only counts from its beginning.

    >>> when(1.7e9), when(64.0), when(None)
    ('2023-11-14 22:13', '64 s', '')
    """
    if time is None:
        return ""
    if not FIRST_DATE <= time <= LAST_DATE:
        return f"{time:g} s"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def percent(share: float | None) -> str:
    """A share as people say it.

    >>> percent(0.004), percent(0.42), percent(0.999), percent(None)
    ('<1 %', '42 %', '>99 %', '')
    """
    if share is None:
        return ""
    if 0 < share < 0.01:
        return "<1 %"
    return ">99 %" if 0.99 < share < 1 else f"{share:.0%}".replace("%", " %")


def done(change: Change) -> str:
    """What a change did.

    >>> done(Change(number=1, what="normals", cases=80, time=0.0, undone=False))
    '80 normal windows added'
    """
    if change.what == "undo":
        return "a change taken back"
    noun = "normal window" if change.what == "normals" else "case"
    verb = {"add": "added", "normals": "added", "edit": "changed", "delete": "taken out"}[change.what]
    return f"{change.cases} {noun}{'' if change.cases == 1 else 's'} {verb}"


def link(case: str) -> str:
    """The address of a case's page.

    >>> link("run 1/a?b")
    '/cases/run%201%2Fa%3Fb'
    """
    return f"/cases/{quote(case, safe='')}"


def short(text: str, most: int = 110) -> str:
    """The beginning of a text, in one line.

    >>> short("one two three", 8)
    'one two…'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def moment(text: str) -> float | None:
    """Seconds, or a date as seconds since 1970 (UTC unless it says otherwise); None for "".

    >>> moment("12.5"), moment("1970-01-02"), moment("")
    (12.5, 86400.0, None)
    """
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise UsageError(f"{text[:40]!r} is no time: give seconds, or a date such as 2024-05-01T12:00.") from error
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
