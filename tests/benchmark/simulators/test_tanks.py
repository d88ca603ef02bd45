from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from readbench.benchmark.simulators import Tanks
from readbench.benchmark.simulators._base import RunBatch
from readbench.benchmark.simulators._tanks import (
    LEVEL_MAX,
    NOISE,
    RESOLUTION,
    SAMPLE,
    SMOOTH_HEAD,
    Effects,
    Floats,
    Rigs,
    TankFault,
    TankRegime,
    Trace,
)

COUNT = 24
SETTLED = 120
"""Samples after which a loop has absorbed a fault: four minutes."""


@dataclasses.dataclass
class Twins:
    """The same runs with a fault and without it."""

    faulty: Trace
    healthy: Trace
    rigs: Rigs
    regime: TankRegime
    effects: Effects

    def late(self) -> Floats:
        """(L, B) where the fault has been there for a while."""
        onset = np.argmax(self.effects.label > 0, axis=0)
        time = np.arange(Tanks.RUN_LENGTH)[:, None]
        return np.asarray((self.effects.label > 0) & (time >= onset + SETTLED), dtype=np.float64)

    def mean(self, series: Floats) -> Floats:
        """(B,) mean of (L, B) over the late part of the fault."""
        late = self.late()
        return np.asarray((series * late).sum(axis=0) / late.sum(axis=0))

    def at_fault(self, pair: Floats, where: Floats) -> Floats:
        """(L, B) the one of two rows of (L, 2, B) that the fault hits; `where` (L, 2, B) is nonzero there."""
        hit = np.any(where != 0.0, axis=0).argmax(axis=0)
        return np.asarray(pair[:, hit, np.arange(pair.shape[2])])


def batch(fault: int) -> RunBatch:
    index = np.arange(COUNT)
    assets = (index % Tanks.ASSETS).astype(np.int32)
    return RunBatch(index, np.full(COUNT, fault, np.int32), assets, np.random.default_rng(11))


def twins(fault: TankFault) -> Twins:
    faulty, rigs, regime, effects = Tanks().trace(batch(fault))
    return Twins(faulty, Tanks().trace(batch(0))[0], rigs, regime, effects)


def root(head: Floats) -> Floats:
    return np.asarray(head / np.sqrt(np.sqrt(head * head + SMOOTH_HEAD**2)))


def stack(source: Tanks) -> Floats:
    return np.stack([recording.values for recording in source.recordings()]).astype(np.float64)


