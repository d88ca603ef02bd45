"""Vehicles, drivers and trips of the simulated car bus.

One car model, several cars: they differ in load, tyres, engine condition and sensor offsets. Each run has its own
driver and its own piece of a trip.

References:
    Gillespie, Fundamentals of Vehicle Dynamics, SAE, 1992 (road load, mass factor, rolling resistance).
    Rajamani, Vehicle Dynamics and Control, 2nd ed., Springer, 2012 (longitudinal model, understeer, tyre slip).
    Heywood, Internal Combustion Engine Fundamentals, McGraw-Hill, 1988 (friction, heat to the coolant).
    Treiber and Kesting, Traffic Flow Dynamics, Springer, 2013 (comfortable accelerations of drivers).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

STEP_S = 0.05
"""Time step of the model and of the recording: the period of the fastest messages."""

GRAVITY, AIR_DENSITY = 9.81, 1.2
DRAG_AREA = 0.66  # m2: drag coefficient 0.30 times 2.2 m2, a mid-size saloon (Gillespie, ch. 4)
WHEELBASE, TRACK = 2.70, 1.55  # m, mid-size saloon
STEERING_RATIO = 15.5  # steering wheel over road wheel angle
UNDERSTEER = 0.003  # rad per m/s2 of lateral acceleration, about 1.7 degrees per g (Rajamani, ch. 3)
SLIP_STIFFNESS = 1.2e5  # N per unit of slip of the driven axle (Rajamani, ch. 4)
RATIOS = np.array([4.15, 2.37, 1.56, 1.16, 0.86, 0.69])  # a common six-speed automatic
REVERSE_RATIO, FINAL_DRIVE, DRIVELINE = 3.40, 3.40, 0.90  # the last is an efficiency
UPSHIFT = np.array([4.0, 8.0, 12.5, 17.5, 23.0, 1e3])  # m/s at light pedal; chosen near 2000 rpm
BRAKE_LIMIT = 9.0  # m/s2 at full pressure: dry road


@dataclass(frozen=True, eq=False)
class Cars:
    """Figures of cars, one row per car (or per run, after `of`).

    Args:
        mass: (A,) kg with load.
        radius: (A,) rolling radius of the tyres in m.
        torque: (A,) peak engine torque in N m.
        idle: (A,) idle speed in rpm.
        rolling: (A,) rolling resistance coefficient.
        cooling: (A,) W/K of the radiator with open thermostat at rest.
        offsets: (A, C) sensor offsets in standard units, one per signal on the bus.
    """

    mass: Array
    radius: Array
    torque: Array
    idle: Array
    rolling: Array
    cooling: Array
    offsets: Array

    def of(self, rows: NDArray[np.int32]) -> Self:
        """The figures of the given cars, in that order."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


def draw_cars(rng: np.random.Generator, cars: int, signals: int, spread: float) -> Cars:
    """Draw `cars` cars of one model; `spread` scales how much they differ."""

    def around(typical: float, share: float) -> Array:
        return typical * (1 + spread * share * rng.uniform(-1, 1, cars))

    return Cars(
        mass=around(1560.0, 0.10),
        radius=around(0.315, 0.015),
        torque=around(230.0, 0.06),
        idle=around(740.0, 0.06),
        rolling=around(0.0115, 0.15),
        cooling=around(260.0, 0.20),
        offsets=spread * np.clip(rng.standard_normal((cars, signals)), -2, 2),
    )


@dataclass(frozen=True, eq=False)
class Trips:
    """A piece of a trip with its driver for each run.

    Args:
        aim: (L, B) speed the driver wants in m/s; negative to reverse.
        bend: (L, B) curvature the road or manoeuvre asks for in 1/m.
        grade: (L, B) slope of the road.
        unrest: (L, B) wander of the driver's foot in m/s2.
        start: (B,) speed at the first step in m/s.
        eager: (B,) acceleration the driver likes in m/s2.
        brakes: (B,) deceleration the driver likes in m/s2.
        gain: (B,) how hard he corrects speed errors in 1/s.
        coolant: (B,) coolant temperature at the first step in degrees Celsius.
        ambient: (B,) outside temperature in degrees Celsius.
        habits: (B, 8) constants of the trip between 0 and 1: lights, wiper, climate, fuel, tyres ...
    """

    aim: Array
    bend: Array
    grade: Array
    unrest: Array
    start: Array
    eager: Array
    brakes: Array
    gain: Array
    coolant: Array
    ambient: Array
    habits: Array


