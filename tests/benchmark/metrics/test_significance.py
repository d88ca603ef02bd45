from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.stats import friedmanchisquare

from readbench.benchmark.metrics import cliques, critical_difference, friedman, mean_ranks, nemenyi, wilcoxon_holm
from readbench.errors import NotFiniteError, ParameterError, UsageError
from tests.naive import metrics as naive

Table = NDArray[np.float64]
Test = Callable[..., object]

DEMSAR_RANKS = np.array(
    [  # C4.5, C4.5+m, C4.5+cf, C4.5+m+cf: ranks in Table 6 of Demšar (JMLR 7, 2006)
        [4, 3, 2, 1],
        [1, 2, 3, 4],
        [4, 1, 2, 3],
        [4, 1, 3, 2],
        [4, 2, 3, 1],
        [1, 2.5, 4, 2.5],
        [3, 2, 4, 1],
        [2.5, 2.5, 4, 1],
        [4, 3, 2, 1],
        [2.5, 2.5, 2.5, 2.5],
        [4, 2.5, 1, 2.5],
        [3, 2, 4, 1],
        [4, 1, 2, 3],
        [3, 1, 4, 2],
    ]
)


@st.composite
def tables(draw: st.DrawFn, *, ties: bool = True) -> Table:
    """Scores of a few methods on a few datasets, on a coarse grid or without any ties."""
    shape = draw(st.tuples(st.integers(2, 8), st.integers(2, 6)))
    if ties:
        return draw(arrays(np.float64, shape, elements=st.integers(0, 4).map(lambda i: i / 4)))
    rows = [draw(st.permutations(range(shape[1]))) for _ in range(shape[0])]
    return np.array(rows) / shape[1]


class TestMeanRanks:
    @given(tables())
    def test_agree_with_counting_who_is_better(self, scores: Table) -> None:
        np.testing.assert_allclose(mean_ranks(scores), naive.mean_ranks(scores.tolist()))

    def test_a_difference_in_the_last_bit_is_a_tie(self) -> None:
        """The same per-query values summed in another order."""
        tenths, shuffled = 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1
        assert tenths != shuffled
        assert mean_ranks([[tenths, shuffled]] * 2).tolist() == [1.5, 1.5]


class TestFriedman:
    def test_reproduces_demsars_worked_example(self) -> None:
        result = friedman(-DEMSAR_RANKS)
        np.testing.assert_allclose(result.mean_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
        assert result.statistic == pytest.approx(9.28, abs=0.01)
        assert (result.datasets, result.methods) == (14, 4)

    @given(tables())
    def test_is_the_printed_formula_also_with_ties(self, scores: Table) -> None:
        assert friedman(scores).statistic == pytest.approx(naive.friedman_statistic(scores.tolist()), abs=1e-9)

    @given(tables(ties=False).filter(lambda scores: scores.shape[1] > 2))
    def test_agrees_with_scipy_where_nothing_ties(self, scores: Table) -> None:
        expected = friedmanchisquare(*scores.T)
        result = friedman(scores)
        assert (result.statistic, result.p_value) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-9)

    def test_equal_methods_give_no_evidence(self) -> None:
        result = friedman(np.full((12, 5), 0.7))
        assert (result.statistic, result.p_value) == (0.0, 1.0)

    @given(tables(), st.integers(0, 2**31))
    def test_order_and_scale_of_datasets_do_not_matter(self, scores: Table, seed: int) -> None:
        rng = np.random.default_rng(seed)
        order, scale = rng.permutation(len(scores)), rng.uniform(0.5, 2, size=(len(scores), 1))
        assert friedman(scores[order] * scale).statistic == pytest.approx(friedman(scores).statistic)


