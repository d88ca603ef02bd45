"""Simulated three tanks in a row under level control, with faults in plant, actuators and sensors.

The laboratory plant of many fault diagnosis papers: pump 1 fills tank 1, pump 2 fills tank 2, water runs
from tank 1 through tank 3 to tank 2 and out through a valve. With levels h in m and flows q in m3/s,
Torricelli's law and the mass balance give

    A dh1/dt = q1 - q13 - leak1      q13 = c13 sqrt(h1 - h3)
    A dh3/dt = q13 - q32 - leak3     q32 = c32 sqrt(h3 - h2)
    A dh2/dt = q2 + q32 - q20        q20 = c20 valve sqrt(h2)

Two PI controllers hold the measured levels of tanks 1 and 2. They hide what a fault does to the level they
control and move it elsewhere: a leak shows in the pump, a biased sensor in the true level, which only the
pressure knows.

The parameters come first: rigs, regimes and faults, each number with its source. Time comes first in every schedule,
(L, k, B), so that one step of the recursion reads one contiguous slice. No draw depends on the fault of a run: the same
batch with its faults removed is the same plant, in the same regime, with the same noise.

Sources:
    [J] C. Join, H. Sira-Ramirez, M. Fliess, "Control of an uncertain three-tank system via on-line parameter
        identification and fault detection", IFAC World Congress, 2005.
    [N] H. Noura, D. Theilliol, J.-C. Ponsart, A. Chamseddine, "Fault-tolerant Control Systems", Springer,
        2009, the chapter on the three-tank system.
    [G] J. F. Guelich, "Centrifugal Pumps", Springer: affinity laws.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Channel, SourceInfo, read_info
from readbench.benchmark.simulators._base import RunBatch, Simulator, quantise
from readbench.engine.registry import SOURCES

Floats = NDArray[np.float64]

GRAVITY = 9.81
"""m/s2."""
SAMPLE = 2.0
"""Seconds per sample; chosen so that a window of 256 samples spans two to three time constants of a tank."""
TANK_AREA = 0.0154
"""Cross-section of each tank, m2 [J, N]."""
PIPE_AREA = 5e-5
"""Cross-section of the pipes between tanks and of the outlet, m2 [J, N]."""
FLOW_COEFFICIENT = (0.5, 0.5, 0.675)
"""Outflow coefficients of pipes 1-3 and 3-2 and of the outlet [N]."""
PUMP_MAX = 1.1e-4
"""Flow at full speed, m3/s; between the 1.0e-4 and 1.2e-4 in use for this plant [J, N]."""
LEVEL_MAX = 0.62
"""Height at which a tank spills, m [N]."""
SMOOTH_HEAD = 0.005
"""m; below it pipe flow is laminar and linear in the head. Chosen so that explicit steps stay stable."""


class TankFault(IntEnum):
    """Class index of each fault."""

    LEAK_1 = 1
    LEAK_3 = 2
    PUMP = 3
    CLOG = 4
    VALVE = 5
    BIAS = 6
    DRIFT = 7
    STUCK = 8
    NOISE = 9


SEVERITY: dict[TankFault, tuple[float, float]] = {
    TankFault.LEAK_1: (0.08, 0.35),  # area of the hole, in pipe areas
    TankFault.LEAK_3: (0.08, 0.35),
    TankFault.PUMP: (0.12, 0.50),  # share of the flow at a given speed that is lost
    TankFault.CLOG: (0.20, 0.65),  # share of the pipe's area that is blocked
    TankFault.VALVE: (1.0, 1.0),  # stuck is stuck
    TankFault.BIAS: (0.020, 0.065),  # m
    TankFault.DRIFT: (0.040, 0.120),  # m at the end of the drift
    TankFault.STUCK: (1.0, 1.0),
    TankFault.NOISE: (2.0, 8.0),  # added noise, in units of the healthy noise
}
"""Range of each severity at difficulty 1; chosen so that faults move channels as much as regimes do."""
ABRUPT = (TankFault.VALVE, TankFault.BIAS, TankFault.STUCK, TankFault.NOISE)
"""Faults that are complete at once; the others grow in some runs, and a drift always does."""


@dataclass(frozen=True, eq=False)
class Rigs:
    """Constants of the plants; one column per rig.

    Args:
        area: (3, B) cross-section of tanks 1, 3, 2 in m2.
        pipe: (3, B) flow per root of head of pipe 1-3, pipe 3-2 and the open outlet, m3/s per sqrt(m).
        pump_max: (2, B) flow at full speed, m3/s.
        shut_off: (2, B) relative speed below which a pump does not lift the water into its tank.
        pump_lag: (2, B) time constant of the pumps in s.
        meter_gain: (5, B) gain of the flow meters (1 is exact).
        pressure_zero: (2, B) zero error of the bottom pressure sensors in m of water.
        current: (2, B) pump current at full speed in A.
    """

    area: Floats
    pipe: Floats
    pump_max: Floats
    shut_off: Floats
    pump_lag: Floats
    meter_gain: Floats
    pressure_zero: Floats
    current: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator, count: int) -> Self:
        """Parameters of `count` rigs; the spreads are ours, those of a laboratory with hand-made copies."""
        torricelli = np.array(FLOW_COEFFICIENT) * PIPE_AREA * np.sqrt(2.0 * GRAVITY)
        return cls(
            area=TANK_AREA * rng.uniform(0.97, 1.03, (3, count)),
            pipe=torricelli[:, None] * rng.uniform(0.94, 1.06, (3, count)),
            pump_max=PUMP_MAX * rng.uniform(0.9, 1.1, (2, count)),
            shut_off=rng.uniform(0.15, 0.30, (2, count)),
            pump_lag=rng.uniform(2.0, 5.0, (2, count)),
            meter_gain=rng.uniform(0.98, 1.02, (5, count)),
            pressure_zero=rng.uniform(-0.003, 0.003, (2, count)),
            current=rng.uniform(1.6, 2.4, (2, count)),
        )

    def take(self, asset: NDArray[np.int32]) -> Self:
        """The rigs of some runs, one column per run."""
        return type(self)(**{f.name: getattr(self, f.name)[:, asset] for f in fields(self)})


@dataclass(frozen=True, eq=False)
class TankRegime:
    """What the operators, the consumers and the surroundings do in each run.

    Args:
        set_point: (L, 2, B) wanted levels of tanks 1 and 2 in m.
        valve: (L, B) commanded opening of the outlet valve, 0 to 1.
        back_pressure: (L, B) factor on the outlet's flow: an unmeasured change of what is downstream.
        supply: (L, 2, B) factor on the pumps' flow: unmeasured changes of suction and voltage.
        gain: (2, B) proportional gain of the level controllers, relative speed per m.
        reset: (2, B) their integral time in s.
        noise: (B,) factor on all measurement noise.
    """

    set_point: Floats
    valve: Floats
    back_pressure: Floats
    supply: Floats
    gain: Floats
    reset: Floats
    noise: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator, rigs: Rigs, length: int, difficulty: float) -> Self:
        """Regimes of a batch; `difficulty` d scales spread of operating points and noise by (1 + d) / 2.

        The numbers are ours: levels in the middle of the tanks, set-points and demand that move the plant
        about as much as the faults do, loops that settle in one to four minutes, unmeasured disturbances of 2 %.
        """
        count: int = rigs.area.shape[1]
        spread = (1.0 + difficulty) / 2.0
        low, valve = 0.20 + 0.025 * spread * _around(rng, count), 0.72 + 0.07 * spread * _around(rng, count)
        # Pump 2 gives what the outlet takes beyond the flow from tank 1: a share below one keeps it at work.
        share = 0.55 + 0.06 * spread * _around(rng, count)
        wanted = share * np.clip(valve, 0.45, 0.95) * rigs.pipe[2] * np.sqrt(low)
        drop = wanted**2 * (rigs.pipe[0] ** -2 + rigs.pipe[1] ** -2)
        base = np.stack([np.clip(low + drop, low + 0.05, 0.52), low])
        moves = _moves(rng, length, 2, count, size=0.015)
        demand = _moves(rng, length, 1, count, size=0.07)[:, 0] + _wander(rng, (length, count), 0.02, 40.0)
        loop = rng.uniform(25.0, 70.0, (2, count))  # closed-loop time constant of a level, s
        return cls(
            set_point=np.clip(base + moves, 0.08, 0.58),
            valve=np.clip(valve + demand, 0.35, 1.0),
            back_pressure=1.0 + _wander(rng, (length, count), 0.02, 60.0),
            supply=1.0 + _wander(rng, (length, 2, count), 0.015, 20.0),
            gain=rigs.area[::2] / (rigs.pump_max * loop),
            reset=loop * rng.uniform(1.5, 4.0, (2, count)),
            noise=spread * rng.uniform(0.6, 1.6, count),
        )


@dataclass(frozen=True, eq=False)
class Effects:
    """What the faults do at each time; all neutral in healthy runs.

    Args:
        label: (L, B) class index.
        leak: (L, 2, B) area of the holes in tanks 1 and 3, in pipe areas.
        free: (L, 2, B) free share of pipes 1-3 and 3-2.
        pump: (L, 2, B) share of its flow that a pump still gives.
        valve_stuck: (L, B) the outlet valve does not move.
        offset: (L, 2, B) error of the level sensors of tanks 1 and 2 in m.
        stuck: (L, 2, B) those sensors do not move.
        noise: (L, 2, B) added noise of those sensors, in units of the healthy noise.
    """

    label: NDArray[np.int32]
    leak: Floats
    free: Floats
    pump: Floats
    valve_stuck: NDArray[np.bool_]
    offset: Floats
    stuck: NDArray[np.bool_]
    noise: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator, fault: NDArray[np.int32], length: int, difficulty: float) -> Self:
        """Course, place and severity of the faults; `difficulty` scales the severity by 2 / (1 + d)."""
        active, rise, site = _course(rng, fault, length)
        low, high = np.array([(0.0, 0.0), *(SEVERITY[kind] for kind in TankFault)])[fault].T
        size: Floats = (low + (high - low) * rng.random(len(fault))) * 2.0 / (1.0 + difficulty) * rise
        sign = rng.choice([-1.0, 1.0], len(fault))

        def of(*kinds: TankFault) -> Floats:
            return size * np.isin(fault, kinds)

        def at_site(effect: Floats) -> Floats:
            return np.stack([effect * (site == 0), effect * (site == 1)], axis=1)

        pump = of(TankFault.PUMP)
        return cls(
            label=np.where(active, fault, 0).astype(np.int32),
            leak=np.stack([of(TankFault.LEAK_1), of(TankFault.LEAK_3)], axis=1),
            free=1.0 - np.minimum(at_site(of(TankFault.CLOG)), 0.9),
            pump=1.0 - np.minimum(np.stack([pump, np.zeros_like(pump)], axis=1), 0.9),
            valve_stuck=of(TankFault.VALVE) > 0.0,
            offset=at_site(sign * of(TankFault.BIAS, TankFault.DRIFT)),
            stuck=at_site(of(TankFault.STUCK)) > 0.0,
            noise=at_site(of(TankFault.NOISE)),
        )


def _course(
    rng: np.random.Generator, fault: NDArray[np.int32], length: int
) -> tuple[NDArray[np.bool_], Floats, NDArray[np.int64]]:
    """When each fault is there (L, B), how far it has grown (L, B), and which of two places it hits (B,)."""
    count = len(fault)
    time = np.arange(length)[:, None]
    onset = rng.integers(length // 6, length // 2, count)
    repaired = rng.random(count) < 0.25
    end = np.where(repaired, onset + rng.integers(length // 4, length // 2, count), length)
    slow = rng.random(count) < 0.4
    growth = rng.uniform(0.08, 0.35, count) * length
    growth = np.where(fault == TankFault.DRIFT, 3.0 * growth, np.where(slow & ~np.isin(fault, ABRUPT), growth, 1.0))
    active = (time >= onset) & (time < end) & (fault > 0)
    rise = np.clip((time - onset + 1) / growth, 0.0, 1.0) * active
    return active, rise, rng.integers(0, 2, count)


def _around(rng: np.random.Generator, count: int) -> Floats:
    return rng.uniform(-1.0, 1.0, count)


def _moves(rng: np.random.Generator, length: int, rows: int, count: int, size: float) -> Floats:
    """Up to four changes per run, each a ramp of 10 s to 2 min to a new level: (L, rows, B)."""
    time = np.arange(length)[:, None, None]
    total = np.zeros((length, rows, count))
    for _ in range(4):
        start = rng.uniform(0.0, length, (rows, count))
        ramp = rng.uniform(5.0, 60.0, (rows, count))
        step = size * rng.standard_normal((rows, count)) * (rng.random((rows, count)) < 0.6)
        total += step * np.clip((time - start) / ramp, 0.0, 1.0)
    return total


def _wander(rng: np.random.Generator, shape: tuple[int, ...], size: float, correlation: float) -> Floats:
    """First-order Gauss-Markov noise along axis 0; standard deviation `size`, `correlation` in samples."""
    keep = 1.0 - 1.0 / correlation
    drive = rng.standard_normal(shape) * np.sqrt(1.0 - keep**2)
    drive[0] /= np.sqrt(1.0 - keep**2)
    from scipy.signal import lfilter  # noqa: PLC0415 - half a second that only simulating needs

    walk: Floats = size * lfilter([1.0], [1.0, -keep], drive, axis=0)
    return walk


# Noise and resolution are ours, typical of laboratory transmitters with 12-bit converters.
SENSORS: tuple[tuple[Channel, float, float], ...] = (
    (Channel("level_1", "cm", "level of tank 1 as its controller reads it"), 0.15, 0.02),
    (Channel("level_2", "cm", "level of tank 2 as its controller reads it"), 0.15, 0.02),
    (Channel("level_3", "cm", "level of tank 3"), 0.15, 0.02),
    (Channel("command_1", "%", "commanded speed of pump 1"), 0.0, 0.1),
    (Channel("command_2", "%", "commanded speed of pump 2"), 0.0, 0.1),
    (Channel("inflow_1", "ml/s", "flow of pump 1 into tank 1"), 0.8, 0.1),
    (Channel("inflow_2", "ml/s", "flow of pump 2 into tank 2"), 0.8, 0.1),
    (Channel("flow_13", "ml/s", "flow from tank 1 to tank 3"), 0.8, 0.1),
    (Channel("flow_32", "ml/s", "flow from tank 3 to tank 2"), 0.8, 0.1),
    (Channel("outflow", "ml/s", "flow through the outlet valve of tank 2"), 0.8, 0.1),
    (Channel("pressure_1", "kPa", "pressure at the bottom of tank 1"), 0.03, 0.002),
    (Channel("pressure_2", "kPa", "pressure at the bottom of tank 2"), 0.03, 0.002),
    (Channel("current_1", "A", "motor current of pump 1"), 0.015, 0.005),
    (Channel("current_2", "A", "motor current of pump 2"), 0.015, 0.005),
    (Channel("valve_command", "%", "commanded opening of the outlet valve"), 0.0, 0.1),
)
"""Channel, standard deviation of its healthy noise, resolution."""
NOISE = np.array([noise for _, noise, _ in SENSORS])
RESOLUTION = np.array([resolution for _, _, resolution in SENSORS])
VALVE_LAG = 6.0
"""Time constant of the outlet valve's drive in s; ours, a small electric actuator."""


