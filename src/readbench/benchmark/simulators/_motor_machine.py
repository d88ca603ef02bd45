"""The machines behind the simulated motors: their bearings, their runs, and how a bearing housing vibrates.

In reading order: sampling, bearings, and what differs from machine to machine (`Fleet`); what differs from run to run,
the operating point (`MotorRegime`) and the kind and course of the fault (`Course`, `Defect`); the acceleration of the
housing (`housing`), from what turns, what strikes, what rubs, and the structure that rings to it. All is closed form or
a running sum over R snapshots of N samples at once.

Sources: McFadden and Smith 1984 (impacts weighted by the load zone, answered by a resonance); Antoni and Randall
2003 (random slip between impacts); Randall and Antoni 2011 (review); Muszynska and Goldman 1995 (a loose rotor lands
every one, two or three revolutions).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.simulators._base import ColumnTable

Array = NDArray[np.float64]
Phasors = NDArray[np.complex128]

FS = 5120.0
"""Sampling rate in Hz, 2.56 times a bandwidth of 2 kHz as analysers have it."""
SNAPSHOT = 1024
"""Samples of one snapshot: 0.2 s, 4 to 10 revolutions."""
SNAPSHOTS = 4
"""Snapshots of one run."""
INTERVAL = 900.0
"""Seconds from one snapshot to the next, as trending systems store them (ours)."""
SETTLE = 256
"""Samples simulated before each snapshot, so that the structure already rings when it begins: 50 ms."""
GRAVITY = 9.81
"""m/s^2 in one g."""

INNER, OUTER, BALL, IMBALANCE, MISALIGNMENT, LOOSENESS, LUBRICATION, SENSOR = range(1, 9)
"""Class indices, in the order of `INFO.faults`."""


@dataclass(frozen=True)
class Bearing:
    """Geometry of a rolling bearing; its defect orders are multiples of the shaft frequency.

    Kinematics without slip: Randall and Antoni 2011, section 2.

    >>> skf = Bearing("SKF 6205", balls=9, ball=7.94, pitch=39.04)
    >>> f"{skf.inner:.3f} {skf.outer:.3f} {skf.spin:.3f} {skf.cage:.3f}"
    '5.415 3.585 2.357 0.398'

    Args:
        name: maker and type.
        balls: number of rolling elements.
        ball: their diameter in mm.
        pitch: pitch diameter in mm.
        contact: contact angle in degrees.
    """

    name: str
    balls: int
    ball: float
    pitch: float
    contact: float = 0.0

    @property
    def ratio(self) -> float:
        """Ball to pitch diameter, seen along the contact angle."""
        return self.ball / self.pitch * float(np.cos(np.radians(self.contact)))

    @property
    def cage(self) -> float:
        """Fundamental train order (FTF): how fast the cage turns."""
        return 0.5 * (1 - self.ratio)

    @property
    def outer(self) -> float:
        """Ball pass order of the outer race (BPFO)."""
        return self.balls * self.cage

    @property
    def inner(self) -> float:
        """Ball pass order of the inner race (BPFI)."""
        return 0.5 * self.balls * (1 + self.ratio)

    @property
    def spin(self) -> float:
        """Ball spin order (BSF); a spot on a ball strikes a race twice per turn."""
        return 0.5 * self.pitch / self.ball * (1 - self.ratio**2)


BEARINGS = (
    Bearing("SKF 6205-2RS", balls=9, ball=7.94, pitch=39.04),  # drive end of the CWRU test bench
    Bearing("SKF 6203-2RS", balls=8, ball=6.746, pitch=28.5),  # its fan end
    Bearing("Rexnord ZA-2115", balls=16, ball=8.407, pitch=71.5, contact=15.17),  # IMS run-to-failure tests
)


@dataclass(frozen=True, eq=False)
class Fleet(ColumnTable):
    """What belongs to each machine: M rows. Ranges without a source are ours, for machines of 3 to 7 kW.

    Args:
        orders: (M, 4) inner, outer, spin and cage order of its bearing.
        mode: (M, 3) natural frequencies in Hz of housing and frame, below FS / 2.
        damping: (M, 3) damping ratios of the modes; a few per cent are common for bolted frames.
        shape: (M, 3, 3) share of each mode (last axis) in the reading of each vibration axis.
        compliance: (M, 3) how easily the support gives way along x, y, z: horizontal is softer than vertical.
        residual: (M, 3) velocity in mm/s RMS at orders 1, 2, 3 that is always there (ISO 20816-3, zone A).
        blades: (M,) blades of the driven fan or pump.
        blade_pass: (M, 3) acceleration in g of each axis at the blade pass order, at rated load.
        friction: (M,) RMS in g of broadband noise at 30 Hz and rated load.
        pole_pairs: (M,) of the motor.
        current: (M,) rated current in A.
        magnetising: (M,) share of it that flows without load.
        heat: (M,) rise of the bearing over ambient in K at 30 Hz and rated load.
    """

    orders: Array
    mode: Array
    damping: Array
    shape: Array
    compliance: Array
    residual: Array
    blades: NDArray[np.int64]
    blade_pass: Phasors
    friction: Array
    pole_pairs: NDArray[np.int64]
    current: Array
    magnetising: Array
    heat: Array


def draw_fleet(rng: np.random.Generator, machines: int) -> Fleet:
    """Draw `machines` different machines."""
    orders = np.array([(b.inner, b.outer, b.spin, b.cage) for b in BEARINGS])
    sign = rng.choice((-1.0, 1.0), size=(machines, 3, 3))
    blade_level = log_uniform(rng, 0.01, 0.12, (machines, 1)) * rng.uniform(0.3, 1.0, size=(machines, 3))
    return Fleet(
        orders=orders[rng.integers(len(BEARINGS), size=machines)],
        mode=rng.uniform((450, 1050, 1700), (900, 1550, 2300), size=(machines, 3)),
        damping=rng.uniform(0.015, 0.06, size=(machines, 3)),
        shape=sign * rng.uniform(0.2, 1.0, size=(machines, 3, 3)) * np.array([1.0, 1.0, 0.7])[:, None],
        compliance=rng.uniform((1.0, 0.6, 0.5), (1.6, 1.1, 1.0), size=(machines, 3)),
        residual=log_uniform(rng, np.array([0.4, 0.15, 0.06]), np.array([1.6, 0.8, 0.4]), (machines, 3)),
        blades=rng.integers(5, 10, size=machines),
        blade_pass=blade_level * draw_phases(rng, (machines, 3)),
        friction=log_uniform(rng, 0.02, 0.06, (machines,)),
        pole_pairs=rng.integers(1, 3, size=machines),
        current=rng.uniform(9.0, 14.0, size=machines),
        magnetising=rng.uniform(0.3, 0.5, size=machines),
        heat=rng.uniform(16.0, 22.0, size=machines),
    )


def log_uniform(rng: np.random.Generator, low: Array | float, high: Array | float, size: tuple[int, ...]) -> Array:
    """Draw between `low` and `high`, evenly in the logarithm."""
    drawn: Array = np.exp(rng.uniform(np.log(low), np.log(high), size=size))
    return drawn


def draw_phases(rng: np.random.Generator, size: tuple[int, ...]) -> Phasors:
    """Phasors of length 1 and any phase."""
    phasors: Phasors = np.exp(2j * np.pi * rng.random(size))
    return phasors


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
        (0.3, 1.0),  # sensor fault: how much of the signal is lost, see `_motor.fail`
    ]
)
"""(9, 2) least and greatest severity of a grown fault at difficulty 1, in the unit said behind each (ours)."""


@dataclass(frozen=True, eq=False)
class MotorRegime(ColumnTable):
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


def draw_regime(rng: np.random.Generator, runs: int, difficulty: float) -> MotorRegime:
    """Draw operating points; their spread and the noise grow with `difficulty`."""
    spread = 0.4 + 0.6 * difficulty
    swing = rng.uniform((0.0005, 0.5), (0.004, 3.0), size=(runs, 2))
    return MotorRegime(
        speed=_set_speed(rng, runs, spread),
        load=np.clip(0.7 + spread * rng.uniform(-0.35, 0.35, size=runs), 0.2, 1.2),
        ambient=22.0 + spread * rng.uniform(-6, 6, size=runs),
        hunting=swing,
        residual=np.exp(0.35 * spread * rng.standard_normal((runs, 1, 3))) * draw_phases(rng, (runs, 3, 3)),
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
class Course(ColumnTable):
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
class Defect(ColumnTable):
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
        spot=draw_phases(rng, (runs,)),
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
class MotorRows(ColumnTable):
    """R snapshots with all that acts in each.

    Args:
        machine: R rows.
        regime: R rows.
        defect: R rows.
        fault: (R,) class, 0 before the onset.
        severity: (R,) of that fault.
    """

    machine: Fleet
    regime: MotorRegime
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


N = SETTLE + SNAPSHOT
"""Samples simulated per snapshot."""
SLIP = 0.012
"""Standard deviation of the spacing of impacts, as share of it; 1 to 2 % (Randall and Antoni 2011)."""
PARALLEL = np.array([(0.5, 0.9, 0.35), (0.5, 0.9, 0.35), (0.25, 0.4, 0.1)])
ANGULAR = np.array([(0.35, 0.3, 0.1), (0.35, 0.3, 0.1), (0.9, 0.7, 0.25)])
"""Share of a misalignment by axis (x, y, z) and order (1, 2, 3): offset shafts shake radially at twice the speed,
shafts at an angle axially at once and twice the speed (Piotrowski, Shaft Alignment Handbook, 2006)."""
LANDING = np.array([0.3, 1.0, 0.15])
"""How much of a landing each axis feels: a loose foot lifts and falls vertically (ours)."""
CLATTER = 0.3
"""Share of a landing's strength that makes the structure ring (ours)."""


