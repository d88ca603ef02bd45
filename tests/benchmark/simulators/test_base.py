from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.protocol import Protocol, Recording, SourceInfo, windows_of
from readbench.benchmark.simulators import BATCH, Simulator
from readbench.benchmark.simulators._base import RunBatch, quantise
from tests.benchmark.protocol.fakes import info

EDGES = (0, 1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH, 2 * BATCH + 1)
"""Numbers of runs around the ends of batches."""


class Tiny(Simulator):
    """Ten steps of noise around the class; the fault begins half-way. Seven runs to a block, which no batch holds."""

    INFO: ClassVar[SourceInfo] = replace(info(2, Protocol(length=4, stride=3), channels=2), asset_unit="pump")
    MIX: ClassVar[tuple[int, ...]] = (4, 2, 1)
    ASSETS: ClassVar[int] = 5
    RUN_LENGTH: ClassVar[int] = 10
    STEP: ClassVar[float] = 0.25
    batches: ClassVar[list[tuple[int, int]]] = []
    """First run and size of each batch simulated so far."""

    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        self.batches.append((int(batch.index[0]), len(batch)))
        noise = batch.rng.normal(size=(len(batch), 2, self.RUN_LENGTH))
        labels = np.where(np.arange(self.RUN_LENGTH) >= 5, batch.fault[:, None], 0).astype(np.int32)
        return (noise + labels[:, None, :]).astype(np.float32), labels


class Swayed(Tiny):
    """Broken: how many runs are asked for changes what they are."""

    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        values, labels = super().simulate(batch)
        return values + np.float32(self.runs), labels


class Shared(Tiny):
    """Broken: all runs draw from one generator, so that what comes first moves what follows."""

    generator: ClassVar[np.random.Generator] = np.random.default_rng(0)

    def simulate(self, batch: RunBatch) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        return super().simulate(replace(batch, rng=self.generator))


class Dice(Tiny):
    """Broken: the class of each run is drawn on its own, so that the mix holds on average only."""

    def faults_of(self, index: NDArray[np.int64]) -> NDArray[np.int32]:
        share = np.array(self.MIX) / sum(self.MIX)
        draws = [np.random.default_rng([self.seed, int(i)]).choice(len(share), p=share) for i in index]
        return np.array(draws, np.int32)


class Paired(Tiny):
    """Two runs in a row belong together."""

    def group_of(self, run: int) -> str:
        return f"pair-{run // 2}"


def contents(run: Recording) -> tuple[object, ...]:
    return run.id, run.values.tobytes(), run.labels.tobytes(), run.group, run.asset, run.channels, run.start, run.step


def assert_same_runs(some: Sequence[Recording], others: Sequence[Recording]) -> None:
    assert [contents(run) for run in some] == [contents(run) for run in others]


def assert_prefix(short: Simulator, long: Simulator) -> None:
    """The runs of the shorter source are the first runs of the longer one."""
    assert_same_runs(list(short.recordings()), list(islice(long.recordings(), short.runs)))


def assert_starts_anywhere(simulator: Simulator, first: int) -> None:
    assert_same_runs(list(simulator.recordings_from(first)), list(simulator.recordings())[first:])


def assert_exact_mix(simulator: Simulator, blocks: int) -> None:
    """Every block of sum(MIX) runs holds exactly MIX runs of the classes."""
    size = sum(simulator.MIX)
    classes = simulator.faults_of(np.arange(blocks * size))
    for block in classes.reshape(blocks, size):
        assert tuple(np.bincount(block, minlength=len(simulator.MIX)).tolist()) == simulator.MIX


@pytest.mark.parametrize(("runs", "more"), list(pairwise(EDGES)))
def test_fewer_runs_are_a_prefix_of_more(runs: int, more: int) -> None:
    assert_prefix(Tiny(runs, seed=3), Tiny(more, seed=3))


@settings(max_examples=25)
@given(st.integers(0, 150), st.integers(0, 150), st.integers(0, 5))
def test_any_number_of_runs_is_a_prefix_of_any_larger(one: int, other: int, seed: int) -> None:
    assert_prefix(Tiny(min(one, other), seed), Tiny(max(one, other), seed))


@pytest.mark.parametrize("first", EDGES)
def test_a_source_can_start_anywhere(first: int) -> None:
    assert_starts_anywhere(Tiny(2 * BATCH + 5, seed=3), first)


@pytest.mark.parametrize("runs", EDGES)
def test_exactly_the_runs_asked_for_come_each_once(runs: int) -> None:
    made = list(Tiny(runs, seed=0).recordings())
    assert [run.id for run in made] == [f"run-{i:06d}" for i in range(runs)]
    assert len({run.values.tobytes() for run in made}) == runs


@pytest.mark.parametrize(("runs", "batches"), [(1, 1), (BATCH, 1), (BATCH + 1, 2)])
def test_runs_are_simulated_in_whole_batches(runs: int, batches: int) -> None:
    Tiny.batches.clear()
    list(Tiny(runs, seed=0).recordings())
    assert Tiny.batches == [(b * BATCH, BATCH) for b in range(batches)]


def test_only_the_batch_that_is_read_is_simulated() -> None:
    Tiny.batches.clear()
    next(Tiny(10**9, seed=0).recordings())
    next(Tiny(10**9, seed=0).recordings_from(5 * BATCH + 7))
    assert Tiny.batches == [(0, BATCH), (5 * BATCH, BATCH)]