class TestCriticalDifference:
    @pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
    def test_uses_the_critical_values_of_demsars_table_5(self, methods: int, q: float) -> None:
        scale = np.sqrt(methods * (methods + 1) / (6 * 14))
        assert critical_difference(methods, 14) / scale == pytest.approx(q, abs=1e-3)

    def test_level_ten_percent(self) -> None:
        """Table 5(a) of Demšar (2006), second row."""
        assert critical_difference(4, 14, alpha=0.10) == pytest.approx(2.291 * np.sqrt(20 / 84), abs=1e-3)

    def test_shrinks_with_more_datasets(self) -> None:
        assert critical_difference(5, 40) == pytest.approx(critical_difference(5, 10) / 2)

    @pytest.mark.parametrize("bad", [{"methods": 1, "datasets": 5}, {"methods": 5, "datasets": 1}])
    def test_a_single_method_or_dataset_is_refused(self, bad: dict[str, int]) -> None:
        with pytest.raises(ParameterError, match="Got 1 instead"):
            critical_difference(**bad)


class TestNemenyi:
    def test_reproduces_demsars_worked_example(self) -> None:
        """CD = 1.25 at .05 separates nobody (3.143 - 1.964 = 1.18); at .10 it is 1.12 and one pair differs."""
        strict, lenient = nemenyi(-DEMSAR_RANKS), nemenyi(-DEMSAR_RANKS, alpha=0.10)
        assert strict.critical_difference == pytest.approx(1.25, abs=0.005)
        assert lenient.critical_difference == pytest.approx(1.12, abs=0.005)
        assert not strict.different.any()
        assert strict.cliques == ((3, 1, 2, 0),)
        different = [(i, j) for i in range(4) for j in range(4) if lenient.different[i, j]]
        assert different == [(0, 1), (0, 3), (1, 0), (3, 0)]

    def test_clear_winner_stands_outside_every_clique(self) -> None:
        rng = np.random.default_rng(0)
        scores = rng.normal(0.5, 0.1, size=(60, 4)) + np.array([0, 0, 1, 0])
        result = nemenyi(scores)
        assert result.different[2].tolist() == [True, True, False, True]
        assert len(result.cliques) == 1
        assert set(result.cliques[0]) == {0, 1, 3}

    def test_nothing_differs_without_a_significant_friedman_test(self) -> None:
        """One method always first, one always last, eight alike: too little for chi-squared with 9 degrees."""
        result = nemenyi([[1.0, *[0.5] * 8, 0.0]] * 3)
        assert np.ptp(result.mean_ranks) > result.critical_difference
        assert result.friedman.p_value > result.alpha
        assert not result.different.any()


class TestCliques:
    @given(st.integers(2, 7), st.integers(0, 2**31))
    def test_are_the_maximal_runs_without_a_significant_pair(self, methods: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        upper = np.triu(rng.random((methods, methods)) < 0.25, k=1)
        ranks, different = rng.integers(1, 5, methods).astype(float), upper | upper.T
        found = cliques(ranks, different)
        assert len(found) == len(set(found))
        assert set(found) == naive.cliques(ranks.tolist(), different)

    def test_all_different_leaves_no_bar(self) -> None:
        assert cliques(np.array([0.0, 1.0, 2.0]), ~np.eye(3, dtype=bool)) == ()


@pytest.mark.parametrize("test", [mean_ranks, friedman, nemenyi, wilcoxon_holm])
class TestInputOfEveryTest:
    @pytest.mark.parametrize("shape", [(1, 3), (3, 1), (0, 0)])
    def test_too_few_datasets_or_methods(self, test: Test, shape: tuple[int, int]) -> None:
        with pytest.raises(UsageError, match="at least 2 datasets and 2 methods"):
            test(np.zeros(shape))

    def test_vector_instead_of_a_table(self, test: Test) -> None:
        with pytest.raises(UsageError, match="table of scores"):
            test([0.1, 0.2, 0.3])

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_missing_score_is_located(self, test: Test, value: float) -> None:
        scores = np.zeros((4, 3))
        scores[2, 1] = value
        with pytest.raises(NotFiniteError, match=r"row 2 \(dataset\), column 1 \(method\)"):
            test(scores)


@pytest.mark.parametrize("test", [nemenyi, wilcoxon_holm])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 5.0, float("nan")])
def test_level_outside_the_unit_interval_is_refused(test: Test, alpha: float) -> None:
    with pytest.raises(ParameterError, match="'alpha'"):
        test(np.zeros((4, 3)), alpha=alpha)
