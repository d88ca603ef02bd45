"""How our pages look: one style sheet under those of the report's site, the leaderboard and the service."""

from __future__ import annotations

from importlib.resources import files

PACKAGE, FOLDER = __name__, "static"
"""Where the style sheet lies, for servers of static files."""
FILE = "look.css"


def style() -> str:
    """The style sheet, for pages that hold all they need.

    >>> style().splitlines()[0]
    '/* What all our pages have in common: colours, type, header, fields. */'
    """
    return (files(PACKAGE) / FOLDER / FILE).read_text(encoding="utf-8")
