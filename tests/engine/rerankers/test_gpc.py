"""GPC against scikit-learn, by hand, and where there is nothing to classify."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from readbench.benchmark.protocol import load_task
from readbench.engine.method import Method
from readbench.engine.protocols import Pool
from readbench.engine.ranking import rank
from readbench.engine.rerankers import GaussianProcess, _gpc as gpc
from readbench.engine.rerankers._gpc import (
    Kernel,
    Space,
    cosines,
    covariance,
    expected_logistic,
    one_vs_rest,
    variances,
)
from readbench.engine.spec import build_source
from readbench.engine.vectors import VectorFolder
from readbench.testing import sample_pool
from research.speed.contests import DEPTH, sklearn_probabilities
from tests.engine.rerankers.pools import pool_of, reordered
from tests.naive import rerank as naive

KERNELS: tuple[Kernel, ...] = ("laplacian", "linear", "rbf")
LARGEST = 10
SHAPES = ("plain", "separate", "duplicates", "identical", "rare", "singletons")


def random_problem(rng: np.random.Generator, shape: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit points, their classes (at least two), and two new points."""
    size = int(rng.integers(2, 5 if shape == "singletons" else LARGEST + 1))
    count = size if shape == "singletons" else min(size, int(rng.choice([2, 2, 3])))
    classes = rng.permutation(np.r_[np.arange(count), rng.integers(0, count, size - count)])
    if shape == "rare":
        classes = (np.arange(size) == 0).astype(np.int64)
    points = rng.standard_normal((size + 2, int(rng.integers(1, 9))))
    if shape == "separate":
        points[:size] += 8 * rng.standard_normal((count, points.shape[1]))[classes]
    if shape == "duplicates":
        points = points[rng.integers(0, 3, len(points))]
    if shape == "identical":
        points[:size] = points[0]
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points[:size], classes, points[size:]


@pytest.mark.parametrize("count", [66, pytest.param(334, marks=pytest.mark.long)])
def test_probabilities_of_many_pools_are_those_of_scikit_learn(count: int) -> None:
    """All problems in one stack: pools of different size lie side by side, the missing points left out."""
    rng = np.random.default_rng(0)
    for kernel in KERNELS:
        problems = [random_problem(rng, SHAPES[i % len(SHAPES)]) for i in range(count)]
        classes = np.full((len(problems), LARGEST), -1)
        square, cross = np.ones((len(problems), LARGEST, LARGEST)), np.ones((len(problems), LARGEST, 2))
        prior = np.empty((len(problems), 2))
        for i, (points, own, new) in enumerate(problems):
            size = len(points)
            classes[i, :size] = own
            square[i, :size, :size] = covariance(points[None], points[None], kernel)[0]
            cross[i, :size] = covariance(points[None], new[None], kernel)[0]
            prior[i] = variances(new[None], kernel)[0]
        found = one_vs_rest(square, cross, prior, classes, LARGEST)
        for row, (points, own, new) in zip(found, problems, strict=True):
            expected = naive.class_probabilities(points, own.tolist(), new, kernel)
            for c in range(LARGEST):
                np.testing.assert_allclose(row[c], expected.get(c, np.zeros(2)), rtol=0, atol=1e-6)


def real_pool(name: str, method: str, root: Path, cache: Path) -> Pool:
    """The nearest items of some queries of a real task, at 20 % pollution."""
    task = load_task(build_source(name), seed=0, root=root, cache=cache)
    corpus, queries = task.corpus_at(20), task.queries[:30]
    fitted = Method(method, vectors=VectorFolder(cache)).fit(corpus, task.normals)
    asked = fitted.ask(queries)
    scores = asked.base
    top = rank(scores, DEPTH)
    labels = np.broadcast_to(corpus.labels, scores.shape)
    best = np.take_along_axis(scores, top, axis=1)
    return Pool(top, best, asked.views, labels, np.arange(len(corpus)), fitted.similarity())


@pytest.mark.parametrize("name", ["skab", "rcaeval"])
def test_probabilities_of_real_pools_are_those_of_scikit_learn(name: str, real_data: Path, private_cache: Path) -> None:
    pool = real_pool(name, "rocket", real_data, private_cache)
    np.testing.assert_allclose(GaussianProcess().rerank(pool), sklearn_probabilities(pool), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("k", "depth", "labelled"), [(20, 20, 1.0), (20, 20, 0.6), (8, 25, 0.7), (30, 12, 1.0)])
def test_scores_are_those_of_the_naive_version(kernel: Kernel, k: int, depth: int, labelled: float) -> None:
    pool = sample_pool(3, queries=12, depth=depth, labelled=labelled)
    found = GaussianProcess(k=k, kernel=kernel).rerank(pool)
    for row, candidates, scores, labels, query in zip(
        found, pool.candidates, pool.scores, pool.labels, pool.queries.astype(np.float64), strict=True
    ):
        vectors = pool.items[candidates].astype(np.float64)
        expected = naive.gpc(scores.tolist(), labels.tolist(), vectors, query, k, 0.95, kernel)
        np.testing.assert_allclose(row, expected, atol=1e-6)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = sample_pool(4, queries=10, depth=30, labelled=0.5)
    whole = GaussianProcess(k=10).rerank(pool)
    monkeypatch.setattr(gpc, "MAX_BLOCK_NUMBERS", 1)
    np.testing.assert_allclose(GaussianProcess(k=10).rerank(pool), whole, atol=1e-7)


