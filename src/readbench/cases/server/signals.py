"""A window as the page draws it: few enough points, what is normal for each channel, and where it departs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from readbench.cases.evidence import DEPARTS, MOST_STEPS, Reference, reference_for
from readbench.cases.server.bodies import Body
from readbench.cases.snapshot import Snapshot
from readbench.windows import Window, resample
from readbench.windows.thinning import thinned

MOST_POINTS = 512
"""Points of a channel that are drawn."""


class Signal(Body):
    """One channel.

    Args:
        name: of the channel.
        values: readings to draw, at most `MOST_POINTS`: of a longer window, the least and the greatest of each stretch.
        asked: readings to ask with, evenly spaced; empty where the window is kept and can be asked about by name.
        mean: of normal operation; None where it is not known.
        deviation: standard deviation of normal operation; None where it is not known or the channel never moves.
        departure: root mean square departure from normal, in standard deviations.
    """

    name: str
    values: tuple[float, ...] = Field(repr=False)
    asked: tuple[float, ...] = Field(repr=False)
    mean: float | None
    deviation: float | None
    departure: float


class Signals(Body):
    """All channels of a window, those that depart most first.

    Args:
        channels: the channels.
        steps: of the window as it is stored.
        span: first and last part of the window in which it departs most from normal, 0 to 1; None where it does not.
        reference: what normal is taken from, in words.
    """

    channels: tuple[Signal, ...]
    steps: int
    span: tuple[float, float] | None
    reference: str


def signals_of(snapshot: Snapshot, window: Window, *, kept: bool = True) -> Signals:
    """The window beside the normal operation of its asset.

    Args:
        snapshot: of the library.
        window: that is drawn.
        kept: it is a case of the library.
    """
    reference = reference_for(snapshot, window.asset)
    departures = reference.departures(window, list(window.channels))
    far = np.sqrt((departures**2).mean(axis=1))
    steps = window.values.shape[1]
    drawn = thinned(window.values, MOST_POINTS)
    # As many steps as the evidence looks at: what comes back is what a kept window would be compared by.
    asked = resample(window.values, min(MOST_STEPS, steps)) if not kept else window.values[:, :0]
    channels = [_signal(name, drawn[c], asked[c], reference, float(far[c])) for c, name in enumerate(window.channels)]
    return Signals(
        channels=tuple(sorted(channels, key=lambda channel: -channel.departure)),
        steps=steps,
        span=departing_span(departures),
        reference=reference.words,
    )


def departing_span(departures: NDArray[np.float64]) -> tuple[float, float] | None:
    """First and last part of a window in which the channels that depart at all are farthest from normal.

    Farthest is the upper half of how far they ever are, and never less than what counts as departing.

    Args:
        departures: (C, T) in standard deviations.

    >>> departing_span(np.repeat([[0.0] * 30 + [5.0] * 10], 2, axis=0))
    (0.75, 1.0)
    """
    moving = departures[np.sqrt((departures**2).mean(axis=1)) >= DEPARTS]
    if not len(moving):
        return None
    steps = departures.shape[1]
    width = max(1, steps // 64)
    level = np.convolve(np.sqrt((moving**2).mean(axis=0)), np.ones(width) / width, mode="same")
    far = np.flatnonzero(level >= max(DEPARTS, (level.min() + level.max()) / 2))
    return (float(far[0] / steps), float((far[-1] + 1) / steps)) if len(far) else None


def _signal(
    name: str, drawn: NDArray[np.float32], asked: NDArray[np.float32], reference: Reference, departure: float
) -> Signal:
    mean, deviation = reference.stats.mean.get(name), reference.stats.std.get(name)
    return Signal(
        name=name,
        values=_short(drawn),
        asked=_short(asked),
        mean=mean,
        deviation=deviation or None,
        departure=departure,
    )


def _short(values: NDArray[np.float32]) -> tuple[float, ...]:
    """Six digits of each value: what a float32 holds, and no more to send."""
    return tuple(float(f"{value:.6g}") for value in values.tolist())
