"""A simulated car bus: one car model in traffic, its signals in raw units, and six kinds of attack.

`parameters` holds cars, drivers and trips, `vehicle` the motion, `sensors` and `bus` what the control
units measure and send, `attacks` the forgeries. This module puts them together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readbench.data.simulators.base import RunBatch, Simulator, quantise
from readbench.data.simulators.can.attacks import draw_plan, forge, fuzz
from readbench.data.simulators.can.bus import BUS, CHANNELS, CHECK_COLUMNS, check, count, encode, hold
from readbench.data.simulators.can.parameters import STEP_S, draw_cars, draw_trips
from readbench.data.simulators.can.sensors import quantities
from readbench.data.simulators.can.vehicle import drive
from readbench.data.source import Protocol, SourceInfo
from readbench.registry import SOURCES


@SOURCES.register("sim_can")
@dataclass(frozen=True)
class Can(Simulator):
    """Runs of a car on the road, seen on its bus; see `attacks` for what the attacker does.

    `difficulty` divides the distance of forged values from the truth and the rate of fuzzing (0: double, 2: two
    thirds), and scales the differences between cars.

    >>> next(Can(runs=1).recordings()).values.shape
    (68, 768)
    """

    runs: int = 512
    seed: int = 42

    ASSETS: ClassVar[int] = 8
    RUN_LENGTH: ClassVar[int] = 768
    STEP: ClassVar[float] = STEP_S
    MIX: ClassVar[tuple[int, ...]] = (15, 10, 7, 8, 6, 3, 7)
    INFO: ClassVar[SourceInfo] = SourceInfo(
        name="sim_can",
        title="Car bus (simulated)",
        domain="automotive intrusion",
        description=(
            "Sixteen messages of a car's bus with 68 anonymous signals in raw units: engine, brakes, steering, wheels, "
            "gearbox, temperatures, body, counters and check sums, sampled every 50 ms and held between frames. Cars, "
            "drivers and trips (city, suburb, motorway, parking) differ from run to run. In attacked runs a "
            "masquerading sender forges the speedometer, the reverse lamp, the four wheel speeds, the coolant "
            "temperature or the accelerator pedal, or sends random payloads; the car reacts where a real one would. "
            "Labels mark the attack from its first to its last forged frame, pauses between bursts included."
        ),
        channels=CHANNELS,
        faults=(
            "speedometer forced",
            "reverse lamp flipped",
            "wheel speeds forced",
            "coolant temperature forced",
            "fuzzing",
            "accelerator pedal forced",
        ),
        protocol=Protocol(length=256, stride=128, label_rule="majority-or-coverage", min_coverage=0.1),
        split_unit="capture",
        asset_unit="car",
        licence="Apache-2.0",
        citation=(
            "Vehicle after Gillespie (1992) and Rajamani (2012); attacks after Verma et al., ROAD, PLoS ONE 19, 2024."
        ),
        size="generated, about 110 MB",
        simulated=True,
        verified=True,
        redistributable=True,
    )

    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """See `Simulator.simulate`."""
        rng, spread = batch.rng, 0.6 + 0.4 * self.difficulty
        cars = draw_cars(self.asset_rng(), self.ASSETS, len(CHANNELS), spread).of(batch.asset)
        trips = draw_trips(rng, len(batch), self.RUN_LENGTH)
        plan = draw_plan(rng, batch.fault, trips, self.RUN_LENGTH, self.difficulty)
        phases = rng.integers(0, 256, (len(batch), len(BUS))).astype(np.float64)
        motion = drive(cars, trips, plan)
        raw = encode(rng, quantities(cars, trips, motion), cars.offsets)
        count(raw, phases)
        honest = check(raw)
        forge(plan, raw, motion["speed"])
        raw[:, CHECK_COLUMNS] = np.where(plan.careless[:, None, None], honest, check(raw))
        fuzz(rng, plan, raw)
        hold(raw, phases)
        labels = np.where(plan.active, batch.fault, 0).T.astype(np.int32)
        return quantise(raw, np.ones(len(CHANNELS))), labels
