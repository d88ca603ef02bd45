"""Every retriever's search finds the top of its own scores, in less memory than the matrix takes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from readbench.engine.method import FittedMethod, Method
from readbench.engine.preparation import Scaler, WindowRows, dense, on_grid, stack_windows
from readbench.engine.ranking import rank
from readbench.engine.registry import RETRIEVERS
from readbench.engine.retrievers import Euclidean, _euclidean as euclidean
from readbench.engine.retrievers._search import PER_THREAD, best_of, fill_scores, score_blocks
from readbench.engine.testing import sample_windows
from readbench.engine.windows import WindowSet, concatenate
from readbench.errors import ParameterError

NOT_WINDOWS_ALONE = {"classify"}
"""A language model: its answers cost money."""
EMBEDDERS = ("raw", "raw+nr", "rocket", "sonde+nr")
SUPERVISED = {"mr-hydra", "rdst"}
"""They need packages and minutes, and have no search of their own."""
OWN = sorted(set(RETRIEVERS.names()) - NOT_WINDOWS_ALONE - SUPERVISED)


def fitted(method: str, corpus: WindowSet, normals: WindowSet) -> FittedMethod:
    return Method(method).fit(corpus, normals).prepare()


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("method", OWN)
def test_the_search_is_the_top_of_the_scores(method: str, ragged: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    monkeypatch.setattr(euclidean, "PIECE_BYTES", 4 * 3 * 40 * 16)
    corpus, queries = (sample_windows(n, length=40, ragged=ragged, seed=s) for n, s in ((301, 0), (9, 1)))
    retriever = fitted(method, corpus, corpus[corpus.labels == 0])
    scores, hits = retriever.score(queries), retriever.search(queries, 20)
    top = rank(scores, 20)
    np.testing.assert_array_equal(hits.indices, top)
    np.testing.assert_array_equal(hits.scores, np.take_along_axis(scores, top, axis=1))


@pytest.mark.parametrize("method", EMBEDDERS)
def test_the_search_of_vectors_is_the_top_of_their_scores_up_to_rounding(method: str) -> None:
    corpus, queries = (sample_windows(n, length=40, seed=s) for n, s in ((90, 0), (5, 1)))
    retriever = fitted(method, corpus, corpus[corpus.labels == 0])
    scores, hits = retriever.score(queries), retriever.search(queries, 20)
    np.testing.assert_allclose(hits.scores, np.sort(scores, axis=1)[:, :-21:-1], atol=2e-5)
    np.testing.assert_allclose(np.take_along_axis(scores, hits.indices, axis=1), hits.scores, atol=2e-5)


@pytest.mark.parametrize("method", OWN)
def test_a_search_for_nothing_is_refused(method: str) -> None:
    corpus = sample_windows(12)
    with pytest.raises(ParameterError, match=r"range \[1, inf\)"):
        fitted(method, corpus, corpus).search(corpus[:2], 0)


def test_a_search_takes_less_memory_than_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_THREADS", "2")
    monkeypatch.setattr(euclidean, "PIECE_BYTES", 2**13)
    rng = np.random.default_rng(0)
    corpus, queries = (WindowSet.from_arrays(rng.random((count, 1, 8))) for count in (40_000, 60))
    retriever = Euclidean().fit(corpus, corpus[:0])
    retriever.search(queries, 10)
    tracemalloc.start()
    retriever.search(queries, 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    matrix = 4 * len(queries) * len(corpus)
    assert peak < matrix / 2


@pytest.mark.parametrize("threads", ["1", "3"])
def test_blocks_come_in_corpus_order_whatever_the_threads(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_THREADS", threads)
    scores = np.random.default_rng(0).integers(5, size=(4, 103)).astype(np.float32)
    items = scores.shape[1]
    blocks = list(score_blocks(items, 2, lambda at: scores[:, at]))
    assert len(blocks) == -(-items // (2 * PER_THREAD * int(threads)))
    np.testing.assert_array_equal(fill_scores(blocks, np.empty_like(scores)), scores)
    np.testing.assert_array_equal(best_of(blocks, len(scores), 7).indices, rank(scores, 7))


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("align", ["name", "position"])
def test_windows_of_one_shape_are_laid_out_as_any_others(ragged: bool, align: str) -> None:  # noqa: FBT001
    """Scaled at once or one after the other, on an axis of their own or of others: the same bits."""
    corpus = sample_windows(40, length=24, ragged=ragged)
    if not ragged:
        corpus = corpus[corpus.channel_set == corpus.channel_set[0]][::2]
        assert stack_windows(corpus) is not None
    scale = Scaler.of("channel", corpus)
    scaled, twin = scale(corpus), scale(concatenate([corpus, sample_windows(1, length=23)]))[:-1]
    axis = ("other", *corpus.channels(0), "sensor 0", "sensor 1", "sensor 2")
    axis = tuple(dict.fromkeys(axis))
    for length in (24, 30):
        expected = dense(twin, channels=axis, length=length, align=align)  # type: ignore[arg-type]
        np.testing.assert_array_equal(on_grid(scaled, axis, length, align), expected)  # type: ignore[arg-type]
    if not ragged:
        rows = WindowRows.of(scaled, axis, align).values  # type: ignore[arg-type]
        np.testing.assert_array_equal(rows, dense(twin, channels=axis, length=24, align=align))  # type: ignore[arg-type]
