"""Euclidean distances are those of the differences, however near two rows are to each other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.retrievers import top_k
from readbench.engine.retrievers._euclidean import euclidean_distances
from tests.naive import euclidean as naive

Floats = NDArray[np.float32]


def rows_of(kind: str, shape: tuple[int, int], seed: int) -> Floats:
    """Rows that make an expanded square cancel in one way or another."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    kinds = {
        "plain": values,
        "two tight clusters": 1e-6 * values + np.where(rng.random((shape[0], 1)) < 0.5, -1, 1),
        "far from zero": values + 1e4,
        "one outlier": np.where(np.arange(shape[0])[:, None] == 0, 1e6, values),
        "all scales": values * 10.0 ** rng.integers(-12, 12, (shape[0], 1)),
        "mostly zero": np.where(rng.random(shape) < 0.9, 0, values),
        "constant": np.ones(shape),
    }
    return kinds[kind].astype(np.float32)


@pytest.mark.parametrize(
    "kind",
    ["plain", "two tight clusters", "far from zero", "one outlier", "all scales", "mostly zero", "constant"],
)
@pytest.mark.parametrize(("count", "items", "width"), [(1, 1, 1), (3, 33, 7), (70, 40, 64), (5, 30, 1025)])
def test_distances_are_those_of_the_differences(kind: str, count: int, items: int, width: int) -> None:
    left, right = rows_of(kind, (count, width), 1), rows_of(kind, (items, width), 2)
    np.testing.assert_array_max_ulp(euclidean_distances(left, right), naive.euclidean_distances(left, right), 1)


def test_near_rows_are_told_apart_and_equal_ones_are_at_zero() -> None:
    row = np.random.default_rng(0).standard_normal(512).astype(np.float32)
    near = row.copy()
    near[7] = np.nextafter(near[7], np.float32(9))
    corpus = np.stack([-row, near, row, 3 * row])
    found = euclidean_distances(row[None], corpus)[0]
    assert found[2] == 0
    assert found[1] == np.float32(near[7] - row[7]) > 0


def test_the_matrix_has_the_scores_of_the_search() -> None:
    corpus, queries = rows_of("two tight clusters", (200, 96), 3), rows_of("two tight clusters", (9, 96), 4)
    scores, hits = -euclidean_distances(queries, corpus), top_k(queries, corpus, 20)
    np.testing.assert_array_max_ulp(np.take_along_axis(scores, hits.indices, axis=1), hits.scores, 1)


def test_no_rows_make_an_empty_matrix() -> None:
    assert euclidean_distances(np.zeros((3, 4), np.float32), np.zeros((0, 4), np.float32)).shape == (3, 0)
