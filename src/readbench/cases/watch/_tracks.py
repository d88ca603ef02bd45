"""The last readings of an asset on the library's grid, its scores, and the event that goes on; all bounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.cases._channels import conversion
from readbench.cases.connect import SampledChannel, on_clock
from readbench.common.files import digest
from readbench.engine.context import Context
from readbench.engine.departures import DepartureDetector
from readbench.engine.windows import WindowSet
from readbench.errors import DataError

HELD = 2.5
"""Windows of readings that are held of each asset."""
MOST_TRACKED = 5_000
"""Channels of one asset."""
MOST_PENDING = 50_000
"""Readings of a channel that wait for the grid."""


@dataclass
class WatchedEvent:
    """Something that goes on with an asset.

    Args:
        key: the same whenever this event is told.
        onset: step of the grid at which it began.
        seen: step at which it was seen.
        trigger: `departure`, or the name of an alert.
        looked: share of a window after the onset at which the library was asked last; negative where it was not yet.
        belief: most likely fault of the last look, and how likely.
        outcome: what came of it so far: a kind of notice, `normal` where it was taken for that, "" while it is open.
    """

    key: str
    onset: int
    seen: int
    trigger: str = "departure"
    looked: float = -1.0
    belief: tuple[str, float] = ("", 0.0)
    outcome: str = ""

    @property
    def settled(self) -> bool:
        """Whether its fault was told: then nothing more is."""
        return self.outcome == "fault"

    @property
    def next_key(self) -> str:
        """Key of the next notice: the event's own, and another one for a fault that is told after `unclear`."""
        return self.key if self.outcome in {"", "normal"} else digest(self.key, "fault")

    def to_json(self) -> dict[str, Any]:
        """As the state file keeps it."""
        return dict(vars(self))

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> Self | None:
        """As it was; None where an earlier version kept something else: it is seen anew."""
        if kept.keys() != {own.name for own in fields(cls)}:
            return None
        return cls(**{**kept, "belief": tuple(kept["belief"])})


