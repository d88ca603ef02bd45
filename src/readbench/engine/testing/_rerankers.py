"""Checks that every registered reranker must pass."""

# mypy: disable-error-code="type-abstract"
from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from readbench.common.calibration import expected_calibration_error
from readbench.engine.abilities import GivesOpinion
from readbench.engine.method import Method
from readbench.engine.protocols import Pool, Reranker, View, unit_vectors
from readbench.engine.ranking import rank
from readbench.engine.registry import RERANKERS, Entry
from readbench.engine.spec import Stage, parse
from readbench.engine.testing._memory import shows_unwritten_memory
from readbench.engine.testing._samples import not_asked, require_abilities, sample_cases, sample_pool
from readbench.engine.windows import NORMAL, UNLABELLED

RerankerCheck = Callable[[str], None]
"""Takes the text of a reranker, as after `+`; raises AssertionError if it breaks the contract."""
FEW_QUERIES = 9
MAX_CALIBRATION_ERROR = 0.05
"""Maximum expected calibration error of a reranker with opinions."""


@shows_unwritten_memory
def every_candidate_gets_a_score(reranker: str) -> None:
    """Scores are (Q, K) float32 and finite for pools of any depth, one item, and no queries."""
    pools = [sample_pool(0), sample_pool(1, labelled=0.5), sample_pool(2, items=1, depth=1), sample_pool(3, queries=0)]
    for pool in [*pools, sample_pool(4, depth=30, labelled=0.2)]:
        scores = _built(reranker).rerank(pool)
        assert scores.shape == pool.candidates.shape
        assert scores.dtype == np.float32
        assert np.isfinite(scores).all()


@shows_unwritten_memory
def candidates_all_alike_do_not_break_it(reranker: str) -> None:
    """Equal vectors, equal scores and zero vectors give finite scores."""
    pool = sample_pool(0)
    for value in (0.0, 1.0):
        flat = replace(
            pool,
            scores=np.zeros_like(pool.scores),
            views=(View(np.full_like(pool.queries, value), np.full_like(pool.items, value)),),
            similarity=lambda: np.zeros((len(pool.items), len(pool.items)), np.float32),
        )
        assert np.isfinite(_built(reranker).rerank(flat)).all()


@shows_unwritten_memory
def the_pool_stays_as_it_was(reranker: str) -> None:
    """The pool is not modified."""
    pool = sample_pool(1, labelled=0.6)
    before = [array.copy() for array in _arrays(pool)]
    _built(reranker).rerank(pool)
    for old, now in zip(before, _arrays(pool), strict=True):
        np.testing.assert_array_equal(old, now)


@shows_unwritten_memory
def one_query_is_a_batch(reranker: str) -> None:
    """Scores of a query do not depend on other queries, up to rounding."""
    pool = _own_labels(sample_pool(5, queries=FEW_QUERIES))
    together = _built(reranker).rerank(pool)
    alone = np.concatenate([_built(reranker).rerank(_only(pool, query)) for query in range(FEW_QUERIES)])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


@shows_unwritten_memory
def results_repeat(reranker: str) -> None:
    """Two runs give identical bytes."""
    pool = sample_pool(6, labelled=0.7)
    assert _built(reranker).rerank(pool).tobytes() == _built(reranker).rerank(pool).tobytes()


@shows_unwritten_memory
def labels_are_read_only_where_declared(reranker: str) -> None:
    """Without `uses_labels`, labels have no effect."""
    pool, built = sample_pool(7), _built(reranker)
    if built.uses_labels:
        raise not_asked(reranker, "uses_labels")
    np.testing.assert_array_equal(built.rerank(pool), built.rerank(_without_labels(pool)))


@shows_unwritten_memory
def without_labels_the_base_order_stays(reranker: str) -> None:
    """A reranker that uses labels keeps the base order if none is known."""
    pool, built = _without_labels(sample_pool(8)), _built(reranker)
    if not built.uses_labels:
        raise not_asked(reranker, "that it reads no labels")
    np.testing.assert_array_equal(rank(built.rerank(pool)), rank(pool.scores))


@shows_unwritten_memory
def labels_of_other_queries_are_not_read(reranker: str) -> None:
    """Labels known to one query have no effect on another."""
    pool, built = _own_labels(sample_pool(9)), _built(reranker)
    others = pool.corpus_labels.copy()
    others[1:] = np.where(others[1:] == UNLABELLED, UNLABELLED, (others[1:] + 1) % 4)
    np.testing.assert_allclose(
        built.rerank(pool)[0], built.rerank(replace(pool, corpus_labels=others))[0], rtol=1e-4, atol=1e-5
    )


