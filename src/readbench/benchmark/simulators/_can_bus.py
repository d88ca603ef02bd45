"""The CAN bus of the simulated car: who drives on it, which messages it carries, and how it is attacked.

**Cars and trips.** There is one car model and several cars: they differ in load, tyres, engine condition and sensor
offsets. Each run has its own driver and its own piece of a trip.

**Messages** (`BUS`): which signals each frame carries, how often, and in which raw units. As on a real bus seen without
the maker's data base, every channel is a raw integer: physical values with their own gain and offset, single bits,
message counters and check sums. Some quantities appear twice, in other units and at another rate. A signal keeps its
last value until the next frame of its message.

**Attacks** (`AttackPlan`), after the ROAD data set. The attacker is a masquerade: the true sender is silent and forged
frames take its place at the usual times. He rewrites one quantity (or, fuzzing, whole payloads). What else the frame
carries either goes on as if nothing had happened, or is frozen at what he recorded; check sums are repaired or not; the
forgery lasts or comes in bursts; and the forged value differs from run to run, within what the car could show on
another trip. So no single level gives an attack away: what is wrong is the relation to other messages.

References:
    Gillespie, Fundamentals of Vehicle Dynamics, SAE, 1992 (road load, mass factor, rolling resistance).
    Rajamani, Vehicle Dynamics and Control, 2nd ed., Springer, 2012 (longitudinal model, understeer, tyre slip).
    Heywood, Internal Combustion Engine Fundamentals, McGraw-Hill, 1988 (friction, heat to the coolant).
    Treiber and Kesting, Traffic Flow Dynamics, Springer, 2013 (comfortable accelerations of drivers).
    Verma et al., A comprehensive guide to CAN IDS data and introduction of the ROAD dataset, PLoS ONE 19(1), 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, read_shipped_rows
from readbench.benchmark.simulators._base import ColumnTable, switch_states

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
class Cars(ColumnTable):
    """Figures of cars, one row per car (or per run, after `take`).

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


COUNTER, CHECKSUM = "counter", "check sum"


class BusSignal(NamedTuple):
    """One signal: raw = round(gain * (quantity + bias * offset of the car + noise) + zero), kept within its bits.

    Args:
        source: name of the quantity, or `COUNTER` or `CHECKSUM`.
        bits: width; raw values lie in 0 .. 2**bits - 1.
        gain: raw units per physical unit.
        zero: raw value of physical zero.
        noise: standard deviation of the sensor's noise in physical units.
        bias: standard deviation of its offset between cars in physical units.
    """

    source: str
    bits: int = 1
    gain: float = 1.0
    zero: float = 0.0
    noise: float = 0.0
    bias: float = 0.0


class Message(NamedTuple):
    """One message: identifier, period in steps of 50 ms, signals."""

    identifier: int
    period: int
    signals: tuple[BusSignal, ...]


def _read_bus() -> tuple[Message, ...]:
    rows: dict[tuple[int, int], list[BusSignal]] = {}
    for row in read_shipped_rows(__name__, "can/bus.csv"):
        bits, *figures = (float(row[name]) for name in BusSignal._fields[1:])
        rows.setdefault((int(row["message"], 16), int(row["period"])), []).append(
            BusSignal(row["source"], int(bits), *figures)
        )
    return tuple(Message(*key, tuple(signals)) for key, signals in rows.items())


BUS = _read_bus()
"""Gains, offsets and rates are ours, of the kind found in public data bases of passenger cars; identifiers 0x0D0 and
0x6E0 carry what they carry in ROAD."""
SIGNALS = tuple(signal for message in BUS for signal in message.signals)
FIRST = tuple(int(n) for n in np.cumsum([0] + [len(message.signals) for message in BUS]))
"""Where each message's signals begin in `SIGNALS`."""
CHANNELS = tuple(
    Channel(f"id_{message.identifier:03x}_{k}", "raw", signal.source.replace("_", " "))
    for message in BUS
    for k, signal in enumerate(message.signals, start=1)
)
TOP = np.array([2.0**signal.bits - 1 for signal in SIGNALS])
"""Greatest raw value of each signal."""


def message_of(identifier: int) -> int:
    """Index of a message in `BUS`."""
    return next(m for m, message in enumerate(BUS) if message.identifier == identifier)


def columns_of(message: int) -> slice:
    """Columns of a message's signals."""
    return slice(FIRST[message], FIRST[message + 1])


def column(identifier: int, source: str) -> int:
    """Column of the first signal of a message that carries `source`.

    >>> CHANNELS[column(0x0D0, "display_kmh")].name
    'id_0d0_1'
    """
    message = message_of(identifier)
    return FIRST[message] + next(k for k, s in enumerate(BUS[message].signals) if s.source == source)


