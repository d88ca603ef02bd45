"""Novelty figures against scikit-learn, by pairs, and by hand."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics import roc_auc_score, roc_curve

from readbench.common.calibration import auroc, detection_rate, false_alarm_rate
from readbench.errors import NotFiniteError, ParameterError, UsageError

SCORES = st.lists(st.integers(-3, 6).map(float), min_size=1, max_size=40)


@given(SCORES, SCORES)
def test_auroc_counts_pairs_and_half_of_the_ties(novel: list[float], known: list[float]) -> None:
    pairs = [1.0 if n > k else 0.5 if n == k else 0.0 for n in novel for k in known]
    truth = [1] * len(novel) + [0] * len(known)
    assert auroc(novel, known) == pytest.approx(sum(pairs) / len(pairs))
    assert auroc(novel, known) == pytest.approx(roc_auc_score(truth, novel + known))


@given(SCORES, SCORES, st.sampled_from([0.5, 0.8, 0.95]))
def test_the_false_alarm_rate_is_that_of_the_roc_curve(
    novel: list[float], known: list[float], detection: float
) -> None:
    truth = [1] * len(novel) + [0] * len(known)
    false_alarms, detected, _ = roc_curve(truth, novel + known, drop_intermediate=False)
    expected = false_alarms[detected >= detection - 1e-12].min()
    assert false_alarm_rate(novel, known, detection=detection) == pytest.approx(expected)


@given(SCORES, SCORES, st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_the_detection_rate_is_the_highest_that_the_alarms_allow(
    novel: list[float], known: list[float], allowed: list[float]
) -> None:
    truth = [1] * len(novel) + [0] * len(known)
    false_alarms, detected, _ = roc_curve(truth, novel + known, drop_intermediate=False)
    expected = [detected[false_alarms <= rate + 1e-9].max() for rate in allowed]
    np.testing.assert_allclose(detection_rate(novel, known, allowed), expected)


def test_without_ties_the_area_below_the_detection_rate_is_the_auroc() -> None:
    novel, known = np.random.default_rng(0).permutation(60).astype(float).reshape(2, 30)
    steps = detection_rate(novel, known, np.arange(30) / 30)
    assert steps.mean() == pytest.approx(auroc(novel, known))


def test_separate_scores_are_perfect_and_equal_ones_are_chance() -> None:
    assert auroc([2, 3], [0, 1]) == 1.0
    assert false_alarm_rate([2, 3], [0, 1]) == 0.0
    assert auroc([1, 1], [1, 1, 1]) == 0.5
    assert false_alarm_rate([1, 1], [1, 1, 1]) == 1.0


def test_one_miss_in_twenty_is_allowed_at_95_percent() -> None:
    novel = [-1.0, *np.ones(19)]
    assert false_alarm_rate(novel, [0.0]) == 0.0
    assert false_alarm_rate(novel[:-1], [0.0]) == 1.0


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(UsageError, match="one of each at least"):
        auroc([], [1.0])
    with pytest.raises(NotFiniteError, match="NaN or infinite"):
        auroc([1.0], [float("nan")])
    with pytest.raises(ParameterError, match="'detection'"):
        false_alarm_rate([1.0], [0.0], detection=1.0)


def test_votes_count_as_repeated_scores_do() -> None:
    novel, known = [3.0, 1.0, 2.0], [0.0, 2.0, 1.0, 5.0]
    repeated = auroc(np.repeat(novel, [1, 2, 3]), np.repeat(known, [2, 1, 3, 1]))
    assert auroc(novel, known, novel_votes=[1, 2, 3], known_votes=[2, 1, 3, 1]) == pytest.approx(repeated)
