from __future__ import annotations

import numpy as np
import pytest

from readbench.engine.method import Method
from readbench.engine.preparation import dense
from readbench.engine.ranking import rank
from readbench.engine.retrievers import SfaBm25, _words as symbolic
from readbench.engine.retrievers._words import equal_depth_edges, extract_features, fourier_columns
from readbench.engine.testing import sample_windows
from readbench.engine.windows import WindowSet
from readbench.testing import RETRIEVER_CHECKS, RetrieverCheck
from tests.naive import bm25 as naive_bm25, symbolic as naive

METHODS = ["sfa-bm25", "sfa-bm25(window=8,stride=2)", "sfa-bm25(window=9,znorm=true,norm=window,align=position)"]


@pytest.mark.parametrize("check", RETRIEVER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("method", METHODS)
def test_the_contract_is_kept(method: str, check: RetrieverCheck) -> None:
    check(method)


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("window", [1, 2, 3, 8, 20, 128])
def test_features_are_the_lowest_fourier_coefficients(window: int, mean: bool) -> None:  # noqa: FBT001
    series = np.random.default_rng(window).standard_normal(160).astype(np.float32)
    found = extract_features(series[None, None], fourier_columns(window, 8, mean=mean), 8, standardise=not mean)[0, 0]
    parts = naive.word_windows(series.tolist(), window, 8)
    wanted = [naive.fourier_parts(part if mean else naive.standardised(part), 8, mean=mean) for part in parts]
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_each_bin_holds_equally_many_corpus_values() -> None:
    found = np.random.default_rng(0).standard_normal((30, 2, 5, 4)).astype(np.float32)
    edges = equal_depth_edges(found, 3)
    assert edges.shape == (2, 4, 2)
    for channel in range(2):
        for column in range(4):
            values = found[:, channel, :, column].ravel()
            assert edges[channel, column].tolist() == naive.equal_depth_edges(values.tolist(), 3)
            letters = np.searchsorted(edges[channel, column], values, side="right")
            assert np.bincount(letters).tolist() == [50, 50, 50]


@pytest.mark.parametrize("znorm", [False, True])
def test_scores_equal_the_slow_twins(znorm: bool) -> None:  # noqa: FBT001
    corpus, queries = sample_windows(12, channels=2, length=50), sample_windows(4, channels=2, length=50, seed=1)
    axis = tuple(corpus.channels(0))

    def parts(windows: WindowSet) -> list[list[list[list[float]]]]:
        return [
            [
                [
                    naive.fourier_parts(naive.standardised(part) if znorm else part, 3, mean=not znorm)
                    for part in naive.word_windows(row.tolist(), 20, 6)
                ]
                for row in window
            ]
            for window in dense(windows, channels=axis, length=50)
        ]

    def words(windows: WindowSet) -> list[list[list[tuple[int, ...]]]]:
        return [
            [
                [tuple(naive.letter(v, edges[c][k]) for k, v in enumerate(values)) for values in channel]
                for c, channel in enumerate(window)
            ]
            for window in parts(windows)
        ]

    fitted = parts(corpus)
    edges = [
        [naive.equal_depth_edges([v[k] for window in fitted for v in window[c]], 3) for k in range(3)] for c in (0, 1)
    ]
    edges = [[[edge - 1e-6 for edge in own] for own in channel] for channel in edges]  # on an edge is above it
    method = SfaBm25(norm="none", window=20, stride=6, length=3, alphabet=3, znorm=znorm)
    found = method.fit(corpus, corpus[:0]).score(queries)
    wanted = [[naive_bm25.score(q, n, words(corpus), "floor") for n in range(12)] for q in words(queries)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_constant_stretches_share_one_word_whatever_rounding_does() -> None:
    """Off frequency 0 a constant has no coefficients, only rounding, and bins must not be fitted to that."""
    levels = np.random.default_rng(0).standard_normal((40, 1, 1)) * np.ones((1, 1, 64))
    corpus = WindowSet.from_arrays(levels)
    method = SfaBm25(norm="none", window=33, stride=1).fit(corpus, corpus[:0])
    words = method.lexicon_.words(dense(corpus))
    assert len(np.unique(words % 3**7)) == 1
    assert len(np.unique(words)) == 3


def test_levels_and_scales_of_whole_channels_change_nothing() -> None:
    corpus, queries = sample_windows(20, length=60), sample_windows(6, length=60, seed=1)
    scores = [
        Method(f"sfa-bm25(window=24,norm={norm})").fit(corpus, corpus).score(queries)
        for norm in ("channel", "none", "normals")
    ]
    for other in scores[1:]:
        np.testing.assert_array_equal(rank(other), rank(scores[0]))


def test_bins_of_a_large_corpus_are_fitted_on_evenly_spaced_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = sample_windows(40)
    every = SfaBm25(window=16).fit(corpus, corpus[:0])
    monkeypatch.setattr(symbolic, "SAMPLE_BYTES", 10 * 4 * 3 * 3 * 8)  # ten windows of 3 channels, 3 words
    sampled = SfaBm25(window=16).fit(corpus, corpus[:0])
    quarter = SfaBm25(norm="none", window=16).fit(every.scale_(corpus)[::4], corpus[:0])
    np.testing.assert_array_equal(sampled.lexicon_.edges, quarter.lexicon_.edges)
    assert (sampled.lexicon_.edges != every.lexicon_.edges).any()


def test_a_query_of_the_corpus_finds_itself() -> None:
    corpus = sample_windows(30, length=80)
    scores = Method("sfa-bm25(window=32,idf=plus1)").fit(corpus, corpus[:0]).score(corpus)
    assert (scores.argmax(axis=1) == np.arange(30)).all()
