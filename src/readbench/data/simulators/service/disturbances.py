"""What happens to the simulated shop from outside: user load, everyday events and the injected fault.

All of it is drawn before the queueing network runs, and drawn for every run whatever its class: a faulty run and its
healthy twin (same seed, class 0) differ in nothing but the fault.

References:
    Fischer and Meier-Hellstern, The Markov-modulated Poisson process (MMPP) cookbook, Performance Evaluation 18, 1993.
    Gilbert, Capacity of a burst-noise channel, Bell System Technical Journal 39, 1960; Elliott, ibid. 42, 1963.
    Pham et al., RCAEval: a benchmark for root cause analysis of microservice systems, 2025 (the injected kinds).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.data.simulators.service.parameters import SERVICES, STEP_S, Array, Deployment, visits

CPU, LEAK, DELAY, LOSS, DISK, BURST, POOL = range(1, 8)
"""Class numbers of the faults."""

SEVERITY: dict[int, tuple[float, float]] = {
    CPU: (0.25, 0.70),  # share of the cores that another process takes
    LEAK: (0.35, 1.40),  # share of the free memory lost per 100 steps at usual load
    DELAY: (0.04, 0.40),  # seconds added to every answer
    LOSS: (0.05, 0.30),  # share of packets lost while the channel is bad
    DISK: (8.0, 60.0),  # factor on the input/output time while the disk stalls
    BURST: (0.7, 2.8),  # extra requests, in multiples of the usual rate at the place
    POOL: (0.8, 2.8),  # requests usually in flight per connection that is still given back
}
"""Least and greatest severity, drawn log-uniformly; chosen so that the mildest hide in the daily swing of the load and
the worst reach the edge."""

EVENTS = 5
"""Everyday events per run: scheduled jobs, short network jitter, rolling restarts."""


@dataclass(frozen=True, eq=False)
class Disturbances:
    """Inputs of the queueing network, time first.

    Args:
        outside: (L, B, S) requests per second from outside the shop.
        hog: (L, B, S) share of the cores taken by other processes.
        leak: (L, B, S) MB lost per request and replica.
        delay: (L, B, S) seconds added to every answer.
        loss: (L, B, S) share of packets lost.
        slow_disk: (L, B, S) factor on the input/output time.
        pool: (L, B, S) share of the connections that still work.
        up: (L, B, S) share of the replicas that are not being restarted.
        labels: (B, L) class of each step.
    """

    outside: Array
    hog: Array
    leak: Array
    delay: Array
    loss: Array
    slow_disk: Array
    pool: Array
    up: Array
    labels: NDArray[np.int32]


def disturb(
    rng: np.random.Generator, fault: NDArray[np.int32], shop: Deployment, steps: int, difficulty: float
) -> Disturbances:
    """Draw load, everyday events and faults.

    Args:
        rng: source of randomness.
        fault: (B,) class of each run.
        shop: figures of each run's shop.
        steps: run length L.
        difficulty: scales the number of everyday events and divides the severity of faults.
    """
    runs, services = len(fault), len(SERVICES)
    usual = np.zeros((runs, services))
    usual[:, 0] = shop.load
    usual = visits(shop.calls, usual)
    swing = user_load(rng, runs, steps)
    at = np.eye(services)[rng.integers(services, size=runs)]
    strength, active = course(rng, fault, steps, difficulty)
    # Mean stays in steps of 10 s, ours: bad spells of two minutes, stalls of one, surges of two between longer lulls.
    spots = switching(rng, np.array(12.0), np.array(8.0), runs, steps)
    stalls = switching(rng, np.array(5.0), np.array(9.0), runs, steps)
    surges = switching(rng, np.array(10.0), np.array(20.0), runs, steps)

    def place(kind: int, shape: Array) -> Array:
        """(L, B, S) `shape` (L, B) at the place of the fault, in the runs of this class."""
        return np.where(fault == kind, shape, 0.0)[:, :, None] * at

    jobs, jitter, restarting = everyday(rng, runs, steps, difficulty)
    outside = place(BURST, strength * np.where(surges, 1.25, 0.75)) * usual
    outside[:, :, 0] += swing * shop.load
    per_request = (shop.ceiling - shop.memory) * shop.replicas / (usual * 100 * STEP_S)
    return Disturbances(
        outside=outside,
        hog=np.minimum(jobs + place(CPU, strength), 0.85),
        leak=place(LEAK, strength) * per_request,
        delay=jitter * (shop.demand + shop.io) + place(DELAY, strength),
        loss=place(LOSS, strength * np.where(spots, 1.0, 0.15)),
        slow_disk=1.0 + place(DISK, strength * stalls),
        pool=1.0 / (1.0 + place(POOL, strength) * shop.pool * shop.replicas / shop.in_flight),
        up=1.0 - restarting,
        labels=np.where(active, fault, 0).T.astype(np.int32),
    )


def user_load(rng: np.random.Generator, runs: int, steps: int) -> Array:
    """(L, B) load at the edge in multiples of the usual one: time of day, bursts, and short-term wander.

    Each run begins at its own hour. Two on/off sources make the arrivals a four-state Markov-modulated process.
    """
    hour = 24 * rng.random(runs) + np.arange(steps)[:, None] * STEP_S / 3600
    daily = 0.85 + 0.20 * np.sin(2 * np.pi * (hour - 9) / 24) + 0.05 * np.sin(4 * np.pi * (hour - 3) / 24)
    level = np.exp(0.10 * rng.standard_normal(runs))
    crowd = switching(rng, rng.uniform(20, 60, runs), rng.uniform(40, 160, runs), runs, steps)
    rush = switching(rng, rng.uniform(4, 12, runs), rng.uniform(30, 90, runs), runs, steps)
    modulated = 1.0 + rng.uniform(0.05, 0.3, runs) * crowd + rng.uniform(0.05, 0.4, runs) * rush
    wander, noise = np.zeros(runs), 0.02 * rng.standard_normal((steps, runs))
    walk = np.empty((steps, runs))
    for t in range(steps):
        wander = 0.95 * wander + noise[t]
        walk[t] = wander
    return np.maximum(0.05, level * daily * modulated * (1.0 + walk))


def switching(rng: np.random.Generator, on: Array, off: Array, runs: int, steps: int) -> NDArray[np.bool_]:
    """(L, B) two-state Markov chains with mean stays of `on` and `off` steps, started in their steady state."""
    draws = rng.random((steps + 1, runs))
    state = draws[0] < on / (on + off)
    states = np.empty((steps, runs), dtype=np.bool_)
    for t in range(steps):
        state = state ^ (draws[t + 1] < np.where(state, 1 / on, 1 / off))
        states[t] = state
    return states


def course(
    rng: np.random.Generator, fault: NDArray[np.int32], steps: int, difficulty: float
) -> tuple[Array, NDArray[np.bool_]]:
    """Severity (L, B) over time and whether the fault is active (L, B).

    Half of the faults strike within a few steps, half grow slowly; three in ten are repaired before the run ends.
    """
    runs, time = len(fault), np.arange(steps)[:, None]
    onset = rng.integers(96, 224, runs)
    repaired = rng.integers(onset + 256, steps + 1)
    end = np.where(rng.random(runs) < 0.3, repaired, steps)
    slow, quick = rng.uniform(30, 150, runs), rng.uniform(1, 4, runs)
    rise = np.where(rng.random(runs) < 0.5, slow, quick)
    bounds = np.array([SEVERITY.get(int(f), (1.0, 1.0)) for f in fault])
    drawn = bounds[:, 0] * (bounds[:, 1] / bounds[:, 0]) ** rng.random(runs)
    peak = drawn / (0.5 + 0.5 * difficulty)
    active = (time >= onset) & (time < end) & (fault > 0)
    return peak * np.clip((time - onset + 1) / rise, 0.0, 1.0) * active, active


def everyday(rng: np.random.Generator, runs: int, steps: int, difficulty: float) -> tuple[Array, Array, Array]:
    """Harmless events: scheduled jobs (share of cores), jitter (s) and restarts (share of replicas), (L, B, S) each.

    They last up to four minutes and hit any service, so that a short processor peak or a slow minute alone is no fault.
    """
    services, time = len(SERVICES), np.arange(steps)[:, None]
    jobs, jitter, restarting = (np.zeros((steps, runs, services)) for _ in range(3))
    happens = np.minimum(1.0, 0.6 * difficulty)
    for _ in range(EVENTS):
        at = np.eye(services)[rng.integers(services, size=runs)]
        start, lasts = rng.integers(0, steps, runs), rng.integers(4, 25, runs)
        kind, size = rng.integers(3, size=runs), rng.random(runs)
        here = (time >= start) & (time < start + lasts) & (rng.random(runs) < happens)
        jobs += (here * (kind == 0) * (0.08 + 0.27 * size))[:, :, None] * at
        jitter += (here * (kind == 1) * (0.5 + 1.5 * size))[:, :, None] * at
        restarting += (here * (kind == 2) * (0.1 + 0.3 * size))[:, :, None] * at
    return jobs, jitter, np.minimum(restarting, 0.6)
