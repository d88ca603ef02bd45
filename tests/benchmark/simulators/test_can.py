"""The simulated car bus: valid and repeatable runs, a car that obeys mechanics, and attacks that do what they say."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.benchmark.simulators import Can
from readbench.benchmark.simulators._base import RunBatch
from readbench.benchmark.simulators._can import drive, quantities
from readbench.benchmark.simulators._can_bus import (
    BUS,
    CHANNELS,
    CHECK_COLUMNS,
    COOLANT,
    FUZZ,
    LAMP,
    PEDAL,
    SPEED,
    STEP_S,
    TOP,
    TRACK,
    WHEELS,
    Array,
    AttackPlan,
    Cars,
    Trips,
    check,
    column,
    columns_of,
    draw_cars,
    draw_plan,
    draw_trips,
    message_of,
)

RUNS = 24
STEPS = Can.RUN_LENGTH


class World(NamedTuple):
    """A batch in which every run has the same class: plan, exact quantities (L, B), bus values (B, C, L)."""

    plan: AttackPlan
    exact: dict[str, Array]
    bus: NDArray[np.float32]
    labels: NDArray[np.int32]


def parts(kind: int) -> tuple[Cars, Trips, AttackPlan]:
    """Cars, trips and plan as `Can.simulate` draws them for this batch."""
    source, index = Can(), np.arange(RUNS)
    rng = np.random.default_rng(6)
    cars = draw_cars(source.asset_rng(), source.ASSETS, len(CHANNELS), 1.0).take(source.assets_of(index))
    trips = draw_trips(rng, RUNS, STEPS)
    return cars, trips, draw_plan(rng, np.full(RUNS, kind, dtype=np.int32), trips, STEPS, 1.0)


@cache
def world(kind: int) -> World:
    cars, trips, plan = parts(kind)
    exact = quantities(cars, trips, drive(cars, trips, plan))
    source, index = Can(), np.arange(RUNS)
    kinds = np.full(RUNS, kind, dtype=np.int32)
    bus, labels = source.simulate(RunBatch(index, kinds, source.assets_of(index), np.random.default_rng(6)))
    return World(plan, exact, bus, labels)


def signal(kind: int, identifier: int, source: str) -> NDArray[np.float32]:
    """(B, L) raw values on the bus."""
    return world(kind).bus[:, column(identifier, source)]


def changed(kind: int) -> NDArray[np.bool_]:
    """(B, M) whether any value of each message differs from the healthy twin."""
    differs = (world(kind).bus != world(0).bus).any(axis=2)
    return np.stack([differs[:, columns_of(m)].any(axis=1) for m in range(len(BUS))], axis=1)


def test_recordings_have_the_declared_shape_labels_and_step() -> None:
    source = Can(runs=12)
    recordings = list(source.recordings())
    assert len(recordings) == 12
    for i, recording in enumerate(recordings):
        fault = int(source.faults_of(np.array([i]))[0])
        assert recording.values.shape == (len(source.info.channels), STEPS)
        assert recording.values.dtype == np.float32
        assert recording.step == STEP_S
        assert set(np.unique(recording.labels)) == {0, fault}
        assert (recording.labels[:100] == 0).all()


def test_bus_values_are_whole_numbers_within_their_bits() -> None:
    for kind in (0, FUZZ, WHEELS):
        bus = world(kind).bus
        assert np.isfinite(bus).all()
        assert np.array_equal(bus, np.round(bus))
        assert (bus >= 0).all()
        assert (bus <= TOP[:, None]).all()


def test_signals_change_only_with_a_frame_of_their_message() -> None:
    for m, message in enumerate(BUS):
        changes = (np.diff(world(FUZZ).bus[:, columns_of(m)], axis=2) != 0).any(axis=1)
        for b in range(RUNS):
            assert len(set(np.flatnonzero(changes[b]) % message.period)) <= 1


def test_the_same_seed_gives_the_same_bytes_and_fewer_runs_are_a_prefix() -> None:
    some, more = list(Can(runs=10).recordings()), list(Can(runs=20).recordings())
    for left, right in zip(some, more[:10], strict=True):
        assert left.values.tobytes() == right.values.tobytes()
        assert left.labels.tobytes() == right.labels.tobytes()
        assert (left.asset, left.group) == (right.asset, right.group)


def test_streaming_may_begin_at_any_run() -> None:
    whole, late = list(Can(runs=68).recordings())[66:], list(Can(runs=68).recordings_from(66))
    assert [r.id for r in late] == [r.id for r in whole]
    assert all(r.step == STEP_S for r in late)
    assert late[0].values.tobytes() == whole[0].values.tobytes()


def test_another_seed_gives_other_runs_of_the_same_kind() -> None:
    def moments(seed: int) -> tuple[Array, Array]:
        values = np.stack([r.values.astype(np.float64) for r in Can(runs=64, seed=seed).recordings()])
        return values.mean(axis=(0, 2)), values.std(axis=(0, 2))

    (first, spread), (second, _) = moments(1), moments(2)
    assert not np.array_equal(first, second)
    assert (np.abs(first - second) <= spread + 1).all()


@pytest.mark.parametrize("kind", [SPEED, LAMP, WHEELS, COOLANT, FUZZ, PEDAL])
def test_an_attacked_run_equals_its_healthy_twin_until_the_onset(kind: int) -> None:
    differs = (world(kind).bus != world(0).bus).any(axis=1)
    attacked = world(kind).labels == kind
    for b in range(RUNS):
        onset = int(np.argmax(attacked[b]))
        assert not differs[b, :onset].any()
        assert differs[b, onset:].any()


@pytest.mark.parametrize("difficulty", [0.0, 1.0, 2.0])
def test_every_difficulty_gives_finite_runs(difficulty: float) -> None:
    for recording in Can(runs=3, difficulty=difficulty).recordings():
        assert np.isfinite(recording.values).all()


def test_difficulty_brings_forged_values_nearer_to_the_truth() -> None:
    _, trips, _ = parts(SPEED)
    kinds = np.full(RUNS, SPEED, dtype=np.int32)
    gaps = [np.abs(draw_plan(np.random.default_rng(1), kinds, trips, STEPS, d).gap).mean() for d in (0.0, 1.0, 2.0)]
    assert gaps[0] > gaps[1] > gaps[2] > 0


def test_the_car_moves_as_its_speed_and_yaw_rate_say() -> None:
    exact = world(0).exact
    change = np.diff(exact["speed"], axis=0) / STEP_S * exact["direction"][1:]
    assert change == pytest.approx(exact["acceleration"][1:], abs=1e-9)
    across = exact["wheel_rr"] - exact["wheel_rl"]
    forward = (exact["direction"] > 0) & (exact["speed"] > 3)
    assert across[forward] == pytest.approx((exact["yaw_rate"] * TRACK)[forward], abs=1e-9)
    assert np.abs(exact["lateral"]).max() < 4.0
    assert np.abs(exact["acceleration"]).max() < 9.0


def test_trips_hold_stops_motorway_and_reversing() -> None:
    exact = world(0).exact
    assert (exact["speed"] == 0).any()
    assert exact["speed"].max() > 25
    assert (exact["gear"] == -1).any()
    assert exact["gear"].max() == 6


def test_the_engine_warms_up_and_the_thermostat_holds_it() -> None:
    coolant = world(0).exact["coolant"]
    cold = coolant[0] < 75
    assert (coolant[-1] > coolant[0])[cold].all()
    assert coolant.max() < 110


def test_copies_of_a_quantity_agree_without_an_attack() -> None:
    metric, imperial = signal(0, 0x1F3, "speed_kmh") / 100, signal(0, 0x51A, "speed_mph") * 1.609344
    assert np.quantile(np.abs(metric - imperial), 0.95) < 2.5
    display = signal(0, 0x0D0, "display_kmh") / 60
    assert np.quantile(np.abs(display - 1.03 * metric), 0.95) < 3.0


def test_check_sums_fit_the_frames_except_those_a_careless_attacker_forges() -> None:
    def wrong(kind: int) -> NDArray[np.bool_]:
        bus = world(kind).bus.astype(np.float64)
        return np.asarray((check(bus) != bus[:, CHECK_COLUMNS]).any(axis=(1, 2)))

    assert not wrong(0).any()
    careless = world(SPEED).plan.careless
    assert wrong(SPEED)[careless].all()
    assert not wrong(SPEED)[~careless].any()


def test_a_forced_speedometer_contradicts_the_wheels() -> None:
    display = signal(SPEED, 0x0D0, "display_kmh") / 60
    truth = world(SPEED).exact["display_kmh"].T
    sending = world(SPEED).plan.sending.T
    error = np.where(sending, np.abs(display - truth), 0.0).sum(axis=1) / sending.sum(axis=1)
    assert (error > 5).all()
    assert np.flatnonzero(changed(SPEED).any(axis=0)).tolist() == [message_of(0x0D0)]


def test_a_flipped_reverse_lamp_is_on_forwards_and_off_backwards() -> None:
    lamp, selector = signal(LAMP, 0x0D0, "reverse_lamp"), world(LAMP).exact["reversing"].T
    inside = world(LAMP).plan.sending.T.copy()
    # Frames come every second step: look where the attack has lasted for one.
    inside[:, 2:] &= inside[:, 1:-1] & inside[:, :-2]
    steady = inside[:, 2:] & (selector[:, 2:] == selector[:, :-2])
    assert (lamp[:, 2:] == 1 - selector[:, 2:])[steady].all()
    assert set(selector[:, 2:][steady]) == {0.0, 1.0}


def test_forced_wheel_speeds_are_equal_and_take_torque_from_the_car() -> None:
    wheels = world(WHEELS).bus[:, columns_of(message_of(0x6E0))][:, :4]
    sending = world(WHEELS).plan.sending.T
    assert (np.ptp(wheels, axis=1)[sending] == 0).all()
    slower = world(WHEELS).exact["speed"] - world(0).exact["speed"]
    assert slower.mean() < -0.1


def test_a_forced_coolant_temperature_stands_still_and_drives_the_fan() -> None:
    coolant, plan = signal(COOLANT, 0x3A0, "coolant"), world(COOLANT).plan
    fan = world(COOLANT).exact["fan"]
    for b in range(RUNS):
        _, counts = np.unique(coolant[b, plan.sending[:, b]], return_counts=True)
        assert counts.max() > 0.8 * counts.sum()
        if plan.coolant[b] > 106:
            assert fan[:, b].max() > 0.5
    oil = np.abs(world(COOLANT).exact["oil"] - world(0).exact["oil"])
    assert oil.max() < 5


def test_fuzzing_sends_random_payloads_in_as_many_messages_as_planned() -> None:
    touched = changed(FUZZ).sum(axis=1)
    assert (touched <= world(FUZZ).plan.fuzzed).all()
    assert (touched >= world(FUZZ).plan.fuzzed - 1).all()
    spoiled = (world(FUZZ).bus != world(0).bus).mean(axis=2)
    assert (spoiled.max(axis=1) > 0.02).all()


def test_a_forced_pedal_moves_the_car_and_not_the_foot_sensor() -> None:
    exact, well, plan = world(PEDAL).exact, world(0).exact, world(PEDAL).plan
    assert np.array_equal(exact["pedal"][~plan.sending], exact["pedal_foot"][~plan.sending])
    forced = plan.sending & ~plan.stuck
    assert exact["pedal"][forced] == pytest.approx(np.broadcast_to(plan.pedal, forced.shape)[forced])
    slow = plan.active & (well["speed"] < 10)
    assert exact["speed"][slow].mean() > well["speed"][slow].mean() + 0.1
    assert exact["brake"][slow].mean() > well["brake"][slow].mean()


def test_a_frozen_frame_stops_counting() -> None:
    counter, plan = signal(WHEELS, 0x6E0, "counter"), world(WHEELS).plan
    for b in range(RUNS):
        seen = len(np.unique(counter[b, plan.sending[:, b]]))
        assert seen == 1 if plan.frozen[b] else seen > 10
