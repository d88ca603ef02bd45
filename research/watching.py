"""What a watch costs and what it states: channels per core, memory, and false alarms a day; `cases watch --measure`.

False alarms are counted on simulated normal operation of four kinds, as separate departures by the rule of the watch.
The cost is that of whole rounds of a `Watcher` over a source in memory, in this process and one thread: readings taken,
brought to the grid, measured and scored. What it takes to read them from a server is measured apart, with a Prometheus
of its own where one is installed.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from readbench.cases import Library
from readbench.cases.connect import (
    LATE_S,
    SampledChannel,
    SourceChannel,
    SourceFollower,
    SourceReadings,
    open_source,
)
from readbench.cases.watch import Watcher, WatchSettings
from readbench.common.processes import own_memory
from readbench.engine.departures import DepartureDetector
from research.live_demo import STEP_S, prometheus_server
from research.live_plant import SimulatedPlant

STATED = (1.0, 20.0)
SEEDS = 4
LEARNED, TESTED, SHORT = 60, 2000, 64
"""Windows that are learned from, windows that are watched, and steps of a window, where false alarms are counted."""
ASSETS, CHANNELS, WINDOW = 80, 25, 256
ROUND_S, ROUNDS = 5.0, 12
T0 = 1_700_000_000.0


def measure_watch(assets: int = ASSETS, seeds: int = SEEDS) -> dict[str, Any]:
    """All of it."""
    found = {"false_alarms_a_day": measure_false_alarms(seeds), "cost": measure_cost(assets)}
    return found | ({"server": measure_server()} if shutil.which("promtool") else {})


def measure_false_alarms(seeds: int) -> list[dict[str, Any]]:
    """Stated and measured departures a day of normal operation, by its kind."""
    rows = []
    for kind in ("white", "slow", "very slow", "heavy-tailed"):
        for stated in STATED:
            found = [_count_alarms(kind, stated, seed) for seed in range(seeds)]
            days = sum(own[1] for own in found)
            rows.append({"kind": kind, "stated": stated, "measured": sum(own[0] for own in found) / days, "days": days})
    return rows


def _count_alarms(kind: str, stated: float, seed: int) -> tuple[int, float]:
    values = _operate(kind, np.random.default_rng(seed), (LEARNED + TESTED) * SHORT)
    names = [str(i) for i in range(len(values))]
    learned = values[:, : LEARNED * SHORT]
    detector = DepartureDetector.fit([learned], names, window=SHORT, step_s=1.0, false_alarms_a_day=stated)
    scores, _ = detector.scores(values[:, LEARNED * SHORT - detector.memory :])
    above = np.flatnonzero(scores > 1.0)
    return int((np.diff(above, prepend=-SHORT) > SHORT // 2).sum()), len(scores) / 86400


def _operate(kind: str, rng: np.random.Generator, steps: int, channels: int = 8) -> NDArray[np.float64]:
    """Normal operation: noise, noise that wanders, or noise with outliers."""
    if kind == "heavy-tailed":
        return rng.standard_t(5, size=(channels, steps))
    keep = {"white": 0.0, "slow": 0.9, "very slow": 0.99}[kind]
    drive = rng.normal(size=(channels, steps)) * np.sqrt(1 - keep**2)
    return np.asarray(lfilter([1.0], [1.0, -keep], drive, axis=1))


class _Memory:
    """A source in memory: noise, a reading a second of each channel."""

    shown = "memory://"
    keeps_history = True

    def __init__(self, assets: int) -> None:
        rng = np.random.default_rng(0)
        self.keys = [(f"asset {i:04d}", f"ch{c}") for i in range(assets) for c in range(CHANNELS)]
        self.noise = rng.normal(size=(64, 20_000))
        self.now = T0 + 18_000
        self.last = self.now

    def clock(self) -> float:
        return self.now

    def channels(self) -> list[SourceChannel]:
        return [SourceChannel(name, asset) for asset, name in self.keys]

    def read(self, start: float, end: float, *, asset: str | None = None, step: float | None = None) -> SourceReadings:  # noqa: ARG002
        first, last = int(np.ceil(start - T0)), int(min(end, self.now) - T0)
        times = np.asarray(T0 + np.arange(first, last + 1), np.float64)
        return SourceReadings(
            {
                key: SampledChannel(times, self.noise[i % 64, first : last + 1])
                for i, key in enumerate(self.keys)
                if asset in {None, key[0]}
            }
        )

    def follow(self, since: float, *, late_s: float = LATE_S) -> SourceFollower:  # noqa: ARG002
        self.last = since
        return self

    def poll(self, now: float | None = None) -> SourceReadings:
        found = self.read(self.last + 1, self.now)
        self.last = self.now if now is None else now
        return found

    def close(self) -> None: ...


def measure_cost(assets: int) -> dict[str, float]:
    """Channels that one core follows at a reading a second, and what is held of each."""
    source = _Memory(assets)
    with tempfile.TemporaryDirectory() as folder:
        library = Library.create(Path(folder) / "library")
        values = np.random.default_rng(1).normal(size=(4, CHANNELS, WINDOW))
        names = [f"ch{c}" for c in range(CHANNELS)]
        for i, own in enumerate(values):
            library.add_one(own, names, rate=1.0, label=f"fault {i % 2}")
        settings = WatchSettings(false_alarms_a_day=0.1, method="euclidean", lag_s=0.0, learn_s=5000)
        watcher = Watcher(library, source, Path(folder) / "state", settings, now=source.clock)
        began = time.process_time()
        watcher.start()
        learned = time.process_time() - began
        took = []
        for _ in range(ROUNDS):
            source.now += ROUND_S
            began = time.process_time()
            watcher.tick()
            took.append(time.process_time() - began)
    count, usual = len(source.keys), float(np.median(took))
    return {
        "channels": count,
        "seconds_to_learn": learned,
        "seconds_of_a_round": usual,
        "share_of_a_core": usual / ROUND_S,
        "channels_per_core": count * ROUND_S / usual,
        "held_megabytes": watcher.held_bytes / 1e6,
        "held_bytes_per_channel": watcher.held_bytes / count,
        "process_megabytes": own_memory() / 1e6,
    }


def measure_server(channels: int = ASSETS * CHANNELS) -> dict[str, float]:
    """What it takes to read a round from a Prometheus on this machine: the readings of a poll and of the overlap."""
    values = np.random.default_rng(0).normal(size=(channels, 100)).astype(np.float32)
    names = tuple(f"channel_{i}" for i in range(channels))
    plant = SimulatedPlant(values, names, ("",) * channels, onset=0, fault="", asset="rig")
    readings = round(ROUND_S + LATE_S)  # of each channel, at one a second
    now = time.time()
    with tempfile.TemporaryDirectory() as folder, prometheus_server(Path(folder), plant, 100, now, 9) as address:
        source = open_source(f"prometheus://{address}/?asset=rig&unit=unit&drop=job")
        took = []
        for _ in range(ROUNDS):
            began = time.process_time(), time.perf_counter()
            found = source.read(now - STEP_S * readings + 1e-3, now)
            took.append((time.process_time() - began[0], time.perf_counter() - began[1]))
        source.close()
    ours, whole = np.median(took, axis=0)
    return {
        "channels": len(found.series),
        "readings": len(found),
        "seconds_of_a_round": float(ours),
        "seconds_with_the_server": float(whole),
        "share_of_a_core": float(ours) / ROUND_S,
    }
