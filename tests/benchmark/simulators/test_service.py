"""The simulated web shop: its runs are valid and repeatable, its queues obey the laws, each fault does what it says."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.benchmark.simulators import Service
from readbench.benchmark.simulators._base import RunBatch
from readbench.benchmark.simulators._service import (
    BURST,
    CALLS,
    CPU,
    DELAY,
    DISK,
    LEAK,
    LOSS,
    POOL,
    SERVICES,
    STEP_S,
    TIERS,
    Array,
    Deployment,
    Disturbances,
    deployments,
    design_calls,
    disturb,
    run_network,
    waiting_time,
)

RUNS = 16
STEPS = Service.RUN_LENGTH
SCALES = np.array([tier.scales for tier in TIERS])


class World(NamedTuple):
    """Exact metrics (L, B, S) of a batch in which every run has the same class."""

    shop: Deployment
    events: Disturbances
    cpu: Array
    memory: Array
    latency: Array
    rate: Array
    errors: Array

    def faulty(self) -> NDArray[np.bool_]:
        """(L, B) whether the fault is active."""
        return self.events.labels.T > 0


@cache
def world(kind: int) -> World:
    rng = np.random.default_rng(3)
    shop = deployments(np.random.default_rng(4), RUNS, 1.0)
    events = disturb(rng, np.full(RUNS, kind, dtype=np.int32), shop, STEPS, 1.0)
    return World(shop, events, *run_network(shop, events))


def at(values: Array, place: NDArray[np.intp]) -> Array:
    """(L, B) values of each run's service `place` (B,)."""
    return np.take_along_axis(values, np.broadcast_to(place[None, :, None], (STEPS, RUNS, 1)), axis=2)[..., 0]


def place_of(disturbance: Array) -> NDArray[np.intp]:
    """(B,) service where a disturbance (L, B, S) is greatest at the end of the fault."""
    return np.asarray(disturbance[400:].max(axis=0).argmax(axis=1))


def mean_change(name: str, kind: int, place: NDArray[np.intp]) -> Array:
    """(B,) mean of a metric at the place while the fault is active, over that of the healthy twin."""
    sick: Array = at(getattr(world(kind), name), place)
    well: Array = at(getattr(world(0), name), place)
    active = world(kind).faulty()
    return np.asarray((sick * active).sum(axis=0) / (well * active).sum(axis=0))


def test_recordings_have_the_declared_shape_labels_and_step() -> None:
    source = Service(runs=12)
    recordings = list(source.recordings())
    assert len(recordings) == 12
    for i, recording in enumerate(recordings):
        fault = int(source.faults_of(np.array([i]))[0])
        assert recording.values.shape == (len(source.info.channels), STEPS)
        assert recording.values.dtype == np.float32
        assert np.isfinite(recording.values).all()
        assert (recording.values >= 0).all()
        assert recording.step == STEP_S
        assert set(np.unique(recording.labels)) == {0, fault}
        assert (recording.labels[:96] == 0).all()


def test_a_fault_is_labelled_in_one_stretch_of_at_least_a_window() -> None:
    labels = world(DELAY).events.labels
    changes = np.abs(np.diff((labels > 0).astype(int), axis=1)).sum(axis=1)
    assert (changes <= 2).all()
    assert ((labels > 0).sum(axis=1) >= 256).all()


def test_the_same_seed_gives_the_same_bytes_and_fewer_runs_are_a_prefix() -> None:
    some, more = list(Service(runs=10).recordings()), list(Service(runs=20).recordings())
    for left, right in zip(some, more[:10], strict=True):
        assert left.values.tobytes() == right.values.tobytes()
        assert left.labels.tobytes() == right.labels.tobytes()
        assert (left.asset, left.group) == (right.asset, right.group)


def test_streaming_may_begin_at_any_run() -> None:
    whole, late = list(Service(runs=68).recordings())[66:], list(Service(runs=68).recordings_from(66))
    assert [r.id for r in late] == [r.id for r in whole]
    assert all(r.step == STEP_S for r in late)
    assert late[0].values.tobytes() == whole[0].values.tobytes()


def test_another_seed_gives_other_runs_of_the_same_kind() -> None:
    def levels(seed: int) -> Array:
        values = np.stack([r.values.astype(np.float64) for r in Service(runs=64, seed=seed).recordings()])
        return np.asarray(np.median(values, axis=(0, 2)))

    first, second = levels(1), levels(2)
    assert not np.array_equal(first, second)
    alike = np.abs(np.log((first + 1) / (second + 1)))
    assert alike.max() < np.log(2)