def test_two_points_of_two_classes_by_hand() -> None:
    """Independent points, the query on the second: the mode solves f = 1 - logistic(f) there."""
    f = 0.4
    for _ in range(100):
        f = 1 - expit(f)
    curvature = expit(f) * (1 - expit(f))
    chance = float(expected_logistic(np.array(f), np.array(1 - curvature / (1 + curvature))))
    found = one_vs_rest(np.eye(2)[None], np.array([[[0.0], [1.0]]]), np.ones((1, 1)), np.array([[0, 1]]), 2)
    assert found.ravel().tolist() == pytest.approx([1 - chance, chance], abs=1e-9)


def test_candidates_of_the_query_s_class_come_first_in_base_order() -> None:
    vectors: list[list[float]] = [[-1, 0.1], [1, 0.1], [-1, 0.2], [1, 0.2], [-1, 0], [1, 0]]
    pool = pool_of([1, 2, 1, 2, 1, 2], vectors, query=[1, 0.05])
    assert reordered(pool, GaussianProcess().rerank(pool)) == [[1, 3, 5, 0, 2, 4]]


def test_an_unlabelled_candidate_is_placed_by_what_it_looks_like() -> None:
    vectors: list[list[float]] = [[-1, 0.1], [-1, 0], [1, 0.1], [1, 0], [-1, 0.05], [1, 0.05]]
    pool = pool_of([1, 1, 2, 2, -1, -1], vectors, query=[1, 0.02])
    scores = GaussianProcess().rerank(pool)[0]
    assert scores[2] == scores[3] > scores[5] > scores[4] > scores[0] == scores[1]


def test_a_class_unseen_in_the_window_comes_last() -> None:
    pool = pool_of([1, 2, 3], [[1, 0], [0, 1], [1, 0.1]])
    scores = GaussianProcess(k=2).rerank(pool)
    assert scores[0, 2] == 0
    assert scores[0, :2].sum() == pytest.approx(1)


def test_the_window_is_the_pool_unless_it_is_set() -> None:
    pool = sample_pool(5, items=60, depth=50)
    wide, set_to_it = GaussianProcess(pool=50), GaussianProcess(k=50, pool=50)
    np.testing.assert_array_equal(wide.rerank(pool), set_to_it.rerank(pool))
    assert not np.array_equal(wide.rerank(pool), GaussianProcess(k=20, pool=50).rerank(pool))


def test_beyond_the_window_labels_are_used_but_not_learned_from() -> None:
    """Scope corpus: the classifier of the first k also scores everything below."""
    pool = sample_pool(5, depth=30)
    deep = GaussianProcess(k=10, scope="corpus").rerank(pool)
    short = replace(pool, candidates=pool.candidates[:, :10], scores=pool.scores[:, :10])
    np.testing.assert_allclose(deep[:, :10], GaussianProcess(k=10).rerank(short), atol=1e-7)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("labels", "vectors"),
    [
        ([3, 3, 3], [[1, 0], [0, 1], [1, 1]]),
        ([0, 0, 0], [[1, 0], [0, 1], [1, 1]]),
        ([3, -1, -1], [[1, 0], [0, 1], [1, 1]]),
        ([-1, -1, -1], [[1, 0], [0, 1], [1, 1]]),
        ([1, 2, 1], [[2, 1], [4, 2], [6, 3]]),
        ([1, 2, -1], [[2, 1], [4, 2], [0, 3]]),
        ([1, 2, 3], [[0, 0], [0, 0], [0, 0]]),
    ],
    ids=["one class", "all normal", "one label", "no label", "one direction", "one labelled direction", "all zero"],
)
def test_where_nothing_can_be_told_apart_the_base_scores_stay(
    kernel: Kernel, labels: list[int], vectors: list[list[float]]
) -> None:
    pool = pool_of(labels, vectors)
    np.testing.assert_array_equal(GaussianProcess(kernel=kernel).rerank(pool), pool.scores)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_query_of_length_zero_and_points_on_top_of_each_other_are_no_trouble(kernel: Kernel) -> None:
    pool = pool_of([1, 2, 1, 2, -1], [[1, 0], [1, 0], [0, 1], [0, 0], [0, 0]], query=[0, 0])
    assert np.isfinite(GaussianProcess(kernel=kernel).rerank(pool)).all()


def test_the_mean_of_a_logistic_is_that_of_an_integral() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    for mean, variance in [(0.0, 1.0), (1.5, 0.0), (-2.0, 0.5), (4.0, 3.0)]:
        exact = (expit(mean + np.sqrt(variance) * nodes) * weights).sum() / weights.sum()
        assert expected_logistic(np.array(mean), np.array(variance)) == pytest.approx(exact, abs=5e-4)


def test_components_are_kept_until_they_explain_the_share_asked_for() -> None:
    vectors = np.random.default_rng(0).standard_normal((1, 21, 40)) * np.linspace(3, 0.1, 40)
    products = vectors @ vectors.transpose(0, 2, 1)
    whole, part = Space.fit(products, 1.0).points, Space.fit(products, 0.9).points
    spread = (whole**2).sum(axis=(0, 1)) / (whole**2).sum()
    kept = part.shape[2]
    assert spread[: kept - 1].sum() <= 0.9 < spread[:kept].sum()
    np.testing.assert_allclose(np.linalg.norm(whole, axis=2), np.linalg.norm(vectors - vectors.mean(1), axis=2))


def test_items_of_the_window_project_onto_their_own_coordinates() -> None:
    pool = sample_pool(6)
    near = pool.candidates[:, :8]
    inner, outer = cosines(pool.items, near, pool.queries, near[:, ::-1])
    space = Space.fit(inner, 0.95)
    np.testing.assert_allclose(space.project(outer), space.points[:, -2::-1], atol=1e-9)
