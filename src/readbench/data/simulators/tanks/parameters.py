"""Parameters of the three-tank plant: rigs, regimes and faults, each number with its source.

Time comes first in every schedule, (L, k, B), so that one step of the recursion reads one contiguous slice.
No draw depends on the fault of a run: the same batch with its faults removed is the same plant, in the same
regime, with the same noise.

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
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

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


class Fault(IntEnum):
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


SEVERITY: dict[Fault, tuple[float, float]] = {
    Fault.LEAK_1: (0.08, 0.35),  # area of the hole, in pipe areas
    Fault.LEAK_3: (0.08, 0.35),
    Fault.PUMP: (0.12, 0.50),  # share of the flow at a given speed that is lost
    Fault.CLOG: (0.20, 0.65),  # share of the pipe's area that is blocked
    Fault.VALVE: (1.0, 1.0),  # stuck is stuck
    Fault.BIAS: (0.020, 0.065),  # m
    Fault.DRIFT: (0.040, 0.120),  # m at the end of the drift
    Fault.STUCK: (1.0, 1.0),
    Fault.NOISE: (2.0, 8.0),  # added noise, in units of the healthy noise
}
"""Range of each severity at difficulty 1; chosen so that faults move channels as much as regimes do."""
ABRUPT = (Fault.VALVE, Fault.BIAS, Fault.STUCK, Fault.NOISE)
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
class Regime:
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
        low, high = np.array([(0.0, 0.0), *(SEVERITY[kind] for kind in Fault)])[fault].T
        size: Floats = (low + (high - low) * rng.random(len(fault))) * 2.0 / (1.0 + difficulty) * rise
        sign = rng.choice([-1.0, 1.0], len(fault))

        def of(*kinds: Fault) -> Floats:
            return size * np.isin(fault, kinds)

        def at_site(effect: Floats) -> Floats:
            return np.stack([effect * (site == 0), effect * (site == 1)], axis=1)

        pump = of(Fault.PUMP)
        return cls(
            label=np.where(active, fault, 0).astype(np.int32),
            leak=np.stack([of(Fault.LEAK_1), of(Fault.LEAK_3)], axis=1),
            free=1.0 - np.minimum(at_site(of(Fault.CLOG)), 0.9),
            pump=1.0 - np.minimum(np.stack([pump, np.zeros_like(pump)], axis=1), 0.9),
            valve_stuck=of(Fault.VALVE) > 0.0,
            offset=at_site(sign * of(Fault.BIAS, Fault.DRIFT)),
            stuck=at_site(of(Fault.STUCK)) > 0.0,
            noise=at_site(of(Fault.NOISE)),
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
    growth = np.where(fault == Fault.DRIFT, 3.0 * growth, np.where(slow & ~np.isin(fault, ABRUPT), growth, 1.0))
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
    walk: Floats = size * lfilter([1.0], [1.0, -keep], drive, axis=0)
    return walk
