"""How the pages write shares, changes and addresses."""

from __future__ import annotations

from urllib.parse import quote

from readbench.cases.answers import Change


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
