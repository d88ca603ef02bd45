"""Strangeness: clouds of decision values against a slow version, and what makes a window strange."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.common.calibration import auroc
from readbench.engine.protocols import View, unit_vectors
from readbench.engine.rerankers._novelty import (
    FOLDS,
    ClassGaussians,
    Clouds,
    Scale,
    centre_logs,
    log_odds_of_doubt,
    shrink_covariance,
)
from readbench.engine.rerankers._opinion import Calibration, give_opinions
from readbench.engine.rerankers._ridge import FittedVerdict, fit_verdict
from tests.naive import novelty as naive

Values = NDArray[np.float64]


def clouds_of(seed: int, shape: str) -> tuple[Values, NDArray[np.intp], NDArray[np.intp]]:
    """Values of three classes, of unequal sizes, in groups."""
    rng = np.random.default_rng(seed)
    codes = np.repeat([0, 1, 2], [12, 9, 1 if shape == "a class of one case" else 6])
    values = rng.standard_normal((len(codes), 4)) * [1.0, 2.0, 0.5, 1.0] + codes[:, None]
    if shape == "values that add up to zero":
        values -= values.mean(axis=1, keepdims=True)
    groups = np.zeros(len(codes), int) if shape == "one group" else rng.integers(0, 14, len(codes))
    return values, codes, groups


SHAPES = ["usual", "a class of one case", "values that add up to zero", "one group"]


@pytest.mark.parametrize("shape", SHAPES)
def test_surprisal_is_that_of_the_slow_version(shape: str) -> None:
    values, codes, groups = clouds_of(0, shape)
    asked = values[::5] + 0.1
    if shape == "values that add up to zero":
        asked = values[::5]
    found = ClassGaussians.of(values, codes, groups).surprisal(asked)
    slow = naive.surprisal(values, codes.tolist(), groups.tolist(), asked)
    np.testing.assert_allclose(found, slow, rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_held_out_surprisal_is_that_of_fitting_again(shape: str) -> None:
    values, codes, groups = clouds_of(1, shape)
    found = Clouds.of(values, codes, groups, np.ones(len(codes), bool))
    slow = naive.held_out_surprisal(values, codes.tolist(), groups.tolist(), FOLDS)
    np.testing.assert_allclose(found.held_out, slow, rtol=1e-6)


def test_shrinking_is_that_of_the_slow_version_and_stays_a_covariance() -> None:
    rng = np.random.default_rng(2)
    for rows in (rng.standard_normal((30, 5)), rng.standard_normal((3, 5)), np.zeros((4, 5)), np.ones((1, 5))):
        votes = rng.random(len(rows)) + 0.1
        found = shrink_covariance(rows, votes, len(rows))
        np.testing.assert_allclose(found, naive.shrunk(list(rows), votes.tolist(), len(rows)), atol=1e-12)
        assert np.linalg.eigvalsh(found).min() >= -1e-12


def test_a_long_recording_has_one_vote_for_the_scale() -> None:
    values, groups = np.array([0.0] * 98 + [3.0, 6.0]), np.array([0] * 98 + [1, 2])
    scale = Scale.of(values, groups)
    assert scale.mean == pytest.approx(3.0)
    assert scale.standardise(np.array([3.0]))[0] == pytest.approx(0.0)
    assert Scale.of(np.ones(4), np.arange(4)).standardise(np.array([7.0])).tolist() == [0.0]


def test_doubt_grows_with_the_odds_of_being_wrong() -> None:
    odds = log_odds_of_doubt(np.array([[1.0, 0.0], [0.9, 0.1], [0.6, 0.4], [0.5, 0.5]]))
    assert (np.diff(odds) > 0).all()
    assert np.isfinite(odds).all()


class TwoViews:
    """Three fault types that each of two views tells apart, and queries whose views agree or contradict each other."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        centres = 2.0 * rng.standard_normal((2, 3, 24))
        self.labels = np.repeat(np.arange(1, 4), 40).astype(np.int32)
        self.groups = np.arange(120) // 2
        first = np.repeat([0, 1, 2], 10)
        self.contradict = np.repeat([False, True], 30)
        told = np.concatenate([first, first]), np.concatenate([first, (first + 1) % 3])

        def draw(view: int, types: NDArray[np.intp]) -> NDArray[np.float32]:
            own = centres[view, types] + rng.standard_normal((len(types), 24))
            return unit_vectors(own.astype(np.float32))

        self.views = tuple(View(draw(v, told[v]), draw(v, np.repeat([0, 1, 2], 40))) for v in (0, 1))

    def judge(self, views: tuple[View, ...] | None = None) -> FittedVerdict:
        return fit_verdict(views or self.views, np.arange(120), self.labels, self.groups)


