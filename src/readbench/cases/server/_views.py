"""What pages show: a window, the life of a case, and how shares, changes and addresses are written.

A window has few enough points, what is normal for each channel, and where it departs. The life of a case comes, in
words, from the library's journal.
"""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow.compute
from numpy.typing import NDArray
from pydantic import Field

from readbench.cases import (
    CLIP_SIGMA,
    DEPARTURE_THRESHOLD,
    FIRST_DATE,
    MAX_ALIGNED_STEPS,
    UNSEEN,
    Change,
    Library,
    Snapshot,
    describe_context,
    format_time,
    reference_for,
)
from readbench.cases.server._bodies import ApiModel
from readbench.common.times import find_clock, find_shift
from readbench.engine.preparation import resample, thin_series
from readbench.engine.windows import Window

WHOLE = 0.95
"""Share of a window from which "where it departs most" is all of it."""
MAX_POINTS = 512
"""Points of a channel that are drawn."""


Drawn = tuple[float | None, ...]


class DrawnClock(ApiModel):
    """When the steps of a window were.

    Args:
        start: time of its first step, in seconds; None where unknown.
        rate: steps a second; None where unknown.
        zone: of the clock; "" where unknown.
        shift: seconds that this clock is ahead of UTC when the window begins.
    """

    start: float | None
    rate: float | None
    zone: str
    shift: float


class DrawnSignal(ApiModel):
    """One channel.

    Args:
        name: of the channel.
        unit: "" where unknown.
        values: readings to draw, at most `MAX_POINTS`: of a longer window, the least and the greatest of each stretch;
            None where nothing was read.
        asked: readings to ask with, evenly spaced; empty where the window is kept and can be asked about by name.
        asked_before: readings of the time before to ask with; empty where there is none, or the window is kept.
        mean: of normal operation; None where it is not known.
        deviation: standard deviation of normal operation; None where it is not known or the channel never moves.
        departure: root mean square departure from normal, in standard deviations.
    """

    name: str
    unit: str
    values: Drawn = Field(repr=False)
    asked: tuple[float, ...] = Field(repr=False)
    asked_before: tuple[float, ...] = Field(repr=False)
    mean: float | None
    deviation: float | None
    departure: float


class DrawnWindow(ApiModel):
    """All channels of a window, those that depart most first.

    Args:
        channels: the channels.
        steps: of the window as it is stored.
        clock: when they were.
        span: first and last part of the window in which it departs most from normal, 0 to 1; None where it does not.
        reference: what normal is taken from, in words.
        context: what the window brings along, in words.
    """

    channels: tuple[DrawnSignal, ...]
    steps: int
    clock: DrawnClock
    span: tuple[float, float] | None
    reference: str
    context: str


class DrawnPart(ApiModel):
    """A part of a window, closer: its first step, the one after its last, and the readings to draw by channel."""

    first: int
    last: int
    values: dict[str, Drawn]


class DrawnRecording(ApiModel):
    """A recording in which its sender marks when it began.

    Args:
        signals: all of it.
        onset: share of it at which it seems to begin; None where nothing departs.
        long: it is much longer than the cases here: likely more than the incident alone.
    """

    signals: DrawnWindow
    onset: float | None
    long: bool


LONG_RECORDING = 2.0
"""Lengths of the usual case from which a recording counts as long."""


def draw_recording(snapshot: Snapshot, window: Window, gaps: Gaps | None = None, zone: str = "") -> DrawnRecording:
    """The whole of a recording, as `draw_signals` has it."""
    steps = window.values.shape[1]
    return DrawnRecording(
        signals=draw_signals(snapshot, window, gaps=gaps, zone=zone),
        onset=propose_onset(_bounded(reference_for(snapshot, window).departures(window, list(window.channels)))),
        long=0 < LONG_RECORDING * snapshot.usual_steps < steps,
    )


def draw_signals(
    snapshot: Snapshot,
    window: Window,
    *,
    kept: bool = True,
    gaps: Gaps | None = None,
    end: float | None = None,
    zone: str = "",
) -> DrawnWindow:
    """The window beside the normal operation of its asset.

    Args:
        snapshot: of the library.
        window: that is drawn.
        kept: it is a case of the library.
        gaps: (C, T) where nothing was read.
        end: time of its last step; None where unknown.
        zone: of its clock; "" where unknown.
    """
    reference = reference_for(snapshot, window)
    departures = reference.departures(window, list(window.channels))
    far = np.sqrt((departures**2).mean(axis=1))
    steps = window.values.shape[1]
    drawn = _draw(window.values, gaps)
    # As many steps as the evidence looks at: what comes back is what a kept window would be compared by.
    asked = resample(window.values, min(MAX_ALIGNED_STEPS, steps)) if not kept else window.values[:, :0]
    before = window.values[:, :0] if kept or window.before is None else _pick(window.before)
    channels = [
        DrawnSignal(
            name=name,
            unit=window.units[c] if window.units else "",
            values=drawn[c],
            asked=_short(asked[c]),
            asked_before=_short(before[c]),
            mean=reference.stats.mean.get(name),
            deviation=reference.stats.std.get(name) or None,
            departure=float(far[c]),
        )
        for c, name in enumerate(window.channels)
    ]
    return DrawnWindow(
        channels=tuple(sorted(channels, key=lambda channel: -channel.departure)),
        steps=steps,
        clock=tell_clock(window, end, zone),
        span=departing_span(_bounded(departures)),
        reference=reference.words,
        context=describe_context(0 if window.before is None else window.before.shape[1], window.rate, window.facts),
    )


