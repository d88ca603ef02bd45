"""Bags of words against counting by hand; what is joined in a file is what is joined in memory."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from readbench.engine import room
from readbench.engine.retrievers import Bags, SaxBm25
from readbench.testing import sample_windows

tables = arrays.arrays(np.int64, arrays.array_shapes(min_dims=2, max_dims=2, max_side=7), elements=st.integers(0, 5))


def contents(bags: Bags) -> list[dict[int, float]]:
    """Every bag as a dictionary."""
    bounds = zip(bags.starts, bags.starts[1:], strict=False)
    return [dict(zip(bags.words[a:b].tolist(), bags.times[a:b].tolist(), strict=True)) for a, b in bounds]


@given(words=tables)
def test_words_are_counted_within_each_bag(words: np.ndarray) -> None:
    assert contents(Bags.of(words, 6)) == [dict(Counter(row)) for row in words.tolist()]


@given(words=tables, first=st.integers(0, 8), last=st.integers(0, 8))
def test_parts_are_those_of_the_whole(words: np.ndarray, first: int, last: int) -> None:
    assert contents(Bags.of(words, 6)[first:last]) == contents(Bags.of(words, 6))[first:last]


@given(words=tables, cut=st.integers(0, 7))
def test_joined_parts_are_the_whole(words: np.ndarray, cut: int) -> None:
    whole = Bags.of(words, 6)
    joined = Bags.join([whole[:cut], whole[cut:]], len(words), words.size, 6)
    assert contents(joined) == contents(whole)
    assert len(joined) == len(words)


@pytest.mark.parametrize(("vocabulary", "kind"), [(2**31 - 1, np.int32), (2**31, np.int64)])
def test_numbers_of_words_are_as_short_as_the_vocabulary_allows(vocabulary: int, kind: type) -> None:
    bags = Bags.of(np.array([[0, vocabulary - 1]]), vocabulary)
    assert bags.words.dtype == Bags.join([bags], 1, 2, vocabulary).words.dtype == kind
    assert bags.words.tolist() == [0, vocabulary - 1]


def test_an_index_in_a_file_scores_as_one_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, queries = sample_windows(60, channels=3), sample_windows(5, channels=3, seed=1)
    here = SaxBm25(window=16).fit(corpus, corpus[:0])
    monkeypatch.setattr(room, "MAX_IN_MEMORY_BYTES", 100)
    there = SaxBm25(window=16).fit(corpus, corpus[:0])
    assert isinstance(there.index_.postings_[1].base, np.memmap)
    np.testing.assert_array_equal(there.score(queries), here.score(queries))
    np.testing.assert_array_equal(there.search(queries, 7).indices, here.search(queries, 7).indices)
