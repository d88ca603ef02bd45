from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.method import Method
from readbench.engine.preparation import dense
from readbench.engine.ranking import rank
from readbench.engine.retrievers import SaxBm25, _words as symbolic
from readbench.engine.retrievers._words import Lexicon, normal_edges, segment_means
from readbench.engine.testing import sample_windows
from readbench.engine.windows import WindowSet
from readbench.testing import RETRIEVER_CHECKS, RetrieverCheck
from tests.naive import bm25 as naive_bm25, symbolic as naive

METHODS = ["sax-bm25", "sax-bm25(window=8,stride=2)", "sax-bm25(window=9,znorm=false,norm=window,align=position)"]


def sax(window: int, stride: int = 1, length: int = 6, alphabet: int = 4) -> Lexicon:
    return Lexicon(segment_means(window, length), normal_edges(length, alphabet), stride, standardise=True)


def words_of(series: NDArray[np.number], lexicon: Lexicon) -> list[int]:
    found: list[int] = lexicon.words(np.asarray(series, np.float32)[None, None])[0, 0].tolist()
    return found


@pytest.mark.parametrize("check", RETRIEVER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("method", METHODS)
def test_the_contract_is_kept(method: str, check: RetrieverCheck) -> None:
    check(method)


@pytest.mark.parametrize(("window", "length", "alphabet"), [(96, 6, 4), (20, 6, 5), (7, 3, 3), (4, 6, 4), (1, 2, 4)])
def test_words_equal_the_slow_twin(window: int, length: int, alphabet: int) -> None:
    series = np.random.default_rng(window).standard_normal(150).cumsum().astype(np.float32)
    found = words_of(series, sax(window, 8, length, alphabet))
    assert found == naive.sax_words(series.tolist(), window, 8, length, alphabet)


def test_a_rise_a_fall_and_a_flat_line_read_as_they_look() -> None:
    rise = np.arange(12.0)
    assert words_of(rise, sax(12, length=4)) == [int("0123", 4)]
    assert words_of(-rise, sax(12, length=4)) == [int("3210", 4)]
    assert words_of(np.full(12, 0.1), sax(12, length=4)) == [int("2222", 4)]


@pytest.mark.parametrize("scale", [1e-20, 1e-3, 1e6, 1e20])
def test_words_do_not_depend_on_level_and_scale(scale: float) -> None:
    series = np.random.default_rng(0).standard_normal(200).cumsum().astype(np.float32)
    lexicon = sax(40, 8)
    assert words_of(scale * series, lexicon) == words_of(series, lexicon)
    steps = np.round(series)  # sums of small whole numbers are exact in float32
    assert words_of(steps + 2**20, lexicon) == words_of(steps, lexicon)


def test_a_stretch_of_signal_has_the_same_word_wherever_it_lies() -> None:
    stretch = np.random.default_rng(0).integers(-3, 4, 24)
    later = np.concatenate([1000 * np.ones(16), stretch, stretch])
    words = words_of(later, sax(24, 8))
    assert words[2] == words[5] == words_of(stretch, sax(24))[0]


def test_noise_on_a_constant_is_no_signal() -> None:
    flat = np.full(96, 1e6, np.float32)
    flat[:48] = np.nextafter(flat[:48], np.float32(2e6))
    assert words_of(flat, sax(96)) == words_of(np.zeros(96), sax(96))


def test_windows_that_end_and_begin_with_the_same_word_keep_their_own_counts() -> None:
    lexicon = sax(4, stride=4)
    bags = lexicon.bags(np.zeros((3, 1, 20), np.float32))
    assert bags.starts.tolist() == [0, 1, 2, 3]
    assert bags.times.tolist() == [5, 5, 5]


def test_scores_equal_the_slow_twins() -> None:
    corpus, queries = sample_windows(15, channels=3, length=60), sample_windows(4, channels=3, length=60, seed=1)
    axis = tuple(corpus.channels(0))
    texts = [
        [
            [naive.sax_words(row.tolist(), 30, 3, 3, 3) for row in window]
            for window in dense(windows, channels=axis, length=60)
        ]
        for windows in (corpus, queries)
    ]
    found = SaxBm25(window=30, stride=3, length=3, alphabet=3).fit(corpus, corpus[:0]).score(queries)
    wanted = [[naive_bm25.score(query, n, texts[0], "floor") for n in range(15)] for query in texts[1]]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_the_scale_of_a_channel_changes_nothing() -> None:
    corpus, queries = sample_windows(20, length=60), sample_windows(6, length=60, seed=1)
    every = [
        Method(f"sax-bm25(window=24,norm={norm})").fit(corpus, corpus).score(queries)
        for norm in ("channel", "none", "window", "normals")
    ]
    for scores in every[1:]:
        np.testing.assert_array_equal(rank(scores), rank(every[0]))


def test_a_word_window_longer_than_the_series_shrinks_to_it() -> None:
    corpus = sample_windows(20, length=40)
    long = Method("sax-bm25(window=96)").fit(corpus, corpus[:0]).score(corpus)
    np.testing.assert_array_equal(long, Method("sax-bm25(window=40)").fit(corpus, corpus[:0]).score(corpus))


def test_a_query_longer_than_the_corpus_is_compared_on_its_own_grid() -> None:
    corpus, queries = sample_windows(12, length=30), sample_windows(3, length=30, seed=1)
    longer = WindowSet.from_arrays([dense(queries, length=59)[0]], channels=channel_names(queries))
    mixed = Method("sax-bm25(window=12,stride=4)").fit(corpus, corpus[:0])
    together = mixed.score(
        WindowSet.from_arrays([*dense(queries)[:2], longer.values(0)], channels=channel_names(queries))
    )
    np.testing.assert_array_equal(together[:2], mixed.score(queries[:2]))
    stretched = WindowSet.from_arrays(dense(corpus, length=59), channels=channel_names(corpus))
    fine = Method("sax-bm25(window=12,stride=4)").fit(stretched, corpus[:0])
    np.testing.assert_allclose(together[2:], fine.score(longer), rtol=1e-6)


def channel_names(windows: WindowSet) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in windows.channel_sets for name in names))


def test_blocks_leave_no_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, queries = sample_windows(20, ragged=True), sample_windows(5, seed=1, ragged=True)
    whole = Method("sax-bm25(window=8,stride=2)").fit(corpus, corpus[:0]).score(queries)
    monkeypatch.setattr(symbolic, "BLOCK_BYTES", 0)
    np.testing.assert_array_equal(Method("sax-bm25(window=8,stride=2)").fit(corpus, corpus[:0]).score(queries), whole)


def test_the_search_finds_what_ranking_all_scores_finds() -> None:
    corpus, queries = sample_windows(30, ragged=True), sample_windows(5, seed=1, length=48, ragged=True)
    method = SaxBm25(window=8, stride=2).fit(corpus, corpus[:0])
    scores = method.score(queries)
    np.testing.assert_array_equal(method.search(queries, 7).indices, rank(scores, 7))
    np.testing.assert_array_equal(method.search(queries, 99).scores, -np.sort(-scores, axis=1))
