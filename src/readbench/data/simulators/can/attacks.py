"""Attacks on the simulated car bus, after the ROAD data set.

The attacker is a masquerade: the true sender is silent and forged frames take its place at the usual times. He rewrites
one quantity (or, fuzzing, whole payloads). What else the frame carries either goes on as if nothing had happened, or is
frozen at what he recorded; check sums are repaired or not; the forgery lasts or comes in bursts; and the forged value
differs from run to run, within what the car could show on another trip. So no single level gives an attack away: what
is wrong is the relation to other messages.

Reference:
    Verma et al., A comprehensive guide to CAN IDS data and introduction of the ROAD dataset, PLoS ONE 19(1), 2024.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.data.simulators.can.bus import BUS, SIGNALS, TOP, column, columns_of, message_of
from readbench.data.simulators.can.parameters import STEP_S, Array, Flags, Trips

SPEED, LAMP, WHEELS, COOLANT, FUZZ, PEDAL = range(1, 7)
"""Class numbers of the attacks."""


@dataclass(frozen=True, eq=False)
class Plan:
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


def draw_plan(rng: np.random.Generator, fault: NDArray[np.int32], trips: Trips, steps: int, difficulty: float) -> Plan:
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
    return Plan(
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
    draws = rng.random((steps, runs))
    state, states = np.ones(runs, dtype=np.bool_), np.empty((steps, runs), dtype=np.bool_)
    for t in range(steps):
        state = state ^ (draws[t] < np.where(state, 1 / on, 1 / off))
        states[t] = state
    return states


TARGETS: dict[int, tuple[int, tuple[str, ...]]] = {
    SPEED: (0x0D0, ("display_kmh",)),
    LAMP: (0x0D0, ("reverse_lamp",)),
    WHEELS: (0x6E0, ("wheel_fl", "wheel_fr", "wheel_rl", "wheel_rr")),
    COOLANT: (0x3A0, ("coolant",)),
    PEDAL: (0x0A1, ("pedal",)),
}
"""Message and signals that each masquerade rewrites."""


def forge(plan: Plan, raw: Array, speed: Array) -> None:
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


def _freeze(plan: Plan, raw: Array, on: Flags, identifier: int, spared: list[int]) -> None:
    """Freeze the frame's other signals at what they were at the onset, where the attacker does so."""
    columns = [c for c in range(*columns_of(message_of(identifier)).indices(len(SIGNALS))) if c not in spared]
    recorded = raw[np.arange(len(raw))[:, None], columns, plan.onset[:, None]]
    still = (on & plan.frozen[:, None])[:, None, :]
    raw[:, columns] = np.where(still, recorded[:, :, None], raw[:, columns])


def fuzz(rng: np.random.Generator, plan: Plan, raw: Array) -> None:
    """Replace frames of some messages by random payloads, in the runs that are fuzzed."""
    for b in np.flatnonzero(plan.fault == FUZZ):
        for m in rng.permutation(len(BUS))[: plan.fuzzed[b]]:
            own = columns_of(int(m))
            hit = plan.sending[:, b] & (rng.random(raw.shape[2]) < plan.fuzz_rate[b])
            payload = np.floor(rng.random((own.stop - own.start, raw.shape[2])) * (TOP[own, None] + 1))
            raw[b, own] = np.where(hit, payload, raw[b, own])