@pytest.fixture(scope="module")
def two() -> TwoViews:
    return TwoViews()


def test_views_that_contradict_each_other_are_strange(two: TwoViews) -> None:
    found = give_opinions(two.judge(), np.arange(60))
    strange = np.array([one.strangeness for one in found])
    assert auroc(strange[two.contradict], strange[~two.contradict]) > 0.98
    assert np.mean([one.novel for one in found[30:]]) > 0.8
    assert np.mean([one.novel for one in found[:30]]) < 0.15


def test_a_view_that_sees_nothing_of_a_query_is_left_out_of_its_clouds(two: TwoViews) -> None:
    blind = replace(two.views[1], queries=np.zeros_like(two.views[1].queries))
    judgement = two.judge((two.views[0], blind))
    _, sees = judgement.query_decisions(np.arange(60))
    assert sees.tolist() == [[True, False]] * 60
    strangeness = Calibration.of(judgement).strangeness
    assert strangeness.clouds(judgement, (0,)).gaussians.means.shape == (3, 3)
    assert strangeness.clouds(judgement, (0, 1)).gaussians.means.shape == (3, 6)
    assert np.isfinite(strangeness.measure(judgement, np.arange(60), judgement.query_posterior(np.arange(60)))).all()


def test_a_new_type_beside_known_ones_is_strange_and_the_view_that_shows_it_counts(two: TwoViews) -> None:
    """Queries point where no case does, in the first view; the second one shows noise, and is worth less."""
    rng = np.random.default_rng(3)
    noise = unit_vectors(rng.standard_normal((180, 24)).astype(np.float32))
    new = unit_vectors(-two.views[0].items[::4] + 0.05 * rng.standard_normal((30, 24)).astype(np.float32))
    asked = np.concatenate([new, two.views[0].queries[:30]])
    judgement = two.judge((replace(two.views[0], queries=asked), View(noise[:60], noise[60:])))
    strangeness = Calibration.of(judgement).strangeness
    assert strangeness.weights[0] > 4 * strangeness.weights[1]
    strange = np.array([one.strangeness for one in give_opinions(judgement, np.arange(60))])
    assert auroc(strange[:30], strange[30:]) > 0.9


def test_many_cases_are_measured_by_a_part_of_them(two: TwoViews, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readbench.engine.rerankers._novelty.MAX_REACH_CASES", 60)
    judgement = two.judge()
    strangeness = Calibration.of(judgement).strangeness
    assert len(strangeness.rows) == len(strangeness.held_out) == 60
    assert np.bincount(two.labels[strangeness.rows]).tolist() == [0, 20, 20, 20]
    found = np.array([one.strangeness for one in give_opinions(judgement, np.arange(60))])
    assert auroc(found[two.contradict], found[~two.contradict]) > 0.9


def test_logits_come_back_from_held_out_posteriors(two: TwoViews) -> None:
    """What queries and held-out cases are compared by has one scale."""
    judgement = two.judge()
    again = replace(judgement, views=tuple(View(view.items, view.items) for view in two.views))
    logits, sees = again.query_decisions(np.arange(120))
    assert sees.all()
    for own, expert in zip(logits, judgement.alone, strict=True):
        np.testing.assert_allclose(own.sum(axis=1), 0.0, atol=1e-6)
        posterior = np.exp(own) / np.exp(own).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(centre_logs(posterior), own, atol=1e-6)
        assert np.corrcoef(centre_logs(expert.ridge.held_out).ravel(), own.ravel())[0, 1] > 0.9


def test_few_cases_give_finite_strangeness(two: TwoViews) -> None:
    for rows in ([0], [0, 1], [0, 40], [0, 40, 41, 80]):
        views = tuple(View(view.queries, view.items[rows]) for view in two.views)
        judgement = fit_verdict(views, np.arange(len(rows)), two.labels[rows], two.groups[rows])
        found = give_opinions(judgement, np.arange(60), calibration=Calibration.of(judgement))
        assert np.isfinite([one.strangeness for one in found]).all()
        assert not any(one.novel for one in found)