class AssetTrack:
    """What is held of one asset.

    Args:
        asset: its name.
        step: seconds between steps of the grid, which has one at 1970.
        window: usual steps of a window.
        detector: of departures; None where nothing is known of its normal operation: then only alerts lead to a look.
    """

    def __init__(self, asset: str, step: float, window: int, detector: DepartureDetector | None) -> None:
        self.asset = asset
        self.step = step
        self.window = window
        self.detector = detector
        self.size = max(round(HELD * window), window + 2 + (detector.memory if detector else 0))
        self.channels: list[str] = list(detector.channels) if detector else []
        known = zip(detector.channels, detector.units, strict=True) if detector else ()
        self.units: dict[str, str] = {name: unit for name, unit in known if unit}
        self.values: NDArray[np.float32] = np.full((len(self.channels), self.size), np.nan, np.float32)
        self.scores: NDArray[np.float64] = np.zeros(self.size)
        self.last = -1
        """Step of the last column."""
        self.heard = 0.0
        """Time of the last reading, in seconds since 1970."""
        self.event: WatchedEvent | None = None
        self.quiet = 0
        self._gathered: list[NDArray[np.float32]] = []
        self._gathered_of: list[str] = []
        self._pending: dict[str, SampledChannel] = {}

    def begin(self, last: int) -> None:
        """Say which step the last column is of; before it nothing is known."""
        self.last = last

    def take(self, readings: Mapping[str, SampledChannel], say: Callable[[str], object]) -> None:
        """Readings that came; they wait until the grid has come to them."""
        for name, own in readings.items():
            if name not in self.channels and len(self.channels) >= MOST_TRACKED:
                say(f"{self.asset}: channels beyond the first {MOST_TRACKED:,} are left out.")
                continue
            new = self._in_unit(name, own, say)
            if new is None or not len(new.times):
                continue
            self.heard = max(self.heard, float(new.times[-1]))
            if name not in self.channels:
                self._add_channel(name, say)
            held = self._pending.get(name)
            if held is not None and len(held.times):
                times, values = np.concatenate([held.times, new.times]), np.concatenate([held.values, new.values])
                new = SampledChannel.of(times[-MOST_PENDING:], values[-MOST_PENDING:])
            self._pending[name] = new

    def advance(self, until: int) -> int:
        """Bring the grid forward to a step, with what waits; returns by how many steps it went."""
        count = until - self.last
        if count <= 0:
            return 0
        steps = min(count, self.size)
        start = (until - steps + 1) * self.step
        new = on_clock(self._pending, start, self.step, steps, tuple(self.channels)).astype(np.float32)
        self.values = np.concatenate([self.values[:, steps:], new], axis=1)
        scores = np.zeros(steps)
        if self.detector is not None:
            rows = self.values[: len(self.detector.channels), -min(self.size, steps + self.detector.memory) :]
            found, _ = self.detector.scores(rows)
            scores[steps - len(found) :] = found[-steps:]
        self.scores = np.concatenate([self.scores[steps:], scores])
        self.last = until
        self._forget(until * self.step)
        return steps

    def rewind(self, until: int) -> None:
        """Bring the grid back to a step: what is held of later ones is dropped."""
        back = min(self.last - until, self.size)
        unknown = np.full((len(self.channels), back), np.nan, np.float32)
        self.values = np.concatenate([unknown, self.values[:, : self.size - back]], axis=1)
        self.scores = np.concatenate([np.zeros(back), self.scores[: self.size - back]])
        self.last = until

    def gather(self, steps: int, wanted: int) -> NDArray[np.float32] | None:
        """Hold the last steps until they are as many as is wanted, and give them then; a new channel begins anew."""
        if self._gathered_of != self.channels:
            self._gathered_of = list(self.channels)
            self._gathered.clear()
        if steps and self.channels:
            self._gathered.append(self.values[:, -steps:].copy())
        if sum(own.shape[1] for own in self._gathered) < wanted:
            return None
        found = np.concatenate(self._gathered, axis=1)
        self._gathered.clear()
        return found

    def adopt(self, detector: DepartureDetector) -> None:
        """Watch for departures from now on; its channels come first, in its order."""
        order = [self.channels.index(name) for name in detector.channels]
        order += [i for i in range(len(self.channels)) if i not in order]
        self.channels, self.values = [self.channels[i] for i in order], self.values[order]
        self.detector = detector

    def cut(self, rate: float) -> WindowSet | None:
        """The window that ends now, with what lies before it; None where it holds no reading."""
        own, before = self.values[:, -self.window :], self.values[:, : -self.window]
        kept = np.flatnonzero(np.isfinite(own).any(axis=1))
        if not len(kept):
            return None
        names = tuple(self.channels[i] for i in kept)
        known = np.isfinite(before[kept])
        first = int(np.argmax(known.any(axis=0))) if known.any() else before.shape[1]
        told = before[kept][:, first:] if known.any(axis=1).all() and before.shape[1] - first >= 2 else None
        units = tuple(self.units.get(name, "") for name in names)
        return WindowSet.from_arrays(
            [own[kept]],
            channels=names,
            assets=[self.asset],
            times=[(self.last - self.window + 1) * self.step],
            context=Context.of(1, befores=[told], rates=[rate], units=[units if any(units) else ()]),
        )

    def silent(self) -> list[str]:
        """Channels that were read before, and not for half a window."""
        known = np.isfinite(self.values)
        return [
            name
            for name, row in zip(self.channels, known, strict=True)
            if row.any() and not row[-self.window // 2 :].any()
        ]

    def _in_unit(self, name: str, own: SampledChannel, say: Callable[[str], object]) -> SampledChannel | None:
        """Readings in the unit that the channel had first."""
        known = self.units.setdefault(name, own.unit)
        if own.unit and not known:
            self.units[name] = known = own.unit
        if not own.unit or own.unit == known:
            return own
        try:
            factor, offset = conversion(own.unit, known, name)
        except DataError:
            say(f"{self.asset}: {name} comes in {own.unit} now, not {known}, and no conversion is known: left out.")
            return None
        return SampledChannel(own.times, own.values * factor + offset, known)

    def _add_channel(self, name: str, say: Callable[[str], object]) -> None:
        if self.detector is not None:
            say(f"{self.asset}: the channel {name} is new: it is searched with, and not watched for departures.")
        self.channels.append(name)
        row = np.full((1, self.size), np.nan, np.float32)
        self.values = np.concatenate([self.values, row])

    def _forget(self, now: float) -> None:
        """Drop readings that the grid has passed, but for the last ones, which still hold; and channels long gone."""
        for name, own in self._pending.items():
            passed = int(np.searchsorted(own.times, now, side="right"))
            if passed > 4:
                self._pending[name] = SampledChannel(own.times[passed - 4 :], own.values[passed - 4 :], own.unit)
        first = len(self.detector.channels) if self.detector else 0
        gone = [i for i in range(first, len(self.channels)) if not np.isfinite(self.values[i]).any()]
        for i in reversed(gone):
            name = self.channels[i]
            waits = self._pending.get(name)
            if waits is None or not len(waits.times) or waits.times[-1] <= now:
                self._pending.pop(name, None)
                self.units.pop(name, None)
                del self.channels[i]
                self.values = np.delete(self.values, i, axis=0)

    @property
    def held_bytes(self) -> int:
        """Memory of what is held."""
        waiting = sum(own.times.nbytes + own.values.nbytes for own in self._pending.values())
        gathered = sum(own.nbytes for own in self._gathered)
        return int(self.values.nbytes + self.scores.nbytes + waiting + gathered)


def grid_step(time: float, step: float) -> int:
    """The last step of the grid at a time.

    >>> grid_step(10.4, 0.5)
    20
    """
    return math.floor(time / step + 1e-6)
