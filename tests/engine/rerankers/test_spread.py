"""A list that follows the belief: the best of all lists, and nothing else is moved."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from readbench.engine.ranking import rank
from readbench.engine.rerankers import Verdict
from readbench.engine.rerankers._spread import SPREAD_PLACES, choose_spread, mix_belief
from tests.engine.rerankers.test_verdict import two_views, with_labels


def worth(types: list[int], belief: list[float], spread: float) -> float:
    """The objective as it is written in the documentation."""
    discounts = [1 / np.log2(place + 2) for place in range(len(types))]
    gain = sum(d * belief[own] for d, own in zip(discounts, types, strict=True)) / sum(discounts)
    return gain + spread * sum(belief[own] for own in set(types))


@pytest.mark.parametrize("seed", range(12))
def test_no_other_list_is_worth_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, kinds = SPREAD_PLACES + 3, int(rng.integers(1, 5))
    types, belief = rng.integers(0, kinds, (1, count)), rng.dirichlet(np.ones(kinds), 1)
    spread = float(rng.choice([0.02, 0.1, 0.5, 2.0]))
    listed = np.flatnonzero(choose_spread(belief[:, types[0]], types, belief, np.array([spread]))[0])

    def own_worth(items: tuple[int, ...]) -> float:
        by_belief = sorted((int(types[0, i]) for i in items), key=lambda own: -belief[0, own])
        return worth(by_belief, belief[0].tolist(), spread)

    assert len(listed) == SPREAD_PLACES
    assert own_worth(tuple(listed)) == pytest.approx(max(map(own_worth, combinations(range(count), SPREAD_PLACES))))


def test_a_second_type_enters_at_the_last_place_where_it_is_likely_enough() -> None:
    types = np.array([[0] * 12 + [1] * 3])
    for likely, expected in ((0.01, []), (0.3, [12])):
        belief = np.array([[1 - likely, likely]])
        listed = np.flatnonzero(choose_spread(belief[:, types[0]], types, belief, np.array([0.1]))[0])
        assert [place for place in listed if place >= SPREAD_PLACES] == expected


def test_the_belief_hears_what_is_nearest() -> None:
    posterior, guesses = np.array([[0.9, 0.1, 0.0]]), np.eye(3)[[2, 0, 0, 0]]
    belief = mix_belief(posterior, guesses, np.array([[0, 1, 2, 3]]))
    assert belief.sum() == pytest.approx(1)
    assert belief[0, 2] > 0.05
    nothing = mix_belief(posterior, np.zeros((4, 3)), np.array([[0, 1, 2, 3]]))
    np.testing.assert_allclose(nothing, posterior)


def test_only_the_first_places_are_spread() -> None:
    pool = two_views(3)
    plain, spread = (rank(Verdict(spread=own).rerank(pool)) for own in (0.0, 5.0))
    labels = pool.corpus_labels[0]
    shown = [
        len(set(labels[order[:, :SPREAD_PLACES]][0][labels[order[:, :SPREAD_PLACES]][0] > 0]))
        for order in (plain, spread)
    ]
    assert shown[1] >= shown[0]
    assert (plain[:, :SPREAD_PLACES] != spread[:, :SPREAD_PLACES]).any()
    for before, after in zip(plain, spread, strict=True):
        rest = [item for item in before if item not in set(after[:SPREAD_PLACES])]
        assert after[SPREAD_PLACES:].tolist() == rest


def test_known_normals_stay_last_and_no_label_changes_nothing() -> None:
    pool = two_views(4)
    scores = Verdict(spread=1.0).rerank(pool)
    assert ((scores == -1) == (pool.labels == 0)).all()
    silent = with_labels(pool, np.full(len(pool.items), -1, np.int32))
    np.testing.assert_array_equal(Verdict(spread=1.0).rerank(silent), silent.scores)
