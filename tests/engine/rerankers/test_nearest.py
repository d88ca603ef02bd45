"""Few labels: the nearest incidents, their calibration, and a list that they correct instead of replacing it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.protocols import Pool, View, unit_vectors
from readbench.engine.ranking import rank
from readbench.engine.rerankers import Verdict
from readbench.engine.rerankers._nearest import PRIOR_RIGHT, Incidents, count_incidents, softmax
from readbench.engine.rerankers._opinion import Calibration
from readbench.engine.rerankers._ridge import fit_verdict
from readbench.engine.windows import NORMAL, UNLABELLED
from tests.engine.rerankers.test_verdict import two_views, with_labels
from tests.naive import nearest as naive


def cases(seed: int, count: int = 18) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int64]]:
    """Likenesses, labels and recordings; the last class has one recording, and two classes share a recording."""
    rng = np.random.default_rng(seed)
    vectors = unit_vectors(rng.standard_normal((count, 5)).astype(np.float32)).astype(np.float64)
    labels = np.repeat(np.array([1, 2, 5], np.int32), count // 3)
    groups = np.concatenate([rng.integers(0, 4, count - count // 3), np.full(count // 3, 9)])
    return vectors @ vectors.T, labels, groups


@pytest.mark.parametrize("seed", range(6))
def test_nearness_is_that_of_the_formula(seed: int) -> None:
    kernel, labels, groups = cases(seed)
    likeness = np.random.default_rng(seed).uniform(-1, 1, (7, len(labels)))
    incidents = Incidents.of(kernel, labels, groups)
    everything = [*range(len(labels))]
    expected = naive.nearness(likeness, kernel, labels.tolist(), groups.tolist(), lambda _: everything)
    np.testing.assert_allclose(incidents.nearness(likeness), expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_a_held_out_case_is_compared_with_other_recordings(seed: int) -> None:
    kernel, labels, groups = cases(seed)

    def allowed(case: int) -> list[int]:
        others = {own for own, label in zip(groups, labels, strict=True) if label == labels[case]}
        alone = len(others) == 1
        same = groups == groups[case]
        rows = np.flatnonzero(~same | (alone & (labels == labels[case])))
        return [row for row in rows.tolist() if row != case]

    incidents = Incidents.of(kernel, labels, groups)
    expected = naive.nearness(kernel, kernel, labels.tolist(), groups.tolist(), allowed)
    np.testing.assert_allclose(incidents.held_out(kernel, groups), expected, atol=1e-9)


def test_the_fewer_incidents_the_more_the_nearest_counts() -> None:
    kernel, labels, groups = cases(0)
    few = Incidents.of(kernel, labels, labels.astype(np.int64))
    many = Incidents.of(kernel, labels, np.arange(len(labels)))
    assert [few.weight, few.ridge_weight] == pytest.approx([1.0, 0.16])
    assert [many.weight, many.ridge_weight] == pytest.approx([(2.5 / 6) ** 2, 1.0])
    assert count_incidents(labels, groups) == len({*zip(labels.tolist(), groups.tolist(), strict=True)})


def test_without_a_class_of_several_recordings_the_prior_alone_calibrates() -> None:
    kernel, labels, _ = cases(1)
    incidents = Incidents.of(kernel, labels, labels.astype(np.int64))
    logits = 8.0 * np.eye(3)[np.repeat([0, 1, 2], 6)] + np.random.default_rng(0).normal(size=(18, 3))
    stated = softmax(incidents.calibrate(logits) * logits).max(axis=1)
    assert stated.mean() == pytest.approx(PRIOR_RIGHT, abs=0.05)


def test_held_out_cases_that_are_right_outvote_the_prior() -> None:
    kernel, labels, _ = cases(1, 180)
    incidents = Incidents.of(kernel, labels, np.arange(180))
    logits = 4.0 * np.eye(3)[np.repeat([0, 1, 2], 60)]
    assert softmax(incidents.calibrate(logits) * logits).max(axis=1).mean() > 0.95


def fewer(pool: Pool, known: int) -> Pool:
    """The pool with the labels of so many recordings of two windows."""
    labels = pool.corpus_labels[0].copy()
    labels[2 * known :] = UNLABELLED
    return with_labels(pool, labels)


@pytest.mark.parametrize("views", ["chosen", "pooled"])
def test_a_lesson_learned_ahead_ranks_as_one_learned_on_the_way(views: str) -> None:
    pool = fewer(two_views(4), 9)
    verdict = Verdict(views=views, spread=0.3, order="odds")  # type: ignore[arg-type]
    lesson = verdict.learn([unit_vectors(view.items) for view in pool.views], pool.corpus_labels[0], pool.groups)
    assert lesson is not None
    ahead = verdict.rerank_by(lesson.at([unit_vectors(view.queries) for view in pool.views]), pool)
    np.testing.assert_allclose(ahead, verdict.rerank(pool), atol=1e-6)


def test_names_of_one_fault_type_leave_the_list_as_it_was() -> None:
    pool = two_views(5)
    labels = np.where(pool.corpus_labels[0] == 1, 1, UNLABELLED).astype(np.int32)
    found = Verdict(order="odds").rerank(with_labels(pool, labels))
    np.testing.assert_array_equal(rank(found), rank(pool.scores))


def test_labels_that_tell_nothing_leave_the_list_as_it_was() -> None:
    pool = two_views(6)
    nothing = tuple(View(np.ones_like(view.queries), np.ones_like(view.items)) for view in pool.views)
    labels = np.where(np.arange(40) < 20, 1 + np.arange(40) % 2, UNLABELLED).astype(np.int32)
    found = Verdict(order="odds").rerank(with_labels(replace(pool, views=nothing), labels))
    silent = np.take_along_axis(np.broadcast_to(labels, pool.candidates.shape), pool.candidates, axis=1) == UNLABELLED
    for row, base, unknown in zip(found, pool.scores, silent, strict=True):
        np.testing.assert_array_equal(rank(row[unknown][None]), rank(base[unknown][None]))


def test_many_labels_decide_and_known_normals_come_last() -> None:
    pool = two_views(7, items=120)
    order = rank(Verdict(order="odds").rerank(pool))
    sorted_labels = np.take_along_axis(
        np.take_along_axis(pool.labels, order, axis=1), order * 0 + np.arange(120), axis=1
    )
    assert all((np.diff((row == NORMAL).astype(int)) >= 0).all() for row in sorted_labels)


def test_opinions_state_the_posterior_that_orders_the_list() -> None:
    pool = fewer(two_views(8), 8)
    views = tuple(View(unit_vectors(view.queries), unit_vectors(view.items)) for view in pool.views)
    labels = pool.corpus_labels[0]
    verdict = fit_verdict(views, np.flatnonzero(labels > 0), labels, pool.groups, nearest=True)
    assert Calibration.of(verdict).exponent == 1.0