SCENES: tuple[tuple[float, float, float, float, float], ...] = (
    (5.0, 14.0, 0.35, 0.35, 0.05),
    (11.0, 22.0, 0.12, 0.20, 0.02),
    (21.0, 34.0, 0.00, 0.05, 0.00),
    (1.5, 4.0, 0.25, 0.50, 0.40),
)
"""City, suburb, motorway and parking: slowest and fastest aim in m/s, and the shares of segments that are stops, turns
and reversing. Speeds follow usual limits; shares are ours."""
SCENE_SHARES = (0.40, 0.25, 0.20, 0.15)
SEGMENTS = 16
"""Segments per run, more than enough to fill it."""


def draw_trips(rng: np.random.Generator, runs: int, steps: int) -> Trips:
    """Draw the trips: a chain of segments, each with its aim in speed, its bend and its length of 4 to 14 s."""
    scene = np.array(SCENES)[rng.choice(len(SCENES), size=runs, p=SCENE_SHARES)]
    low, high, stops, turns, reverses = (scene[:, i, None] for i in range(5))
    shape = (runs, SEGMENTS)
    speed = low + (high - low) * rng.random(shape)
    kind = rng.random(shape)
    aim = np.where(kind < stops, 0.0, np.where(kind < stops + reverses, -np.minimum(speed, 2.5), speed))
    turning = np.where(rng.random(shape) < turns, 1.0, 0.04) * rng.uniform(0.03, 0.12, shape)
    bend = turning * np.sign(rng.uniform(-1, 1, shape))
    ends = np.cumsum(rng.uniform(4.0, 14.0, shape), axis=1) / STEP_S
    segment = (np.arange(steps)[:, None, None] >= ends).sum(axis=2).clip(max=SEGMENTS - 1)
    rows = np.arange(runs)
    # Traffic is never quite steady: a few per cent around what the driver would like.
    traffic = 1 + 0.03 * wander(rng, runs, steps)
    return Trips(
        aim=aim[rows, segment] * traffic,
        bend=bend[rows, segment],
        grade=rng.uniform(-0.03, 0.03, shape)[rows, segment],
        unrest=wander(rng, runs, steps) * rng.uniform(0.05, 0.30, runs),
        start=np.abs(aim[:, 0]),
        # 1.0 to 2.4 m/s2 and 1.2 to 3.0 m/s2: from calm to sporty (Treiber and Kesting, ch. 11).
        eager=rng.uniform(1.0, 2.4, runs),
        brakes=rng.uniform(1.2, 3.0, runs),
        gain=rng.uniform(0.5, 1.2, runs),
        # A third of the trips have just begun.
        coolant=np.where(rng.random(runs) < 0.35, rng.uniform(15, 80, runs), rng.uniform(84, 96, runs)),
        ambient=rng.uniform(-5, 32, runs),
        habits=rng.random((runs, 8)),
    )


def wander(rng: np.random.Generator, runs: int, steps: int) -> Array:
    """(L, B) noise of about unit variance that forgets within 10 s and is smooth over 2 s: what a foot can follow."""
    memory, smooth = np.exp(-STEP_S / 10.0), np.exp(-STEP_S / 2.0)
    noise = rng.standard_normal((steps, runs)) * np.sqrt(1 - memory**2)
    rough, path = rng.standard_normal(runs), np.empty((steps, runs))
    state = rough
    for t in range(steps):
        rough = memory * rough + noise[t]
        state = smooth * state + (1 - smooth) * rough
        path[t] = state
    return path
