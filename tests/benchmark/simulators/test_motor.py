"""The simulated motors obey the kinematics and mechanics they are built on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.benchmark.protocol import Recording
from readbench.benchmark.simulators import BATCH, Motor
from readbench.benchmark.simulators._base import RunBatch
from readbench.benchmark.simulators._motor_machine import (
    BALL,
    BEARINGS,
    FS,
    IMBALANCE,
    INNER,
    LOOSENESS,
    LUBRICATION,
    MISALIGNMENT,
    OUTER,
    SENSOR,
    SNAPSHOT,
    SNAPSHOTS,
    draw_fleet,
)

VIB_X, VIB_Y, VIB_Z, CURRENT, SPEED, TEMPERATURE = range(6)
Floats = NDArray[np.float64]


def simulate(fault: int, difficulty: float = 0.5) -> tuple[Floats, NDArray[np.int32]]:
    """One batch in which every run has the same fault; equal to the batch without fault but for the fault."""
    motor = Motor(difficulty=difficulty)
    index = np.arange(BATCH)
    faults = np.full(BATCH, fault, dtype=np.int32)
    batch = RunBatch(index, faults, motor.assets_of(index), np.random.default_rng([motor.seed, 1, 0]))
    values, labels = motor.simulate(batch)
    return values.astype(np.float64), labels


def stacked(motor: Motor) -> Floats:
    """All runs, (runs, 6, 4096)."""
    return np.stack([r.values.astype(np.float64) for r in motor.recordings()])


@pytest.fixture(scope="module")
def healthy() -> Floats:
    return simulate(0)[0]


def last(values: Floats) -> Floats:
    """Last snapshot of each run: there the fault is fully grown."""
    return values[:, :, -SNAPSHOT:]


def bearing_orders() -> Floats:
    """Inner, outer, spin and cage order of each run's machine."""
    motor = Motor()
    fleet = draw_fleet(motor.asset_rng(), motor.ASSETS)
    return fleet.orders[motor.assets_of(np.arange(BATCH))]


def at_order(signal: Floats, snapshot: Floats, order: Floats | float) -> Floats:
    """Amplitude of each signal (B, SNAPSHOT) at a multiple of the shaft frequency, Hann weighted."""
    angle = 2 * np.pi * np.cumsum(snapshot[:, SPEED], axis=1) / 60 / FS
    weight = np.hanning(SNAPSHOT)
    wave = np.exp(-1j * np.asarray(order).reshape(-1, 1) * angle)
    amplitude: Floats = np.abs((signal * weight * wave).sum(axis=1)) * 2 / weight.sum()
    return amplitude


def envelope(signal: Floats) -> Floats:
    """Squared envelope above 400 Hz, without its mean: Hilbert transform by a one-sided spectrum."""
    spectrum = np.fft.fft(signal, axis=1)
    keep = np.fft.fftfreq(SNAPSHOT, 1 / FS) > 400
    squared: Floats = np.abs(np.fft.ifft(2 * spectrum * keep, axis=1)) ** 2
    squared -= squared.mean(axis=1, keepdims=True)
    return squared


def test_bearing_orders_are_those_published_for_the_cwru_bench() -> None:
    drive_end = BEARINGS[0]
    orders = (drive_end.inner, drive_end.outer, 2 * drive_end.spin, drive_end.cage)
    np.testing.assert_allclose(orders, (5.4152, 3.5848, 4.7135, 0.39828), rtol=1e-3)


def test_recordings_have_the_declared_shape_and_labels() -> None:
    runs = list(Motor(runs=40).recordings())
    assert len(runs) == 40
    assert {r.values.shape for r in runs} == {(6, Motor.RUN_LENGTH)}
    assert {r.values.dtype for r in runs} == {np.dtype(np.float32)}
    assert set(np.unique([r.labels for r in runs])) == set(range(9))
    assert len({r.group for r in runs}) == 40


def test_a_fault_begins_after_a_healthy_snapshot_and_lasts() -> None:
    for run in Motor(runs=29).recordings():
        by_snapshot = run.labels.reshape(SNAPSHOTS, SNAPSHOT)
        assert (by_snapshot == by_snapshot[:, :1]).all()
        assert by_snapshot[0, 0] == 0
        assert (np.diff(by_snapshot[:, 0] > 0) >= 0).all()


def test_same_seed_same_bytes() -> None:
    first, second = (list(Motor(runs=3).recordings()) for _ in range(2))
    assert [r.values.tobytes() for r in first] == [r.values.tobytes() for r in second]


def test_another_seed_gives_other_runs_of_the_same_kind() -> None:
    one, other = (stacked(Motor(runs=58, seed=s)) for s in (1, 2))
    assert not np.array_equal(one, other)
    spread = one.std(axis=(0, 2)) / other.std(axis=(0, 2))
    assert ((spread > 0.5) & (spread < 2)).all()
    np.testing.assert_allclose(one[:, CURRENT:].mean(axis=(0, 2)), other[:, CURRENT:].mean(axis=(0, 2)), rtol=0.2)


def test_more_runs_begin_with_the_same_runs() -> None:
    few, many = list(Motor(runs=10).recordings()), list(Motor(runs=70).recordings())
    assert [_content(r) for r in few] == [_content(r) for r in itertools.islice(many, 10)]


def _content(run: Recording) -> tuple[str, str, bytes, bytes]:
    return run.id, run.asset, run.values.tobytes(), run.labels.tobytes()


