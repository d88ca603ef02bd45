"""What the watch tells of every fault of the simulated plant, in simulated time: `python -m research.watch_replay`.

The plant and the library are those of the live demonstration (`research.live_demo`), and so are the settings of the
watch; between them stands a source in memory instead of a server, so that an hour takes seconds. Each fault begins
under several regimes, and the plant also runs healthy, where every departure and every notice is a false one.

The shape of the detector was chosen on this simulator: what comes out says how the parts work together, and is no test
on data that nobody has seen.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from readbench.cases import DEFAULT_METHOD, Library
from readbench.cases.connect import (
    LATE_S,
    SampledChannel,
    SourceChannel,
    SourceFollower,
    SourceReadings,
)
from readbench.cases.connect._protocol import PollingFollower
from readbench.cases.watch import Notice, Watcher, WatchSettings
from research.live_demo import DELAY, LEARNED, STEP_S, WINDOW, make_library
from research.live_plant import SimulatedPlant, simulate_plant

T0 = 1_700_000_000.0
"""When the watch begins."""
AFTER = 2.5
"""Windows that are watched from the onset on."""
HEALTHY = 120
"""Windows that a healthy plant runs."""
METHOD = DEFAULT_METHOD
BEFORE_S = (20.0, 27.0, 34.0, 41.0)
"""From the start of the watch to the onset, seed by seed."""


class _Replayed:
    """A plant as a source: its readings up to a time that is set."""

    shown = "replayed://"
    keeps_history = True

    def __init__(self, plant: SimulatedPlant) -> None:
        self.plant = plant
        self.now = T0
        self.times = T0 + STEP_S * (np.arange(plant.values.shape[1]) - LEARNED * WINDOW)

    def clock(self) -> float:
        return self.now

    def channels(self) -> list[SourceChannel]:
        return [
            SourceChannel(name, self.plant.asset, unit)
            for name, unit in zip(self.plant.channels, self.plant.units, strict=True)
        ]

    def read(self, start: float, end: float, *, asset: str | None = None, step: float | None = None) -> SourceReadings:  # noqa: ARG002
        first, last = np.searchsorted(self.times, [start, min(end, self.now) + 1e-6])
        return SourceReadings(
            {
                (own.asset, own.name): SampledChannel.of(self.times[first:last], row[first:last], own.unit)
                for own, row in zip(self.channels(), self.plant.values, strict=True)
            }
        )

    def follow(self, since: float, *, late_s: float = LATE_S) -> SourceFollower:
        return PollingFollower(self, since, late_s, self.clock)

    def close(self) -> None: ...


@dataclass(frozen=True)
class Replay:
    """What a watch told of one run.

    Args:
        fault: that began; "" for a healthy run.
        onset: when, in seconds since 1970.
        notices: in order.
        departures: how often the asset was seen to depart.
    """

    fault: str
    onset: float
    notices: tuple[Notice, ...]
    departures: int

    @property
    def named(self) -> str:
        """The fault that was told firmly; "" where none was."""
        return next((own.faults[0].label for own in self.notices if own.kind == "fault"), "")

    @property
    def delay_s(self) -> float:
        """From the onset to the first notice; NaN where none came."""
        return self.notices[0].told - self.onset if self.notices else float("nan")


def replay(library: Library, fault: str, seed: int) -> Replay:
    """Watch one run of the plant."""
    before = BEFORE_S[seed % len(BEFORE_S)]
    healthy = LEARNED * WINDOW + round(before / STEP_S)
    windows = AFTER if fault else HEALTHY
    source = _Replayed(simulate_plant(healthy, fault, after=round(windows * WINDOW) + 50, seed=seed))
    said: list[str] = []
    settings = WatchSettings(lag_s=1.0, poll_s=1.0, learn_s=LEARNED * WINDOW * STEP_S, method=METHOD)
    with tempfile.TemporaryDirectory() as folder:
        watcher = Watcher(library, source, Path(folder), settings, say=said.append, now=source.clock)
        watcher.start()
        told: list[Notice] = []
        end = T0 + before + windows * WINDOW * STEP_S
        while source.now < end:
            source.now += settings.poll_s
            told += watcher.tick()
    return Replay(fault, T0 + before, tuple(told), sum("departs (" in words for words in said))


def summarise(runs: list[Replay]) -> dict[str, object]:
    """Counts over all runs with a fault, and over those without."""
    faulty, healthy = [own for own in runs if own.fault], [own for own in runs if not own.fault]
    told = [own for own in faulty if own.notices]
    delays = np.array([own.delay_s for own in told]) / (WINDOW * STEP_S)
    hours = len(healthy) * HEALTHY * WINDOW * STEP_S / 3600
    return {
        "faults": len(faulty),
        "told": len(told),
        "right_case_first": sum(own.notices[0].cases[0].label == own.fault for own in told),
        "named_right": sum(own.named == own.fault for own in faulty),
        "named_wrong": sum(own.named not in {own.fault, ""} for own in faulty),
        "median_delay_windows": round(float(np.median(delays)), 2) if told else None,
        "within_the_demonstrations_delay": int((delays <= DELAY).sum()),
        "healthy_hours": round(hours, 1),
        "healthy_departures": sum(own.departures for own in healthy),
        "healthy_notices": sum(len(own.notices) for own in healthy),
    }


def run_all(library: Library, seeds: int) -> Iterator[Replay]:
    """Every fault and a healthy plant, seed by seed."""
    for fault in (*SimulatedPlant.FAULTS, ""):
        for seed in range(seeds):
            yield replay(library, fault, seed)


def main(
    seeds: Annotated[int, typer.Option(help="Regimes under which each fault begins.")] = 4,
) -> None:
    """Say of every run what was told, and count."""
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for own in run_all(make_library(Path(folder) / "library"), seeds):
            runs.append(own)
            kinds = ", ".join(f"{one.kind} {one.faults[0].label}" for one in own.notices) or "nothing"
            typer.echo(f"{own.fault or 'healthy'}: {kinds}, {own.delay_s:.0f} s, departures {own.departures}")
    typer.echo(json.dumps(summarise(runs), indent=1))


if __name__ == "__main__":
    typer.run(main)