def encode(rng: np.random.Generator, quantities: dict[str, Array], offsets: Array) -> Array:
    """Raw values (B, C, L) of physical quantities (L, B), before counters and check sums.

    Args:
        rng: source of sensor noise.
        quantities: (L, B) per name.
        offsets: (B, C) offsets of each car's sensors in standard units.
    """
    steps, runs = next(iter(quantities.values())).shape
    raw = np.zeros((runs, len(SIGNALS), steps))
    for c, signal in enumerate(SIGNALS):
        if signal.source in {COUNTER, CHECKSUM}:
            continue
        value = quantities[signal.source].T + signal.bias * offsets[:, c, None]
        if signal.noise:
            value = value + signal.noise * rng.standard_normal((runs, steps))
        raw[:, c] = np.clip(np.round(signal.gain * value + signal.zero), 0, TOP[c])
    return raw


def count(raw: Array, phases: Array) -> None:
    """Write the message counters: one more with each frame."""
    time = np.arange(raw.shape[2])
    for c, message in _columns(COUNTER):
        frame = np.floor((time - phases[:, message, None] % BUS[message].period) / BUS[message].period)
        raw[:, c] = (frame + phases[:, message, None]) % (TOP[c] + 1)


def check(raw: Array) -> Array:
    """Check sums (B, n, L) of the frames as they are: weighted sum of the other signals, modulo 256."""
    sums = []
    for c, message in _columns(CHECKSUM):
        own = np.arange(FIRST[message], FIRST[message + 1])
        weights = np.where(own == c, 0.0, 2.0 * np.arange(len(own)) + 1)
        sums.append((raw[:, columns_of(message)] * weights[:, None]).sum(axis=1) % 256)
    return np.stack(sums, axis=1)


CHECK_COLUMNS = np.array([c for c, s in enumerate(SIGNALS) if s.source == CHECKSUM])


