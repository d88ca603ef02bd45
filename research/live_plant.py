"""A simulated plant that runs on, with a fault that begins when it is told to: what the live demonstration watches.

The three tanks of `sim_tanks` run for as long as is wanted under one regime, healthy, and then one fault takes the
course that it has in the benchmark. The library knows runs of the same rigs under other regimes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.simulators import Tanks
from readbench.benchmark.simulators._base import quantise
from readbench.benchmark.simulators._tanks import (
    RESOLUTION,
    Effects,
    Rigs,
    TankRegime,
    _integrate,
    _level_noise,
    _measure,
)

DIFFICULTY = 0.5
RIG = 3


@dataclass(frozen=True, eq=False)
class SimulatedPlant:
    """A plant's readings.

    Args:
        values: (C, T).
        channels: C names.
        units: C units.
        onset: step at which the fault begins.
        fault: its name.
        asset: which rig it is.
    """

    values: NDArray[np.float32]
    channels: tuple[str, ...]
    units: tuple[str, ...]
    onset: int
    fault: str
    asset: str

    FAULTS: ClassVar[tuple[str, ...]] = Tanks.INFO.faults


def simulate_plant(healthy: int, fault: str = "", *, after: int = 600, seed: int = 0, rig: int = RIG) -> SimulatedPlant:
    """So many healthy steps, and then a fault; without one, `after` more healthy steps.

    Args:
        healthy: steps before the onset.
        fault: one of `SimulatedPlant.FAULTS`.
        after: steps from the onset on.
        seed: of noise, regime, and course of the fault.
        rig: which of the benchmark's rigs.
    """
    rng = np.random.default_rng([seed, 30])
    source = Tanks(difficulty=DIFFICULTY)
    kind = np.array([SimulatedPlant.FAULTS.index(fault) + 1 if fault else 0], np.int32)
    rigs = Rigs.draw(source.asset_rng(), source.ASSETS).take(np.array([rig], np.int32))
    length = healthy + after
    regime = TankRegime.draw(rng, rigs, length, DIFFICULTY)
    effects = _begin_at(Effects.draw(rng, kind, Tanks.RUN_LENGTH, DIFFICULTY), healthy, length)
    trace = _integrate(rigs, regime, effects, _level_noise(rng, regime, effects))
    values = quantise(_measure(rng, trace, rigs, regime), RESOLUTION)[0]
    info = source.INFO
    return SimulatedPlant(
        values=values,
        channels=tuple(own.name for own in info.channels),
        units=tuple(own.unit for own in info.channels),
        onset=healthy,
        fault=fault,
        asset=f"{info.asset_unit}-{rig:03d}",
    )


def _begin_at(effects: Effects, onset: int, length: int) -> Effects:
    """The same course, from another step on: neutral before, and as it is at its end ever after."""
    begun = int(np.argmax(effects.label[:, 0] > 0))
    ends = np.flatnonzero(effects.label[:, 0] > 0)
    last = int(ends[-1]) if len(ends) else 0
    places = np.clip(np.arange(length) - onset + begun, 0, last)
    places = np.where(np.arange(length) < onset, 0, places)  # step 0 is healthy in every run
    return replace(effects, **{own.name: getattr(effects, own.name)[places] for own in fields(effects)})
