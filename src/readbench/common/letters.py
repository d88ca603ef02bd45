"""Text of strangers, as it may be shown: no control character reaches a terminal or a log."""

from __future__ import annotations

MOST_LETTERS = 2000


def clean(text: str, most: int = MOST_LETTERS) -> str:
    r"""A text on one line: control characters are written out, and what is too long is cut.

    >>> print(clean("rig\n09:00 all is well \x1b[31m"))
    rig\n09:00 all is well \x1b[31m
    >>> clean("abcdef", 3)
    'abc...'
    """
    short = text if len(text) <= most else text[:most] + "..."
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in short)


def clean_lines(text: str, most: int = 5 * MOST_LETTERS) -> str:
    """The same for each line of a text of several."""
    return "\n".join(clean(line, most) for line in text.split("\n"))