@pytest.mark.parametrize("difficulty", [0.0, 1.0, 2.0])
def test_every_difficulty_gives_finite_readings_in_range(difficulty: float) -> None:
    values = stacked(Motor(runs=BATCH, difficulty=difficulty))
    assert np.isfinite(values).all()
    assert np.abs(values[:, :VIB_Z]).max() < 50
    assert (values[:, CURRENT] > 0).all()
    assert (values[:, SPEED] > 800).all()
    assert ((values[:, TEMPERATURE] > 0) & (values[:, TEMPERATURE] < 140)).all()


def test_before_the_onset_a_faulty_machine_reads_like_its_healthy_twin(healthy: Floats) -> None:
    faulty, labels = simulate(INNER)
    untouched = np.broadcast_to((labels == 0)[:, None, :], faulty.shape)
    assert np.array_equal(faulty[untouched], healthy[untouched])
    assert not np.array_equal(faulty, healthy)


@pytest.mark.parametrize(("fault", "column", "strikes"), [(INNER, 0, 1), (OUTER, 1, 1), (BALL, 2, 2)])
def test_a_bearing_defect_strikes_at_its_kinematic_frequency(
    fault: int, column: int, strikes: int, healthy: Floats
) -> None:
    order = strikes * bearing_orders()[:, column]
    faulty, fine = last(simulate(fault)[0]), last(healthy)
    struck, quiet = (at_order(envelope(v[:, VIB_Y]), v, order) for v in (faulty, fine))
    beside, half = (at_order(envelope(faulty[:, VIB_Y]), faulty, share * order) for share in (1.3, 0.5))
    assert np.median(struck / quiet) > 10
    assert np.median(struck / beside) > 2
    assert np.median(struck / half) > 1.1


def test_the_load_zone_modulates_inner_race_strikes_with_the_shaft_but_not_those_of_the_outer_race() -> None:
    depth = {}
    for fault, column in ((INNER, 0), (OUTER, 1)):
        values = last(simulate(fault, difficulty=0.0)[0])
        strikes = envelope(values[:, VIB_Y])
        with_shaft = at_order(strikes, values, 1.0)
        depth[fault] = np.median(with_shaft / at_order(strikes, values, bearing_orders()[:, column]))
    assert depth[INNER] > 3 * depth[OUTER]


def test_imbalance_adds_a_force_that_turns_with_the_shaft(healthy: Floats) -> None:
    faulty = last(simulate(IMBALANCE)[0])
    added = faulty - last(healthy)
    once, twice = (at_order(added[:, VIB_X], faulty, order) for order in (1.0, 2.0))
    assert (once > 10 * twice).all()
    assert (np.abs(added[:, VIB_Z]).max(axis=1) < np.abs(added[:, VIB_X]).max(axis=1)).all()
    quarter_turn = [np.corrcoef(x, y)[0, 1] for x, y in added[:, [VIB_X, VIB_Y]]]
    assert np.median(np.abs(quarter_turn)) < 0.2


def test_misalignment_shakes_at_twice_the_speed_and_along_the_shaft(healthy: Floats) -> None:
    aligned, bent = last(healthy), last(simulate(MISALIGNMENT)[0])
    unbalanced = last(simulate(IMBALANCE)[0])
    for axis in (VIB_X, VIB_Y):
        assert np.median(at_order(bent[:, axis], bent, 2.0) / at_order(aligned[:, axis], aligned, 2.0)) > 4
    axial = [np.median(v[:, VIB_Z].std(axis=1) / v[:, VIB_X].std(axis=1)) for v in (bent, unbalanced)]
    assert axial[0] > 1.5 * axial[1]
    torque = [np.median(at_order(v[:, CURRENT], v, 2.0)) for v in (bent, aligned)]
    assert torque[0] > 3 * torque[1]


def test_looseness_brings_subharmonics_and_harmonics_mostly_vertical(healthy: Floats) -> None:
    tight, loose = last(healthy), last(simulate(LOOSENESS)[0])
    orders = np.array([0.5, 1.5, 2.5, 4.0])
    grown = [np.median(at_order(loose[:, VIB_Y], loose, o) / at_order(tight[:, VIB_Y], tight, o)) for o in orders]
    assert min(grown) > 2
    added = loose - tight
    assert np.median(added[:, VIB_Y].std(axis=1) / added[:, VIB_Z].std(axis=1)) > 2


def test_lubrication_loss_is_loud_drags_and_warms_up_slowly(healthy: Floats) -> None:
    dry = simulate(LUBRICATION)[0]
    hiss = [np.diff(last(v)[:, : VIB_Z + 1], n=2).std(axis=2) for v in (dry, healthy)]
    assert (hiss[0] > 2 * hiss[1]).all()
    drag = last(dry)[:, CURRENT].mean(axis=1) - last(healthy)[:, CURRENT].mean(axis=1)
    assert (drag > 0).all()
    extra = (dry - healthy)[:, TEMPERATURE].reshape(BATCH, SNAPSHOTS, SNAPSHOT).mean(axis=2)
    assert (np.diff(extra, axis=1) > -0.05).all()
    assert np.median(extra[:, -1]) > 10


def test_a_sensor_fault_touches_one_axis_and_nothing_else(healthy: Floats) -> None:
    touched = (last(simulate(SENSOR)[0]) != last(healthy)).any(axis=2)
    assert (touched.sum(axis=1) == 1).all()
    assert set(touched.argmax(axis=1)) == {VIB_X, VIB_Y, VIB_Z}
