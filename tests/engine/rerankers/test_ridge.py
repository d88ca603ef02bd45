"""The closed forms against fitting again, and what the choice of penalty and temperature goes by."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import pytest

from readbench.engine.rerankers._ridge import (
    PENALTIES,
    SELF_KERNEL,
    TEMPERATURES,
    RidgePool,
    case_weights,
    find_single_group_cases,
    fit_novelty,
    fit_ridge,
    held_out_blocks as blocks_of,
)
from tests.naive import ridge as naive


@dataclass(frozen=True)
class Problem:
    kernel: np.ndarray
    labels: np.ndarray
    groups: np.ndarray

    def without(self, rows: list[int]) -> list[int]:
        return [i for i in range(len(self.labels)) if i not in rows]


def problem(seed: int, *, size: int = 24, classes: int = 3, groups: int = 8, shape: str = "plain") -> Problem:
    rng = np.random.default_rng(seed)
    labels = np.r_[np.arange(classes), rng.integers(0, classes, size - classes)] + 1
    if shape == "imbalanced":
        labels = np.r_[np.full(size - 3, 1), 2, 2, 2]
    owners = rng.integers(0, groups, size)
    if shape == "one group a class":
        owners = labels.copy()
    if shape == "some alone":
        owners = np.where(labels == 1, 0, owners)
    points = rng.standard_normal((classes + 1, 5))[labels - 1] + 0.8 * rng.standard_normal((size, 5))
    if shape == "identical":
        points[:] = points[0]
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return Problem(points @ points.T, labels.astype(np.int32), owners)


SHAPES = ("plain", "imbalanced", "one group a class", "some alone", "identical")


def refitted(given: Problem, penalty: float) -> np.ndarray:
    """Decision values of each case by a ridge fitted without its block; weights are those of all cases."""
    labels = given.labels.tolist()
    wanted, weight = naive.targets(labels), naive.weights(labels)
    found = np.empty_like(wanted)
    for rows in naive.blocks(labels, given.groups.tolist()):
        rest = given.without(rows)
        square, cross = given.kernel[np.ix_(rest, rest)], given.kernel[np.ix_(rows, rest)]
        found[rows] = naive.decision(square, cross, wanted[rest], weight[rest], penalty)
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_penalty_temperature_and_posteriors_are_those_of_fitting_again(seed: int, shape: str) -> None:
    given = problem(seed, shape=shape)
    labels = given.labels.tolist()
    weight = naive.weights(labels)
    trials = {}
    for penalty in PENALTIES:
        decision = refitted(given, penalty)
        for temperature in TEMPERATURES:
            posterior = naive.softmax(temperature * decision)
            trials[penalty, float(temperature)] = (naive.loss(posterior, labels, weight), posterior)
    least = min(value for value, _ in trials.values())
    ridge = fit_ridge(given.kernel, given.labels, given.groups)
    assert ridge.loss == pytest.approx(least)
    loss, posterior = trials[ridge.penalty, ridge.temperature]
    assert loss == pytest.approx(least)
    np.testing.assert_allclose(ridge.held_out, posterior, atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_posteriors_of_new_cases_are_those_of_the_plain_ridge(shape: str) -> None:
    given = problem(5, shape=shape)
    labels = given.labels.tolist()
    ridge = fit_ridge(given.kernel, given.labels, given.groups)
    cross = np.random.default_rng(0).uniform(-1, 1, (7, len(labels)))
    decision = naive.decision(given.kernel, cross, naive.targets(labels), naive.weights(labels), ridge.penalty)
    np.testing.assert_allclose(ridge.posterior(cross), naive.softmax(ridge.temperature * decision), atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_pool_of_one_ridge_is_that_ridge_and_of_two_their_mean(shape: str) -> None:
    given, other = problem(5, shape=shape), problem(9)
    kernels = [given.kernel, given.kernel + other.kernel]
    ridges = [fit_ridge(kernel, given.labels, given.groups) for kernel in kernels]
    cross = [kernel[:7] for kernel in kernels]
    alone = RidgePool.of(ridges[:1], given.labels)
    if shape != "identical":  # there the temperature is at the end of its range, and a second one goes on
        np.testing.assert_allclose(alone.posterior(cross[:1]), ridges[0].posterior(cross[0]), atol=1e-7)
        np.testing.assert_allclose(alone.held_out, ridges[0].held_out, atol=1e-7)
    pool = RidgePool.of(ridges, given.labels)
    mean = np.mean(
        [np.log(np.maximum(ridge.posterior(own), 1e-300)) for ridge, own in zip(ridges, cross, strict=True)], axis=0
    )
    np.testing.assert_allclose(pool.posterior(cross), naive.softmax(pool.temperature * mean), atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_others_leave_unexplained_is_the_variance_without_the_block(shape: str) -> None:
    given = problem(6, shape=shape)
    labels, penalty = given.labels.tolist(), 0.1
    weight = naive.weights(labels)
    expected = np.empty(len(labels))
    for rows in naive.blocks(labels, given.groups.tolist()):
        rest = given.without(rows)
        square, cross = given.kernel[np.ix_(rest, rest)], given.kernel[np.ix_(rows, rest)]
        expected[rows] = naive.variance(square, cross, np.ones(len(rows)), weight[rest], penalty)
    reach = fit_novelty(given.kernel, given.labels, given.groups, penalty)
    np.testing.assert_allclose(reach.held_out, expected / SELF_KERNEL, atol=1e-9)
    cross = given.kernel[:4] * 0.9
    asked = naive.variance(given.kernel, cross, np.ones(4), weight, penalty)
    np.testing.assert_allclose(reach.unexplained_share(cross), asked / SELF_KERNEL, atol=1e-9)


def test_a_case_again_is_explained_and_something_unlike_all_is_not() -> None:
    given = problem(7)
    reach = fit_novelty(given.kernel, given.labels, given.groups, 0.003)
    assert reach.unexplained_share(given.kernel).max() < 0.01
    assert reach.unexplained_share(np.full((1, len(given.labels)), 0.0))[0] > 0.3


def test_blocks_hold_each_case_once_and_never_a_whole_class() -> None:
    for seed in range(20):
        given = problem(seed, groups=4, shape="some alone")
        codes = given.labels.astype(np.intp) - 1
        found = [rows.tolist() for rows in blocks_of(codes, given.groups)]
        assert found == naive.blocks(given.labels.tolist(), given.groups.tolist())
        assert sorted(chain.from_iterable(found)) == list(range(len(codes)))
        for rows in found:
            rest = given.without(rows)
            assert {codes[i] for i in rows if (codes == codes[i]).sum() > 1} <= set(codes[rest].tolist())


def test_cases_are_alone_where_their_class_has_one_group() -> None:
    found = find_single_group_cases(np.array([0, 0, 1, 1, 2]), np.array([5, 5, 5, 6, 6]))
    assert found.tolist() == [True, True, False, False, True]


def test_rare_classes_weigh_more_but_not_as_much_as_they_are_rarer() -> None:
    np.testing.assert_allclose(case_weights(np.array([0, 0, 0, 0, 1])), naive.weights([1, 1, 1, 1, 2]))
    weights = case_weights(np.repeat([0, 1], [90, 10]))
    assert weights[-1] / weights[0] == pytest.approx(3.0)


def test_one_class_is_certain() -> None:
    ridge = fit_ridge(np.eye(3), np.full(3, 4, np.int32), np.arange(3))
    assert ridge.classes.tolist() == [4]
    np.testing.assert_array_equal(ridge.posterior(np.ones((2, 3))), np.ones((2, 1)))
    np.testing.assert_array_equal(ridge.held_out, np.ones((3, 1)))


def test_one_case_and_two_cases_are_enough() -> None:
    assert fit_ridge(np.ones((1, 1)), np.array([2], np.int32), np.zeros(1, np.int64)).posterior(np.ones((1, 1))) == 1.0
    ridge = fit_ridge(np.eye(2), np.array([1, 2], np.int32), np.array([0, 1]))
    posterior = ridge.posterior(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    assert posterior[0, 0] > 0.5 > posterior[1, 0]
    assert posterior[2, 0] == pytest.approx(0.5)


def test_identical_points_leave_the_classes_undecided() -> None:
    labels = np.array([1, 1, 2, 2], np.int32)
    posterior = fit_ridge(np.ones((4, 4)), labels, np.arange(4)).posterior(np.ones((1, 4)))
    np.testing.assert_allclose(posterior, 0.5, atol=1e-9)


def test_holding_out_groups_sees_through_cases_that_only_know_their_own_recording() -> None:
    """Copies within a recording: case by case they look certain, group by group they are as unlike as they are."""
    rng = np.random.default_rng(0)
    points = np.repeat(rng.standard_normal((12, 30)), 4, axis=0)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    labels, groups = np.repeat(np.arange(12) % 2, 4).astype(np.int32), np.repeat(np.arange(12), 4)
    flattered = fit_ridge(points @ points.T, labels, np.arange(48))
    honest = fit_ridge(points @ points.T, labels, groups)
    assert flattered.held_out.max(axis=1).mean() > 0.95
    assert honest.held_out.max(axis=1).mean() < 0.7
