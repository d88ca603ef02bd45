"""Okapi BM25 over bags of words in several fields.

Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009). A field (here: a channel) has its own words,
document frequencies and lengths, and the scores of the fields are averaged. Since no two fields share a word, all of
them together are one inverted index, and a search is one product of sparse matrices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import NDArray

from readbench.retrieve.base import Hits

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Idf = Literal["floor", "printed", "plus1"]
"""Weight of a word that n of N documents hold; see `inverse_frequency`."""
LARGEST_TABLE = 2**24
"""Up to so many possible words, a table says where each is in the index; beyond, they are searched for."""
PAIR = np.dtype([("document", np.int32), ("weight", np.float32)])
"""What the index keeps of a word in a document."""
Integers = NDArray[np.signedinteger]
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

    >>> from scipy.sparse import csr_array
    >>> documents = csr_array(np.array([[2, 0, 1], [0, 1, 2], [0, 1, 3], [1, 0, 0], [0, 0, 4]], np.float32))
    >>> Bm25().fit(documents, fields=1).search(documents[:1], k=3).indices.tolist()
    [[0, 3, 1]]
    """

    def __init__(self, idf: Idf = "floor", k1: float = 1.5, b: float = 0.75) -> None:
        self.idf = idf
        self.k1 = k1
        self.b = b

    def fit(self, counts: csr_array, fields: int) -> Self:
        """Index documents.

        Args:
            counts: (N, V) occurrences of each word; each row names a word at most once.
            fields: into how many equal runs of columns the vocabulary falls.
        """
        from readbench.retrieve.kernels.postings import posted  # noqa: PLC0415 - brings numba

        self.items_ = items = counts.shape[0]
        words, place, held = self._numbered(counts)
        field = self.words_ // (counts.shape[1] // fields)
        weight = inverse_frequency(held, items, field, self.idf) / fields
        starts = np.concatenate([[0], np.cumsum(held)])
        bags = counts.indptr, words, counts.data
        pairs = posted(bags, place, field, fields, weight, self.k1, self.b, starts, np.empty(len(words), PAIR))
        self.postings_ = starts, pairs
        return self

    def score(self, counts: csr_array) -> NDArray[np.float32]:
        """(Q, N) scores of the documents for queries (Q, V); every occurrence of a word in a query counts."""
        from readbench.retrieve.kernels.postings import all_scores  # noqa: PLC0415 - brings numba

        scores: NDArray[np.float32] = all_scores(self.lookup(counts), self.postings_, self.items_)
        return scores

    def search(self, counts: csr_array, k: int) -> Hits:
        """The k best documents for queries (Q, V), without the whole matrix of scores."""
        from readbench.retrieve.kernels.postings import best_scores  # noqa: PLC0415 - brings numba

        return Hits(*best_scores(self.lookup(counts), self.postings_, self.items_, min(k, self.items_)))

    def lookup(self, counts: csr_array) -> SparseRows:
        """Those words of queries (Q, V) that the index has, in its own numbering."""
        place = self._search_words(counts.indices) if self.places_ is None else self.places_[counts.indices]
        known = place >= 0
        pointer = np.concatenate([[0], np.cumsum(known)])[counts.indptr]
        return pointer, place[known], counts.data[known].astype(np.float32, copy=False)

    def _numbered(self, counts: csr_array) -> tuple[Integers, NDArray[np.int32], NDArray[np.int64]]:
        """Settle the words of the index.

        Returns:
            Of all entries a number, then the place in the index of each number, and how many documents hold each word
            of the index.
        """
        from readbench.retrieve.kernels.postings import tally  # noqa: PLC0415 - brings numba

        self.places_ = None
        if counts.shape[1] > LARGEST_TABLE:
            self.words_, number, held = np.unique(counts.indices, return_inverse=True, return_counts=True)
            return number, np.arange(len(self.words_), dtype=np.int32), held
        occurrences = tally(counts.indices, counts.shape[1])
        self.words_ = np.flatnonzero(occurrences)
        self.places_ = np.full(counts.shape[1], -1, np.int32)
        self.places_[self.words_] = np.arange(len(self.words_))
        return counts.indices, self.places_, occurrences[self.words_]

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
