"""Three tanks in a row under level control, with faults in plant, actuators and sensors.

The laboratory plant of many fault diagnosis papers: pump 1 fills tank 1, pump 2 fills tank 2, water runs
from tank 1 through tank 3 to tank 2 and out through a valve. With levels h in m and flows q in m3/s,
Torricelli's law and the mass balance give

    A dh1/dt = q1 - q13 - leak1      q13 = c13 sqrt(h1 - h3)
    A dh3/dt = q13 - q32 - leak3     q32 = c32 sqrt(h3 - h2)
    A dh2/dt = q2 + q32 - q20        q20 = c20 valve sqrt(h2)

Two PI controllers hold the measured levels of tanks 1 and 2. They hide what a fault does to the level they
control and move it elsewhere: a leak shows in the pump, a biased sensor in the true level, which only the
pressure knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.signal import lfilter

from readbench.data.simulators.base import RunBatch, Simulator, quantise
from readbench.data.simulators.tanks.parameters import (
    GRAVITY,
    LEVEL_MAX,
    PIPE_AREA,
    SAMPLE,
    SMOOTH_HEAD,
    Effects,
    Floats,
    Regime,
    Rigs,
)
from readbench.data.source import Channel, Protocol, SourceInfo
from readbench.registry import SOURCES

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    INFO: ClassVar[SourceInfo] = SourceInfo(
        name="sim_tanks",
        title="Tanks (simulated)",
        domain="industrial control",
        description=(
            "A laboratory plant of three coupled water tanks under PI level control, sampled every 2 s. "
            "Sensors give levels, pump commands, motor currents, flows, bottom pressures and the command of "
            "the outlet valve. Set-points, demand, controller tuning and noise change from run to run, plant "
            "constants from rig to rig. Faults are leaks, a worn pump, a clogged pipe, a stuck valve and "
            "four failures of a level sensor, labelled from onset to repair; the controllers act on the faulty "
            "readings."
        ),
        channels=tuple(channel for channel, _, _ in SENSORS),
        faults=(
            "leak in tank 1",
            "leak in tank 3",
            "pump 1 efficiency loss",
            "clogged pipe between tanks",
            "stuck outlet valve",
            "level sensor bias",
            "level sensor drift",
            "level sensor stuck",
            "level sensor excess noise",
        ),
        protocol=Protocol(length=256, stride=64, label_rule="majority"),
        split_unit="simulation run",
        asset_unit="rig",
        licence="Apache-2.0",
        citation=(
            "Model and constants after C. Join, H. Sira-Ramirez, M. Fliess, 'Control of an uncertain "
            "three-tank system via on-line parameter identification and fault detection', IFAC World "
            "Congress 2005, and H. Noura, D. Theilliol, J.-C. Ponsart, A. Chamseddine, 'Fault-tolerant Control "
            "Systems', Springer 2009."
        ),
        size="generated, about 18 MB",
        simulated=True,
        verified=True,
        redistributable=True,
    )

    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Values (B, 15, RUN_LENGTH) and labels (B, RUN_LENGTH) of a batch."""
        trace, rigs, regime, effects = self.trace(batch)
        values = _measure(batch.rng, trace, rigs, regime)
        return np.ascontiguousarray(quantise(values, RESOLUTION)), np.ascontiguousarray(effects.label.T)

    def trace(self, batch: RunBatch) -> tuple[Trace, Rigs, Regime, Effects]:
        """True states of a batch, and what they follow from."""
        rigs = Rigs.draw(self.asset_rng(), self.ASSETS).take(batch.asset)
        regime = Regime.draw(batch.rng, rigs, self.RUN_LENGTH, self.difficulty)
        effects = Effects.draw(batch.rng, batch.fault, self.RUN_LENGTH, self.difficulty)
        noise = _level_noise(batch.rng, regime, effects)
        return _integrate(rigs, regime, effects, noise), rigs, regime, effects


def _level_noise(rng: np.random.Generator, regime: Regime, effects: Effects) -> Floats:
    """Noise in the readings of the level controllers, (L, 2, B) in m."""
    healthy = NOISE[0] / 100.0 * regime.noise
    extra = rng.standard_normal(effects.noise.shape) * effects.noise
    noise: Floats = healthy * (rng.standard_normal(effects.noise.shape) + extra)
    return noise


def _openings(rigs: Rigs, regime: Regime, effects: Effects) -> Floats:
    """Flow per root of head of each way the water takes, in the order of `Trace.flow`: (L, 5, B)."""
    keep = 1.0 - SAMPLE / VALVE_LAG
    at_rest = keep * regime.valve[:1]
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


def _integrate(rigs: Rigs, regime: Regime, effects: Effects, noise: Floats) -> Trace:
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


def _measure(rng: np.random.Generator, trace: Trace, rigs: Rigs, regime: Regime) -> Floats:
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
