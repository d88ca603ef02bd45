"""Simulated motors: bearing, rotor, lubrication and sensor faults in three axes of vibration, current and temperature.

A run is a series of short snapshots of one machine at one operating point, as condition monitoring systems store them:
0.2 s at 5120 Hz, then nothing for a quarter of an hour. The fault begins between two snapshots, so each snapshot, which
is also a window, carries one label.

The machines, their operating points and faults, and the physics of their vibration are in
`readbench.benchmark.simulators._motor_machine`. Here are the other sensors (current and temperature), how an
accelerometer fails, and the source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import SourceInfo, read_info
from readbench.benchmark.simulators._base import RunBatch, Simulator, quantise
from readbench.benchmark.simulators._motor_machine import (
    FS,
    IMBALANCE,
    INTERVAL,
    LOOSENESS,
    MISALIGNMENT,
    SENSOR,
    SETTLE,
    SNAPSHOT,
    SNAPSHOTS,
    Array,
    Course,
    MotorRows,
    convolve,
    draw_course,
    draw_defect,
    draw_fleet,
    draw_regime,
    housing,
    shaft_angle,
    shaft_speed,
    slip_of,
)
from readbench.engine.registry import SOURCES

TIME_CONSTANT = 1200.0
"""Seconds in which a bearing housing of this size warms to 63 % (ours; 20 to 40 min are usual)."""
HEATING = np.array([0.0, 4.0, 4.0, 4.0, 1.0, 8.0, 2.0, 32.0, 0.0])
"""Temperature rise in K by class at greatest severity (ours): misaligned shafts press, dry contacts rub."""
DRAG = np.array([0.0, 0.01, 0.01, 0.01, 0.0, 0.04, 0.0, 0.12, 0.0])
"""Additional torque by class at greatest severity, as share of the rated one (ours)."""


def drive_current(
    rows: MotorRows, angle: Array, train: Array, rng: np.random.Generator, fault_rng: np.random.Generator
) -> Array:
    """Magnitude (R, N) in A of the current vector, as the drive reports it.

    Magnetising and torque current stand at right angles, so torque ripple shows without the carrier of the line
    frequency (Park's vector, Cardoso and Saraiva 1993); the fifth and seventh harmonic of an inverter show at six
    times the line frequency. Ripple comes once per revolution from the load, twice from a bent coupling, and from
    bearing impacts in their own rhythm, which is how bearing defects reach the current (Schoen et al. 1995).

    Args:
        rows: R snapshots.
        angle: (R, N) of the shaft.
        train: (R, N) impacts in g.
        rng: randomness of the healthy machine.
        fault_rng: randomness of the faults.
    """
    machine, level = rows.machine, rows.grown()
    load = rows.regime.load + DRAG[rows.fault] * level
    shaking = np.isin(rows.fault, (IMBALANCE, MISALIGNMENT, LOOSENESS))
    once = 0.01 + np.where(shaking, 0.03 * level, 0.0)
    twice = np.where(rows.fault == MISALIGNMENT, 0.05 * level, 0.0)
    torque = load[:, None] + once[:, None] * np.cos(angle + _phase(rng, rows))
    torque += twice[:, None] * np.cos(2 * angle + _phase(fault_rng, rows)) + 0.02 * _smoothed(train)
    share = machine.magnetising[:, None]
    magnitude = machine.current[:, None] * np.hypot(share, (1 - share) * torque)
    line = machine.pole_pairs[:, None] * angle / (1 - slip_of(load))[:, None]
    inverter = 0.02 * np.cos(6 * line + _phase(rng, rows)) + 0.01 * rng.standard_normal(angle.shape)
    return magnitude * (1 + inverter)


def _phase(rng: np.random.Generator, rows: MotorRows) -> Array:
    return rng.uniform(0, 2 * np.pi, size=(len(rows), 1))


def _smoothed(train: Array) -> Array:
    """Impacts as torque pulses of about 3 ms: the rotor's inertia hides anything faster."""
    return convolve(train, np.exp(-np.arange(SETTLE) / (0.003 * FS)))


def temperature(rows: MotorRows, course: Course) -> Array:
    """Bearing temperature (R,) in degrees C at each snapshot: a first-order rise to what the friction asks for.

    Args:
        rows: R = B * SNAPSHOTS snapshots, run by run.
        course: of the B runs.
    """
    regime = rows.regime
    working = rows.machine.heat * np.sqrt(regime.speed / 30) * (0.4 + 0.6 * regime.load)
    target = (HEATING[rows.fault] * rows.grown()).reshape(-1, SNAPSHOTS)
    lag = np.exp(-INTERVAL / TIME_CONSTANT)
    rise = np.zeros_like(target)
    for snapshot in range(1, SNAPSHOTS):
        kept = np.where(course.onset == snapshot, lag**course.acting, lag)
        rise[:, snapshot] = kept * rise[:, snapshot - 1] + (1 - kept) * target[:, snapshot]
    return regime.ambient + regime.heat + working + rise.reshape(-1)


def fail(acceleration: Array, rows: MotorRows, rng: np.random.Generator) -> Array:
    """Readings (R, 3, N) of the accelerometers, one of which has failed in the rows of that class.

    Four ways to fail: the cable opens for moments, the amplifier saturates early, the sensor sits loose on its foot
    and loses gain, or a bad contact discharges in spikes.
    """
    readings = acceleration.copy()
    broken = np.flatnonzero(rows.fault == SENSOR)
    axis, kind = rows.defect.axis[broken], rows.defect.failure[broken, None]
    healthy = acceleration[broken, axis]
    level = np.clip(rows.severity[broken, None], 0.0, 1.0)
    ways = (
        _dropouts(healthy, level, rng),
        _clipped(healthy, level),
        _faint(healthy, level),
        _spiked(healthy, level, rng),
    )
    readings[broken, axis] = np.select([kind == way for way in range(4)], ways)
    return readings


def _dropouts(healthy: Array, level: Array, rng: np.random.Generator) -> Array:
    """The cable is open for 10 to 60 % of the time, in spells of some 12 ms."""
    spell = 64
    chance = rng.random((len(healthy), healthy.shape[1] // spell))
    return np.where(np.repeat(chance < 0.1 + 0.5 * level, spell, axis=1), 0.0, healthy)


def _clipped(healthy: Array, level: Array) -> Array:
    """Saturation, earlier on one side, with the offset that such an amplifier shows."""
    limit = np.sqrt((healthy**2).mean(axis=1, keepdims=True)) * (2.0 - 1.7 * level)
    return np.clip(healthy, -limit, 1.5 * limit) + 0.1 * level


def _faint(healthy: Array, level: Array) -> Array:
    """A loose foot passes only a part, and little of what is fast: a mean over 4 samples, then the lost gain."""
    return convolve(healthy, np.full(4, 0.25)) * (1 - 0.9 * level)


def _spiked(healthy: Array, level: Array, rng: np.random.Generator) -> Array:
    """Discharges at random times, 5 to 40 per snapshot, that decay within 1 ms."""
    when = rng.random(healthy.shape) < (5 + 35 * level) / healthy.shape[1]
    height = np.where(when, rng.normal(0.0, 0.8, size=healthy.shape), 0.0)
    return healthy + convolve(height, np.exp(-np.arange(16) / 3.0))


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
    INFO: ClassVar[SourceInfo] = read_info(__name__, "sim_motor", length=SNAPSHOT)

    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Values (B, 6, 4096) and labels (B, 4096)."""
        rng, fault_rng = batch.rng.spawn(2)
        runs = len(batch)
        course = draw_course(fault_rng, batch.fault, self.difficulty)
        labels = np.where(course.severity > 0, batch.fault[:, None], 0).astype(np.int32)
        run = np.repeat(np.arange(runs), SNAPSHOTS)
        rows = MotorRows(
            machine=draw_fleet(self.asset_rng(), self.ASSETS).take(batch.asset[run]),
            regime=draw_regime(rng, runs, self.difficulty).take(run),
            defect=draw_defect(fault_rng, runs).take(run),
            fault=labels.reshape(-1),
            severity=course.severity.reshape(-1),
        )
        readings = _measure(rows, course, rng, fault_rng).reshape(runs, SNAPSHOTS, -1, SNAPSHOT)
        values = readings.transpose(0, 2, 1, 3).reshape(runs, -1, self.RUN_LENGTH)
        return quantise(values, RESOLUTION), np.repeat(labels, SNAPSHOT, axis=1)


def _measure(rows: MotorRows, course: Course, rng: np.random.Generator, fault_rng: np.random.Generator) -> Array:
    """All channels (R, 6, SNAPSHOT) with the noise of their sensors."""
    angle = shaft_angle(rows, rng)
    acceleration, train = housing(rows, angle, rng, fault_rng)
    acceleration += 0.004 * rng.standard_normal(acceleration.shape)
    current = drive_current(rows, angle, train, rng, fault_rng)
    speed = 60 * shaft_speed(angle) + 0.8 * rng.standard_normal(angle.shape)
    warmth = temperature(rows, course)[:, None] + 0.08 * rng.standard_normal(angle.shape)
    slow = np.stack([current, speed, warmth], axis=1)
    return np.concatenate([fail(acceleration, rows, fault_rng), slow], axis=1)[:, :, SETTLE:]
