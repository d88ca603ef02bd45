"""Departures from normal operation: measures as a slow loop has them, and about as many false alarms as are stated."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from readbench.engine.departures import ROUGHNESS_SPANS, DepartureDetector, find_onset, measure
from readbench.errors import DataError

SPANS = (3, 8, 20)


def measure_slowly(values: np.ndarray, spans: tuple[int, ...]) -> np.ndarray:
    """As `measure`, step by step."""
    steps = values.shape[1] - spans[-1]
    found = np.full((len(spans) + len(ROUGHNESS_SPANS), len(values), steps), np.nan)
    for channel, row in enumerate(values):
        moves = np.diff(row, prepend=row[0])
        for step in range(steps):
            end = spans[-1] + step + 1
            for number, span in enumerate(spans):
                own = row[end - span : end]
                if np.isnan(own).sum() * 2 <= span:
                    found[number, channel, step] = np.nanmean(own)
            for number, place in enumerate(ROUGHNESS_SPANS, start=len(spans)):
                own = moves[end - spans[place] : end]
                if np.isnan(own).sum() * 2 <= spans[place]:
                    found[number, channel, step] = 0.5 * np.log(np.nanmean(own**2) + 1e-18)
    return found


@pytest.mark.parametrize("level", [0.0, 1e6])
def test_measures_are_those_of_a_slow_loop(level: float) -> None:
    values = np.random.default_rng(0).normal(level, 1.0, size=(3, 90))
    values[1, 30:34] = np.nan
    values[2, :50] = np.nan
    found, slow = measure(values, SPANS), measure_slowly(values, SPANS)
    assert (np.isnan(found) == np.isnan(slow)).all()
    np.testing.assert_allclose(found, slow, rtol=1e-6, atol=1e-6)


def learned(values: np.ndarray, stated: float) -> DepartureDetector:
    names = [str(i) for i in range(len(values))]
    return DepartureDetector.fit([values], names, window=64, step_s=1.0, false_alarms_a_day=stated)


@pytest.mark.parametrize("stated", [20.0, 100.0])
def test_normal_operation_departs_about_as_often_as_is_stated(stated: float) -> None:
    alarms = days = 0.0
    for seed in range(3):
        values = np.random.default_rng(seed).normal(size=(6, 64 * 1060))
        detector = learned(values[:, : 64 * 60], stated)
        above = np.flatnonzero(detector.scores(values[:, 64 * 60 :])[0] > 1.0)
        alarms += (np.diff(above, prepend=-64) > 32).sum()
        days += 64 * 1000 / 86400
    assert alarms / days <= 1.5 * stated
    assert alarms / days >= stated / 20


def test_what_moves_one_sided_or_no_longer_fits_departs() -> None:
    rng = np.random.default_rng(1)
    drive = np.cumsum(rng.normal(size=6000)) * 0.05
    values = np.stack([drive, 2 * drive, rng.normal(size=6000)]) + rng.normal(scale=0.1, size=(3, 6000))
    detector = learned(values[:, :5000], 1.0)
    assert (detector.scores(values[:, 5000:])[0] <= 1.0).all()
    level, unlike = values[:, 5000:].copy(), values[:, 5000:].copy()
    level[2, 500:] += 5.0
    unlike[1, 500:] -= 1.5
    for own in (level, unlike):
        scores, _ = detector.scores(own)
        first = int(np.flatnonzero(scores > 1.0)[0])
        assert 468 <= first <= 540, "steps after the memory"
        assert abs(find_onset(scores[: first + 1]) - 468) < 64


def test_a_detector_is_kept_as_it_was_and_says_what_it_needs() -> None:
    values = np.random.default_rng(2).normal(size=(2, 64 * 40))
    detector = learned(values, 1.0)
    again = DepartureDetector.of_json(json.loads(json.dumps(detector.to_json())))
    assert np.array_equal(again.scores(values)[0], detector.scores(values)[0])
    assert (replace(again, false_alarms_a_day=0.01).limits > detector.limits).all()
    with pytest.raises(DataError, match="at least 12"):
        learned(values[:, : 64 * 5], 1.0)
