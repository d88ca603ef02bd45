"""Calibration against slow versions, and by hand."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from sklearn.calibration import calibration_curve

from readbench.common.calibration import (
    DEFAULT_BINS,
    Binning,
    calibration_floor,
    coverage,
    expected_calibration_error,
    reliability,
)
from readbench.errors import NotFiniteError, ParameterError, UsageError

ANSWERS = st.lists(st.tuples(st.integers(0, 40).map(lambda n: n / 40), st.booleans()), min_size=1, max_size=80)
BINNINGS: tuple[Binning, ...] = ("mass", "width")


def naive_bin(stated: list[float], i: int, bins: int, by: Binning) -> int:
    if by == "width":
        return min(math.floor(stated[i] * bins), bins - 1)
    return math.floor(bins * sum(other < stated[i] for other in stated) / len(stated))


def naive_error(answers: list[tuple[float, bool]], bins: int, by: Binning) -> float:
    stated = [p for p, _ in answers]
    error = 0.0
    for k in range(bins):
        own = [answers[i] for i in range(len(answers)) if naive_bin(stated, i, bins, by) == k]
        if own:
            said, was = math.fsum(p for p, _ in own) / len(own), sum(right for _, right in own) / len(own)
            error += len(own) / len(answers) * abs(said - was)
    return error


@given(ANSWERS, st.integers(1, 20), st.sampled_from(BINNINGS))
def test_the_error_is_that_of_the_slow_version(answers: list[tuple[float, bool]], bins: int, by: Binning) -> None:
    stated, right = zip(*answers, strict=True)
    found = expected_calibration_error(stated, right, bins=bins, by=by)
    assert found == pytest.approx(naive_error(answers, bins, by), abs=1e-12)


@given(ANSWERS, st.randoms(use_true_random=False), st.sampled_from(BINNINGS))
def test_the_order_of_answers_does_not_matter(answers: list[tuple[float, bool]], random: object, by: Binning) -> None:
    shuffled = list(answers)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    found = [expected_calibration_error(*zip(*own, strict=True), by=by) for own in (answers, shuffled)]
    assert found[0] == pytest.approx(found[1], abs=1e-12)


def test_bins_of_equal_width_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    stated = rng.random(500)
    right = rng.random(500) < stated**2
    curve = reliability(stated, right, bins=10, by="width")
    accuracy, confidence = calibration_curve(right, stated, n_bins=10, strategy="uniform")
    np.testing.assert_allclose(curve.accuracy, accuracy)
    np.testing.assert_allclose(curve.confidence, confidence)
    assert curve.count.sum() == 500


def test_the_default_is_fifteen_bins_of_equal_mass() -> None:
    curve = reliability(np.linspace(0, 1, 150) ** 8, np.ones(150, bool))
    assert DEFAULT_BINS == 15
    assert curve.count.tolist() == [10] * 15
    assert (np.diff(curve.confidence) > 0).all()


def test_an_honest_forecaster_has_a_small_error_and_a_boaster_a_large_one() -> None:
    rng = np.random.default_rng(1)
    stated = rng.uniform(0.3, 1.0, 20_000)
    right = rng.random(20_000) < stated
    assert expected_calibration_error(stated, right) < 0.02
    assert expected_calibration_error(np.minimum(stated + 0.3, 1.0), right) > 0.15


def test_the_outermost_probabilities_have_a_bin() -> None:
    curve = reliability([0.0, 1.0], [False, True], by="width")
    assert curve.confidence.tolist() == [0.0, 1.0]
    assert curve.error == 0.0


def test_coverage_counts_sets_that_hold_the_truth() -> None:
    assert coverage([{1}, {1, 2}, set(), {3}], [1, 2, 3, 4]) == 0.5


@pytest.mark.parametrize(("stated", "right"), [([], []), ([0.5], [True, False]), ([[0.5]], [[True]])])
def test_answers_that_do_not_fit_are_refused(stated: list[float], right: list[bool]) -> None:
    with pytest.raises(UsageError, match="a probability and a verdict for each answer"):
        reliability(stated, right)


@pytest.mark.parametrize("value", [float("nan"), -0.1, 1.1])
def test_what_is_no_probability_is_refused_by_its_place(value: float) -> None:
    with pytest.raises(NotFiniteError, match="Answer 1 states"):
        reliability([0.5, value], [True, False])


def test_no_bins_and_sets_without_labels_are_refused() -> None:
    with pytest.raises(ParameterError, match="'bins'"):
        reliability([0.5], [True], bins=0)
    with pytest.raises(UsageError, match="a set for each label"):
        coverage([{1}], [1, 2])


def test_honest_answers_stay_near_the_floor_and_boasts_do_not() -> None:
    rng = np.random.default_rng(0)
    stated = rng.uniform(0.5, 1.0, 150)
    floor = calibration_floor(stated, seed=0)
    honest = [expected_calibration_error(stated, rng.random(150) < stated) for _ in range(50)]
    boasts = [expected_calibration_error(stated, rng.random(150) < stated - 0.2) for _ in range(50)]
    assert np.mean(honest) == pytest.approx(floor, rel=0.1)
    assert np.mean(boasts) > 2 * floor


def test_the_floor_is_zero_for_certainty_and_falls_with_the_number_of_answers() -> None:
    assert calibration_floor(np.ones(50), seed=0) == 0.0
    few, many = (calibration_floor(np.full(n, 0.8), seed=0) for n in (100, 2500))
    assert few / many == pytest.approx(5.0, rel=0.3)