Gaps = NDArray[np.bool_]


def find_gaps(given: Window, filled: Window) -> Gaps:
    """(C, T) where the channels of a filled window had no reading when it was given."""
    rows = {name: ~np.isfinite(given.values[c]) for c, name in enumerate(given.channels)}
    return np.array([rows.get(name, np.zeros(filled.values.shape[1], np.bool_)) for name in filled.channels])


def draw_part(window: Window, first: int, last: int, gaps: Gaps | None = None) -> DrawnPart:
    """The steps `first` to `last` of a window, closer, as `draw_signals` draws them."""
    steps = window.values.shape[1]
    first = min(max(0, first), steps - 1)
    last = min(max(first + 1, last), steps)
    drawn = _draw(window.values[:, first:last], None if gaps is None else gaps[:, first:last])
    return DrawnPart(first=first, last=last, values=dict(zip(window.channels, drawn, strict=True)))


def tell_clock(window: Window, end: float | None, zone: str) -> DrawnClock:
    """When the steps of a window were; its rate follows from its end where that is known: it is the more exact."""
    steps, start = window.values.shape[1], None if find_clock(window.time) is None else window.time
    rate = None if np.isnan(window.rate) else window.rate
    if start is not None and end is not None and end > start and steps > 1:
        rate = (steps - 1) / (end - start)
    shift = find_shift(start, zone) if start is not None and start >= FIRST_DATE else 0.0
    return DrawnClock(start=start, rate=rate, zone=zone, shift=shift)


def _draw(values: NDArray[np.float32], gaps: Gaps | None) -> list[Drawn]:
    """Few enough points of each channel; a stretch without any reading is a gap."""
    thin = thin_series(values, MAX_POINTS)
    if gaps is None or not gaps.any():
        return [_short(row) for row in thin]
    silent = thin_series(gaps.astype(np.float32), MAX_POINTS) > 0
    if thin.shape != values.shape:  # two points a stretch, its least and its greatest: both are set where all of it is
        silent = silent.reshape(len(thin), -1, 2).all(axis=2).repeat(2, axis=1)
    return [
        tuple(None if gap else value for value, gap in zip(_short(row), gaps, strict=True))
        for row, gaps in zip(thin, silent.tolist(), strict=True)
    ]


