from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.ranking import rank
from readbench.engine.retrievers import Bags, Bm25, _words as bm25
from readbench.engine.retrievers._words import Idf, inverse_frequency
from tests.naive import bm25 as naive

FIELDS, VOCABULARY = 3, 11
RULES: tuple[Idf, ...] = ("floor", "printed", "plus1")


def documents(count: int, seed: int = 0, most: int = 9) -> list[list[list[int]]]:
    """Documents of three fields, each with its own lengths; low words are common, high ones rare."""
    rng = np.random.default_rng(seed)
    return [
        [(rng.geometric(0.3, rng.integers(1, most)) % VOCABULARY).tolist() for _ in range(FIELDS)] for _ in range(count)
    ]


def bags(texts: list[list[list[int]]], vocabulary: int = VOCABULARY) -> Bags:
    parts = []
    for text in texts:
        words = [field * vocabulary + word for field, own in enumerate(text) for word in own]
        parts.append(Bags.of(np.array([words]), FIELDS * vocabulary))
    return Bags.join(parts, len(texts), sum(len(part.words) for part in parts), FIELDS * vocabulary)


def twin(corpus: list[list[list[int]]], queries: list[list[list[int]]], rule: str) -> NDArray[np.float64]:
    return np.array([[naive.score(query, n, corpus, rule) for n in range(len(corpus))] for query in queries])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", [1, 2, 30])
def test_scores_equal_the_slow_twin(rule: Idf, size: int) -> None:
    corpus, queries = documents(size), documents(6, seed=1)
    found = Bm25(rule).fit(bags(corpus), FIELDS).score(bags(queries))
    np.testing.assert_allclose(found, twin(corpus, queries, rule), rtol=1e-5, atol=1e-6)


def test_the_search_finds_what_ranking_all_scores_finds() -> None:
    corpus = documents(40, most=3)
    index = Bm25("printed").fit(bags(corpus + corpus), FIELDS)
    queries = bags(documents(12, seed=1))
    scores = index.score(queries)
    for k in (1, 7, 80, 500):
        hits = index.search(queries, k)
        np.testing.assert_array_equal(hits.indices, rank(scores, min(k, 80)))
        np.testing.assert_array_equal(hits.scores, np.take_along_axis(scores, hits.indices, axis=1))


def test_a_word_asked_for_twice_counts_twice() -> None:
    corpus = documents(20)
    index = Bm25().fit(bags(corpus), FIELDS)
    once = bags(documents(4, seed=1))
    np.testing.assert_allclose(index.score(replace(once, times=2 * once.times)), 2 * index.score(once), rtol=1e-6)


def test_words_the_index_has_never_seen_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, queries = bags(documents(20), 50), documents(5, seed=1)
    strange = bags([[[*words, 30, 49] for words in text] for text in queries], 50)
    for table in (bm25.LARGEST_TABLE, 0):
        monkeypatch.setattr(bm25, "LARGEST_TABLE", table)
        index = Bm25().fit(corpus, FIELDS)
        np.testing.assert_array_equal(index.score(strange), index.score(bags(queries, 50)))


def test_a_common_word_weighs_less_than_a_rare_one_but_never_against_a_document() -> None:
    holders = np.array([1, 2, 3, 6, 7])
    weights = inverse_frequency(holders, 10, np.zeros(5, np.int64), "floor")
    assert (np.diff(weights[:3]) < 0).all()
    mean = np.log((10.5 - holders) / (holders + 0.5)).mean()
    assert weights[3:].tolist() == pytest.approx([0.25 * mean] * 2)
    assert mean > 0


def test_a_field_of_common_words_only_is_left_out_of_the_judgement() -> None:
    field = np.array([0, 1, 1])
    assert inverse_frequency(np.array([1, 9, 10]), 10, field, "floor")[1:].tolist() == [0, 0]


def test_it_agrees_with_rank_bm25() -> None:
    package = pytest.importorskip("rank_bm25")
    corpus, queries = documents(60), documents(8, seed=1)
    index = Bm25("floor").fit(bags(corpus), FIELDS)
    peers = [package.BM25Okapi([text[field] for text in corpus]) for field in range(FIELDS)]
    assert all(peer.average_idf > 0 for peer in peers)
    wanted = np.mean([[peer.get_scores(text[f]) for text in queries] for f, peer in enumerate(peers)], axis=0)
    np.testing.assert_allclose(index.score(bags(queries)), wanted, rtol=1e-5, atol=1e-6)


def test_it_agrees_with_bm25s() -> None:
    package = pytest.importorskip("bm25s")
    corpus, queries = documents(60), documents(8, seed=1)
    index = Bm25("plus1").fit(bags(corpus), FIELDS)
    wanted = np.zeros((8, 60))
    for field in range(FIELDS):
        peer = package.BM25(method="atire", idf_method="lucene", k1=1.5, b=0.75)
        texts = package.tokenization.Tokenized(
            ids=[text[field] for text in corpus], vocab={word: word for word in range(VOCABULARY)}
        )
        peer.index(texts, show_progress=False)
        wanted += [peer.get_scores_from_ids(text[field]) for text in queries]
    np.testing.assert_allclose(index.score(bags(queries)), wanted / FIELDS, rtol=1e-5, atol=1e-6)
