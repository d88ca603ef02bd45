"""Orders: blows are found at their order, whatever the speed, the bearing, the rate and the level of the signal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.benchmark.protocol import build
from readbench.engine.context import Context, Facts
from readbench.engine.encoders import Orders
from readbench.engine.encoders._orders import ORDER_AXIS, measure_orders
from readbench.engine.method import Method
from readbench.engine.windows import WindowSet
from readbench.errors import ParameterError, UsageError
from readbench.testing import ENCODER_CHECKS, EncoderCheck
from tests.naive.orders import orders

Array = NDArray[np.float64]
RATE = 20_000.0
OUTER, INNER = 0.8, 1.2


def struck(rhythm: float, rate: float = RATE, steps: int = 8192, *, noise: float = 0.1, seed: int = 0) -> Array:
    """(T,) a housing that rings at 3 kHz after each blow, `rhythm` blows a second, and noise."""
    rng = np.random.default_rng(seed)
    since = (np.arange(steps) / rate + rng.random() / rhythm) % (1 / rhythm)
    ring: Array = np.exp(-since / 1e-3) * np.sin(2 * np.pi * 3000 * since)
    return ring + noise * rng.standard_normal(steps)


def windows_of(series: list[Array], facts: list[Facts], rates: list[float] | None = None) -> WindowSet:
    context = Context.of(len(series), rates=rates or [RATE] * len(series), facts=facts)
    return WindowSet.from_arrays([row[None] for row in series], channels=("vibration",), context=context)


def encode(windows: WindowSet, reach: float = 0.1) -> NDArray[np.float32]:
    return Orders(reach=reach).fit(windows, windows[:0]).encode(windows)


def bearing(speed: float, elements: float) -> Facts:
    return {"speed": speed, "rolling_elements": elements}


def find_first_line(vector: NDArray[np.float32]) -> float:
    """The highest point of the axis below 1.5: no multiple of a race's line is there."""
    return float(ORDER_AXIS[vector[ORDER_AXIS < 1.5].argmax()])


@pytest.mark.parametrize("rate", [20_000.0, 8_000.0])
@pytest.mark.parametrize("reach", [0.02, 0.1, 0.3])
def test_a_spectrum_equals_that_of_slow_loops(rate: float, reach: float) -> None:
    series = struck(700.0, rate, 120, seed=3)
    speed, elements = 250.0, 7.0
    fast = measure_orders(series[None], rate, speed * elements / 2, reach)[0]
    slow = orders(series.tolist(), rate, speed, elements, reach)
    held = rate / 2 / (speed * elements / 2) >= ORDER_AXIS
    assert held.all()
    np.testing.assert_allclose(fast, slow, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("elements", [7, 9, 13])
@pytest.mark.parametrize("speed", [10.0, 25.0, 31.7])
@pytest.mark.parametrize("order", [OUTER, INNER])
def test_blows_are_found_at_their_order_and_its_multiples(order: float, speed: float, elements: float) -> None:
    vector = encode(windows_of([struck(order * speed * elements / 2)], [bearing(speed, elements)]))[0]
    assert find_first_line(vector) == pytest.approx(order, abs=0.026)
    lines = np.isclose(ORDER_AXIS[:, None] % order, [0, order], atol=0.101).any(axis=1)
    assert (vector[lines] ** 2).sum() > 0.9


def test_where_the_number_of_elements_is_unknown_orders_are_a_quarter_of_the_shaft_s() -> None:
    vector = encode(windows_of([struck(3.2 * 25.0)], [{"speed": 25.0}]))[0]
    assert find_first_line(vector) == pytest.approx(0.8, abs=0.026)


def test_the_same_race_is_nearer_than_the_other_on_another_machine_at_another_rate() -> None:
    rng = np.random.default_rng(0)
    series, facts, rates, races = [], [], [], []
    for number in range(40):
        elements, speed = float(rng.integers(7, 14)), rng.uniform(10, 40)
        race, rate = (OUTER, INNER)[number % 2], float(rng.choice([12_000, 20_000, 48_000]))
        rhythm = (race + rng.uniform(-0.04, 0.04)) * speed * elements / 2
        series.append(struck(rhythm, rate, int(0.4 * rate), noise=0.2, seed=number) * 10 ** rng.uniform(-3, 3))
        facts.append(bearing(speed, elements))
        rates.append(rate)
        races.append(race)
    vectors = encode(windows_of(series, facts, rates))
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -1)
    nearest = np.array(races)[similarity.argmax(axis=1)]
    np.testing.assert_array_equal(nearest, races)