def test_a_run_is_recorded_as_the_source_says() -> None:
    simulator = Tiny(20, seed=1)
    classes, assets = simulator.faults_of(np.arange(20)), simulator.assets_of(np.arange(20))
    for i, run in enumerate(simulator.recordings()):
        assert run.values.shape == (2, 10)
        assert run.channels == ("x0", "x1")
        assert run.labels.tolist() == [0] * 5 + [classes[i]] * 5
        assert run.asset == f"pump-{assets[i]:03d}"
        assert (run.start, run.step, run.side) == (0.0, 0.25, None)


def test_each_run_is_its_own_group_unless_the_domain_says_otherwise() -> None:
    assert [run.group for run in Tiny(3, seed=0).recordings()] == ["run-000000", "run-000001", "run-000002"]
    assert [run.group for run in Paired(3, seed=0).recordings()] == ["pair-0", "pair-0", "pair-1"]


@given(st.integers(0, 1000))
def test_every_block_holds_exactly_the_mix(seed: int) -> None:
    assert_exact_mix(Tiny(1, seed), blocks=20)


def test_blocks_are_shuffled_each_in_its_own_way() -> None:
    blocks = Tiny(1, seed=0).faults_of(np.arange(70)).reshape(10, 7).tolist()
    assert len({tuple(block) for block in blocks}) > 5
    assert [sorted(block) for block in blocks] != blocks


@given(st.lists(st.integers(0, 500), min_size=1, max_size=10))
def test_class_and_asset_of_a_run_do_not_depend_on_who_is_asked_with_it(index: list[int]) -> None:
    simulator = Tiny(1, seed=7)
    asked = np.array(index)
    for lookup in (simulator.faults_of, simulator.assets_of):
        assert lookup(asked).tolist() == [lookup(np.array([i]))[0] for i in index]


def test_assets_are_drawn_evenly_whatever_the_class() -> None:
    simulator = Tiny(1, seed=0)
    index = np.arange(280 * 7)
    pairs = Counter(zip(simulator.faults_of(index).tolist(), simulator.assets_of(index).tolist(), strict=True))
    for label, count in enumerate(simulator.MIX):
        runs = 280 * count
        for asset in range(5):
            assert abs(pairs[label, asset] - runs / 5) < 5 * np.sqrt(runs * 0.2 * 0.8)


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(length=4),
        Protocol(length=4, stride=3),
        Protocol(length=10),
        Protocol(length=None),
        Protocol(length=None, stride=2),
    ],
)
@given(wanted=st.integers(1, 200))
@settings(max_examples=15)
def test_sized_gives_enough_windows_and_not_a_run_too_many(protocol: Protocol, wanted: int) -> None:
    class Cut(Tiny):
        INFO = replace(Tiny.INFO, protocol=protocol)

    simulator = Cut(1, seed=2, difficulty=0.5).sized(wanted)
    cut = [windows_of(run, protocol, simulator.info.classes) for run in simulator.recordings()]
    counts = [0 if windows is None else len(windows) for windows in cut]
    assert sum(counts) >= wanted > sum(counts[:-1])
    assert (type(simulator), simulator.seed, simulator.difficulty) == (Cut, 2, 0.5)


def test_the_same_seed_gives_the_same_runs_and_another_seed_others() -> None:
    assert_same_runs(list(Tiny(70, seed=1).recordings()), list(Tiny(70, seed=1).recordings()))
    pairs = zip(Tiny(70, seed=1).recordings(), Tiny(70, seed=2).recordings(), strict=True)
    assert all(one.values.tobytes() != other.values.tobytes() for one, other in pairs)
    index = np.arange(70)
    assert Tiny(1, seed=1).faults_of(index).tolist() != Tiny(1, seed=2).faults_of(index).tolist()
    assert Tiny(1, seed=1).assets_of(index).tolist() != Tiny(1, seed=2).assets_of(index).tolist()


def test_tables_of_assets_are_the_same_at_every_look() -> None:
    one, again, other = (Tiny(1, seed=seed).asset_rng().normal(size=5).tolist() for seed in (0, 0, 1))
    assert one == again != other


def test_the_fingerprint_names_what_the_data_depend_on() -> None:
    class Newer(Tiny):
        VERSION = 2

    class Renamed(Tiny):
        INFO = replace(Tiny.INFO, name="other")

    base = Tiny(10, seed=1)
    others = [Tiny(11, seed=1), Tiny(10, seed=2), Tiny(10, seed=1, difficulty=2.0), Newer(10, 1), Renamed(10, 1)]
    assert len({simulator.fingerprint(None) for simulator in [base, *others]}) == 6
    assert base.fingerprint(Path("/somewhere")) == Tiny(10, seed=1).fingerprint(None)


@given(st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4), st.sampled_from([0.5, 0.25, 0.125]))
def test_readings_are_rounded_to_the_sensor_s_resolution(readings: list[float], step: float) -> None:
    values = np.array(readings).reshape(1, 2, 2)
    rounded = quantise(values, np.array([step, 2 * step]))
    assert rounded.dtype == np.float32
    for channel, own in enumerate((step, 2 * step)):
        steps = rounded[0, channel].astype(np.float64) / own
        assert (steps == np.round(steps)).all()
        assert (np.abs(rounded[0, channel] - values[0, channel]) <= own / 2).all()


# The rules, broken on purpose: the same checks must see it.


def test_runs_that_depend_on_how_many_are_asked_for_are_caught() -> None:
    with pytest.raises(AssertionError):
        assert_prefix(Swayed(3, seed=0), Swayed(4, seed=0))


def test_runs_that_depend_on_what_was_simulated_before_are_caught() -> None:
    with pytest.raises(AssertionError):
        assert_starts_anywhere(Shared(2 * BATCH, seed=0), BATCH)


def test_a_mix_that_holds_on_average_only_is_caught() -> None:
    with pytest.raises(AssertionError):
        assert_exact_mix(Dice(1, seed=0), blocks=20)
