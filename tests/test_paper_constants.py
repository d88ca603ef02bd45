"""The constants that the paper fixes, each told by a result that another value would change.

Places are tables of the paper's appendix on hyperparameters: `hp-distance` and `hp-fusion`; sizes of tasks are in its
section on the protocol.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.benchmark.protocol import Composition
from readbench.benchmark.protocol._compose import select
from readbench.engine.protocols import Pool
from readbench.engine.registry import FUSIONS, RERANKERS, RETRIEVERS, TRANSFORMS
from readbench.engine.windows import WindowSet
from tests.engine.rerankers.pools import pool_of, reordered
from tests.naive import bm25, rerank as naive, symbolic

VOTED = [2, 1, 1, 1, 1, 1, 2, 2, 2, 2, 1, 3]
"""Labels of first hits: nine elect class 1, ten tie and elect the first hit's class 2, eleven elect class 1 again."""


def descending(count: int) -> NDArray[np.float32]:
    """(1, N) scores that rank items in corpus order."""
    return np.arange(count, 0, -1, dtype=np.float32)[None]


def test_reciprocal_rank_fusion_adds_60_to_ranks() -> None:
    """Table hp-fusion: RRF, fusion constant k0 = 60."""
    first, second = descending(3), descending(3)[:, ::-1]
    found = FUSIONS.get("rrf").build().combine(first, second)[0]
    assert found.tolist() == pytest.approx([1 / 61 + 1 / 63, 2 / 62, 1 / 63 + 1 / 61], rel=1e-6)


def test_the_weighted_sum_weighs_both_legs_alike() -> None:
    """Table hp-fusion: weighted sum, alpha = 0.5. Legs in opposite order cancel at equal weights only."""
    first = descending(4)
    assert np.abs(FUSIONS.get("ws").build().combine(first, first[:, ::-1])).max() < 1e-6


def test_the_cascade_reorders_the_first_100() -> None:
    """Table hp-fusion: two-step cascade, shortlist K' = 100."""
    first = descending(150)
    places = -FUSIONS.get("2step").build().combine(first, -first)[0]
    assert np.argsort(places).tolist() == [*range(99, -1, -1), *range(100, 150)]


def test_normal_residual_takes_off_the_mean_of_30_normals() -> None:
    """Table hp-distance: NR, nearest-normal count k = 30."""
    angles = np.linspace(0.1, 1.5, 60)
    normals = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)  # the nearest ones come first
    window = np.array([[1, 0]], np.float32)
    rest = window[0] - normals[:30].mean(axis=0)
    found = TRANSFORMS.get("nr").build().fit(normals).apply(window)[0]
    assert found.tolist() == pytest.approx((rest / np.linalg.norm(rest)).tolist(), abs=1e-5)


def test_dtw_warps_by_a_tenth_of_the_length() -> None:
    """Table hp-distance: Sakoe-Chiba radius max(1, round(0.1 T)); a pulse is found 10 steps later, not 11."""
    series = np.zeros((3, 1, 100), np.float32)
    for row, at in enumerate((40, 50, 51)):
        series[row, 0, at] = 1
    windows = WindowSet.from_arrays(list(series))
    dtw = RETRIEVERS.get("dtw-i").build(norm="none").fit(windows[1:], windows[:0])
    ten, eleven = -dtw.score(windows[:1])[0]
    assert ten == pytest.approx(0, abs=1e-6)
    assert eleven > 0.5


def noise() -> NDArray[np.float32]:
    """(1, 1, 200) a series without any structure."""
    return np.random.default_rng(0).standard_normal((1, 1, 200)).astype(np.float32)


def words_of(name: str) -> tuple[list[int], int]:
    """Words of a symbolic method as it is by default, and the size of its vocabulary."""
    corpus = WindowSet.from_arrays(list(noise()))
    lexicon = RETRIEVERS.get(name).build(norm="none").fit(corpus, corpus[:0]).lexicon_
    return lexicon.words(noise())[0, 0].tolist(), lexicon.size


def test_sax_words_are_the_paper_s() -> None:
    """Table hp-distance: SAX-BM25, window / stride 96/8, word length 6, alphabet 4."""
    found, size = words_of("sax-bm25")
    assert found == symbolic.sax_words(noise()[0, 0].tolist(), window=96, stride=8, length=6, alphabet=4)
    assert size == 4**6


def test_sfa_words_are_the_paper_s() -> None:
    """Table hp-distance: SFA-BM25, window / stride 128/8, 8 letters, alphabet 3."""
    found, size = words_of("sfa-bm25")
    windows = symbolic.word_windows(noise()[0, 0].tolist(), window=128, stride=8)
    parts = np.array([symbolic.fourier_parts(part, 8, mean=True) for part in windows], np.float32)
    edges = [symbolic.equal_depth_edges(column.tolist(), 3) for column in parts.T]
    letters = [[symbolic.letter(v, edge) for v, edge in zip(part.tolist(), edges, strict=True)] for part in parts]
    assert found == [symbolic.word(part, 3) for part in letters]
    assert size == 3**8