@shows_unwritten_memory
def names_of_classes_do_not_matter(reranker: str) -> None:
    """Labels are names: numbers may have gaps, and normal (0) is a class like others unless declared otherwise."""
    pool, built = sample_pool(10, labelled=0.8), _built(reranker)
    keeps = [UNLABELLED, NORMAL] if "normals-last" in _entry(reranker).tags else [UNLABELLED]
    np.testing.assert_allclose(built.rerank(rename_classes(pool, keeps)), built.rerank(pool), atol=1e-5)


@shows_unwritten_memory
def its_pool_can_be_widened(reranker: str) -> None:
    """A parameter `pool` sets the minimum number of candidates it sees."""
    entry = _entry(reranker)
    if "pool" in entry.parameters:
        wide: Reranker = entry.build(**(dict(_stage(reranker).parameters) | {"pool": 150}))
        assert wide.depth is None or wide.depth >= 150
    depth = _built(reranker).depth
    assert depth is None or depth >= 1


@shows_unwritten_memory
def declared_abilities_are_there(reranker: str) -> None:
    """It has the members of its declared abilities."""
    require_abilities(_entry(reranker), _built(reranker))


@shows_unwritten_memory
def stated_probabilities_hold(reranker: str) -> None:
    """Stated probabilities are calibrated on cases of other recordings.

    The expected calibration error over 1,600 queries is at most `MAX_CALIBRATION_ERROR`. Honest probabilities have
    about 0.02; those raised to the power 1.5 or 0.66 have 0.07 or more.
    """
    part = Method(f"random+{reranker}").rerankers[0]
    learner = part.able(GivesOpinion)
    if learner is None:
        raise not_asked(reranker, "no opinion: it does not declare GivesOpinion")
    stated, right = [], []
    for seed in range(4):
        cases = sample_cases(seed)
        lesson = learner.learn([unit_vectors(cases.items)], cases.labels, cases.groups)
        assert lesson is not None, "labelled cases taught it nothing"
        opinions = lesson.at([unit_vectors(cases.queries)]).opinions()
        for opinion, truth in zip(opinions, cases.truth, strict=True):
            assert np.isclose(opinion.posterior.sum(), 1)
            assert (opinion.posterior >= 0).all()
            assert opinion.label in opinion.candidates
            stated.append(opinion.confidence)
            right.append(opinion.label == truth)
    error = expected_calibration_error(stated, right)
    assert error <= MAX_CALIBRATION_ERROR, f"expected calibration error {error:.3f}"


@shows_unwritten_memory
def it_travels_between_processes(reranker: str) -> None:
    """It is picklable, and its copy gives equal scores."""
    pool, built = sample_pool(11), _built(reranker)
    copy: Reranker = pickle.loads(pickle.dumps(built))  # noqa: S301 - bytes of this function
    np.testing.assert_array_equal(built.rerank(pool), copy.rerank(pool))


RERANKER_CHECKS: tuple[RerankerCheck, ...] = (
    every_candidate_gets_a_score,
    candidates_all_alike_do_not_break_it,
    the_pool_stays_as_it_was,
    one_query_is_a_batch,
    results_repeat,
    labels_are_read_only_where_declared,
    without_labels_the_base_order_stays,
    labels_of_other_queries_are_not_read,
    names_of_classes_do_not_matter,
    its_pool_can_be_widened,
    declared_abilities_are_there,
    stated_probabilities_hold,
    it_travels_between_processes,
)


def rename_classes(pool: Pool, keeps: list[int]) -> Pool:
    """The pool with other numbers for its classes, except those in `keeps`."""
    old = pool.corpus_labels
    return replace(pool, corpus_labels=np.where(np.isin(old, keeps), old, 70 - 10 * old).astype(np.int32))


def _stage(reranker: str) -> Stage:
    return parse(f"random+{reranker}").rerankers[0]


def _entry(reranker: str) -> Entry:
    return RERANKERS.get(_stage(reranker).name)


def _built(reranker: str) -> Reranker:
    return Method(f"random+{reranker}").rerankers[0].component


def _arrays(pool: Pool) -> list[NDArray[np.generic]]:
    return [pool.candidates, pool.scores, pool.queries, pool.items, pool.corpus_labels, pool.corpus_similarity]


def _without_labels(pool: Pool) -> Pool:
    return replace(pool, corpus_labels=np.full_like(pool.corpus_labels, UNLABELLED))


def _own_labels(pool: Pool) -> Pool:
    """Each query knows the labels of its first ten hits only."""
    known = np.full_like(pool.corpus_labels, UNLABELLED)
    first = pool.candidates[:, :10]
    np.put_along_axis(known, first, np.take_along_axis(pool.corpus_labels, first, axis=1), axis=1)
    return replace(pool, corpus_labels=known)


def _only(pool: Pool, query: int) -> Pool:
    row = slice(query, query + 1)
    return replace(
        pool,
        candidates=pool.candidates[row],
        scores=pool.scores[row],
        views=(View(pool.queries[row], pool.items),),
        corpus_labels=pool.corpus_labels[row],
    )
