from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from readbench.engine.protocols import unit_vectors
from readbench.engine.retrievers import NormalResidual
from tests.naive import residual as naive

vectors = arrays(np.float32, (5, 4), elements=st.floats(-3, 3, width=16))


@given(vectors, arrays(np.float32, (7, 4), elements=st.floats(-3, 3, width=16)), st.integers(1, 9))
def test_residuals_are_those_of_the_equation(windows: np.ndarray, normals: np.ndarray, k: int) -> None:
    """Compared by cosine, and only where ties and vanishing residuals leave one answer."""
    found = NormalResidual(k).fit(normals).apply(windows)
    units = unit_vectors(normals)
    for row, own in zip(found, unit_vectors(windows), strict=True):
        similar = np.sort(units @ own)[::-1]
        if k < len(similar) and abs(similar[k - 1] - similar[k]) < 1e-3:
            continue
        if np.any(similar > 1 - 1e-4):
            continue
        expected = np.array(naive.residual(own.tolist(), units.tolist(), k))
        if np.linalg.norm(expected) > 0.5:
            assert row @ expected == pytest.approx(1.0, abs=0.05)


def test_a_window_in_the_pool_is_not_its_own_neighbour() -> None:
    pool = np.array([[1, 0], [0, 1]], np.float32)
    residual = NormalResidual(k=1).fit(pool).apply(pool[:1])
    np.testing.assert_allclose(residual, [[2**-0.5, -(2**-0.5)]], atol=1e-6)


def test_fewer_normals_than_k_are_all_used() -> None:
    pool = np.array([[1, 0, 0], [0, 1, 0]], np.float32)
    window = np.array([[0, 0, 2]], np.float32)
    np.testing.assert_allclose(
        NormalResidual(k=30).fit(pool).apply(window), unit_vectors(np.array([[-0.5, -0.5, 1]])), atol=1e-6
    )


def test_without_normals_the_residual_is_the_direction_itself() -> None:
    window = np.array([[3, 4]], np.float32)
    np.testing.assert_allclose(NormalResidual().fit(window[:0]).apply(window), [[0.6, 0.8]], atol=1e-6)


def test_a_window_like_its_normals_has_a_zero_residual_and_no_nan() -> None:
    pool = np.tile(np.array([[1, 1]], np.float32), (3, 1)) * np.array([[1], [2], [3]], np.float32)
    residual = NormalResidual(k=2).fit(pool + 1e-9).apply(np.array([[2, 2], [0, 0]], np.float32))
    assert np.isfinite(residual).all()


def test_rows_of_length_zero_stay_zero() -> None:
    assert unit_vectors(np.zeros((2, 3), np.float32)).tolist() == [[0, 0, 0], [0, 0, 0]]
