"""Times as people read and write them."""

from __future__ import annotations

from datetime import UTC, datetime

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
