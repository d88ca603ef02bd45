"""Okapi BM25 over bags of words in several fields.

Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009). A field (here: a channel) has its own words,
document frequencies and lengths, and the scores of the fields are averaged. Since no two fields share a word, all of
them together are one inverted index, and a search is one product of sparse matrices.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from readbench.retrieve.bags import Bags, Integers
from readbench.retrieve.base import Hits
from readbench.windows.room import room

Idf = Literal["floor", "printed", "plus1"]
"""Weight of a word that n of N documents hold; see `inverse_frequency`."""
LARGEST_TABLE = 2**24
"""Up to so many possible words, a table says where each is in the index; beyond, they are searched for."""
PAIR = np.dtype([("document", np.int32), ("weight", np.float32)])
"""What the index keeps of a word in a document."""
SparseRows = tuple[Integers, Integers, NDArray[np.float32]]
"""Where each row begins, then the columns and the values of all rows."""
FLOOR = 0.25
"""Share of the mean weight that `floor` gives to words in more than half of the documents."""


class Bm25:
    """An index of N documents.

    Args:
        idf: weighting of rare against common words.
        k1: how slowly further occurrences of a word add less.
        b: how much long documents are held back, from 0 to 1.

    >>> documents = Bags.of(np.array([[0, 0, 1], [1, 1, 2], [2, 2, 2], [3, 3, 4], [0, 4, 4]]), vocabulary=5)
    >>> Bm25().fit(documents, fields=1).search(documents[:1], k=3).indices.tolist()
    [[0, 4, 1]]
    """

    def __init__(self, idf: Idf = "floor", k1: float = 1.5, b: float = 0.75) -> None:
        self.idf = idf
        self.k1 = k1
        self.b = b

    def fit(self, documents: Bags, fields: int) -> Self:
        """Index documents.

        Args:
            documents: N of them.
            fields: into how many equal runs the vocabulary falls.
        """
        from readbench.retrieve.kernels.postings import posted  # noqa: PLC0415 - brings numba

        self.items_ = items = len(documents)
        words, place, held = self._numbered(documents)
        field = self.words_ // (documents.vocabulary // fields)
        weight = inverse_frequency(held, items, field, self.idf) / fields
        starts = np.concatenate([[0], np.cumsum(held)])
        bags = documents.starts, words, documents.times
        pairs = posted(bags, place, field, fields, weight, self.k1, self.b, starts, room(len(words), PAIR))
        self.postings_ = starts, pairs
        return self

    def score(self, queries: Bags) -> NDArray[np.float32]:
        """(Q, N) scores of the documents for Q queries; every occurrence of a word in a query counts."""
        from readbench.retrieve.kernels.postings import all_scores  # noqa: PLC0415 - brings numba

        scores: NDArray[np.float32] = all_scores(self.lookup(queries), self.postings_, self.items_)
        return scores

    def search(self, queries: Bags, k: int) -> Hits:
        """The k best documents for Q queries, without the whole matrix of scores."""
        from readbench.retrieve.kernels.postings import best_scores  # noqa: PLC0415 - brings numba

        return Hits(*best_scores(self.lookup(queries), self.postings_, self.items_, min(k, self.items_)))

    def lookup(self, queries: Bags) -> SparseRows:
        """Those words of queries that the index has, in its own numbering."""
        place = self._search_words(queries.words) if self.places_ is None else self.places_[queries.words]
        known = place >= 0
        pointer = np.concatenate([[0], np.cumsum(known)])[queries.starts]
        return pointer, place[known], queries.times[known]

    def _numbered(self, documents: Bags) -> tuple[Integers, NDArray[np.int32], NDArray[np.int64]]:
        """Settle the words of the index.

        Returns:
            Of all entries a number, then the place in the index of each number, and how many documents hold each word
            of the index.
        """
        from readbench.retrieve.kernels.postings import tally  # noqa: PLC0415 - brings numba

        self.places_ = None
        if documents.vocabulary > LARGEST_TABLE:
            self.words_, number, held = np.unique(documents.words, return_inverse=True, return_counts=True)
            return number, np.arange(len(self.words_), dtype=np.int32), held
        occurrences = tally(documents.words, documents.vocabulary)
        self.words_ = np.flatnonzero(occurrences)
        self.places_ = np.full(documents.vocabulary, -1, np.int32)
        self.places_[self.words_] = np.arange(len(self.words_))
        return documents.words, self.places_, occurrences[self.words_]

    def _search_words(self, words: Integers) -> NDArray[np.int32]:
        near = np.searchsorted(self.words_, words).clip(0, len(self.words_) - 1)
        return np.where(self.words_[near] == words, near, -1).astype(np.int32)


def inverse_frequency(
    holders: NDArray[np.int64], items: int, field: NDArray[np.int64], rule: Idf
) -> NDArray[np.float64]:
    """(V,) weights of words that `holders` of all `items` documents hold.

    `printed` is the textbook's log((N - n + 0.5) / (n + 0.5)), negative for words in more than half of the
    documents. `floor` replaces negative weights by a quarter of the mean weight of the field's words, as the package
    rank_bm25 does, or by zero should that mean be negative too. `plus1` adds one inside the logarithm, as Lucene does.

    >>> inverse_frequency(np.array([1, 3]), 4, np.array([0, 0]), "plus1").round(2).tolist()
    [1.2, 0.36]
    """
    odds: NDArray[np.float64] = (items - holders + 0.5) / (holders + 0.5)
    weight: NDArray[np.float64] = np.log1p(odds) if rule == "plus1" else np.log(odds)
    if rule == "floor":
        mean = np.bincount(field, weight) / np.maximum(np.bincount(field), 1)
        weight = np.where(weight < 0, FLOOR * mean.clip(0)[field], weight)
    return weight