def shaft_angle(rows: MotorRows, rng: np.random.Generator) -> Array:
    """Angle (R, N) in radians of a shaft whose speed swings slowly: the integral of the speed in closed form.

    The index pulse of the encoder starts each snapshot, so the angle is 0 at its first sample.
    """
    depth, rate = rows.regime.hunting[:, :1], 2 * np.pi * rows.regime.hunting[:, 1:]
    phase = rng.uniform(0, 2 * np.pi, size=(len(rows), 1))
    time = np.arange(N) / FS
    swing = depth / rate * (np.cos(phase) - np.cos(rate * time + phase))
    angle: Array = 2 * np.pi * rows.regime.speed[:, None] * (time + swing)
    return angle - angle[:, SETTLE, None]


def shaft_speed(angle: Array) -> Array:
    """Shaft frequency (R, N) in Hz along an angle."""
    speed: Array = np.gradient(angle, axis=1) * FS / (2 * np.pi)
    return speed


def slip_of(load: Array) -> Array:
    """Slip of a small induction motor: near linear in torque, 4 % at rated load."""
    return 0.04 * load


def housing(
    rows: MotorRows, angle: Array, rng: np.random.Generator, fault_rng: np.random.Generator
) -> tuple[Array, Array]:
    """Acceleration of the bearing housing, and the impacts behind it.

    Args:
        rows: R snapshots.
        angle: (R, N) of the shaft.
        rng: randomness of the healthy machine.
        fault_rng: randomness of the faults; the healthy part does not depend on it.

    Returns:
        acceleration: (R, 3, N) in g, horizontal, vertical, axial; without its mean, as piezo sensors measure.
        train: (R, N) impulses of bearing impacts and landings in g.
    """
    answer = response(rows.machine)
    force, clatter = landings(rows, angle, fault_rng)
    train = impacts(rows, angle, fault_rng) + clatter
    loudness = np.sqrt((answer**2).sum(axis=2).mean(axis=1))[:, None, None]
    excitation = train[:, None, :] + friction(rows, angle, rng, fault_rng) / loudness
    acceleration = convolve(excitation, answer) + LANDING[:, None] * force[:, None, :]
    acceleration += rotor(rows, angle) + process(rows, angle, rng)
    return acceleration - acceleration.mean(axis=2, keepdims=True), train


