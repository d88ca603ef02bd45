from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from readbench.benchmark.metrics import (
    _bootstrap as bootstrap,
    bootstrap_datasets,
    mean_interval,
    paired_bootstrap,
    sums_interval,
)
from readbench.errors import NotFiniteError, ParameterError, UsageError
from tests.naive import metrics as naive

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


@pytest.fixture
def pair() -> Pair:
    a, b = np.random.default_rng(5).random((2, 80))
    return a + 0.05, b


@given(st.lists(st.sampled_from("abcd"), min_size=2, max_size=12).filter(lambda names: len(set(names)) > 1))
def test_cluster_interval_agrees_with_pooling_the_drawn_queries(clusters: list[str]) -> None:
    a, b = np.random.default_rng(len(clusters)).random((2, len(clusters)))
    means = naive.bootstrap_means((a - b).tolist(), clusters, resamples=200, seed=9)
    interval = paired_bootstrap(a, b, clusters=clusters, resamples=200, confidence=0.8, seed=9)
    assert (interval.low, interval.high) == pytest.approx(tuple(np.quantile(means, [0.1, 0.9])))
    assert interval.mean == pytest.approx(np.mean(a - b))


def test_width_matches_the_standard_error_of_the_mean(pair: Pair) -> None:
    interval = paired_bootstrap(*pair, seed=0)
    error = np.std(pair[0] - pair[1]) / np.sqrt(80)
    assert (interval.high - interval.low) / 2 == pytest.approx(1.96 * error, rel=0.04)


def test_each_query_in_its_own_cluster_is_the_plain_bootstrap(
    pair: Pair,
) -> None:
    assert paired_bootstrap(*pair, seed=1, clusters=np.arange(80)) == paired_bootstrap(*pair, seed=1)


def test_repeating_queries_inside_their_group_adds_no_certainty(
    pair: Pair,
) -> None:
    plain = paired_bootstrap(*pair, seed=2)
    a, b = (np.repeat(values, 5) for values in pair)
    grouped = paired_bootstrap(a, b, seed=2, clusters=np.repeat(np.arange(80), 5))
    ignored = paired_bootstrap(a, b, seed=2)
    assert (grouped.low, grouped.high) == pytest.approx((plain.low, plain.high))
    assert ignored.high - ignored.low < 0.6 * (plain.high - plain.low)


def test_large_groups_count_by_their_queries() -> None:
    """Nine queries gain 1 in one group, one loses 1 in another: the mean is over the ten queries."""
    interval = paired_bootstrap([1.0] * 9 + [-1.0], [0.0] * 10, clusters=["a"] * 9 + ["b"], seed=0)
    assert (interval.mean, interval.low, interval.high) == (0.8, -1.0, 1.0)


def test_constant_difference_has_a_point_interval() -> None:
    interval = paired_bootstrap([0.75] * 6, [0.5] * 6, clusters=[0, 0, 0, 1, 1, 2], seed=0)
    assert (interval.mean, interval.low, interval.high) == (0.25, 0.25, 0.25)


def test_swapping_the_methods_mirrors_the_interval(pair: Pair) -> None:
    a, b = pair
    there, back = paired_bootstrap(a, b, seed=3), paired_bootstrap(b, a, seed=3)
    assert (there.mean, there.low, there.high) == pytest.approx((-back.mean, -back.high, -back.low))


