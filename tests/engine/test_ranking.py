from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from readbench.engine.ranking import rank
from readbench.errors import NotFiniteError, ParameterError, UsageError
from tests.benchmark.metrics.strategies import Scores, tied_scores
from tests.naive import metrics as naive


def assert_starts_the_stable_order(ranking: NDArray[np.int64], scores: Scores, depth: int) -> None:
    assert ranking.shape == (len(scores), min(depth, scores.shape[1]))
    assert ranking.tolist() == [naive.rank(row, depth) for row in scores.tolist()]


@settings(max_examples=200)
@given(tied_scores(), st.integers(1, 70))
def test_any_depth_is_the_start_of_the_full_stable_order(scores: Scores, depth: int) -> None:
    assert_starts_the_stable_order(rank(scores, depth), scores, depth)
    assert_starts_the_stable_order(rank(scores)[:, :depth], scores, depth)


@pytest.mark.parametrize(
    "unstable",
    [
        lambda scores, depth: np.argpartition(-scores, depth, axis=1)[:, :depth],
        lambda scores, depth: np.argsort(scores, axis=1, kind="stable")[:, ::-1][:, :depth],
        lambda scores, _: rank(scores),
    ],
    ids=["partial sort", "ascending order turned round", "depth forgotten"],
)
def test_the_order_check_notices_a_ranking_that_is_not_stable(unstable: Callable[..., NDArray[np.int64]]) -> None:
    scores = np.array([[0.0, 1.0, 1.0, 0.5, 1.0, 0.5, 0.5, 0.0]], np.float32)
    with pytest.raises(AssertionError):
        assert_starts_the_stable_order(unstable(scores, 5), scores, 5)


@pytest.mark.parametrize("depth", [None, 1, 3, 9])
@pytest.mark.parametrize(("queries", "items"), [(0, 5), (0, 0), (2, 0)])
def test_no_queries_or_no_items_give_an_empty_ranking(queries: int, items: int, depth: int | None) -> None:
    ranking = rank(np.empty((queries, items), np.float32), depth)
    assert ranking.shape == (queries, items if depth is None else min(depth, items))
    assert ranking.dtype == np.int64


def test_large_row_without_ties_agrees_with_a_full_sort() -> None:
    scores = np.random.default_rng(0).normal(size=(3, 20_000)).astype(np.float32)
    np.testing.assert_array_equal(rank(scores, 25), np.argsort(-scores, axis=1, kind="stable")[:, :25])


def test_constant_scores_keep_corpus_order() -> None:
    assert rank(np.zeros((2, 5000), np.float32), 4).tolist() == [[0, 1, 2, 3]] * 2


def test_depth_beyond_the_corpus_gives_the_whole_corpus() -> None:
    assert rank(np.array([[1.0, 2.0]]), 100).tolist() == [[1, 0]]


def test_positions_are_int64() -> None:
    assert rank(np.zeros((1, 3), np.float32), 2).dtype == rank(np.zeros((1, 3), np.float32)).dtype == np.int64


def test_nan_is_refused_and_its_query_named() -> None:
    scores = np.zeros((3, 4), np.float32)
    scores[2, 1] = np.nan
    with pytest.raises(NotFiniteError, match="query 2"):
        rank(scores, 1)


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((2, 2, 2)), np.zeros((2, 2), np.uint8)])
def test_anything_but_a_float_matrix_is_refused(bad: NDArray[Any]) -> None:
    with pytest.raises(UsageError, match="matrix"):
        rank(bad)


def test_depth_zero_is_refused() -> None:
    with pytest.raises(ParameterError, match="Got 0 instead"):
        rank(np.zeros((1, 2)), 0)
