"""The season of a channel: against the naive version, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from readbench.engine.llm._exhibits import remove_season, season_of
from tests.naive import seasonal as naive


def rhythm(length: int, period: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = rng.standard_normal(period)
    values = np.tile(shape, length // period + 1)[:length] * 3 + rng.standard_normal(length) * 0.3
    values[length // 2 :] += 5.0 * (seed % 2)
    return (values + 100.0 * (seed % 3)).astype(np.float32)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("length", "period"), [(96, 12), (90, 9), (64, 20), (63, 8), (40, 17)])
def test_the_season_is_that_of_the_naive_version(length: int, period: int, seed: int) -> None:
    values = rhythm(length, period, seed)
    exact = [float(value) for value in values]
    clean, found = remove_season(values)
    assert found == naive.period(exact)
    expected = naive.without_season(exact, found) if found else exact
    np.testing.assert_allclose(clean, expected, atol=1e-3)


def test_what_deviates_from_the_rhythm_stays() -> None:
    time = np.arange(240)
    values = np.sin(2 * np.pi * time / 24).astype(np.float32)
    values[100:110] += 6
    clean, period = remove_season(values)
    assert period == 24
    assert np.argmax(clean) in range(100, 110)
    quiet = np.delete(clean, np.arange(100, 110))
    assert np.ptp(quiet) < np.ptp(np.delete(values, np.arange(100, 110)))


def test_a_level_stays() -> None:
    values = np.tile(np.arange(10, dtype=np.float32), 10) + 1000
    assert remove_season(values)[0].mean() == pytest.approx(values.mean(), rel=1e-4)


@pytest.mark.parametrize(
    "values",
    [np.zeros(64), np.full(64, 1e6), np.arange(64.0), np.array([1.0]), np.array([1.0, 2.0]), np.tile([0.0, 1.0], 6)],
)
def test_without_a_season_the_values_stay_as_they_are(values: np.ndarray) -> None:
    values = values.astype(np.float32)
    clean, period = remove_season(values)
    assert period == 0
    np.testing.assert_array_equal(clean, values)


def test_fast_rhythms_count_as_eight_steps() -> None:
    assert season_of(np.tile([0.0, 3.0, 1.0, 2.0], 16).astype(np.float32)) >= 8