def test_level_and_offset_are_no_part_of_it() -> None:
    series = struck(90.0)
    one, two = encode(windows_of([series, 1e4 * series + 3e3], [bearing(25.0, 9)] * 2))
    np.testing.assert_allclose(one, two, atol=1e-3)


def test_a_wrong_speed_moves_lines_and_a_wider_reach_forgives_it() -> None:
    rhythm = INNER * 25 * 4.5
    windows = windows_of([struck(rhythm), struck(rhythm, seed=1)], [bearing(25.0, 9), bearing(25.0 * 1.05, 9)])
    (right, wrong), (blurred, forgiven) = encode(windows), encode(windows, reach=0.3)
    assert find_first_line(wrong) < find_first_line(right)
    assert right @ wrong < 0.75
    assert blurred @ forgiven > right @ wrong + 0.1


@pytest.mark.parametrize(
    ("rate", "facts"),
    [
        (np.nan, {"speed": 25.0, "rolling_elements": 9.0}),
        (RATE, {"rolling_elements": 9.0}),
        (RATE, {}),
        (RATE, {"speed": 0.0}),
        (RATE, {"speed": -25.0}),
    ],
)
def test_a_window_without_rate_or_speed_says_nothing(rate: float, facts: Facts) -> None:
    windows = windows_of([struck(90.0), struck(90.0)], [facts, bearing(25.0, 9)], [rate, RATE])
    vectors = encode(windows)
    assert not vectors[0].any()
    assert np.linalg.norm(vectors[1]) == pytest.approx(1, abs=1e-5)


def test_windows_without_context_say_nothing() -> None:
    windows = windows_of([struck(90.0)], [bearing(25.0, 9)])
    assert not encode(windows.with_context(None)).any()


@pytest.mark.parametrize("steps", [1, 2, 300])
def test_a_window_that_is_hardly_longer_than_a_turn_says_nothing(steps: int) -> None:
    assert not encode(windows_of([struck(90.0, steps=steps)], [bearing(25.0, 9)])).any()


def test_a_channel_that_never_moves_says_nothing() -> None:
    moving, still = struck(90.0), np.full(8192, 0.1)
    context = Context.of(1, rates=[RATE], facts=[bearing(25.0, 9)])
    both = WindowSet.from_arrays([np.stack([moving, still])], channels=("a", "b"), context=context)
    vector = encode(both)[0].reshape(2, -1)
    assert vector[0].any()
    assert not vector[1].any()


def test_channels_are_matched_by_name() -> None:
    context = Context.of(1, rates=[RATE], facts=[bearing(25.0, 9)])
    rows = np.stack([struck(90.0), struck(140.0)])
    corpus = WindowSet.from_arrays([rows], channels=("a", "b"), context=context)
    turned = WindowSet.from_arrays([rows[::-1]], channels=("b", "a"), context=context)
    other = WindowSet.from_arrays([rows], channels=("c", "b"), context=context)
    encoder = Orders().fit(corpus, corpus[:0])
    np.testing.assert_array_equal(encoder.encode(corpus), encoder.encode(turned))
    assert not encoder.encode(other)[0, : len(ORDER_AXIS)].any()


def test_it_is_fitted_first_and_its_reach_is_checked() -> None:
    windows = windows_of([struck(90.0)], [bearing(25.0, 9)])
    with pytest.raises(UsageError, match="Fit the encoder first"):
        Orders().encode(windows)
    with pytest.raises(ParameterError, match="'reach' parameter of orders"):
        Method("orders(reach=2)")
    assert Orders().fit(windows, windows).fingerprint() != Orders(0.2).fit(windows, windows).fingerprint()


@pytest.mark.parametrize("check", ENCODER_CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check: EncoderCheck) -> None:
    check("orders")


def score_other_rigs(vectors: NDArray[np.float32], windows: WindowSet) -> dict[str, float]:
    """NDCG@10 of the windows of each rig among those of the others."""
    discount = 1 / np.log2(np.arange(2, 12))
    scores = {}
    for rig in dict.fromkeys(windows.assets.tolist()):
        own, others = windows.assets == rig, np.flatnonzero(windows.assets != rig)
        best = others[np.argsort(-(vectors[own] @ vectors[others].T), axis=1, kind="stable")[:, :10]]
        hits = windows.labels[best] == windows.labels[own][:, None]
        scores[rig] = float((hits @ discount).mean() / discount.sum())
    return scores


def test_inner_and_outer_races_are_told_apart_on_rigs_that_were_never_seen(
    real_data: Path, private_cache: Path
) -> None:
    windows = build("bearings", real_data, private_cache).windows
    races = windows[np.isin(windows.labels, (1, 2))]
    scores = score_other_rigs(encode(races), races)
    assert len(scores) == 4
    assert min(scores.values()) >= 0.95
