"""What the sensors of a simulated motor read: current and temperature, and how an accelerometer fails."""

from __future__ import annotations

import numpy as np

from readbench.data.simulators.motor.parameters import (
    FS,
    IMBALANCE,
    INTERVAL,
    LOOSENESS,
    MISALIGNMENT,
    SENSOR,
    SETTLE,
    SNAPSHOTS,
    Array,
)
from readbench.data.simulators.motor.runs import Course, Rows
from readbench.data.simulators.motor.vibration import convolve, slip_of

TIME_CONSTANT = 1200.0
"""Seconds in which a bearing housing of this size warms to 63 % (ours; 20 to 40 min are usual)."""
HEATING = np.array([0.0, 4.0, 4.0, 4.0, 1.0, 8.0, 2.0, 32.0, 0.0])
"""Temperature rise in K by class at greatest severity (ours): misaligned shafts press, dry contacts rub."""
DRAG = np.array([0.0, 0.01, 0.01, 0.01, 0.0, 0.04, 0.0, 0.12, 0.0])
"""Additional torque by class at greatest severity, as share of the rated one (ours)."""


def drive_current(
    rows: Rows, angle: Array, train: Array, rng: np.random.Generator, fault_rng: np.random.Generator
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


def _phase(rng: np.random.Generator, rows: Rows) -> Array:
    return rng.uniform(0, 2 * np.pi, size=(len(rows), 1))


def _smoothed(train: Array) -> Array:
    """Impacts as torque pulses of about 3 ms: the rotor's inertia hides anything faster."""
    return convolve(train, np.exp(-np.arange(SETTLE) / (0.003 * FS)))


def temperature(rows: Rows, course: Course) -> Array:
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


def fail(acceleration: Array, rows: Rows, rng: np.random.Generator) -> Array:
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
