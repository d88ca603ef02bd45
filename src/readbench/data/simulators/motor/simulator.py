"""Simulated motors: bearing, rotor, lubrication and sensor faults in three axes of vibration, current and temperature.

A run is a series of short snapshots of one machine at one operating point, as condition monitoring systems store them:
0.2 s at 5120 Hz, then nothing for a quarter of an hour. The fault begins between two snapshots, so each snapshot, which
is also a window, carries one label. The physics is in `vibration` and `sensors`, the numbers are in
`parameters` (machines) and `runs` (operating points and faults).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readbench.data.simulators.base import RunBatch, Simulator, quantise
from readbench.data.simulators.motor.parameters import (
    SETTLE,
    SNAPSHOT,
    SNAPSHOTS,
    Array,
    draw_fleet,
)
from readbench.data.simulators.motor.runs import Course, Rows, draw_course, draw_defect, draw_regime
from readbench.data.simulators.motor.sensors import drive_current, fail, temperature
from readbench.data.simulators.motor.vibration import housing, shaft_angle, shaft_speed
from readbench.data.source import Channel, Protocol, SourceInfo
from readbench.registry import SOURCES

RESOLUTION = np.array([0.0005, 0.0005, 0.0005, 0.005, 0.5, 0.1])
"""Step of each channel: 16 bit over +-16 g, 0.005 A, an encoder's half revolution per minute, 0.1 K."""


@SOURCES.register("sim_motor")
@dataclass(frozen=True)
class Motor(Simulator):
    """Rotating machines at many operating points.

    `difficulty` scales the spread of speed, load and machine state, the friction noise (0.4 + 0.6 d) and inversely the
    severity of faults (factor 2 ^ (1 - d)).

    >>> run = next(Motor(runs=1).recordings())
    >>> run.values.shape
    (6, 4096)
    """

    runs: int = 725
    seed: int = 6205

    MIX: ClassVar[tuple[int, ...]] = (8, 3, 4, 2, 4, 3, 2, 2, 1)
    ASSETS: ClassVar[int] = 16
    RUN_LENGTH: ClassVar[int] = SNAPSHOT * SNAPSHOTS
    STEP: ClassVar[float] = 1 / 5120
    INFO: ClassVar[SourceInfo] = SourceInfo(
        name="sim_motor",
        title="Motors (simulated)",
        domain="condition monitoring",
        description=(
            "Induction motors that drive fans and pumps, watched at one bearing by three accelerometers, the "
            "drive's current, an encoder and a thermometer. Each run is four snapshots of 0.2 s at 5120 Hz of one "
            "machine at one speed and load, a quarter of an hour apart. Faults are defects of the inner race, outer "
            "race and balls, imbalance, misalignment, looseness, loss of lubrication, and a failing accelerometer. A "
            "fault begins after one or two healthy snapshots, abruptly or growing; every timestep carries its label."
        ),
        channels=(
            Channel("vib_x", "g", "Acceleration of the bearing housing, horizontal"),
            Channel("vib_y", "g", "Acceleration of the bearing housing, vertical"),
            Channel("vib_z", "g", "Acceleration of the bearing housing, axial"),
            Channel("current", "A", "Magnitude of the motor current, from the drive"),
            Channel("speed", "1/min", "Shaft speed"),
            Channel("temperature", "degC", "Temperature of the bearing housing"),
        ),
        faults=(
            "inner race defect",
            "outer race defect",
            "ball defect",
            "imbalance",
            "misalignment",
            "looseness",
            "lubrication loss",
            "sensor fault",
        ),
        protocol=Protocol(length=SNAPSHOT, label_rule="majority"),
        split_unit="measuring campaign (run)",
        asset_unit="motor",
        licence="Apache-2.0",
        citation=(
            "Bearing model: McFadden and Smith, J. Sound Vib. 96 (1984) 69-82; Antoni and Randall, J. Vib. Acoust. 125 "
            "(2003) 282-289; Randall and Antoni, Mech. Syst. Signal Process. 25 (2011) 485-520. Looseness: Muszynska "
            "and Goldman, Chaos Solitons Fractals 5 (1995) 1683-1704. Current: Schoen et al., IEEE Trans. Ind. Appl. "
            "31 (1995) 1274-1279; Cardoso and Saraiva, IEEE Trans. Ind. Appl. 29 (1993) 971-975."
        ),
        size="generated, about 71 MB",
        simulated=True,
        verified=True,
        redistributable=True,
    )

    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Values (B, 6, 4096) and labels (B, 4096)."""
        rng, fault_rng = batch.rng.spawn(2)
        runs = len(batch)
        course = draw_course(fault_rng, batch.fault, self.difficulty)
        labels = np.where(course.severity > 0, batch.fault[:, None], 0).astype(np.int32)
        run = np.repeat(np.arange(runs), SNAPSHOTS)
        rows = Rows(
            machine=draw_fleet(self.asset_rng(), self.ASSETS).take(batch.asset[run]),
            regime=draw_regime(rng, runs, self.difficulty).take(run),
            defect=draw_defect(fault_rng, runs).take(run),
            fault=labels.reshape(-1),
            severity=course.severity.reshape(-1),
        )
        readings = _measure(rows, course, rng, fault_rng).reshape(runs, SNAPSHOTS, -1, SNAPSHOT)
        values = readings.transpose(0, 2, 1, 3).reshape(runs, -1, self.RUN_LENGTH)
        return quantise(values, RESOLUTION), np.repeat(labels, SNAPSHOT, axis=1)


def _measure(rows: Rows, course: Course, rng: np.random.Generator, fault_rng: np.random.Generator) -> Array:
    """All channels (R, 6, SNAPSHOT) with the noise of their sensors."""
    angle = shaft_angle(rows, rng)
    acceleration, train = housing(rows, angle, rng, fault_rng)
    acceleration += 0.004 * rng.standard_normal(acceleration.shape)
    current = drive_current(rows, angle, train, rng, fault_rng)
    speed = 60 * shaft_speed(angle) + 0.8 * rng.standard_normal(angle.shape)
    warmth = temperature(rows, course)[:, None] + 0.08 * rng.standard_normal(angle.shape)
    slow = np.stack([current, speed, warmth], axis=1)
    return np.concatenate([fail(acceleration, rows, fault_rng), slow], axis=1)[:, :, SETTLE:]