def hold(raw: Array, phases: Array) -> None:
    """Keep each message's values until its next frame; `phases` (B, M) is when each message is first sent."""
    time = np.arange(raw.shape[2])
    for m, message in enumerate(BUS):
        if message.period > 1:
            phase = phases[:, m, None] % message.period
            sent = np.maximum((time - phase) // message.period * message.period + phase, 0).astype(np.intp)
            part = raw[:, columns_of(m)]
            raw[:, columns_of(m)] = np.take_along_axis(part, np.broadcast_to(sent[:, None], part.shape), axis=2)


def _columns(source: str) -> list[tuple[int, int]]:
    """(column, message) of all signals of a source."""
    owner = [m for m, message in enumerate(BUS) for _ in message.signals]
    return [(c, owner[c]) for c, signal in enumerate(SIGNALS) if signal.source == source]


SPEED, LAMP, WHEELS, COOLANT, FUZZ, PEDAL = range(1, 7)
"""Class numbers of the attacks."""


@dataclass(frozen=True, eq=False)
class AttackPlan:
    """What the attacker does in each run; drawn for every run whatever its class.

    Args:
        fault: (B,) class.
        active: (L, B) attack under way (the label).
        sending: (L, B) forged frames on the bus: active, and not in a pause between bursts.
        onset: (B,) first step of the attack.
        frozen: (B,) whether the rest of the frame is frozen.
        careless: (B,) whether check sums are left as the true sender would have them.
        scaled: (B,) whether a forged speed is a multiple of the truth (else a constant).
        factor: (B,) that multiple.
        gap: (B,) distance of a constant forged speed from the truth at the onset, in m/s.
        coolant: (B,) forged coolant temperature in degrees Celsius.
        pedal: (B,) forged pedal position (share).
        stuck: (B,) whether the pedal is instead held at its last position.
        torque_left: (B,) share of the torque that traction control leaves when wheel speeds are forged.
        fuzzed: (B,) number of messages fuzzed.
        fuzz_rate: (B,) share of their frames that is replaced.
    """

    fault: NDArray[np.int32]
    active: Flags
    sending: Flags
    onset: NDArray[np.int64]
    frozen: Flags
    careless: Flags
    scaled: Flags
    factor: Array
    gap: Array
    coolant: Array
    pedal: Array
    stuck: Flags
    torque_left: Array
    fuzzed: NDArray[np.int64]
    fuzz_rate: Array

    def on(self, kind: int) -> Flags:
        """(L, B) whether frames are forged by this kind of attack."""
        return np.asarray(self.sending & (self.fault == kind))


def draw_plan(
    rng: np.random.Generator, fault: NDArray[np.int32], trips: Trips, steps: int, difficulty: float
) -> AttackPlan:
    """Draw the attacks.

    Args:
        rng: source of randomness.
        fault: (B,) class of each run.
        trips: the trips, whose temperature a forged one must differ from.
        steps: run length L.
        difficulty: divides the distance of forged values from the truth and the rate of fuzzing.
    """
    runs, time = len(fault), np.arange(steps)[:, None]
    bold = 1.0 / (0.5 + 0.5 * difficulty)
    onset = rng.integers(100, steps // 2, runs)
    # 8 to 28 s, as in ROAD; a quarter lasts until the end of the recording.
    lasts = np.where(rng.random(runs) < 0.25, steps, rng.integers(160, 560, runs))
    active = (time >= onset) & (time < onset + lasts) & (fault > 0)
    steady = rng.random(runs) < 0.5
    bursts = _bursts(rng, runs, steps)
    bursts[onset, np.arange(runs)] = True
    warmer = np.where(rng.random(runs) < 0.75, 1.0, -1.0)
    coolant = trips.coolant + warmer * rng.uniform(15, 60, runs) * bold
    faster = np.where(rng.random(runs) < 0.8, 1.0, -0.4)
    return AttackPlan(
        fault=fault,
        active=active,
        sending=active & (steady | bursts),
        onset=onset,
        frozen=rng.random(runs) < 0.5,
        careless=rng.random(runs) < 0.5,
        scaled=rng.random(runs) < 0.35,
        factor=1 + faster * rng.uniform(0.3, 1.0, runs) * bold,
        gap=faster * rng.uniform(6.0, 30.0, runs) * bold,
        coolant=np.clip(coolant, -20.0, 140.0),
        pedal=rng.uniform(0.2, 0.6, runs),
        stuck=rng.random(runs) < 0.3,
        # Forged wheel speeds made the car of ROAD roll out; how much torque is left is ours.
        torque_left=rng.uniform(0.0, 0.5, runs),
        fuzzed=rng.integers(3, 9, runs),
        fuzz_rate=np.minimum(rng.uniform(0.15, 0.6, runs) * bold, 0.9),
    )


def _bursts(rng: np.random.Generator, runs: int, steps: int) -> Flags:
    """(L, B) on/off chain of forging: bursts of 1 to 4 s on average, pauses of 0.5 to 2 s."""
    on, off = rng.uniform(1, 4, runs) / STEP_S, rng.uniform(0.5, 2, runs) / STEP_S
    return switch_states(rng.random((steps, runs)), np.ones(runs, dtype=np.bool_), on, off)


TARGETS: dict[int, tuple[int, tuple[str, ...]]] = {
    SPEED: (0x0D0, ("display_kmh",)),
    LAMP: (0x0D0, ("reverse_lamp",)),
    WHEELS: (0x6E0, ("wheel_fl", "wheel_fr", "wheel_rl", "wheel_rr")),
    COOLANT: (0x3A0, ("coolant",)),
    PEDAL: (0x0A1, ("pedal",)),
}
"""Message and signals that each masquerade rewrites."""


def forge(plan: AttackPlan, raw: Array, speed: Array) -> None:
    """Rewrite the raw frames (B, C, L) in place; `speed` (L, B) is the car's true one in m/s.

    The forged pedal is on the bus already, because the engine answered it.
    """
    runs = np.arange(len(plan.fault))
    at_onset = speed[plan.onset, runs]
    constant = at_onset + np.where(at_onset + plan.gap < 1.0, -plan.gap, plan.gap)
    false_speed = np.where(plan.scaled, plan.factor * speed + 0.4 * np.abs(plan.gap), constant)
    for kind, (identifier, sources) in TARGETS.items():
        on, columns = plan.on(kind).T, [column(identifier, source) for source in sources]
        _freeze(plan, raw, on, identifier, columns)
        for c in columns:
            if kind in {SPEED, WHEELS}:
                unit = 3.6 if kind == SPEED else 1.0
                false = np.clip(np.round(SIGNALS[c].gain * unit * false_speed.T), 0, TOP[c])
            elif kind == COOLANT:
                false = np.clip(np.round(SIGNALS[c].gain * plan.coolant + SIGNALS[c].zero), 0, TOP[c])[:, None]
            else:
                false = 1.0 - raw[:, c] if kind == LAMP else raw[:, c]
            raw[:, c] = np.where(on, false, raw[:, c])


def _freeze(plan: AttackPlan, raw: Array, on: Flags, identifier: int, spared: list[int]) -> None:
    """Freeze the frame's other signals at what they were at the onset, where the attacker does so."""
    columns = [c for c in range(*columns_of(message_of(identifier)).indices(len(SIGNALS))) if c not in spared]
    recorded = raw[np.arange(len(raw))[:, None], columns, plan.onset[:, None]]
    still = (on & plan.frozen[:, None])[:, None, :]
    raw[:, columns] = np.where(still, recorded[:, :, None], raw[:, columns])


def fuzz(rng: np.random.Generator, plan: AttackPlan, raw: Array) -> None:
    """Replace frames of some messages by random payloads, in the runs that are fuzzed."""
    for b in np.flatnonzero(plan.fault == FUZZ):
        for m in rng.permutation(len(BUS))[: plan.fuzzed[b]]:
            own = columns_of(int(m))
            hit = plan.sending[:, b] & (rng.random(raw.shape[2]) < plan.fuzz_rate[b])
            payload = np.floor(rng.random((own.stop - own.start, raw.shape[2])) * (TOP[own, None] + 1))
            raw[b, own] = np.where(hit, payload, raw[b, own])