def rotor(rows: MotorRows, angle: Array) -> Array:
    """Acceleration (R, 3, N) in g at orders 1 to 3: residual, imbalance and misalignment add as phasors."""
    velocity = rows.machine.residual[:, None, :] * np.array([1.0, 1.0, 0.5])[:, None] * rows.regime.residual
    velocity[:, :, 0] += _imbalance(rows)
    velocity += _misalignment(rows)
    velocity *= rows.machine.compliance[:, :, None]
    turn = np.exp(1j * angle)[:, None, :]
    wave = np.zeros((len(rows), 3, angle.shape[1]))
    for order in (1, 2, 3):
        to_g = np.sqrt(2) * 2 * np.pi * order * rows.regime.speed * 1e-3 / GRAVITY
        wave += (velocity[:, :, order - 1, None] * turn**order).real * to_g[:, None, None]
    return wave


def _imbalance(rows: MotorRows) -> Phasors:
    """Phasors (R, 3) in mm/s at order 1: the force turns, so y is a quarter turn behind x; little is axial."""
    turning = rows.severity_of(IMBALANCE) * rows.defect.spot
    return np.stack([turning, -1j * turning, rows.defect.overhang * turning], axis=1)


def _misalignment(rows: MotorRows) -> Phasors:
    """Phasors (R, 3, 3) in mm/s by axis and order of a coupling between the two pure kinds."""
    angular = rows.defect.angular[:, None, None]
    share = (1 - angular) * PARALLEL + angular * ANGULAR
    phasors: Phasors = rows.severity_of(MISALIGNMENT)[:, None, None] * share * rows.defect.coupling
    return phasors