def test_more_confidence_is_wider(pair: Pair) -> None:
    narrow, wide = (paired_bootstrap(*pair, seed=4, confidence=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.mean < narrow.high < wide.high


def test_seed_fixes_the_result_and_changes_it(pair: Pair) -> None:
    assert paired_bootstrap(*pair, seed=5) == paired_bootstrap(*pair, seed=5)
    assert paired_bootstrap(*pair, seed=5) != paired_bootstrap(*pair, seed=6)


def test_result_does_not_depend_on_how_much_is_drawn_at_a_time(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = paired_bootstrap(*pair, seed=7, resamples=500)
    monkeypatch.setattr(bootstrap, "BLOCK", 3 * 80)
    assert paired_bootstrap(*pair, seed=7, resamples=500) == whole


def test_group_names_may_be_the_strings_of_a_window_set(
    pair: Pair,
) -> None:
    names = [f"run {i % 7}" for i in range(80)]
    column = np.array(names, dtype=np.dtypes.StringDType())
    assert paired_bootstrap(*pair, seed=8, clusters=column) == paired_bootstrap(*pair, seed=8, clusters=names)


def test_single_cluster_is_refused() -> None:
    with pytest.raises(UsageError, match="one cluster"):
        paired_bootstrap([0.1, 0.2], [0.0, 0.0], clusters=["a", "a"], seed=0)


def test_clusters_of_other_queries_are_refused() -> None:
    with pytest.raises(UsageError, match="each of 2 queries"):
        paired_bootstrap([0.1, 0.2], [0.0, 0.0], clusters=["a", "b", "c"], seed=0)


def test_nan_is_refused() -> None:
    with pytest.raises(NotFiniteError, match="at pair 0"):
        paired_bootstrap([np.nan, 0.2], [0.0, 0.0], seed=0)


def test_confidence_outside_the_unit_interval_is_refused() -> None:
    with pytest.raises(ParameterError, match="'confidence'"):
        paired_bootstrap([0.1, 0.2], [0.0, 0.0], seed=0, confidence=95)


def test_no_resamples_are_refused() -> None:
    with pytest.raises(ParameterError, match="'resamples'"):
        paired_bootstrap([0.1, 0.2], [0.0, 0.0], seed=0, resamples=0)


def test_a_mean_over_datasets_counts_each_the_same_and_draws_groups_within_them() -> None:
    values = [0.0, 1.0, 0.0, 1.0, 0.25]
    found = mean_interval(values, ["a", "a", "a", "a", "b"], ["1", "1", "2", "2", "1"], seed=0)
    assert found.mean == pytest.approx((0.5 + 0.25) / 2)
    assert (found.low, found.high) == (found.mean, found.mean)
    wider = mean_interval(values, ["a", "a", "a", "a", "b"], ["1", "2", "1", "2", "1"], seed=0)
    assert (wider.low, wider.high) == ((0.0 + 0.25) / 2, (1.0 + 0.25) / 2)


def test_one_dataset_gives_the_interval_of_the_paired_bootstrap_against_zero() -> None:
    rng = np.random.default_rng(0)
    values, groups = rng.random(200), rng.integers(0, 40, 200)
    found = mean_interval(values, ["a"] * 200, groups, seed=3, resamples=500)
    assert found == paired_bootstrap(values, np.zeros(200), clusters=groups, seed=3, resamples=500)


def test_where_a_dataset_has_one_group_its_queries_are_drawn() -> None:
    found = mean_interval([0.0, 1.0, 0.0, 1.0], ["a"] * 4, ["g"] * 4, seed=0)
    assert found.low < 0.5 < found.high


def test_datasets_are_drawn_whole_and_each_counts_the_same(pair: Pair) -> None:
    a, b = pair[0][:13], pair[1][:13]
    found = bootstrap_datasets(a, b, seed=0)
    drawn = np.random.default_rng(1).integers(13, size=(20_000, 13))
    means = (a - b)[drawn].mean(axis=1)
    assert found is not None
    assert found.mean == pytest.approx(np.mean(a - b))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.01)
    assert bootstrap_datasets(a[:2], b[:2], seed=0) is None


def test_a_function_of_sums_varies_as_the_mean_does_where_it_is_the_mean() -> None:
    rng = np.random.default_rng(5)
    values, groups = rng.random(60), np.repeat(np.arange(12), 5)
    columns = np.stack([values, np.ones(60)], axis=1)
    found = sums_interval(columns, lambda sums: sums[0] / sums[1], clusters=groups, seed=0)
    known = paired_bootstrap(values, np.zeros(60), clusters=groups, seed=0)
    assert [found.mean, found.low, found.high] == pytest.approx([known.mean, known.low, known.high], abs=1e-3)


def test_an_interval_is_open_where_draws_have_no_value() -> None:
    columns = np.array([[1.0, 1.0], [1.0, 0.0]])  # a draw of the second alone has no ratio
    with np.errstate(divide="ignore"):
        found = sums_interval(columns, lambda sums: sums[0] / sums[1], clusters=["a", "b"], seed=0)
    assert (found.mean, found.low, found.high) == (2.0, 1.0, np.inf)