@dataclass(frozen=True, eq=False)
class Trace:
    """True states of a batch; what the sensors make of it comes after.

    Args:
        level: (L, 3, B) levels of tanks 1, 3, 2 in m.
        reading: (L, 2, B) levels of tanks 1 and 2 as the controllers read them, in m.
        command: (L, 2, B) relative speed of the pumps, 0 to 1.
        inflow: (L, 2, B) flows of the pumps in m3/s.
        flow: (L, 5, B) flows 1-3, 3-2, outlet, leak of tank 1, leak of tank 3 in m3/s.
    """

    level: Floats
    reading: Floats
    command: Floats
    inflow: Floats
    flow: Floats


@SOURCES.register("sim_tanks")
@dataclass(frozen=True)
class Tanks(Simulator):
    """Three-tank plant; `difficulty` scales severity by 2 / (1 + d), noise and regime spread by (1 + d) / 2.

    Example:
        >>> run = next(iter(Tanks(runs=1).recordings()))
        >>> run.values.shape, run.step
        ((15, 768), 2.0)
    """

    runs: int = 384
    seed: int = 20_050_703

    MIX: ClassVar[tuple[int, ...]] = (13, 6, 4, 5, 4, 3, 4, 3, 3, 2)
    ASSETS: ClassVar[int] = 24
    RUN_LENGTH: ClassVar[int] = 768
    STEP: ClassVar[float] = SAMPLE
    INFO: ClassVar[SourceInfo] = read_info(__name__, "sim_tanks", channels=tuple(channel for channel, _, _ in SENSORS))

    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Values (B, 15, RUN_LENGTH) and labels (B, RUN_LENGTH) of a batch."""
        trace, rigs, regime, effects = self.trace(batch)
        values = _measure(batch.rng, trace, rigs, regime)
        return np.ascontiguousarray(quantise(values, RESOLUTION)), np.ascontiguousarray(effects.label.T)

    def trace(self, batch: RunBatch) -> tuple[Trace, Rigs, TankRegime, Effects]:
        """True states of a batch, and what they follow from."""
        rigs = Rigs.draw(self.asset_rng(), self.ASSETS).take(batch.asset)
        regime = TankRegime.draw(batch.rng, rigs, self.RUN_LENGTH, self.difficulty)
        effects = Effects.draw(batch.rng, batch.fault, self.RUN_LENGTH, self.difficulty)
        noise = _level_noise(batch.rng, regime, effects)
        return _integrate(rigs, regime, effects, noise), rigs, regime, effects


def _level_noise(rng: np.random.Generator, regime: TankRegime, effects: Effects) -> Floats:
    """Noise in the readings of the level controllers, (L, 2, B) in m."""
    healthy = NOISE[0] / 100.0 * regime.noise
    extra = rng.standard_normal(effects.noise.shape) * effects.noise
    noise: Floats = healthy * (rng.standard_normal(effects.noise.shape) + extra)
    return noise


def _openings(rigs: Rigs, regime: TankRegime, effects: Effects) -> Floats:
    """Flow per root of head of each way the water takes, in the order of `Trace.flow`: (L, 5, B)."""
    keep = 1.0 - SAMPLE / VALVE_LAG
    at_rest = keep * regime.valve[:1]
    from scipy.signal import lfilter  # noqa: PLC0415 - see above

    position, _ = lfilter([1.0 - keep], [1.0, -keep], regime.valve, axis=0, zi=at_rest)
    onset = np.argmax(effects.valve_stuck, axis=0)
    position = np.where(effects.valve_stuck, position[onset, np.arange(len(onset))], position)
    hole = PIPE_AREA * np.sqrt(2.0 * GRAVITY) * 0.6  # discharge coefficient of a sharp-edged hole
    return np.concatenate(
        [
            rigs.pipe[:2] * effects.free,
            (rigs.pipe[2] * position * regime.back_pressure)[:, None],
            hole * effects.leak,
        ],
        axis=1,
    )


def _integrate(rigs: Rigs, regime: TankRegime, effects: Effects, noise: Floats) -> Trace:
    """Advance plant and controllers of all runs together; explicit steps of one sample.

    The steps are short against the tanks (200 s) and, thanks to the smoothed root, stable at equal levels. By the
    affinity laws a pump's head goes with speed u squared: it lifts water to the rim of its tank, a fixed height,
    above the speed s only, and then gives q = q_max sqrt((u^2 - s^2) / (1 - s^2)).
    """
    openings = _openings(rigs, regime, effects)
    capacity = rigs.pump_max * regime.supply * effects.pump / np.sqrt(1.0 - rigs.shut_off**2)
    shut_off = rigs.shut_off**2
    per_step, settle = SAMPLE / rigs.area, 1.0 - np.exp(-SAMPLE / rigs.pump_lag)
    integral_gain = regime.gain * SAMPLE / regime.reset
    unwind = SAMPLE / regime.reset  # back-calculation: a saturated controller forgets with its integral time
    moving = ~effects.stuck
    trace = _empty_trace(*noise.shape)
    level, inflow, integral = _at_rest(openings[0], capacity[0], shut_off, regime.set_point[0])
    heads, felt = np.empty((5, level.shape[1])), level[::2].copy()
    for t in range(len(noise)):
        np.subtract(level[:2], level[1:], out=heads[:2])
        heads[2] = level[2]
        heads[3:] = level[:2]
        flow = openings[t] * heads / np.sqrt(np.sqrt(heads * heads + SMOOTH_HEAD**2))

        # A stuck sensing element keeps its level; the noise of the electronics goes on.
        np.copyto(felt, level[::2], where=moving[t])
        reading = felt + effects.offset[t] + noise[t]
        error = regime.set_point[t] - reading
        wish = regime.gain * error + integral
        command = np.minimum(np.maximum(wish, 0.0), 1.0)
        integral += integral_gain * error + unwind * (command - wish)

        trace.level[t], trace.reading[t], trace.command[t] = level, reading, command
        trace.inflow[t], trace.flow[t] = inflow, flow

        net = -flow[:3]
        net[1:] += flow[:2]
        net[:2] -= flow[3:]
        net[::2] += inflow
        level = np.minimum(np.maximum(level + per_step * net, 0.0), LEVEL_MAX)
        lift = capacity[t] * np.sqrt(np.maximum(command * command - shut_off, 0.0))
        inflow += settle * (lift - inflow)
    return trace


def _empty_trace(length: int, loops: int, count: int) -> Trace:
    rows = {"level": 3, "reading": loops, "command": loops, "inflow": loops, "flow": 5}
    return Trace(**{name: np.empty((length, k, count)) for name, k in rows.items()})


def _at_rest(openings: Floats, capacity: Floats, shut_off: Floats, set_point: Floats) -> tuple[Floats, Floats, Floats]:
    """Levels (3, B), inflows (2, B) and commands (2, B) of the equilibrium at the first set-points."""
    high, low = set_point
    c13, c32, c20 = openings[:3] ** 2
    middle = (c13 * high + c32 * low) / (c13 + c32)
    passing, leaving = np.sqrt(c13 * (high - middle)), np.sqrt(c20 * low)
    inflow = np.stack([passing, np.maximum(leaving - passing, 0.0)])
    command = np.minimum(np.sqrt((inflow / capacity) ** 2 + shut_off), 1.0)
    return np.stack([high, middle, low]), inflow, command


def _measure(rng: np.random.Generator, trace: Trace, rigs: Rigs, regime: TankRegime) -> Floats:
    """What the sensors report: (B, 15, L) in the units of `SENSORS`, with noise, before rounding."""
    metered = np.concatenate([trace.inflow, trace.flow[:, :3]], axis=1) * rigs.meter_gain
    pressure = GRAVITY * (trace.level[:, ::2] + rigs.pressure_zero)
    # Shaft torque after the affinity laws: half of it follows speed squared, half speed times flow.
    torque = 0.5 * trace.command * (trace.command + trace.inflow / rigs.pump_max)
    current = rigs.current * (0.1 + 0.9 * torque)
    clean = [
        100.0 * trace.reading,
        100.0 * trace.level[:, 1:2],
        100.0 * trace.command,
        1e6 * metered,
        pressure,
        current,
        100.0 * regime.valve[:, None],
    ]
    values = np.concatenate(clean, axis=1)
    noisy = NOISE.copy()
    noisy[:2] = 0.0  # these readings hold their noise already: the controllers act on it
    for channel in np.flatnonzero(noisy):
        values[:, channel] += noisy[channel] * regime.noise * rng.standard_normal(regime.valve.shape)
    return np.maximum(values, 0.0).transpose(2, 1, 0)
