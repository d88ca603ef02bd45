"""Exact vector search gives what the full comparison in double precision gives, ties included."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.protocols import Metric
from readbench.engine.ranking import rank
from readbench.engine.retrievers import _vector_search as vectors, top_k
from readbench.errors import NotFiniteError, ParameterError, UsageError

Floats = NDArray[np.float32]
METRICS: tuple[Metric, ...] = get_args(Metric)


def full_scores(queries: Floats, corpus: Floats, metric: Metric) -> Floats:
    """(Q, N) every score, in double precision until the end."""
    left, right = queries.astype(np.float64), corpus.astype(np.float64)
    if metric == "euclidean":
        distances: Floats = np.sqrt(((left[:, None] - right[None]) ** 2).sum(axis=2)).astype(np.float32)
        return -distances
    sizes = np.linalg.norm(left, axis=1)[:, None] * np.linalg.norm(right, axis=1)
    cosines: NDArray[np.float64] = np.divide(left @ right.T, sizes, out=np.zeros(sizes.shape), where=sizes > 0)
    return cosines.astype(np.float32)


def assert_exact(queries: Floats, corpus: Floats, k: int, metric: Metric, threads: int = 1) -> None:
    """Same scores place by place; same positions wherever rounding leaves the order beyond doubt."""
    scores = full_scores(queries, corpus, metric)
    order = rank(scores, k)
    hits = top_k(queries, corpus, k, metric, threads=threads)
    np.testing.assert_allclose(hits.scores, np.take_along_axis(scores, order, axis=1), rtol=3e-7, atol=1e-7)
    np.testing.assert_array_equal(hits.indices, rank(hits_as_scores(hits.indices, hits.scores, scores), k))


def hits_as_scores(indices: NDArray[np.int64], own: Floats, scores: Floats) -> Floats:
    """The full scores with those of the hits in their place, which may differ in the last bit."""
    joined = scores.copy()
    np.put_along_axis(joined, indices, own, axis=1)
    return joined


def sample(kind: str, shape: tuple[int, int], seed: int) -> Floats:
    """Vectors that make rounding hard in one way or another."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    kinds = {
        "plain": values,
        "ties": np.round(values),
        "nearly equal": 1e-4 * values + np.random.default_rng(0).standard_normal(shape[1]),
        "far from zero": values + 1000,
        "heavy tails": values**7,
        "all scales": values * 10.0 ** rng.integers(-30, 15, (shape[0], 1)),
        "mostly zero": np.where(rng.random(shape) < 0.9, 0, values),
    }
    return kinds[kind].astype(np.float32)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "kind", ["plain", "ties", "nearly equal", "far from zero", "heavy tails", "all scales", "mostly zero"]
)
@pytest.mark.parametrize(("count", "items", "width"), [(1, 1, 1), (3, 33, 7), (11, 700, 64), (23, 100, 385)])
def test_hits_are_those_of_the_full_comparison(metric: Metric, kind: str, count: int, items: int, width: int) -> None:
    assert_exact(sample(kind, (count, width), 1), sample(kind, (items, width), 2), 20, metric, threads=2)


@pytest.mark.parametrize("metric", METRICS)
def test_equal_vectors_tie_and_keep_corpus_order(metric: Metric) -> None:
    corpus = np.tile(sample("plain", (10, 50), 0), (50, 1))
    hits = top_k(corpus[3:4], corpus, 60, metric, threads=3)
    assert hits.indices[0, :50].tolist() == list(range(3, 500, 10))
    assert (hits.scores[0, :50] == hits.scores[0, 0]).all()


