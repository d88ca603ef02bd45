"""What every reranker keeps, whatever it does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from readbench.errors import ParameterError
from readbench.parameters import Value
from readbench.registry import RERANKERS
from readbench.rerank import Pool, Reranker
from readbench.rerank.feedback import PseudoRelevanceFeedback
from readbench.rerank.gpc import GaussianProcess
from readbench.rerank.purity import Purity, QueryPurity
from readbench.rerank.vote import MajorityVote
from tests.rerank.pools import random_pool, reordered, without_labels

LABEL_AWARE: list[Reranker] = [
    Purity(),
    Purity(k=3, alpha=0),
    QueryPurity(),
    QueryPurity(k=40, vote=3, alpha=0),
    MajorityVote(),
    MajorityVote(k=1),
    GaussianProcess(),
    GaussianProcess(k=5, kernel="linear"),
    GaussianProcess(kernel="rbf", variance=1.0),
]
LABEL_FREE: list[Reranker] = [PseudoRelevanceFeedback(), PseudoRelevanceFeedback(k=3, beta=0.2, scale="z")]
EVERYONE = LABEL_FREE + LABEL_AWARE
POOLS = [
    random_pool(0),
    random_pool(1, labelled=0.5),
    random_pool(2, classes=12, labelled=0.8),
    random_pool(3, items=3, depth=3),
    random_pool(4, items=1, depth=1),
    random_pool(5, queries=0),
    random_pool(6, depth=30, labelled=0.3),
]


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("reranker", EVERYONE)
def test_scores_are_finite_and_one_for_each_candidate(reranker: Reranker, pool: Pool) -> None:
    scores = reranker.rerank(pool)
    assert scores.dtype == np.float32
    assert scores.shape == pool.candidates.shape
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("reranker", EVERYONE)
def test_the_pool_given_is_left_as_it_was(reranker: Reranker) -> None:
    pool = random_pool(1, labelled=0.6)
    before = [pool.scores.copy(), pool.items.copy(), pool.labels.copy(), pool.corpus_similarity.copy()]
    reranker.rerank(pool)
    for old, now in zip(before, [pool.scores, pool.items, pool.labels, pool.corpus_similarity], strict=True):
        np.testing.assert_array_equal(old, now)


@pytest.mark.parametrize("reranker", EVERYONE)
def test_one_query_s_scores_do_not_depend_on_the_others(reranker: Reranker) -> None:
    pool = random_pool(7, queries=70, labelled=0.7)
    alone = replace(
        pool,
        candidates=pool.candidates[66:67],
        scores=pool.scores[66:67],
        queries=pool.queries[66:67],
        labels=pool.labels[66:67],
    )
    np.testing.assert_allclose(reranker.rerank(pool)[66:67], reranker.rerank(alone), atol=1e-6)


@pytest.mark.parametrize("reranker", LABEL_AWARE)
def test_without_labels_the_base_scores_stay(reranker: Reranker) -> None:
    pool = without_labels(random_pool(8))
    assert reranker.uses_labels
    np.testing.assert_array_equal(reranker.rerank(pool), pool.scores)


@pytest.mark.parametrize("reranker", LABEL_FREE)
def test_a_label_free_reranker_does_not_read_labels(reranker: Reranker) -> None:
    pool = random_pool(8)
    assert not reranker.uses_labels
    np.testing.assert_array_equal(reranker.rerank(pool), reranker.rerank(without_labels(pool)))


@pytest.mark.parametrize("reranker", LABEL_AWARE)
def test_names_of_classes_do_not_matter(reranker: Reranker) -> None:
    """Normal (0) is one more class, and labels need not be contiguous. Two-class problems may round differently."""
    pool = random_pool(9, labelled=0.8)
    other = np.where(pool.corpus_labels < 0, -1, 70 - 10 * pool.corpus_labels).astype(np.int32)
    renamed = replace(pool, labels=other[pool.candidates], corpus_labels=other)
    np.testing.assert_allclose(reranker.rerank(renamed), reranker.rerank(pool), atol=1e-6)


@pytest.mark.parametrize("reranker", LABEL_AWARE)
def test_label_aware_rerankers_use_the_labels_there_are(reranker: Reranker) -> None:
    pool = random_pool(10, queries=20, labelled=0.6)
    assert reordered(pool, reranker.rerank(pool)) != pool.candidates.tolist()


@pytest.mark.parametrize(
    ("name", "parameters", "depth"),
    [
        ("prf", {}, 20),
        ("prf", {"k": 30}, 30),
        ("purity", {"k": 30}, 20),
        ("qpurity", {"k": 30}, 20),
        ("qpurity", {"vote": 30}, 30),
        ("majvote", {"pool": 100}, 100),
        ("majority-vote", {"k": 30}, 30),
        ("gpc", {"k": 50}, 50),
        ("purity", {"scope": "corpus"}, None),
        ("qpurity", {"scope": "corpus"}, None),
        ("majvote", {"scope": "corpus"}, None),
        ("gpc", {"scope": "corpus"}, None),
    ],
)
def test_rerankers_are_found_by_name_and_see_the_depth_they_need(
    name: str, parameters: dict[str, Value], depth: int | None
) -> None:
    reranker: Reranker = RERANKERS.get(name).build(**parameters)
    assert reranker.depth == depth


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("gpc", {"k": 1}), ("gpc", {"kernel": "cosine"}), ("prf", {"beta": 2.0}), ("majvote", {"scope": "world"})],
)
def test_parameters_out_of_range_are_refused(name: str, parameters: dict[str, Value]) -> None:
    with pytest.raises(ParameterError):
        RERANKERS.get(name).build(**parameters)
