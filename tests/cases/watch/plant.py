"""A plant in memory: assets whose readings are computed, a clock that is set, and faults that begin when told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from readbench.cases.connect import LATE_S, SampledChannel, SourceChannel, SourceReadings
from readbench.cases.connect._protocol import PollingFollower
from readbench.errors import UnreachableError
from tests.cases.samples import CHANNELS, window

T0 = 1_700_000_000.0


class Plant:
    """One reading a second of three channels of each asset; noise is the same whenever it is read.

    Args:
        assets: names.
        seed: of the noise.
        steps: seconds from `T0` that are known.
    """

    shown = "plant://memory/"
    keeps_history = True

    def __init__(self, assets: Sequence[str] = ("pump 0",), seed: int = 0, steps: int = 6000) -> None:
        rng = np.random.default_rng(seed)
        self.values = {asset: rng.normal(size=(len(CHANNELS), steps)) for asset in assets}
        self.units = dict.fromkeys(CHANNELS, "")
        self.names = dict(zip(CHANNELS, CHANNELS, strict=True))
        self.now = T0
        self.away = False
        self.asked = 0
        self.batch_s = 0.0
        """Readings come together, so often; 0 for as they are taken."""

    def clock(self) -> float:
        return self.now

    def fail(self, asset: str, fault: str, onset: int, steps: int = 40) -> None:
        """From a step on, a fault, and then normal operation again."""
        rng = np.random.default_rng(onset)
        self.values[asset][:, onset : onset + steps] = window(fault, rng, steps)

    def channels(self) -> list[SourceChannel]:
        if self.away:
            raise UnreachableError("plant://memory/ does not answer: it is away.")
        return [SourceChannel(self.names[name], asset, self.units[name]) for asset in self.values for name in CHANNELS]

    def read(self, start: float, end: float, *, asset: str | None = None, step: float | None = None) -> SourceReadings:  # noqa: ARG002
        if self.away:
            raise UnreachableError("plant://memory/ does not answer: it is away.")
        self.asked += 1
        now = self.now - (self.now % self.batch_s if self.batch_s else 0.0)
        first, last = max(0, int(np.ceil(start - T0))), int(min(end, now) - T0)
        found = {}
        for whose, values in self.values.items():
            if asset in {None, whose} and last >= first:
                times = T0 + np.arange(first, min(last + 1, values.shape[1]))
                for row, name in enumerate(CHANNELS):
                    own = values[row, first : last + 1]
                    found[whose, self.names[name]] = SampledChannel.of(times, own, self.units[name])
        return SourceReadings(found)

    def follow(self, since: float, *, late_s: float = LATE_S) -> PollingFollower:
        return PollingFollower(self, since, late_s, self.clock)

    def close(self) -> None: ...
