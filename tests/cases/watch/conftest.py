"""A small library, and watches over a plant in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from readbench.cases import Library
from readbench.cases.watch import Notice, Watcher, WatchSettings
from tests.cases import samples
from tests.cases.samples import CHANNELS, FAST, window
from tests.cases.watch.plant import Plant

W = 40
LEARNED = 2600
"""Steps that a plant runs before it is watched."""
SETTINGS = WatchSettings(false_alarms_a_day=2.0, method=FAST, lag_s=1.0, poll_s=5.0, firm=0.6)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Cases of three faults at a reading a second."""
    library = Library.create(tmp_path_factory.mktemp("watch") / "library")
    library.add_normals(samples.normals(20), rate=1.0)
    rng = np.random.default_rng(0)
    for i in range(18):
        fault = samples.FAULTS[i % 3]
        library.add_one(window(fault, rng), CHANNELS, rate=1.0, label=fault, id=f"w{i}", notes=f"Mended {fault}.")
    library.warm(FAST)
    return library


Watch = Callable[..., Watcher]


@pytest.fixture
def watch(library: Library, tmp_path: Path) -> Watch:
    """Makes a watch, again and again in the same folder."""

    def make(plant: Plant, said: list[str] | None = None, **more: object) -> Watcher:
        settings = more.pop("settings", SETTINGS)
        words = [] if said is None else said
        own = Watcher(library, plant, tmp_path / "state", settings, say=words.append, now=plant.clock, **more)  # type: ignore[arg-type]
        own.start()
        return own

    return make


def go(watcher: Watcher, plant: Plant, steps: int, every: int = 5) -> list[Notice]:
    """Let time pass."""
    told = []
    for _ in range(0, steps, every):
        plant.now += every
        told += watcher.tick()
    return told
