"""Acceleration of a bearing housing: what turns, what strikes, what rubs, and the structure that rings to it.

Sources: McFadden and Smith 1984 (impacts weighted by the load zone, answered by a resonance); Antoni and Randall
2003 (random slip between impacts); Randall and Antoni 2011 (review); Muszynska and Goldman 1995 (a loose rotor lands
every one, two or three revolutions). All is closed form or a running sum over R snapshots of N samples at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readbench.data.simulators.motor.parameters import (
    BALL,
    FS,
    GRAVITY,
    IMBALANCE,
    INNER,
    LOOSENESS,
    LUBRICATION,
    MISALIGNMENT,
    OUTER,
    SETTLE,
    SNAPSHOT,
    Array,
    Fleet,
    Phasors,
)
from readbench.data.simulators.motor.runs import Rows

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


def shaft_angle(rows: Rows, rng: np.random.Generator) -> Array:
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


def housing(rows: Rows, angle: Array, rng: np.random.Generator, fault_rng: np.random.Generator) -> tuple[Array, Array]:
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


def rotor(rows: Rows, angle: Array) -> Array:
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


def _imbalance(rows: Rows) -> Phasors:
    """Phasors (R, 3) in mm/s at order 1: the force turns, so y is a quarter turn behind x; little is axial."""
    turning = rows.severity_of(IMBALANCE) * rows.defect.spot
    return np.stack([turning, -1j * turning, rows.defect.overhang * turning], axis=1)


def _misalignment(rows: Rows) -> Phasors:
    """Phasors (R, 3, 3) in mm/s by axis and order of a coupling between the two pure kinds."""
    angular = rows.defect.angular[:, None, None]
    share = (1 - angular) * PARALLEL + angular * ANGULAR
    phasors: Phasors = rows.severity_of(MISALIGNMENT)[:, None, None] * share * rows.defect.coupling
    return phasors


def process(rows: Rows, angle: Array, rng: np.random.Generator) -> Array:
    """Acceleration (R, 3, N) in g of healthy sources: blade passing, and the magnetic pull at twice line frequency."""
    machine, load = rows.machine, rows.regime.load
    blade = np.exp(1j * machine.blades[:, None] * angle)[:, None, :]
    line = machine.pole_pairs[:, None] * angle / (1 - slip_of(load))[:, None]
    phase = rng.uniform(0, 2 * np.pi, size=(len(rows), 1, 1))
    wave: Array = load[:, None, None] * (machine.blade_pass[:, :, None] * blade).real
    return wave + 0.012 * np.cos(2 * line[:, None, :] + phase)


def friction(rows: Rows, angle: Array, rng: np.random.Generator, fault_rng: np.random.Generator) -> Array:
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


def impacts(rows: Rows, angle: Array, rng: np.random.Generator) -> Array:
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


def _pressed(fault: int, rows: Rows, angle: Array, number: NDArray[np.int64], rng: np.random.Generator) -> Array:
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


def landings(rows: Rows, angle: Array, rng: np.random.Generator) -> tuple[Array, Array]:
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
