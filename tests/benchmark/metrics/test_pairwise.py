from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from scipy import stats

from readbench.benchmark.metrics import holm, wilcoxon, wilcoxon_holm
from readbench.errors import NotFiniteError, ParameterError, UsageError
from tests.naive import metrics as naive

# Accuracy of C4.5 and of C4.5+m on 14 datasets, Table 2 of Demšar (JMLR 7, 2006).
C45 = [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.0, 0.940, 0.619, 0.972, 0.957]
C45_M = [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.0, 0.962, 0.666, 0.981, 0.978]


class TestWilcoxon:
    @given(st.lists(st.integers(-4, 4), min_size=2, max_size=9))
    def test_is_exact_with_ties_and_zeros(self, steps: list[int]) -> None:
        differences = [step / 4 for step in steps]
        assert wilcoxon(differences, [0.0] * len(steps)) == pytest.approx(naive.wilcoxon_p(differences), abs=1e-15)

    @pytest.mark.parametrize("pairs", [6, 12, 50])
    def test_agrees_with_scipys_exact_distribution_without_ties(self, pairs: int) -> None:
        a, b = np.random.default_rng(pairs).normal(size=(2, pairs))
        assert wilcoxon(a, b) == pytest.approx(stats.wilcoxon(a, b, method="exact").pvalue, rel=1e-9)

    def test_many_pairs_agree_with_scipys_normal_approximation(self) -> None:
        a, b = np.random.default_rng(1).normal(size=(2, 200))
        assert wilcoxon(a, b) == pytest.approx(stats.wilcoxon(a, b, method="asymptotic").pvalue)

    def test_approximation_is_close_where_it_takes_over(self) -> None:
        differences = np.random.default_rng(2).normal(0.3, size=50)
        approximate = stats.wilcoxon(differences, method="asymptotic").pvalue
        assert wilcoxon(differences, np.zeros(50)) == pytest.approx(approximate, rel=0.03)

    def test_demsars_two_classifiers(self) -> None:
        """Twelve differences are left, and 15 sign patterns of 4096 have a rank sum of 6.5 or less."""
        assert wilcoxon(C45, C45_M) == 2 * 15 / 4096
        assert naive.wilcoxon_p(np.round(np.subtract(C45, C45_M), 3).tolist()) == 2 * 15 / 4096

    def test_differences_equal_up_to_rounding_tie(self) -> None:
        """+.1, -.1, +.2 have ranks 1.5, 1.5, 3, although 0.3 - 0.2 is a little less than 0.1."""
        assert wilcoxon([0.1, 0.2, 0.2], [0.0, 0.3, 0.0]) == 2 * 3 / 8

    def test_equal_vectors_give_one(self) -> None:
        assert wilcoxon([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]) == 1.0

    @given(arrays(np.float64, (2, 10), elements=st.integers(0, 5).map(float)))
    def test_is_symmetric_in_the_two_methods(self, pair: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
        assert wilcoxon(pair[0], pair[1]) == wilcoxon(pair[1], pair[0])

    def test_unpaired_vectors_are_refused(self) -> None:
        with pytest.raises(UsageError, match="equal length"):
            wilcoxon([0.1, 0.2], [0.1, 0.2, 0.3])

    def test_single_pair_is_refused(self) -> None:
        with pytest.raises(UsageError, match="at least 2 pairs; got 1"):
            wilcoxon([0.1], [0.2])

    def test_nan_is_located(self) -> None:
        with pytest.raises(NotFiniteError, match="at pair 1"):
            wilcoxon([0.1, 0.2, 0.3], [0.1, np.nan, 0.3])


class TestHolm:
    def test_hand_computed_case(self) -> None:
        """4 x .01, 3 x .02, then 2 x .03 is less than .06 already reached, then 1 x .04 likewise."""
        assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])

    @given(st.lists(st.integers(0, 20).map(lambda i: i / 20), max_size=8))
    def test_agrees_with_the_step_down_definition(self, p_values: list[float]) -> None:
        assert holm(p_values) == pytest.approx(naive.holm(p_values))

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
    def test_lies_between_the_raw_value_and_bonferroni(self, p_values: list[float]) -> None:
        raw = np.array(p_values)
        adjusted = holm(p_values)
        assert (adjusted >= raw).all()
        assert (adjusted <= np.minimum(1, raw * len(raw))).all()

    @pytest.mark.parametrize("bad", [[-0.1], [1.1], [float("nan")], [[0.5]]])
    def test_anything_but_probabilities_is_refused(self, bad: list[float]) -> None:
        with pytest.raises(ParameterError, match="p_values"):
            holm(bad)


class TestWilcoxonHolm:
    def test_corrects_the_pairwise_values_together(self) -> None:
        scores = np.random.default_rng(3).normal(size=(12, 4)) + np.array([0.0, 0.4, 1.5, 3.0])
        pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
        raw = [stats.wilcoxon(scores[:, i], scores[:, j]).pvalue for i, j in pairs]
        result = wilcoxon_holm(scores)
        assert [result.adjusted_p[pair] for pair in pairs] == pytest.approx(naive.holm(raw))
        np.testing.assert_array_equal(result.adjusted_p, result.adjusted_p.T)
        np.testing.assert_array_equal(np.diag(result.adjusted_p), 1.0)

    def test_finds_the_winner_and_groups_the_rest(self) -> None:
        scores = np.random.default_rng(4).normal(size=(20, 3)) + np.array([0.0, 5.0, 0.0])
        result = wilcoxon_holm(scores)
        assert result.different[1].tolist() == [True, False, True]
        assert [set(group) for group in result.cliques] == [{0, 2}]

    def test_identical_methods_have_p_one(self) -> None:
        column = np.linspace(0, 1, 8)
        result = wilcoxon_holm(np.column_stack([column, column, column - 1]))
        assert result.adjusted_p[0, 1] == 1.0
        assert result.different[0, 2]

    def test_five_datasets_can_never_be_significant(self) -> None:
        assert not wilcoxon_holm([[0.0, 1.0]] * 5).different.any()
        assert wilcoxon_holm([[0.0, 1.0]] * 6).different.any()
