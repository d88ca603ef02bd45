"""Places with intervals: what they hold, what ties, and how many datasets would part two methods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from readbench.benchmark.metrics import datasets_to_separate, rank_methods, smallest_adjusted_p
from readbench.errors import UsageError
from research.coverage import simulate_coverage

GROUPS = [str(q % 5) for q in range(40)]


def leaderboard(gaps: list[float], datasets: int = 12, noise: float = 0.02, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    base = 0.6 - np.array(gaps)[:, None]
    return [base + rng.normal(0, 0.2) + rng.normal(0, noise, (len(gaps), len(GROUPS))) for _ in range(datasets)]


def test_methods_that_are_far_apart_have_one_place_and_those_that_tie_share_a_group() -> None:
    found = rank_methods(leaderboard([0.0, 0.0005, 0.3, 0.5]), [GROUPS] * 12, seed=0)
    assert found.over_datasets
    assert [(int(a), int(b)) for a, b in zip(found.low, found.high, strict=True)] == [(1, 2), (1, 2), (3, 3), (4, 4)]
    assert found.groups == ((0,), (0,), (1,), (2,))
    assert found.better[0].tolist() == [False, False, True, True]


def test_the_interval_of_a_place_follows_from_who_is_surely_better_or_worse() -> None:
    found = rank_methods(leaderboard([0.0, 0.02, 0.03, 0.2], noise=0.3), [GROUPS] * 12, seed=0)
    for j in range(4):
        assert found.low[j] <= 1 + np.sum(found.means > found.means[j]) <= found.high[j]
        assert found.high[j] <= 4 - found.better[j].sum()  # those that both intervals tell apart, and maybe others
        assert found.low[j] >= 1 + found.better[:, j].sum()
    assert found.better.any()
    assert not found.better.all()


def test_a_method_and_its_copy_are_never_told_apart() -> None:
    tables = [np.vstack([table, table[:1]]) for table in leaderboard([0.0, 0.3])]
    found = rank_methods(tables, [GROUPS] * 12, seed=0)
    assert not found.better[0, 2]
    assert not found.better[2, 0]
    assert found.groups[0] == found.groups[2]


def test_a_method_that_is_surely_behind_neither_of_two_firsts_ties_with_both() -> None:
    tables = leaderboard([0.0, 0.1, 0.11])
    for number, table in enumerate(tables):
        table[2] += 0.3 if number % 3 == 0 else -0.15  # its datasets differ, and its mean says little
    found = rank_methods(tables, [GROUPS] * 12, seed=0)
    assert found.order.tolist() == [0, 1, 2]
    assert found.better[0].tolist() == [False, True, False]
    assert found.groups == ((0,), (1,), (0, 1))


def test_few_datasets_speak_of_themselves_only_and_one_group_is_drawn_by_queries() -> None:
    found = rank_methods(leaderboard([0.0, 0.3], datasets=2), [["one"] * 40, GROUPS], seed=0)
    assert not found.over_datasets
    assert found.low.tolist() == [1, 2]
    with pytest.raises(UsageError, match="every method on each"):
        rank_methods([np.zeros((2, 4)), np.zeros((3, 4))], [["a"] * 4] * 2, seed=0)


def test_the_same_seed_gives_the_same_places() -> None:
    tables = leaderboard([0.0, 0.01, 0.02], noise=0.3)
    one, two = (rank_methods(tables, [GROUPS] * 12, seed=3) for _ in range(2))
    assert (one.low == two.low).all()
    assert (one.high == two.high).all()


@pytest.mark.parametrize("alike", [False, True])
def test_intervals_hold_the_true_place_as_often_as_they_say(alike: bool) -> None:  # noqa: FBT001
    found = simulate_coverage(simulations=40, seed=5, datasets=8, methods=6, resamples=300, alike=alike)
    assert found.ranks >= 0.93
    if not alike:
        assert found.width < 6


def test_power_grows_with_the_effect_and_what_cannot_be_said_is_none() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.1, 12)
    noise -= noise.mean()
    few, many = (datasets_to_separate(noise + shift) for shift in (0.1, 0.03))
    assert few is not None
    assert many is not None
    assert few < 20 < many
    assert datasets_to_separate(noise) is None
    assert datasets_to_separate([0.1, 0.2]) is None
    assert datasets_to_separate([0.1] * 5) == 3


def test_the_separating_number_of_datasets_has_the_power_it_promises() -> None:
    """A naive simulation of the paired t-test."""
    sample = np.array([0.09, 0.01, 0.13, -0.02, 0.06, 0.1, -0.03])
    needed = datasets_to_separate(sample)
    assert needed is not None
    rng = np.random.default_rng(0)
    drawn = rng.normal(sample.mean(), sample.std(ddof=1), (4000, needed))
    assert 0.75 < np.mean(ttest_1samp(drawn, 0, axis=1).pvalue <= 0.05) < 0.9


def test_the_smallest_p_of_few_datasets_is_known() -> None:
    assert smallest_adjusted_p(6, 1) == 0.03125
    assert smallest_adjusted_p(3, 10) == 1.0
