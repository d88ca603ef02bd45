"""Departure, residual and facts against slow versions, and what they must not see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.context import Context
from readbench.engine.encoders import Departure, FactEncoder, Residual
from readbench.engine.method import Method
from readbench.engine.preparation import ChannelStats
from readbench.engine.windows import WindowSet

NAMES = ("p", "T", "q")


def recorded(seed: int, *, count: int = 12, steps: int = 16, before: int = 40) -> WindowSet:
    """Windows of two or three channels on machines of different levels; every third brings no time before."""
    rng = np.random.default_rng(seed)
    sizes = [2 + i % 2 for i in range(count)]
    level = rng.uniform(-50, 50, (count, 3, 1))
    windows = [level[i, :c] + rng.normal(0, 1 + c, (c, steps)) for i, c in enumerate(sizes)]
    befores = [
        None if i % 3 == 2 else (level[i, :c] + rng.normal(0, 1, (c, before + i))).astype(np.float32)
        for i, c in enumerate(sizes)
    ]
    return WindowSet.from_arrays(
        windows, channels=[NAMES[:c] for c in sizes], context=Context.of(count, befores=befores)
    )


def spread(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))


def steps_of(values: Sequence[float]) -> list[float]:
    return [b - a for a, b in pairwise(values)]


def slow_numbers(window: list[float], before: list[float], typical: float, whole: float) -> list[float]:
    """The fourteen numbers of one channel, one after the other."""
    n, length = len(before), len(window)
    middle = float(np.median(before))
    least = max(1e-3 * abs(middle), 5e-3 * whole) + 1e-9
    prior = length / 2
    scale = max(math.sqrt((n * spread(before) ** 2 + prior * typical**2) / (n + prior)), least)
    stretches = [before[n - (k + 1) * length : n - k * length] for k in range(n // length)] or [before]
    inner = max(math.sqrt(sum(spread(part) ** 2 for part in stretches) / len(stretches)), least)
    cuts = [k * length // 4 for k in range(5)]
    quarters = [(sum(window[a:b]) / (b - a) - middle) / scale for a, b in pairwise(cuts)]
    trend = (quarters[2] + quarters[3]) / 2 - (quarters[0] + quarters[1]) / 2
    plain = [(sum(window) / length - middle) / scale, trend, *quarters]
    weights = [1.0, 0.2, 0.2, 0.2, 0.2, 0.2]
    found = [
        w * math.tanh(x / size) / math.sqrt(2) for size in (5.0, 20.0) for w, x in zip(weights, plain, strict=True)
    ]
    found.append(0.2 * math.tanh(math.log(spread(window) / inner + 1e-3)))
    moved = (spread(steps_of(window)) + 1e-3 * scale) / (spread(steps_of(before)) + 1e-3 * scale)
    found.append(0.5 * math.tanh(math.log(moved) / 2))
    return found


def slow_vector(windows: WindowSet, i: int, typical: dict[str, float], stats: ChannelStats) -> NDArray[np.float64]:
    out = np.zeros((len(NAMES), 14))
    before = windows[i].before
    if before is not None:
        for row, name in enumerate(windows.channels(i)):
            numbers = slow_numbers(
                windows.values(i)[row].tolist(), before[row].tolist(), typical[name], stats.std[name]
            )
            loud = math.sqrt(sum(x * x for x in numbers)) ** math.log10(1 + len(NAMES))
            out[NAMES.index(name)] = [x * loud for x in numbers]
    return out.ravel()


def test_departures_are_those_of_the_slow_version() -> None:
    corpus, normals, asked = recorded(0), recorded(1), recorded(2)
    typical = {
        name: float(
            np.median(
                [
                    spread((w.values if w.before is None else w.before)[w.channels.index(name)].tolist())
                    for w in normals
                    if name in w.channels
                ]
            )
        )
        for name in NAMES
    }
    found = Departure().fit(corpus, normals).encode(asked)
    stats = ChannelStats.of(corpus)
    expected = np.stack([slow_vector(asked, i, typical, stats) for i in range(len(asked))])
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_a_window_without_a_time_before_says_nothing() -> None:
    corpus = recorded(3)
    vectors = Departure().fit(corpus, corpus).encode(corpus)
    assert [bool(row.any()) for row in vectors] == [i % 3 != 2 for i in range(len(corpus))]


@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_the_level_of_a_machine_is_not_seen(shift: float) -> None:
    """The same movement on machines of different level gives the same numbers, up to the floor of the spread."""
    rng = np.random.default_rng(4)
    window, before = rng.normal(5, 1, (1, 32)), rng.normal(0, 1, (1, 256))
    moved = WindowSet.from_arrays(
        [window + level for level in (0.0, shift)],
        context=Context.of(2, befores=[before + level for level in (0.0, shift)]),
    )
    vectors = Departure().fit(moved, moved).encode(moved)
    np.testing.assert_allclose(vectors[0], vectors[1], atol=0.02)


def test_a_fault_is_found_on_a_machine_of_another_level() -> None:
    rng = np.random.default_rng(5)
    kinds = {"rise": 6.0, "fall": -6.0}

    def case(kind: str, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return level + kinds[kind] + rng.normal(0, 1, (1, 32)), level + rng.normal(0, 1, (1, 256))

    made = [case(kind, level) for level in (0.0, 100.0, -300.0) for kind in kinds]
    corpus = WindowSet.from_arrays([w for w, _ in made], context=Context.of(len(made), befores=[b for _, b in made]))
    window, before = case("fall", 5000.0)
    query = WindowSet.from_arrays([window], context=Context.of(1, befores=[before]))
    order = Method("departure").fit(corpus).rank(query, 3).order[0]
    assert sorted(order.tolist()) == [1, 3, 5]


def test_the_residual_is_what_the_median_stretch_does_not_explain() -> None:
    beat = np.sin(np.linspace(0, 2 * np.pi, 32, endpoint=False))[None]
    extra = np.zeros((1, 32))
    extra[0, 20] = 3.0
    noise = np.random.default_rng(6).normal(0, 0.01, (1, 96))
    windows = WindowSet.from_arrays([beat + extra + 7], context=Context.of(1, befores=[np.tile(beat, 3) + noise]))
    found = Residual().fit(windows, windows).encode(windows)[0]
    assert int(found.argmax()) == 20
    assert found[20] > 0.97  # of a vector of length one


def test_without_a_whole_stretch_there_is_no_residual() -> None:
    windows = WindowSet.from_arrays([np.arange(8.0)[None]] * 2, context=Context.of(2, befores=[[[1.0, 2.0]], None]))
    assert not Residual().fit(windows, windows).encode(windows).any()


def test_facts_are_ratios_to_the_median_of_the_corpus() -> None:
    facts = [{"speed": 20.0}, {"speed": 30.0}, {"speed": 45.0}, {}]
    windows = WindowSet.from_arrays(np.zeros((4, 1, 3)), context=Context.of(4, facts=facts))
    found = FactEncoder().fit(windows, windows[:0]).encode(windows)
    expected = [math.tanh(math.log(value / 30) / 0.2) for value in (20, 30, 45)]
    np.testing.assert_allclose(found[:, 0], [*expected, 0.0], atol=1e-6)


def test_windows_without_facts_are_alike() -> None:
    windows = WindowSet.from_arrays(np.zeros((3, 1, 4)))
    assert not FactEncoder().fit(windows, windows[:0]).encode(windows).any()