def test_a_faulty_run_equals_its_healthy_twin_until_the_onset() -> None:
    source = Service()
    index = np.arange(8)

    def run(fault: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        kinds = np.full(8, fault, dtype=np.int32)
        return source.simulate(RunBatch(index, kinds, source.assets_of(index), np.random.default_rng(9)))

    (sick, labels), (well, _) = run(POOL), run(0)
    for b in range(8):
        onset = int(np.argmax(labels[b] > 0))
        assert np.array_equal(sick[b, :, :onset], well[b, :, :onset])
        assert not np.array_equal(sick[b, :, onset:], well[b, :, onset:])


def test_the_place_of_a_fault_differs_between_runs() -> None:
    assert len(set(place_of(world(DELAY).events.delay))) >= 6


@pytest.mark.parametrize("difficulty", [0.0, 1.0, 2.0])
def test_every_difficulty_gives_finite_runs(difficulty: float) -> None:
    for recording in Service(runs=3, difficulty=difficulty).recordings():
        assert np.isfinite(recording.values).all()


def test_difficulty_makes_faults_milder() -> None:
    shop, kinds = world(DELAY).shop, np.full(RUNS, DELAY, dtype=np.int32)
    worst = [disturb(np.random.default_rng(3), kinds, shop, STEPS, d).delay.max() for d in (0.0, 1.0, 2.0)]
    assert worst[0] > worst[1] > worst[2] > 0.02


@pytest.mark.parametrize("servers", [1, 2, 5, 20])
@pytest.mark.parametrize("busy", [0.5, 0.8, 0.95])
def test_waiting_is_close_to_the_exact_queue(servers: int, busy: float) -> None:
    load = servers * busy
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) / (1 - busy)
    exact = last / (sum(terms) + last) / (servers * (1 - busy))
    approximate = float(waiting_time(np.array(busy), np.array(float(servers)), np.array(1.0)))
    assert approximate == pytest.approx(exact, rel=0.1, abs=0.03)


def test_healthy_rates_follow_the_call_graph() -> None:
    well = world(0)
    called = (well.shop.calls * well.rate[..., :, None]).sum(axis=-2)
    called[..., 0] = well.rate[..., 0]
    assert np.quantile(np.abs(well.rate / called - 1), 0.99) < 0.02


def test_utilisation_is_rate_times_demand_per_core_and_only_scaling_services_change_replicas() -> None:
    burst = world(BURST)
    work = burst.rate * burst.shop.demand / burst.shop.cores
    quiet = (burst.events.hog == 0) & (burst.events.up == 1) & (burst.cpu < 0.95)
    replicas = np.where(quiet, work / np.maximum(burst.cpu - 0.01, 1e-6), np.nan)
    assert np.nanmax(np.abs(replicas - np.round(replicas))) < 0.05
    changes = np.nanmax(replicas, axis=(0, 1)) - np.nanmin(replicas, axis=(0, 1))
    own = np.nanmax(replicas, axis=0) - np.nanmin(replicas, axis=0)
    assert (own[:, ~SCALES] < 0.1).all()
    assert (changes[SCALES] > 0.9).all()


def test_cpu_hog_raises_utilisation_more_than_load() -> None:
    place = place_of(world(CPU).events.hog - world(0).events.hog)
    assert (mean_change("cpu", CPU, place) > 1.15).all()
    assert np.median(np.abs(mean_change("rate", CPU, place) - 1)) < 0.02


def test_memory_leak_fills_memory_until_replicas_are_killed() -> None:
    place = place_of(world(LEAK).events.leak)
    memory, ceiling = at(world(LEAK).memory, place), world(LEAK).shop.ceiling[np.arange(RUNS), place]
    assert (mean_change("memory", LEAK, place) > 1.05).all()
    killed = (np.diff(memory, axis=0) < -0.3 * ceiling).any(axis=0)
    assert killed.sum() >= RUNS // 2
    assert (memory.max(axis=0) > 0.8 * ceiling)[killed].all()


def test_added_delay_slows_the_place_and_its_callers_but_no_one_else() -> None:
    slow = world(DELAY)
    place = place_of(slow.events.delay - world(0).events.delay)
    added = at(slow.events.delay, place)
    well = world(0)
    steady = slow.faulty() & (added > 0.02)
    assert ((at(slow.latency, place) - at(well.latency, place))[steady] > 0.5 * added[steady]).mean() > 0.95
    reach = np.linalg.matrix_power(np.eye(len(SERVICES)) + (design_calls(awaited=True) > 0), 6) > 0
    for b, s in enumerate(place):
        others = ~reach[:, s]
        change = np.median(slow.latency[:, b, others] / well.latency[:, b, others], axis=0)
        assert (change < 1.05).all()


def test_packet_loss_fails_requests_and_slows_the_rest() -> None:
    place = place_of(world(LOSS).events.loss)
    assert (mean_change("errors", LOSS, place) > 1.5).all()
    assert (mean_change("latency", LOSS, place) > 1.2).all()


def test_a_stalling_disk_slows_requests_only_while_it_stalls() -> None:
    stalled = world(DISK)
    place = place_of(stalled.events.slow_disk)
    ratio = at(stalled.latency, place) / at(world(0).latency, place)
    stalls = at(stalled.events.slow_disk, place) > 3
    assert np.median(ratio[stalls]) > 1.5
    assert np.median(ratio[~stalls]) == pytest.approx(1.0, abs=0.05)


def test_a_traffic_burst_reaches_the_services_called_by_its_place() -> None:
    place = place_of(world(BURST).events.outside - world(0).events.outside)
    assert (mean_change("rate", BURST, place) > 1.1).all()
    for b, s in enumerate(place):
        for caller, callee in CALLS:
            if SERVICES[s] == caller:
                i = SERVICES.index(callee)
                assert world(BURST).rate[400:, b, i].mean() > world(0).rate[400:, b, i].mean()


def test_an_exhausted_pool_limits_the_rate_without_more_work() -> None:
    dry = world(POOL)
    place = place_of(-dry.events.pool + 1)
    assert (mean_change("latency", POOL, place) > 1.02).mean() > 0.7
    assert (mean_change("cpu", POOL, place) < 1.1).all()
    assert (mean_change("rate", POOL, place) < 1.01).all()
