"""Checks that every registered retriever must pass."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from readbench.engine.method import FittedMethod, Knowledge, Method
from readbench.engine.preparation import ChannelStats
from readbench.engine.protocols import Scores
from readbench.engine.ranking import rank
from readbench.engine.registry import ENCODERS, RETRIEVERS
from readbench.engine.spec import parse
from readbench.engine.testing._memory import shows_unwritten_memory
from readbench.engine.testing._samples import not_asked, require_abilities, require_untagged, sample_windows
from readbench.engine.windows import UNLABELLED, WindowSet, concatenate
from readbench.errors import NotFiniteError

RetrieverCheck = Callable[[str], None]
"""Takes a method text; raises AssertionError if the method breaks the contract."""
THREADS = 4
"""Number of threads that query a method at once."""


@shows_unwritten_memory
def scores_have_the_right_shape(method: str) -> None:
    """Scores are (Q, N) float32 and finite."""
    scores = _scores(method, sample_windows(12), sample_windows(5, seed=1))
    assert scores.shape == (5, 12)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()


@shows_unwritten_memory
def ragged_windows_are_scored(method: str) -> None:
    """Length and channels may differ between windows, and between queries and corpus."""
    corpus = sample_windows(12, channels=5, length=40, ragged=True)
    queries = sample_windows(5, channels=7, length=56, ragged=True, seed=1)
    assert np.isfinite(_scores(method, corpus, queries)).all()


@shows_unwritten_memory
def one_channel_is_enough(method: str) -> None:
    """Univariate windows are scored."""
    queries = sample_windows(3, channels=1, seed=1)
    assert np.isfinite(_scores(method, sample_windows(8, channels=1), queries)).all()


@shows_unwritten_memory
def constant_channels_do_not_break_it(method: str) -> None:
    """Constant channels and equal windows give finite scores."""
    flat = WindowSet.from_arrays(list(np.full((8, 2, 32), 3.0)), labels=np.arange(8) % 4)
    assert np.isfinite(_scores(method, flat, flat[:3])).all()


@shows_unwritten_memory
def missing_values_are_refused(method: str) -> None:
    """NaN in a query or in the corpus raises `NotFiniteError`."""
    good = sample_windows(8)
    values = [good.values(i).copy() for i in range(len(good))]
    values[2][0, 5] = np.nan
    bad = WindowSet.from_arrays(values, labels=good.labels)
    for corpus, queries in ((bad, good), (good, bad)):
        try:
            _scores(method, corpus, queries)
        except NotFiniteError:
            continue
        raise AssertionError(f"{method} accepted NaN")


@shows_unwritten_memory
def one_item_is_a_corpus(method: str) -> None:
    """A corpus of one item is scored: a library begins with one case."""
    scores = _scores(method, sample_windows(1), sample_windows(4, seed=1))
    assert scores.shape == (4, 1)
    assert rank(scores, 10).shape == (4, 1)


@shows_unwritten_memory
def one_query_is_a_batch(method: str) -> None:
    """Scores of a query do not depend on other queries, up to rounding."""
    _require_untagged(method, "by-position")
    corpus, queries = sample_windows(12), sample_windows(5, seed=1)
    together = _scores(method, corpus, queries)
    alone = np.concatenate([_scores(method, corpus, queries[i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-4)


@shows_unwritten_memory
def duplicates_score_alike(method: str) -> None:
    """Equal corpus items score alike, so that ties keep corpus order."""
    _require_untagged(method, "by-position")
    corpus = sample_windows(8)
    scores = _scores(method, concatenate([corpus, corpus]), sample_windows(4, seed=1))
    np.testing.assert_allclose(scores[:, :8], scores[:, 8:], rtol=1e-5, atol=1e-5)


@shows_unwritten_memory
def results_repeat(method: str) -> None:
    """Two fits on the same data give identical bytes."""
    corpus, queries = sample_windows(12), sample_windows(5, seed=1)
    assert _scores(method, corpus, queries).tobytes() == _scores(method, corpus, queries).tobytes()


@shows_unwritten_memory
def other_knowledge_leaves_no_trace(method: str) -> None:
    """Earlier queries and labels do not change the bytes of a ranking."""
    for befores in (0.4, 0.8):
        fitted, asked = _fitted(method, befores), _questions(befores)
        expected = [_rank(_fitted(method, befores), *one) for one in asked]
        for _ in range(2):
            assert [_rank(fitted, *one) for one in asked] == expected


@shows_unwritten_memory
def threads_do_not_meet(method: str) -> None:
    """Concurrent queries, during fitting and pickling, get the same bytes as sequential ones."""
    asked = _questions(befores=0.8) * THREADS
    expected = [_rank(_fitted(method, 0.8), *one) for one in asked[: len(asked) // THREADS]] * THREADS
    fitted, pause = _fitted(method, 0.8), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(THREADS + 1) as team:
            ranked = [team.submit(_rank, fitted, *one) for one in asked]
            copies = [team.submit(pickle.dumps, fitted) for _ in range(THREADS)]
            assert [one.result() for one in ranked] == expected
            assert all(copy.result() for copy in copies)
    finally:
        sys.setswitchinterval(pause)


@shows_unwritten_memory
def inputs_stay_as_they_were(method: str) -> None:
    """Corpus and queries are not modified."""
    corpus, queries = sample_windows(12), sample_windows(5, seed=1)
    before = corpus.fingerprint(), queries.fingerprint()
    _scores(method, corpus, queries)
    assert (corpus.fingerprint(), queries.fingerprint()) == before


@shows_unwritten_memory
def labels_are_read_only_where_declared(method: str) -> None:
    """Without `uses_labels`, corpus labels have no effect."""
    if Method(method).uses_labels:
        raise not_asked(method, "uses_labels")
    corpus, queries = sample_windows(12), sample_windows(5, seed=1)
    relabelled = replace(corpus, labels=np.roll(corpus.labels, 1), groups=corpus.assets, times=-corpus.times)
    results = [Method(method).legs[0].retriever.fit(c, c[:0]).score(queries) for c in (corpus, relabelled)]
    np.testing.assert_array_equal(results[0], results[1])


@shows_unwritten_memory
def a_partly_labelled_corpus_is_scored(method: str) -> None:
    """A corpus with few or no labels gets finite scores."""
    corpus, queries = sample_windows(12), sample_windows(5, seed=1)
    for known in (6, 1, 0):
        labels = np.where(np.arange(12) < known, corpus.labels, UNLABELLED).astype(np.int32)
        assert np.isfinite(_scores(method, replace(corpus, labels=labels), queries)).all()


@shows_unwritten_memory
def corpus_dependence_is_declared(method: str) -> None:
    """A method declared as pairwise scores an item independently of the other items."""
    if Method(method).corpus_dependent:
        raise not_asked(method, "corpus_dependent")
    corpus = sample_windows(16)
    corpus = corpus.with_stats(ChannelStats.of(corpus))
    queries = sample_windows(5, seed=1)
    whole, part = _scores(method, corpus, queries), _scores(method, corpus[:9], queries)
    np.testing.assert_allclose(whole[:, :9], part, rtol=1e-4, atol=1e-4)


@shows_unwritten_memory
def normals_may_be_missing_or_present(method: str) -> None:
    """The pool of normals may be empty."""
    corpus, queries = sample_windows(12), sample_windows(5, seed=1)
    for normals in (corpus[:0], corpus[corpus.labels == 0]):
        assert np.isfinite(Method(method).fit(corpus, normals).score(queries)).all()


@shows_unwritten_memory
def declared_abilities_are_there(method: str) -> None:
    """The first leg has the members of its declared abilities."""
    leg = Method(method).legs[0]
    name = leg.leg.stage.name
    require_abilities((RETRIEVERS if name in RETRIEVERS else ENCODERS).get(name), leg.part.component)


@shows_unwritten_memory
def it_travels_between_processes(method: str) -> None:
    """A fitted method is picklable, and its copy gives equal scores."""
    corpus, queries = sample_windows(12), sample_windows(5, seed=1)
    fitted = Method(method).fit(corpus).prepare()
    copy: FittedMethod = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - bytes of this function
    np.testing.assert_array_equal(fitted.score(queries), copy.score(queries))


RETRIEVER_CHECKS: tuple[RetrieverCheck, ...] = (
    scores_have_the_right_shape,
    ragged_windows_are_scored,
    one_channel_is_enough,
    constant_channels_do_not_break_it,
    missing_values_are_refused,
    one_item_is_a_corpus,
    one_query_is_a_batch,
    duplicates_score_alike,
    results_repeat,
    other_knowledge_leaves_no_trace,
    threads_do_not_meet,
    inputs_stay_as_they_were,
    labels_are_read_only_where_declared,
    a_partly_labelled_corpus_is_scored,
    corpus_dependence_is_declared,
    normals_may_be_missing_or_present,
    declared_abilities_are_there,
    it_travels_between_processes,
)


def _require_untagged(method: str, tag: str) -> None:
    for stage in (leg.stage for leg in parse(method).legs):
        require_untagged((RETRIEVERS if stage.name in RETRIEVERS else ENCODERS).get(stage.name), tag)


def _fitted(method: str, befores: float) -> FittedMethod:
    corpus = sample_windows(24, befores=befores)
    return Method(method).fit(corpus, corpus[corpus.labels == 0])


def _questions(befores: float) -> list[tuple[WindowSet, Knowledge]]:
    """Queries of two lengths with three states of knowledge, alternating."""
    corpus = sample_windows(24, befores=befores)
    every, known = corpus.labels, np.arange(24)
    some, few = (np.where(kept, every, UNLABELLED).astype(np.int32) for kept in (known % 3 > 0, known < 9))
    asked = [sample_windows(5, length=length, befores=befores, seed=1) for length in (32, 48)]
    return [(queries, Knowledge(labels)) for labels in (every, some, few) for queries in asked]


def _rank(fitted: FittedMethod, queries: WindowSet, knowledge: Knowledge) -> tuple[bytes, ...]:
    """A ranking with its opinions as bytes."""
    ranking = fitted.rank(queries, knowledge=knowledge)
    said = [(one.posterior.tobytes(), one.strangeness, one.candidates) for one in ranking.opinions or ()]
    return ranking.order.tobytes(), ranking.scores.tobytes(), repr(said).encode()


def _scores(method: str, corpus: WindowSet, queries: WindowSet) -> Scores:
    return Method(method).fit(corpus).score(queries)