@pytest.mark.parametrize("difficulty", [0.0, 1.0, 2.0])
def test_runs_are_finite_labelled_and_within_the_plant(difficulty: float) -> None:
    recordings = list(Tanks(runs=48, difficulty=difficulty).recordings())
    faults = [int(recording.labels.max()) for recording in recordings]
    assert sorted(set(faults)) == list(range(len(Tanks.INFO.classes)))
    for recording, fault in zip(recordings, faults, strict=True):
        assert recording.values.shape == (len(Tanks.INFO.channels), Tanks.RUN_LENGTH)
        assert recording.values.dtype == np.float32
        assert np.isfinite(recording.values).all()
        assert recording.values.min() >= 0.0
        assert recording.values[2].max() <= 100.0 * LEVEL_MAX + 2.0
        assert set(recording.labels.tolist()) <= {0, fault}
        assert not recording.labels[: Tanks.RUN_LENGTH // 6].any()
        assert recording.step == SAMPLE


def test_one_fault_name_per_class() -> None:
    assert len(Tanks.INFO.faults) == len(TankFault) == len(Tanks.MIX) - 1


def test_default_size_fills_the_benchmark() -> None:
    protocol = Tanks.INFO.protocol
    assert protocol.length is not None
    assert protocol.stride is not None
    normal = anomalous = 0
    for recording in Tanks().recordings():
        for start in range(0, Tanks.RUN_LENGTH - protocol.length + 1, protocol.stride):
            share = float(np.mean(recording.labels[start : start + protocol.length] > 0))
            anomalous += share > 0.5
            normal += share < 0.5
    assert anomalous >= 1300
    assert normal >= 800


def test_same_seed_gives_same_bytes() -> None:
    first, second = Tanks(runs=70).recordings(), Tanks(runs=70).recordings()
    for a, b in zip(first, second, strict=True):
        assert a.values.tobytes() == b.values.tobytes()
        assert a.labels.tobytes() == b.labels.tobytes()


def test_other_seed_gives_other_runs_of_the_same_kind() -> None:
    ours, other = stack(Tanks(runs=128)), stack(Tanks(runs=128, seed=1))
    assert not np.array_equal(ours, other)
    spread = ours.std(axis=(0, 2))
    assert np.all(np.abs(ours.mean(axis=(0, 2)) - other.mean(axis=(0, 2))) < 0.5 * spread)
    assert np.all(np.abs(np.log(other.std(axis=(0, 2)) / spread)) < 0.5)


def test_fewer_runs_are_a_prefix_of_more() -> None:
    few, more = stack(Tanks(runs=10)), stack(Tanks(runs=20))
    assert np.array_equal(few, more[:10])


def test_readings_are_multiples_of_the_resolution() -> None:
    steps = stack(Tanks(runs=2)) / RESOLUTION[:, None]
    assert np.abs(steps - np.round(steps)).max() < 0.01


def test_difficulty_shrinks_faults_and_raises_noise() -> None:
    sizes, noises = [], []
    for difficulty in (0.0, 1.0, 2.0):
        _, _, regime, effects = Tanks(difficulty=difficulty).trace(batch(TankFault.BIAS))
        sizes.append(np.abs(effects.offset).max())
        noises.append(regime.noise.mean())
    assert all(a > b for a, b in itertools.pairwise(sizes))
    assert all(a < b for a, b in itertools.pairwise(noises))


@pytest.mark.parametrize("fault", [0, *TankFault])
def test_water_is_conserved(fault: int) -> None:
    trace, rigs, _, _ = Tanks().trace(batch(fault))
    q13, q32, q20, leak_1, leak_3 = trace.flow.transpose(1, 0, 2)
    q1, q2 = trace.inflow.transpose(1, 0, 2)
    net = np.stack([q1 - q13 - leak_1, q13 - q32 - leak_3, q2 + q32 - q20], axis=1)
    gained = np.diff(trace.level, axis=0) * rigs.area / SAMPLE
    spilling = (trace.level[1:] <= 0.0) | (trace.level[1:] >= LEVEL_MAX)
    assert np.abs(np.where(spilling, 0.0, gained - net[:-1])).max() < 1e-12
    assert spilling.mean() < 0.05


@pytest.mark.parametrize("fault", list(TankFault))
def test_nothing_changes_before_the_onset(fault: TankFault) -> None:
    pair = twins(fault)
    for run, onset in enumerate(np.argmax(pair.effects.label > 0, axis=0)):
        assert np.array_equal(pair.faulty.level[:onset, :, run], pair.healthy.level[:onset, :, run])
        assert not np.array_equal(pair.faulty.level[:, :, run], pair.healthy.level[:, :, run])


def test_leak_in_tank_1_makes_its_pump_work_more_and_hides_in_the_level() -> None:
    pair = twins(TankFault.LEAK_1)
    assert np.all(pair.mean(pair.faulty.inflow[:, 0] - pair.faulty.flow[:, 0]) > 1e-6)
    assert np.all(pair.mean(pair.faulty.command[:, 0] - pair.healthy.command[:, 0]) > 0.01)
    assert np.abs(pair.mean(pair.faulty.level[:, 0] - pair.healthy.level[:, 0])).max() < 0.02


def test_leak_in_tank_3_parts_the_flows_through_it() -> None:
    pair = twins(TankFault.LEAK_3)
    assert np.all(pair.mean(pair.faulty.flow[:, 0] - pair.faulty.flow[:, 1]) > 1e-6)
    assert np.all(pair.mean(pair.faulty.level[:, 1] - pair.healthy.level[:, 1]) < 0.0)


def test_worn_pump_runs_faster_for_the_same_flow() -> None:
    pair = twins(TankFault.PUMP)
    assert np.all(pair.mean(pair.faulty.command[:, 0] - pair.healthy.command[:, 0]) > 0.005)
    ratio = pair.mean(pair.faulty.inflow[:, 0]) / pair.mean(pair.healthy.inflow[:, 0])
    assert np.all((ratio > 0.9) & (ratio < 1.1))


def test_clogged_pipe_carries_less_water_per_root_of_head() -> None:
    pair = twins(TankFault.CLOG)
    level = pair.faulty.level
    conductance = pair.faulty.flow[:, :2] / root(level[:, :2] - level[:, 1:]) / pair.rigs.pipe[:2]
    at_clog = pair.at_fault(conductance, 1.0 - pair.effects.free)
    assert np.all(pair.mean(at_clog) < 0.85)
    carried, before = (pair.at_fault(t.flow[:, :2], 1.0 - pair.effects.free) for t in (pair.faulty, pair.healthy))
    assert np.all(pair.mean(carried) < pair.mean(before))


def test_stuck_valve_stays_open_as_it_was_whatever_the_command() -> None:
    pair = twins(TankFault.VALVE)
    full = pair.rigs.pipe[2] * pair.regime.back_pressure * root(pair.faulty.level[:, 2])
    opening = pair.faulty.flow[:, 2] / full
    for run, label in enumerate(pair.effects.label.T):
        assert np.ptp(opening[label > 0, run]) < 1e-12
        assert np.ptp(pair.regime.valve[label > 0, run]) > 0.02


def test_biased_sensor_moves_the_true_level_and_not_the_reading() -> None:
    pair = twins(TankFault.BIAS)
    offset = pair.mean(pair.at_fault(pair.effects.offset, pair.effects.offset))
    faulty, healthy = pair.faulty, pair.healthy
    moved = pair.mean(pair.at_fault(faulty.level[:, ::2] - healthy.level[:, ::2], pair.effects.offset))
    shown = pair.mean(pair.at_fault(faulty.reading - healthy.reading, pair.effects.offset))
    assert np.abs(moved + offset).max() < 0.01
    assert np.abs(shown).max() < 0.01
    assert set(np.sign(offset)) == {-1.0, 1.0}


def test_drifting_sensor_parts_from_the_true_level_more_and_more() -> None:
    pair = twins(TankFault.DRIFT)
    gap = np.abs(pair.at_fault(pair.faulty.reading - pair.faulty.level[:, ::2], pair.effects.offset))
    for run, label in enumerate(pair.effects.label.T):
        early, middle, late = (part.mean() for part in np.array_split(gap[label > 0, run], 3))
        assert early < middle < late + 0.001


def test_stuck_sensor_shows_its_noise_only_while_the_level_moves() -> None:
    pair = twins(TankFault.STUCK)
    where = pair.effects.stuck.astype(np.float64)
    reading, level = (pair.at_fault(x, where) for x in (pair.faulty.reading, pair.faulty.level[:, ::2]))
    for run, label in enumerate(pair.effects.label.T):
        noise = NOISE[0] / 100.0 * pair.regime.noise[run]
        assert reading[label > 0, run].std() == pytest.approx(noise, rel=0.2)
        assert np.ptp(level[label > 0, run]) > 0.005


def test_noisy_sensor_shakes_its_pump() -> None:
    pair = twins(TankFault.NOISE)
    for signals in ("reading", "command"):
        faulty, healthy = (
            pair.at_fault(np.diff(getattr(t, signals), axis=0, prepend=0.0) ** 2, pair.effects.noise)
            for t in (pair.faulty, pair.healthy)
        )
        assert np.all(np.sqrt(pair.mean(faulty) / pair.mean(healthy)) > 1.7)
