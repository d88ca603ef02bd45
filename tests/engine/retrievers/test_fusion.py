from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from readbench.engine.method import Method
from readbench.engine.ranking import rank
from readbench.engine.retrievers import Cascade, ReciprocalRank, WeightedSum
from readbench.testing import sample_windows
from tests.naive import fusion as naive

Pair = tuple[list[float], list[float]]
few_values = st.sampled_from([0.0, 0.25, 0.5, 1.0])
pairs = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*[st.lists(few_values | st.floats(-5, 5, width=32), min_size=n, max_size=n)] * 2)
)


def matrices(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    return np.array([pair[0]], np.float32), np.array([pair[1]], np.float32)


@given(pairs, st.floats(0, 100, width=32))
def test_reciprocal_rank_is_the_paper_s(pair: Pair, k0: float) -> None:
    fused = ReciprocalRank(k0).combine(*matrices(pair))
    assert fused[0].tolist() == pytest.approx(naive.rrf(*pair, k0), rel=1e-5)


@given(pairs, st.floats(0, 1, width=32))
def test_weighted_sum_is_the_paper_s(pair: Pair, alpha: float) -> None:
    fused = WeightedSum(alpha).combine(*matrices(pair))
    assert fused[0].tolist() == pytest.approx(naive.weighted_sum(*pair, alpha), rel=1e-3, abs=1e-3)


@given(pairs, st.integers(1, 15))
def test_the_cascade_reorders_the_shortlist_and_nothing_else(pair: Pair, k: int) -> None:
    fused = Cascade(k).combine(*matrices(pair))
    assert rank(fused)[0].tolist() == naive.cascade(*pair, k)


def test_three_legs_are_fused_from_left_to_right() -> None:
    corpus, queries = sample_windows(12), sample_windows(4, seed=1)
    legs = [Method(m).fit(corpus, corpus[:0]).score(queries) for m in ("euclidean", "stats", "random")]
    expected = WeightedSum(0.5).combine(ReciprocalRank().combine(legs[0], legs[1]), legs[2])
    fused = Method("euclidean|stats|ws|random").fit(corpus, corpus[:0]).score(queries)
    np.testing.assert_array_equal(fused, expected)


def test_fusing_a_leg_with_itself_changes_nothing() -> None:
    corpus, queries = sample_windows(12), sample_windows(4, seed=1)
    alone = Method("euclidean").fit(corpus, corpus[:0]).score(queries)
    twice = Method("euclidean|euclidean").fit(corpus, corpus[:0]).score(queries)
    np.testing.assert_array_equal(rank(alone), rank(twice))