@pytest.mark.parametrize("metric", METRICS)
def test_threads_and_batches_do_not_change_a_bit(metric: Metric, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, corpus = sample("plain", (37, 40), 1), sample("plain", (300, 40), 2)
    one = top_k(queries, corpus, 9, metric, threads=1)
    monkeypatch.setattr(vectors, "MOST_QUERIES", 8)
    for threads in (1, 2, 5):
        other = top_k(queries, corpus, 9, metric, threads=threads)
        assert other.indices.tobytes() == one.indices.tobytes()
        assert other.scores.tobytes() == one.scores.tobytes()


@pytest.mark.parametrize("metric", METRICS)
def test_largest_codes_in_every_place_do_not_overflow(metric: Metric) -> None:
    signs = np.random.default_rng(0).choice(np.array([-1, 1], np.float32), (1, 1000))
    almost = np.where(np.arange(1000) % 50 == np.arange(50)[:, None], -signs, signs)
    hits = top_k(signs, np.concatenate([almost, signs]), 1, metric, threads=1)
    assert hits.indices.tolist() == [[50]]


def test_vectors_of_length_zero_have_cosine_zero() -> None:
    corpus = np.array([[-1, 0], [0, 0], [1, 0]], np.float32)
    hits = top_k(np.array([[1, 0], [0, 0]], np.float32), corpus, 3, "cosine")
    assert hits.indices.tolist() == [[2, 1, 0], [0, 1, 2]]
    assert hits.scores.tolist() == [[1, 0, -1], [0, 0, 0]]


def test_a_corpus_on_disk_is_searched_where_it_lies(tmp_path: Path) -> None:
    corpus = sample("plain", (200, 32), 0)
    np.save(tmp_path / "corpus.npy", corpus)
    mapped = np.load(tmp_path / "corpus.npy", mmap_mode="r")
    np.testing.assert_array_equal(top_k(corpus[:4], mapped, 5).indices, top_k(corpus[:4], corpus, 5).indices)


def test_the_whole_corpus_is_ranked_where_k_exceeds_it() -> None:
    queries, corpus = sample("plain", (2, 8), 1), sample("plain", (17, 8), 2)
    hits = top_k(queries, corpus, 100, "euclidean", threads=4)
    assert np.sort(hits.indices, axis=1).tolist() == [list(range(17))] * 2


@pytest.mark.parametrize(("count", "items"), [(0, 5), (3, 0)])
def test_nothing_in_gives_nothing_out(count: int, items: int) -> None:
    hits = top_k(np.ones((count, 4), np.float32), np.ones((items, 4), np.float32), 2)
    assert hits.indices.shape == hits.scores.shape == (count, min(2, items))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("row", [5, 5000])
def test_a_vector_that_is_not_finite_is_named(metric: Metric, value: float, row: int) -> None:
    good = np.ones((6000, 3), np.float32)
    bad = good.copy()
    bad[row, 1] = value
    with pytest.raises(NotFiniteError, match=f"Vector {row} of the corpus"):
        top_k(good[:2], bad, 3, metric)
    with pytest.raises(NotFiniteError, match=f"Vector {row} of the query"):
        top_k(bad, good[:10], 3, metric)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match=r"queries \(1, 3\), corpus \(2, 4\)"):
        top_k(np.ones((1, 3), np.float32), np.ones((2, 4), np.float32), 1)
    with pytest.raises(UsageError, match=r"queries \(1, 0\)"):
        top_k(np.ones((1, 0), np.float32), np.ones((2, 0), np.float32), 1)
    with pytest.raises(ParameterError, match="'k' parameter of top_k"):
        top_k(np.ones((1, 3), np.float32), np.ones((2, 3), np.float32), 0)


@pytest.mark.parametrize("metric", METRICS)
def test_agrees_with_faiss(metric: Metric) -> None:
    faiss = pytest.importorskip("faiss")
    queries, corpus = (
        v / np.linalg.norm(v, axis=1, keepdims=True) for v in (sample("plain", (n, 96), n) for n in (20, 999))
    )
    index = faiss.IndexFlatIP(96) if metric == "cosine" else faiss.IndexFlatL2(96)
    index.add(corpus)
    similarity, indices = index.search(queries, 10)
    hits = top_k(queries, corpus, 10, metric)
    np.testing.assert_array_equal(hits.indices, indices)
    expected = similarity if metric == "cosine" else -np.sqrt(similarity)
    np.testing.assert_allclose(hits.scores, expected, rtol=1e-4, atol=1e-5)
