"""Pooling views over several assets, against fitting every ridge again without each asset."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from readbench.engine.method import Method
from readbench.engine.protocols import View, unit_vectors
from readbench.engine.rerankers import Verdict
from readbench.engine.rerankers._ridge import POOLED_PENALTIES, TEMPERATURES, fit_verdict
from readbench.engine.windows import WindowSet
from tests.naive import ridge as naive

VIEWS = 2


def problem(seed: int) -> tuple[tuple[View, ...], np.ndarray, np.ndarray, np.ndarray]:
    """Two views of 24 cases, three classes, eight recordings on four assets; class 3 has one asset only."""
    rng = np.random.default_rng(seed)
    groups = np.arange(24) // 3
    assets = groups // 2
    labels = (rng.permutation([0, 1] * 4) + 1)[groups].astype(np.int32)
    labels[:6] = np.repeat([1, 2], 3)
    labels[assets == 3] = 3
    views = []
    for _ in range(VIEWS):
        items = rng.standard_normal((4, 5))[labels] + rng.standard_normal((24, 5))
        queries = rng.standard_normal((6, 5))
        views.append(View(unit_vectors(queries.astype(np.float32)), unit_vectors(items.astype(np.float32))))
    return tuple(views), labels, groups, assets


def held_out(kernel: np.ndarray, labels: np.ndarray, blocks: list[list[int]], penalty: float) -> np.ndarray:
    """Decision values of each case by a ridge fitted without its block."""
    wanted, weight = naive.targets(labels.tolist()), naive.weights(labels.tolist())
    found = np.empty_like(wanted)
    for rows in blocks:
        rest = [i for i in range(len(labels)) if i not in rows]
        square, cross = kernel[np.ix_(rest, rest)], kernel[np.ix_(rows, rest)]
        found[rows] = naive.decision(square, cross, wanted[rest], weight[rest], penalty)
    return found


def most_likely(logits: np.ndarray, labels: np.ndarray) -> float:
    weight = naive.weights(labels.tolist())
    losses = [naive.loss(naive.softmax(t * logits), labels.tolist(), weight) for t in TEMPERATURES]
    return float(TEMPERATURES[int(np.argmin(losses))])


def slow_posterior(
    views: tuple[View, ...], labels: np.ndarray, groups: np.ndarray, assets: np.ndarray, sees: list[bool]
) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors of the queries, of which some views see nothing, and of the cases held out by recording."""
    by_group = naive.blocks(labels.tolist(), groups.tolist())
    alone = np.array([len(set(assets[labels == label])) == 1 for label in labels])
    by_asset = naive.blocks(labels.tolist(), np.where(alone, 100 + groups, assets).tolist())
    asked, kept = [], []
    for size in range(1, VIEWS + 1):
        for chosen in combinations(range(VIEWS), size):
            kernel = np.mean([views[v].items.astype(float) @ views[v].items.T for v in chosen], axis=0)
            cross = np.mean([views[v].queries.astype(float) @ views[v].items.T for v in chosen], axis=0)
            for penalty in POOLED_PENALTIES:
                temperature = most_likely(held_out(kernel, labels, by_asset, penalty), labels)
                kept.append(temperature * held_out(kernel, labels, by_group, penalty))
                wanted, weight = naive.targets(labels.tolist()), naive.weights(labels.tolist())
                if all(sees[v] for v in chosen):
                    asked.append(temperature * naive.decision(kernel, cross, wanted, weight, penalty))
    mean = np.mean([k - np.log(np.exp(k).sum(axis=1, keepdims=True)) for k in kept], axis=0)
    last = most_likely(mean, labels)
    return naive.softmax(last * np.mean(asked, axis=0)), naive.softmax(last * mean)


@pytest.mark.parametrize("seed", range(3))
def test_pooled_posteriors_are_those_of_fitting_again(seed: int) -> None:
    views, labels, groups, assets = problem(seed)
    verdict = fit_verdict(views, np.arange(24), labels, groups, assets)
    queries, cases = slow_posterior(views, labels, groups, assets, [True, True])
    np.testing.assert_allclose(verdict.query_posterior(np.arange(6)), queries, atol=1e-5)
    np.testing.assert_allclose(verdict.held_out, cases, atol=1e-5)


