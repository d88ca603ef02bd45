from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from readbench.ranking import rank
from readbench.retrieve.dtw import DtwDependent, DtwIndependent
from readbench.testing import sample_windows
from readbench.windows import WindowSet
from tests.naive import warping as naive


def series(rng: np.random.Generator, channels: int, length: int, kind: str) -> np.ndarray:
    walk = rng.standard_normal((channels, length)).cumsum(axis=1)
    return {"walk": walk, "flat": walk * 0 + 2.0, "far": walk + 1e3, "tiny": walk * 1e-4}[kind]


@settings(max_examples=30)
@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(1, 40), st.sampled_from(["walk", "flat", "far", "tiny"])), min_size=1, max_size=6),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.integers(0, 1000),
)
def test_distances_are_those_of_the_recursion(
    channels: int, items: list[tuple[int, str]], length: int, band: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    corpus = [series(rng, channels, t, kind) for t, kind in items]
    query = series(rng, channels, length, "walk")
    windows, asked = WindowSet.from_arrays(corpus), WindowSet.from_arrays([query])
    stored = [windows.values(i).astype(np.float64) for i in range(len(windows))]
    own = asked.values(0).astype(np.float64)
    for method, twin in ((DtwIndependent, naive.dtw_i), (DtwDependent, naive.warp)):
        found = -method(norm="none", band=band).fit(windows, windows[:0]).score(asked)[0]
        expected = [twin(own, other, band) for other in stored]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", [DtwIndependent, DtwDependent])
@pytest.mark.parametrize("k", [1, 5, 20, 500])
def test_search_is_the_top_of_the_full_scan(method: type[DtwIndependent], k: int) -> None:
    corpus = sample_windows(300, channels=4, length=48, ragged=True)
    queries = sample_windows(7, channels=4, length=48, ragged=True, seed=1)
    fitted = method().fit(corpus, corpus[:0])
    scores, hits = fitted.score(queries), fitted.search(queries, k)
    expected = rank(scores, k)
    np.testing.assert_array_equal(hits.indices, expected)
    np.testing.assert_array_equal(hits.scores, np.take_along_axis(scores, expected, axis=1))
    seeded = fitted.search(queries, k, seeds=expected[:, ::-1])
    np.testing.assert_array_equal(seeded.indices, expected)


def test_equal_distances_keep_corpus_order_in_search() -> None:
    one = sample_windows(1)
    corpus = WindowSet.from_arrays([one.values(0)] * 100, channels=one.channels(0))
    assert DtwIndependent(norm="none").fit(corpus, corpus[:0]).search(one, 5).indices.tolist() == [[0, 1, 2, 3, 4]]


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, queries = sample_windows(200, channels=3, length=64), sample_windows(5, channels=3, length=64, seed=1)
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("READBENCH_THREADS", threads)
        results.append(DtwIndependent().fit(corpus, corpus[:0]).score(queries).tobytes())
    assert len(set(results)) == 1


def test_the_band_of_the_paper_is_a_tenth_of_the_window() -> None:
    aeon = pytest.importorskip("aeon.distances", reason="needs the extra `bench`")
    corpus, query = sample_windows(10, channels=1, length=256), sample_windows(1, channels=1, length=256, seed=1)
    ours = -DtwIndependent(norm="none").fit(corpus, corpus[:0]).score(query)[0]
    wide = [w.values.astype(np.float64) for w in corpus]
    peer = [aeon.dtw_distance(query.values(0).astype(np.float64), w, window=26.5 / 256) for w in wide]
    np.testing.assert_allclose(ours, peer, rtol=1e-4)