def test_words_saturate_as_in_the_paper() -> None:
    """Table hp-distance: BM25, k1 / b = 1.5/0.75; on a common grid all bags are of one length, which hides b."""
    steps = 2 * np.pi * np.arange(400)
    corpus = WindowSet.from_arrays([np.sin(steps / (8 * period))[None] for period in range(3, 8)])  # words come again
    method = RETRIEVERS.get("sax-bm25").build(norm="none").fit(corpus, corpus[:0])
    documents = [[method.lexicon_.words(corpus.values(item)[None])[0, 0].tolist()] for item in range(5)]
    expected = [bm25.score(documents[0], item, documents, "floor", k1=1.5) for item in range(5)]
    assert method.score(corpus[:1])[0].tolist() == pytest.approx(expected, rel=1e-5)
    assert method.b == 0.75


def test_candidates_are_voted_for_by_ten() -> None:
    """Table hp-fusion: Majority-Vote, k = 10."""
    pool = pool_of(VOTED)
    found = reordered(pool, RERANKERS.get("majvote").build().rerank(pool))[0]
    assert [VOTED[item] for item in found[:5]] == [2] * 5


def pool_with_neighbours(seed: int, first: Sequence[int] = ()) -> Pool:
    """40 candidates of three classes at random places: ten neighbours say something else than nine or eleven."""
    rng = np.random.default_rng(seed)
    labels = [*first, *rng.integers(1, 4, 40 - len(first)).tolist()]
    vectors = (rng.standard_normal((40, 6)) * (1, 0.8, 0.6, 0.4, 0.3, 0.2)).tolist()
    return pool_of(labels, vectors, rng.standard_normal(6).tolist(), sorted(rng.random(40), reverse=True))


def test_feedback_takes_the_centroid_of_ten_at_half_weight() -> None:
    """Table hp-fusion: PRF, k / beta = 10/0.5."""
    pool = pool_with_neighbours(0)
    expected = naive.prf(pool.scores[0].tolist(), pool.items.tolist(), 10, 0.5, "printed")
    assert RERANKERS.get("prf").build().rerank(pool)[0].tolist() == pytest.approx(expected, abs=1e-5)


def shares(pool: Pool) -> list[float | None]:
    """Purity of each candidate among ten neighbours."""
    labels = pool.labels[0].tolist()  # the candidates are the whole corpus, in its order
    return naive.purities(list(range(len(labels))), labels, pool.corpus_similarity.tolist(), labels, 10)


def test_purity_looks_at_ten_neighbours_at_half_weight() -> None:
    """Table hp-fusion: Purity, k / alpha = 10/0.5."""
    pool = pool_with_neighbours(1)
    expected = naive.purity(pool.scores[0].tolist(), shares(pool), 0.5)
    assert RERANKERS.get("purity").build().rerank(pool)[0].tolist() == pytest.approx(expected, abs=1e-5)


def test_query_purity_has_ten_voters_and_ten_neighbours_at_half_weight() -> None:
    """Table hp-fusion: QPurity, k / vote k / alpha = 10/10/0.5; the labels are those of the vote by ten above."""
    pool = pool_with_neighbours(2, VOTED)
    expected = naive.query_purity(pool.scores[0].tolist(), pool.labels[0].tolist(), shares(pool), 10, 0.5)
    assert RERANKERS.get("qpurity").build().rerank(pool)[0].tolist() == pytest.approx(expected, abs=1e-5)


def test_the_gaussian_process_is_fitted_on_twenty_with_95_percent_of_the_variance() -> None:
    """Table hp-fusion: GPC, fit-window K = 20, PCA variance 0.95, L1 kernel of length scale 1."""
    pool = pool_with_neighbours(3)
    labels, vectors, query = pool.labels[0].tolist(), pool.items.astype(np.float64), pool.queries[0].astype(np.float64)
    expected = naive.gpc(pool.scores[0].tolist(), labels, vectors, query, 20, 0.95, "laplacian")
    assert RERANKERS.get("gpc").build().rerank(pool)[0].tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", ["prf", "purity", "qpurity", "majvote", "gpc"])
def test_pools_hold_twenty(name: str) -> None:
    """Section on language-model rerankers: the top-20 pool; ours for every reranker."""
    assert RERANKERS.get(name).build().depth == 20


def test_tasks_have_the_paper_s_size() -> None:
    """Section on the protocol: at most 1000 anomalies and 100 queries, 10 and 20 % of the corpus normal."""
    labels = np.repeat(np.array([0, 1, 2], np.int32), (3000, 2000, 1000))
    chosen = select(labels, np.arange(6000) % 5 == 0, Composition(), seed=0)
    assert len(chosen.queries) == 100
    assert {rho: len(items) for rho, items in chosen.levels.items()} == {0: 1000, 10: 1111, 20: 1250}
    assert len(chosen.normals) == 500
