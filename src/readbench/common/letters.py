"""Cleaning untrusted text for display: no control character reaches a terminal or a log."""

from __future__ import annotations

MAX_CHARACTERS = 2000


def clean(text: str, most: int = MAX_CHARACTERS) -> str:
    r"""Escape control characters and cut the text to `most` characters.

    >>> print(clean("rig\n09:00 all is well \x1b[31m"))
    rig\n09:00 all is well \x1b[31m
    >>> clean("abcdef", 3)
    'abc...'
    """
    short = text if len(text) <= most else text[:most] + "..."
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in short)


def clean_lines(text: str, most: int = 5 * MAX_CHARACTERS) -> str:
    """Apply `clean` to each line of a text."""
    return "\n".join(clean(line, most) for line in text.split("\n"))
