"""What comes in: checked, named as the site names it, without gaps; refused whole where it cannot be used."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from readbench.cases._models import UNLIKE, Case
from readbench.engine.preparation import fill_gaps, is_reading
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, UsageError

MOST_NUMBERS = 10_000_000
"""Numbers in one window."""
MOST_TEXT = 100_000
"""Characters of notes."""
MOST_NAME = 200
"""Characters of a name, label, tag, asset or group."""
MOST_LINK = 2000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def prepare_windows(windows: WindowSet) -> WindowSet:
    """Windows without gaps, or an error.

    Missing readings (NaN or infinity) take the last reading before them, at the beginning the next one, as in the
    benchmark (`readbench.engine.preparation`). A channel without any reading is left out.

    >>> nan = float("nan")
    >>> given = WindowSet.from_arrays([[[nan, 1.0, nan, 3.0], [nan, nan, nan, nan]]], channels=("a", "b"))
    >>> own = prepare_windows(given)
    >>> own.values(0).tolist(), own.channels(0)
    ([[1.0, 1.0, 1.0, 3.0]], ('a',))
    """
    sizes = windows.channel_counts.astype(np.int64) * windows.lengths
    if sizes.max(initial=0) > MOST_NUMBERS:
        raise DataError(f"A window holds {sizes.max():,} numbers, more than {MOST_NUMBERS:,}. Give a shorter interval.")
    gaps = [i for i in range(len(windows)) if not np.isfinite(windows.values(i)).all()]
    if not gaps:
        return windows
    values, channels = (
        [windows.values(i) for i in range(len(windows))],
        list(map(windows.channels, range(len(windows)))),
    )
    for i in gaps:
        values[i], kept = _filled(values[i])
        if not kept.any():
            raise DataError(f"Window {windows.ids[i]!s} holds no reading at all.")
        channels[i] = tuple(name for name, keep in zip(channels[i], kept, strict=True) if keep)
    filled = WindowSet.from_arrays(values, channels=channels)
    return replace(
        filled,
        labels=windows.labels,
        classes=windows.classes,
        ids=windows.ids,
        groups=windows.groups,
        assets=windows.assets,
        times=windows.times,
        spans=windows.spans,
    )


def _filled(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Channels that have a reading, without gaps, and which ones those are."""
    readings = is_reading(values)
    kept: NDArray[np.bool_] = np.asarray(readings.any(axis=1), np.bool_)
    return fill_gaps(values[kept], readings[kept]).astype(np.float32, copy=False), kept


def new_id() -> str:
    """A name for a case that has none."""
    return f"case-{uuid4().hex[:12]}"


def check_case(case: Case) -> Case:
    """The case, if all its texts are what they should be."""
    if not case.id:
        raise UsageError("A case needs a name.")
    if case.label is not None:
        _check_label(case.label)
    for what, text in (("name", case.id), ("asset", case.asset), ("group", case.group)):
        _check_text(what, text, MOST_NAME)
    for tag in case.tags:
        _check_text("tag", tag, MOST_NAME)
    for link in case.links:
        _check_link(link)
    for label in case.rejected:
        _check_label(label)
    if len(case.notes) > MOST_TEXT:
        raise UsageError(f"Notes of {len(case.notes):,} characters: at most {MOST_TEXT:,} are kept.")
    if case.time is not None and not math.isfinite(case.time):
        raise UsageError(f"The time of case {case.id!r} is {case.time}; give seconds since 1970.")
    return case


def _check_label(label: str) -> None:
    _check_text("label", label, MOST_NAME)
    if label == UNLIKE or not label.strip():
        raise UsageError(f"{label!r} is no name of a fault. Give another.")


def _check_text(what: str, text: str, most: int) -> None:
    if len(text) > most or _CONTROL.search(text):
        raise UsageError(f"The {what} {text[:40]!r} is longer than {most} characters or holds control characters.")


def _check_link(link: str) -> None:
    _check_text("link", link, MOST_LINK)
    if not link.startswith(("https://", "http://", "file://")):
        raise UsageError(f"The link {link[:80]!r} must begin with https://, http:// or file://.")
