"""PRF, Purity, QPurity and Majority-Vote: against the naive versions, and by hand."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from readbench.engine.protocols import Pool, View
from readbench.engine.rerankers import MajorityVote, PseudoRelevanceFeedback, Purity, QueryPurity
from readbench.engine.rerankers._classic import count_votes, neighbour_purity, standardise_scores
from readbench.testing import sample_pool
from tests.engine.rerankers.pools import pool_of, reordered
from tests.naive import rerank as naive

pools = st.builds(
    sample_pool,
    st.integers(0, 10_000),
    queries=st.just(2),
    items=st.just(25),
    depth=st.integers(1, 25),
    classes=st.integers(1, 6),
    labelled=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
counts = st.integers(1, 30)
weights = st.sampled_from([0.0, 0.3, 0.5, 1.0])


def naive_shares(pool: Pool, query: int, k: int) -> list[float | None]:
    return naive.purities(
        pool.candidates[query].tolist(),
        pool.labels[query].tolist(),
        pool.corpus_similarity.tolist(),
        pool.corpus_labels[query].tolist(),
        k,
    )


@given(pools, counts, weights, st.sampled_from(["printed", "z"]))
def test_feedback_is_the_paper_s(pool: Pool, k: int, beta: float, scale: str) -> None:
    found = PseudoRelevanceFeedback(k, beta, scale).rerank(pool)  # type: ignore[arg-type]
    for query, row in enumerate(found):
        vectors = pool.items[pool.candidates[query]].tolist()
        expected = naive.prf(pool.scores[query].tolist(), vectors, k, beta, scale)
        assert row.tolist() == pytest.approx(expected, abs=1e-5)


@given(pools, counts)
def test_majority_vote_is_the_paper_s(pool: Pool, k: int) -> None:
    for query, row in enumerate(MajorityVote(k).rerank(pool)):
        assert row.tolist() == naive.majority_vote(pool.scores[query].tolist(), pool.labels[query].tolist(), k)


@given(pools, counts, weights)
def test_purity_is_the_paper_s(pool: Pool, k: int, alpha: float) -> None:
    for query, row in enumerate(Purity(k, alpha).rerank(pool)):
        expected = naive.purity(pool.scores[query].tolist(), naive_shares(pool, query, k), alpha)
        assert row.tolist() == pytest.approx(expected, abs=1e-5)


@given(pools, counts, counts, weights)
def test_query_purity_is_the_paper_s(pool: Pool, k: int, voters: int, alpha: float) -> None:
    for query, row in enumerate(QueryPurity(k, voters, alpha).rerank(pool)):
        scores, labels = pool.scores[query].tolist(), pool.labels[query].tolist()
        expected = naive.query_purity(scores, labels, naive_shares(pool, query, k), voters, alpha)
        assert row.tolist() == pytest.approx(expected, abs=1e-5)


def test_feedback_moves_towards_the_centroid_of_the_first_hits() -> None:
    """Centroid (0, 0) of the first two; distances 1, 1, 3, 0."""
    pool = pool_of([-1] * 4, [[1, 0], [-1, 0], [0, 3], [0, 0]], scores=[4, 3, 2, 1])
    found = PseudoRelevanceFeedback(k=2).rerank(pool)
    np.testing.assert_allclose(found, [[1.5, 1.0, -0.5, 0.5]], atol=1e-6)
    assert reordered(pool, found) == [[0, 1, 3, 2]]


def test_the_elected_class_comes_first_and_both_parts_keep_their_order() -> None:
    pool = pool_of([2, 1, -1, 1, 0, 1, 2])
    assert reordered(pool, MajorityVote(k=4).rerank(pool)) == [[1, 3, 5, 0, 2, 4, 6]]


def test_of_equally_frequent_classes_the_one_hit_first_is_elected() -> None:
    assert count_votes(np.array([[-1, 3, 1, 1, 3]], np.int32)).tolist() == [3]


def test_normal_wins_a_vote_like_any_class() -> None:
    pool = pool_of([5, 0, 0])
    assert reordered(pool, MajorityVote().rerank(pool)) == [[1, 2, 0]]


def test_purity_by_hand() -> None:
    """Items at 0, 1, 2.1, 10 on a line; the two nearest neighbours of each, never itself."""
    pool = pool_of([1, 1, 2, 2], [[0, 0], [1, 0], [2.1, 0], [10, 0]])
    shares, known = neighbour_purity(pool, k=2)
    assert shares.tolist() == [[0.5, 0.5, 0.0, 0.5]]
    assert known.all()


def test_unlabelled_neighbours_do_not_count_and_unlabelled_items_have_no_purity() -> None:
    pool = pool_of([1, -1, 1, 2], [[0, 0], [1, 0], [2.1, 0], [10, 0]])
    shares, known = neighbour_purity(pool, k=2)
    assert shares.tolist() == [[1.0, 0.0, 1.0, 0.0]]
    assert known.tolist() == [[True, False, True, True]]


def test_an_item_among_unlabelled_ones_has_no_purity() -> None:
    _, known = neighbour_purity(pool_of([1, -1, -1, 1], [[0, 0], [1, 0], [2, 0], [10, 0]]), k=1)
    assert not known.any()


def test_an_item_without_purity_keeps_its_place_between_better_and_worse_ones() -> None:
    pool = pool_of([1, -1, 2], scores=[0, 0, 0])
    labels = np.array([[1, -1, 2, 2, 2]], np.int32)
    items = np.array([[0, 0], [5, 0], [10, 0], [10, 1], [0, 1]], np.float32)
    similarity = -np.linalg.norm(items[:, None] - items[None], axis=2).astype(np.float32)
    pool = replace(
        pool,
        views=(View(pool.queries, items),),
        groups=np.arange(5),
        corpus_labels=labels,
        similarity=lambda: similarity,
    )
    assert Purity(k=1).rerank(pool).tolist() == [[-0.5, 0.0, 0.5]]


def test_query_purity_credits_the_elected_class_only() -> None:
    pool = pool_of([2, 1, 1, 2], [[0, 0], [10, 0], [11, 0], [0.5, 0]], scores=[0, 0, 0, 0])
    found = QueryPurity(k=1, vote=3, alpha=0.0).rerank(pool)
    assert found.tolist() == [[-1.0, 1.0, 1.0, -1.0]]


def test_equal_scores_have_no_spread_to_blow_up() -> None:
    assert not standardise_scores(np.full((1, 7), 0.1e5, np.float32)).any()
    assert not standardise_scores(np.full((1, 7), 0.1), np.arange(7)[None] < 3).any()