def propose_onset(departures: NDArray[np.float64]) -> float | None:
    """Share of a recording at which its farthest stretch begins to depart from normal; None where nothing departs.

    Args:
        departures: (C, T) in standard deviations.

    >>> propose_onset(np.repeat([[0.0] * 90 + [5.0] * 10], 2, axis=0))
    0.89
    """
    steps = departures.shape[1]
    width = max(1, steps // 32)
    box = np.ones(width) / width
    level = np.sqrt([np.convolve(row**2, box, mode="same") for row in departures]).max(axis=0)
    far = np.flatnonzero(level >= max(DEPARTURE_THRESHOLD, (np.median(level) + level.max()) / 2))
    if not len(far):
        return None
    quiet = np.flatnonzero(level[: far[0]] < DEPARTURE_THRESHOLD)
    return float((quiet[-1] + 1 if len(quiet) else 0) / steps)


def departing_span(departures: NDArray[np.float64]) -> tuple[float, float] | None:
    """First and last part of a window in which the channels that depart at all are farthest from normal.

    Farthest is the upper half of how far they ever are, and never less than what counts as departing. None where that
    is the whole window: then it points at nothing.

    Args:
        departures: (C, T) in standard deviations.

    >>> departing_span(np.repeat([[0.0] * 30 + [5.0] * 10], 2, axis=0))
    (0.75, 1.0)
    """
    moving = departures[np.sqrt((departures**2).mean(axis=1)) >= DEPARTURE_THRESHOLD]
    if not len(moving):
        return None
    steps = departures.shape[1]
    width = max(1, steps // 64)
    level = np.convolve(np.sqrt((moving**2).mean(axis=0)), np.ones(width) / width, mode="same")
    far = np.flatnonzero(level >= max(DEPARTURE_THRESHOLD, (level.min() + level.max()) / 2))
    if not len(far) or far[-1] + 1 - far[0] >= WHOLE * steps:
        return None
    return float(far[0] / steps), float((far[-1] + 1) / steps)


def _bounded(departures: NDArray[np.float64]) -> NDArray[np.float64]:
    """Departures that end somewhere, so that one dead sensor does not hide where the others depart."""
    return departures.clip(-CLIP_SIGMA, CLIP_SIGMA)


def _pick(before: NDArray[np.float32]) -> NDArray[np.float32]:
    """Evenly spaced steps of the time before: between them nothing is averaged, so that it keeps its spread."""
    return before[:, :: -(-before.shape[1] // MAX_ALIGNED_STEPS)]


def _short(values: NDArray[np.float32]) -> tuple[float, ...]:
    """Six digits of each value: what a float32 holds, and no more to send."""
    return tuple(float(f"{value:.6g}") for value in values.tolist())


FIELDS = ("label", "asset", "time", "group", "notes", "tags", "links", "rejected")
LONG = 60


class CaseEvent(ApiModel):
    """One change of a case.

    Args:
        change: its number in the library.
        time: seconds since the epoch.
        words: what it did.
        undone: it was taken back later.
        author: who made it; "" where nobody said.
        what: as in `Change`.
    """

    change: int
    time: float
    words: str
    undone: bool
    author: str
    what: str


def list_events(library: Library, case: str) -> list[CaseEvent]:
    """All changes of a case, newest first."""
    journal = library.store.journal()
    rows = journal.filter(pyarrow.compute.equal(journal["id"], case)).sort_by("step").to_pylist()
    changes = {change.number: change for change in library.history()}
    events, before = [], dict.fromkeys(FIELDS)
    for row in rows:
        entry = changes[row["change"]]
        words = _words(row, before)
        before = before if entry.undone else row
        if entry.takes_back is None:
            events.append(
                CaseEvent(
                    change=entry.number,
                    time=row["stamp"],
                    words=words,
                    undone=entry.undone,
                    author=entry.author,
                    what=entry.what,
                )
            )
    return events[::-1]


def find_author(library: Library, case: str) -> str:
    """Who made the last change of a case that still stands; "" where nobody said."""
    return next((event.author for event in list_events(library, case) if not event.undone), "")


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


def format_field(value: object) -> str:
    """A field of a case as a form shows it.

    >>> format_field(("a", "b")), format_field(None)
    ('a, b', '')
    """
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else "" if value is None else str(value)


def read_seen(text: str) -> float:
    """What the sender of a form saw of its case: `changed`, as the page had it; without it, nothing.

    >>> read_seen("12.5"), read_seen("") == UNSEEN, read_seen("x")
    (12.5, True, nan)
    """
    try:
        return float(text) if text.strip() else UNSEEN
    except ValueError:
        return math.nan


def format_percent(share: float | None) -> str:
    """A share as people say it.

    >>> format_percent(0.004), format_percent(0.42), format_percent(0.999), format_percent(None)
    ('<1 %', '42 %', '>99 %', '')
    """
    if share is None:
        return ""
    if 0 < share < 0.01:
        return "<1 %"
    return ">99 %" if 0.99 < share < 1 else f"{share:.0%}".replace("%", " %")


def format_span(clock: DrawnClock, steps: int) -> str:
    """When a window began and ended, by its own clock.

    >>> format_span(DrawnClock(start=1.7e9, rate=1.0, zone="+01:00", shift=3600.0), 601)
    '2023-11-14 23:13 to 23:23 +01:00'
    >>> format_span(DrawnClock(start=4.0, rate=None, zone="", shift=0.0), 2)
    '4 s'
    """
    first = format_time(clock.start, clock.zone)
    if clock.start is None or clock.rate is None:
        return first
    last = format_time(clock.start + (steps - 1) / clock.rate, clock.zone)
    day = first[: len("2023-11-14 ")]
    return f"{first.removesuffix(clock.zone).strip()} to {last.removeprefix(day) if '-' in day else last}"


def describe_change(change: Change) -> str:
    """What a change did.

    >>> describe_change(Change(number=1, what="normals", cases=80, time=0.0, undone=False))
    '80 normal windows added'
    """
    if change.what == "undo":
        return f"change {change.takes_back} taken back"
    noun = "normal window" if change.what == "normals" else "case"
    verb = {"add": "added", "normals": "added", "edit": "changed", "delete": "taken out"}[change.what]
    return f"{change.cases} {noun}{'' if change.cases == 1 else 's'} {verb}"


def make_link(case: str) -> str:
    """The address of a case's page.

    >>> make_link("run 1/a?b")
    '/cases/run%201%2Fa%3Fb'
    """
    return f"/cases/{quote(case, safe='')}"


def shorten_text(text: str, most: int = 110) -> str:
    """The beginning of a text, in one line.

    >>> shorten_text("one two three", 8)
    'one two…'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