def test_a_window_that_a_view_does_not_see_is_judged_by_the_others() -> None:
    views, labels, groups, assets = problem(4)
    blind = (views[0], View(np.zeros_like(views[1].queries), views[1].items))
    verdict = fit_verdict(blind, np.arange(24), labels, groups, assets)
    expected, _ = slow_posterior(blind, labels, groups, assets, [True, False])
    np.testing.assert_allclose(verdict.query_posterior(np.arange(6)), expected, atol=1e-5)


def test_windows_that_no_view_sees_stand_beside_those_that_all_see() -> None:
    views, labels, groups, assets = problem(3)
    sees = (np.arange(6) % 2)[:, None].astype(np.float32)
    mixed = tuple(View(view.queries * sees, view.items) for view in views)
    verdict = fit_verdict(mixed, np.arange(24), labels, groups, assets)
    expected, _ = slow_posterior(mixed, labels, groups, assets, [True, True])
    np.testing.assert_allclose(verdict.query_posterior(np.arange(6)), expected, atol=1e-5)


def test_what_a_view_sees_that_is_left_out_changes_nothing() -> None:
    views, labels, groups, assets = problem(5)
    half_seen = View(views[1].queries * (np.arange(6) % 2)[:, None].astype(np.float32), views[1].items.copy())
    half_seen.items[:13] = 0
    verdict = fit_verdict((views[0], half_seen), np.arange(24), labels, groups, assets)
    alone = fit_verdict(views[:1], np.arange(24), labels, groups, assets)
    np.testing.assert_array_equal(verdict.query_posterior(np.arange(6)), alone.query_posterior(np.arange(6)))


def test_a_view_that_sees_less_than_half_of_the_cases_is_left_out() -> None:
    views, labels, groups, assets = problem(5)
    items = views[1].items.copy()
    items[:13] = 0
    verdict = fit_verdict((views[0], View(views[1].queries, items)), np.arange(24), labels, groups, assets)
    assert verdict.chosen == (0,)


def test_on_one_asset_views_are_chosen_as_without() -> None:
    views, labels, groups, _ = problem(6)
    alone = fit_verdict(views, np.arange(24), labels, groups, np.zeros(24, np.int64))
    without = fit_verdict(views, np.arange(24), labels, groups)
    assert len(alone.experts) == 1
    np.testing.assert_array_equal(alone.held_out, without.held_out)


def test_votes_add_up_to_the_decision_values() -> None:
    views, labels, groups, assets = problem(7)
    verdict = fit_verdict(views, np.arange(24), labels, groups, assets)
    votes = np.array([[verdict.votes(q, k).sum() for k in range(3)] for q in range(6)])
    certainty = np.mean([expert.ridge.temperature for expert in verdict.experts])
    posterior = naive.softmax(verdict.temperature * certainty * votes)
    np.testing.assert_allclose(verdict.query_posterior(np.arange(6)), posterior, atol=1e-9)


@pytest.mark.parametrize(("assets", "views"), [(("a", "a"), 1), (("a", "b"), 2), (("", ""), 1)])
def test_rerankers_see_views_with_context_where_several_assets_are_known(assets: tuple[str, str], views: int) -> None:
    corpus = WindowSet.from_arrays(np.random.default_rng(8).normal(size=(2, 1, 12)), assets=assets)
    assert len(Method("raw|departure+verdict").fit(corpus).viewing) == views


RETRIEVED = np.linspace(1, 0, 24, dtype=np.float32)[None]


def test_where_labels_leave_the_type_open_the_nearest_case_comes_first() -> None:
    views, labels, groups, assets = problem(9)
    silent = tuple(View(np.zeros_like(view.queries), view.items) for view in views)
    verdict = fit_verdict(silent, np.arange(24), labels, groups, assets)
    order = np.random.default_rng(0).permutation(24)
    shared = np.full((1, 24), 1 / 3)
    found = Verdict(views="pooled").weigh(shared, verdict, labels[order][None], RETRIEVED)
    assert (np.diff(found[0]) < 0).all()
    alone = fit_verdict(silent, np.arange(24), labels, groups)
    assert np.ptp(Verdict().weigh(shared, alone, labels[order][None], RETRIEVED)) == 0


def test_a_certain_type_comes_before_the_nearest_case() -> None:
    views, labels, groups, assets = problem(10)
    verdict = fit_verdict(views, np.arange(24), labels, groups, assets)
    shared = np.where(np.arange(24) == 20, 1.0, 0.0)[None]
    assert Verdict(views="pooled").weigh(shared, verdict, labels[None], RETRIEVED)[0].argmax() == 20