def process(rows: MotorRows, angle: Array, rng: np.random.Generator) -> Array:
    """Acceleration (R, 3, N) in g of healthy sources: blade passing, and the magnetic pull at twice line frequency."""
    machine, load = rows.machine, rows.regime.load
    blade = np.exp(1j * machine.blades[:, None] * angle)[:, None, :]
    line = machine.pole_pairs[:, None] * angle / (1 - slip_of(load))[:, None]
    phase = rng.uniform(0, 2 * np.pi, size=(len(rows), 1, 1))
    wave: Array = load[:, None, None] * (machine.blade_pass[:, :, None] * blade).real
    return wave + 0.012 * np.cos(2 * line[:, None, :] + phase)


def friction(rows: MotorRows, angle: Array, rng: np.random.Generator, fault_rng: np.random.Generator) -> Array:
    """Broadband force (R, 3, N) in g; dry contacts rub louder, in bursts and with the turning of shaft and cage."""
    level = rows.machine.friction * rows.regime.friction
    level = level * rows.regime.speed / 30.0 * (0.6 + 0.4 * rows.regime.load)
    with_shaft = 1 + rows.defect.starved[:, :1] * np.cos(angle)
    with_cage = 1 + rows.defect.starved[:, 1:] * np.cos(rows.machine.orders[:, 3:4] * angle)
    dry = rows.severity_of(LUBRICATION)[:, None] * with_shaft * with_cage * _bursts(fault_rng, len(rows))
    envelope = level[:, None] * (1 + dry)
    return envelope[:, None, :] * rng.standard_normal((len(rows), 3, N))


