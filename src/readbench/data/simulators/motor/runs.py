"""What differs from run to run of the simulated motors: operating point, and kind and course of the fault."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.data.simulators.motor.parameters import (
    SNAPSHOTS,
    Array,
    Fleet,
    Phasors,
    Table,
    log_uniform,
    turned,
)

SET_POINTS = np.array([20.0, 25.0, 30.0, 40.0, 50.0])
"""Shaft frequencies in Hz that the drives can be set to (ours)."""
SEVERITY = np.array(
    [
        (1.0, 1.0),  # normal: unused
        (0.4, 1.8),  # inner race: greatest peak in g of the ring-down at 30 Hz and rated load
        (0.35, 1.6),  # outer race: the same; a little less, as every strike falls into the load zone
        (0.4, 1.8),  # ball: the same
        (4.0, 11.0),  # imbalance: mm/s RMS at order 1; ISO 20816-3 zones C and D
        (3.5, 9.0),  # misalignment: mm/s RMS, shared out over orders 1 to 3
        (0.3, 1.2),  # looseness: peak in g of the landing pulse
        (1.8, 6.0),  # lubrication loss: relative increase of friction
        (0.3, 1.0),  # sensor fault: how much of the signal is lost, see `sensors`
    ]
)
"""(9, 2) least and greatest severity of a grown fault at difficulty 1, in the unit said behind each (ours)."""


@dataclass(frozen=True, eq=False)
class Regime(Table):
    """Operating point of each run: B rows.

    Args:
        speed: (B,) shaft frequency in Hz.
        load: (B,) torque as share of the rated one.
        ambient: (B,) temperature of the hall in degrees C.
        hunting: (B, 2) relative depth and frequency in Hz of the slow speed swing of the drive's control loop.
        residual: (B, 3, 3) state of the machine that day: factor on its residual velocities by axis and order.
        friction: (B,) the same for its broadband noise (age of the grease).
        zone: (B,) extent of the bearing's load zone, epsilon in the load distribution of Stribeck: 0.5 is half
            the circle, less with clearance, more with preload (Harris and Kotzalas, Rolling Bearing Analysis).
        heat: (B,) further temperature difference in K (wind, sun, neighbours).
    """

    speed: Array
    load: Array
    ambient: Array
    hunting: Array
    residual: Phasors
    friction: Array
    zone: Array
    heat: Array


def draw_regime(rng: np.random.Generator, runs: int, difficulty: float) -> Regime:
    """Draw operating points; their spread and the noise grow with `difficulty`."""
    spread = 0.4 + 0.6 * difficulty
    swing = rng.uniform((0.0005, 0.5), (0.004, 3.0), size=(runs, 2))
    return Regime(
        speed=_set_speed(rng, runs, spread),
        load=np.clip(0.7 + spread * rng.uniform(-0.35, 0.35, size=runs), 0.2, 1.2),
        ambient=22.0 + spread * rng.uniform(-6, 6, size=runs),
        hunting=swing,
        residual=np.exp(0.35 * spread * rng.standard_normal((runs, 1, 3))) * turned(rng, (runs, 3, 3)),
        friction=np.exp(0.3 * spread * rng.standard_normal(runs)) * spread,
        zone=np.clip(0.45 + 0.12 * rng.standard_normal(runs), 0.25, 0.8),
        heat=rng.normal(0.0, 1.5, size=runs),
    )


def _set_speed(rng: np.random.Generator, runs: int, spread: float) -> Array:
    """Speed in Hz: a set point, kept within 0.2 % by the drive; with little spread the set points lie closer."""
    chosen = (30.0 + spread * (rng.choice(SET_POINTS, size=runs) - 30.0)).clip(15.0, 60.0)
    speed: Array = chosen * (1 + 0.002 * rng.standard_normal(runs))
    return speed


@dataclass(frozen=True, eq=False)
class Course(Table):
    """How the fault of each run develops: B rows.

    Args:
        onset: (B,) first faulty snapshot; `SNAPSHOTS` without fault.
        acting: (B,) share of the interval before that snapshot in which the fault already acted.
        severity: (B, SNAPSHOTS) in the unit of `SEVERITY`, 0 before the onset.
    """

    onset: NDArray[np.int64]
    acting: Array
    severity: Array


def draw_course(rng: np.random.Generator, fault: NDArray[np.int32], difficulty: float) -> Course:
    """Draw onset, final severity and growth; half of the faults are abrupt, the others begin at half and grow.

    `difficulty` moves the severity: doubled at 0, as in the table at 1, halved at 2.
    """
    runs = len(fault)
    onset = np.where(fault > 0, np.where(rng.random(runs) < 0.7, 1, 2), SNAPSHOTS)
    final = log_uniform(rng, SEVERITY[fault, 0], SEVERITY[fault, 1], (runs,)) * 2.0 ** (1 - difficulty)
    incipient = rng.random((runs, 1)) < 0.5
    since = np.arange(SNAPSHOTS) - onset[:, None]
    last = np.maximum(SNAPSHOTS - 1 - onset, 1)[:, None]
    growth = np.where(incipient, 0.5 + 0.5 * np.clip(since / last, 0, 1), 1.0)
    severity = np.where(since >= 0, final[:, None] * growth, 0.0)
    return Course(onset=onset, acting=rng.uniform(0.2, 1.0, size=runs), severity=severity)


@dataclass(frozen=True, eq=False)
class Defect(Table):
    """What the fault of each run looks like, whatever it is: B rows. Ranges are ours.

    Args:
        place: (B,) angle in radians of an inner race defect from the encoder's index.
        rest: (B,) angle in radians of an outer race defect from the load's direction.
        spot: (B,) phase of the heavy spot of an imbalance, as phasor.
        overhang: (B,) axial share of an imbalance, large for overhung rotors.
        angular: (B,) 0 for shafts that are offset, 1 for shafts at an angle.
        coupling: (B, 3, 3) factor on the misalignment by axis and order; see `draw_defect` on its phases.
        landing: (B,) a loose foot lands hard every first, second or third revolution.
        soft: (B,) strength of its other landings.
        contact: (B,) duration of a landing in s.
        starved: (B, 2) how much dry friction varies with shaft and cage.
        axis: (B,) vibration axis of the failed sensor.
        failure: (B,) how it fails, 0 to 3.
    """

    place: Array
    rest: Array
    spot: Phasors
    overhang: Array
    angular: Array
    coupling: Phasors
    landing: NDArray[np.int64]
    soft: Array
    contact: Array
    starved: Array
    axis: NDArray[np.int64]
    failure: NDArray[np.int64]


def draw_defect(rng: np.random.Generator, runs: int) -> Defect:
    """Draw the traits of all kinds of faults for every run; only those of its own fault come to bear.

    The encoder's index sits at the coupling's keyway and machines mostly move vertically as they warm up, so
    misalignment has like phases on all machines, the axes a quarter turn apart, within some 30 degrees.
    """
    quarter = 0.5 * np.pi * np.arange(3)[:, None]
    return Defect(
        place=rng.uniform(0, 2 * np.pi, size=runs),
        rest=rng.uniform(-0.25, 0.25, size=runs) * np.pi,
        spot=turned(rng, (runs,)),
        overhang=rng.uniform(0.05, 0.35, size=runs),
        angular=rng.random(runs),
        coupling=rng.uniform(0.6, 1.4, size=(runs, 3, 3))
        * np.exp(1j * (quarter + 0.5 * rng.standard_normal((runs, 3, 3)))),
        landing=rng.choice(3, p=(0.3, 0.5, 0.2), size=runs) + 1,
        soft=rng.uniform(0.0, 0.5, size=runs),
        contact=rng.uniform(2e-3, 6e-3, size=runs),
        starved=rng.uniform(0.1, 0.8, size=(runs, 2)),
        axis=rng.integers(3, size=runs),
        failure=rng.integers(4, size=runs),
    )


@dataclass(frozen=True, eq=False)
class Rows(Table):
    """R snapshots with all that acts in each.

    Args:
        machine: R rows.
        regime: R rows.
        defect: R rows.
        fault: (R,) class, 0 before the onset.
        severity: (R,) of that fault.
    """

    machine: Fleet
    regime: Regime
    defect: Defect
    fault: NDArray[np.int32]
    severity: Array

    def __len__(self) -> int:
        return len(self.fault)

    def severity_of(self, fault: int) -> Array:
        """Severity (R,) where it is this fault, else 0."""
        return np.where(self.fault == fault, self.severity, 0.0)

    def grown(self) -> Array:
        """Severity (R,) as share of the greatest one at difficulty 1; 0 without fault."""
        share: Array = self.severity / SEVERITY[self.fault, 1]
        return share