def _bursts(rng: np.random.Generator, count: int) -> Array:
    """Positive level (count, N) that wanders around 1: the film breaks and heals over some 25 ms."""
    knots = np.exp(0.35 * rng.standard_normal((count, N // 128 + 2)))
    position = np.arange(N) / 128
    left = position.astype(np.int64)
    share = position - left
    wandering: Array = knots[:, left] * (1 - share) + knots[:, left + 1] * share
    return wandering


def impacts(rows: MotorRows, angle: Array, rng: np.random.Generator) -> Array:
    """Train of bearing impacts (R, N): their strength in g at the sample of each, 0 elsewhere."""
    train = np.zeros_like(angle)
    for fault, column, per_turn in ((INNER, 0, 1), (OUTER, 1, 1), (BALL, 2, 2)):
        hit = rows.fault == fault
        some, turn = rows.take(hit), angle[hit]
        passes = per_turn * some.machine.orders[:, column, None] * turn / (2 * np.pi)
        strength = some.severity * some.regime.speed / 30.0 * (0.5 + 0.5 * some.regime.load)
        struck, number = strikes(passes, rng, SLIP)
        train[hit] = struck * strength[:, None] * _pressed(fault, some, turn, number, rng)
    return train


def strikes(passes: Array, rng: np.random.Generator, jitter: float) -> tuple[Array, NDArray[np.int64]]:
    """Where a growing count passes an integer, with the random slip of rolling elements.

    The slip between two strikes is independent of the one before, so the count wanders like a random walk
    (Antoni and Randall 2003).

    Args:
        passes: (R, N) strikes since some time, a growing real number.
        rng: of the slip, the first strike and the strength of each.
        jitter: standard deviation of the spacing, as share of it.

    Returns:
        train: (R, N) about 1 at the first sample after each strike, 0 elsewhere.
        number: (R, N) how many strikes have been.
    """
    advance = np.diff(passes, axis=1, prepend=2 * passes[:, :1] - passes[:, 1:2])
    walk = np.maximum(advance + jitter * np.sqrt(advance) * rng.standard_normal(passes.shape), 0.0)
    number = np.floor(rng.random((len(passes), 1)) + np.cumsum(walk, axis=1)).astype(np.int64)
    struck = np.diff(number, axis=1, prepend=number[:, :1]) > 0
    train = np.where(struck, np.exp(0.2 * rng.standard_normal(passes.shape)), 0.0)
    return train, number


def _pressed(fault: int, rows: MotorRows, angle: Array, number: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """How hard each strike is, (R, N) or (R, 1): the load where the defect is now.

    An inner race turns with the shaft, an outer race rests, a ball goes round with the cage, which slips from one
    snapshot to the next, and strikes both races in turn.
    """
    zone = rows.regime.zone
    if fault == INNER:
        return load_zone(angle + rows.defect.place[:, None], zone)
    if fault == OUTER:
        return load_zone(rows.defect.rest[:, None], zone)
    cage = rows.machine.orders[:, 3:4] * angle + rng.uniform(0, 2 * np.pi, size=(len(rows), 1))
    return np.where(number % 2 == 0, 1.0, 0.6) * load_zone(cage, zone)


def load_zone(position: Array, zone: Array) -> Array:
    """Share of the greatest load at an angle from the load's direction.

    q = (1 - (1 - cos a) / (2 epsilon))^1.5 inside the zone, 0 outside (McFadden and Smith 1984; ball bearings).

    >>> load_zone(np.array([[0.0, np.pi]]), np.array([0.5])).tolist()
    [[1.0, 0.0]]

    Args:
        position: (R, N) angle in radians.
        zone: (R,) epsilon.
    """
    inside = 1 - (1 - np.cos(position)) / (2 * zone[:, None])
    share: Array = np.maximum(inside, 0.0) ** 1.5
    return share


def landings(rows: MotorRows, angle: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """A loose foot that lands once per revolution, hardest every first, second or third time.

    Each landing is a half sine: short enough for many harmonics, and where every second or third landing is harder
    than the others there are subharmonics too.

    Returns:
        force: (R, N) push of the ground in g.
        train: (R, N) impulses in g that make the structure ring.
    """
    force, train = np.zeros_like(angle), np.zeros_like(angle)
    hit = rows.fault == LOOSENESS
    some = rows.take(hit)
    struck, number = strikes(angle[hit] / (2 * np.pi), rng, 0.02)
    hard = number % some.defect.landing[:, None] == 0
    strength = struck * np.where(hard, 1.0, some.defect.soft[:, None]) * some.severity[:, None]
    phase = np.arange(SETTLE) / (some.defect.contact[:, None] * FS)
    pulse = np.where(phase < 1, np.sin(np.pi * phase), 0.0)
    force[hit], train[hit] = convolve(strength, pulse), CLATTER * strength
    return force, train


def response(machine: Fleet) -> Array:
    """Impulse response (M, 3, SETTLE) of each axis: damped modes, scaled to a greatest peak of 1."""
    time = np.arange(SETTLE) / FS
    natural = 2 * np.pi * machine.mode[:, :, None]
    ringing = np.exp(-machine.damping[:, :, None] * natural * time) * np.sin(natural * time)
    answer: Array = (machine.shape[:, :, :, None] * ringing[:, None, :, :]).sum(axis=2)
    answer /= np.abs(answer).max(axis=(1, 2), keepdims=True)
    return answer


def convolve(signal: Array, kernel: Array) -> Array:
    """Causal convolution along the last axis, cut to the length of `signal`; shapes broadcast."""
    samples = signal.shape[-1] + kernel.shape[-1]
    spectrum = np.fft.rfft(signal, samples) * np.fft.rfft(kernel, samples)
    answer: Array = np.fft.irfft(spectrum, samples)[..., : signal.shape[-1]]
    return answer
