"""Symbolic retrieval: each channel becomes a bag of words, and BM25 compares the bags.

As the paper has it: windows are brought onto a common grid (linear interpolation to the longest length, zeros for
missing channels), each channel is cut into overlapping word windows, each of those becomes a word, and the BM25
scores of the channels are averaged. A word window longer than the series shrinks to it. Repeated words all count (no
numerosity reduction).

**Words** (`Lexicon`): a word window of w steps is described by L numbers (segment means for SAX, Fourier coefficients
for SFA), and each number by one of a few letters according to the bin it falls into. A word is then a number in base
`alphabet`, and a window a bag of words per channel (`Bags`). By default both are almost blind to the scale of a
channel, since SAX standardises each word window and SFA fits its bins on the corpus: of the ways to scale (`norm`),
only `window` changes what SFA sees, and none what SAX sees.

**Index** (`Bm25`): Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009). A field (here: a
channel) has its own words, document frequencies and lengths, and the scores of the fields are averaged. Since no two
fields share a word, all of them together are one inverted index, and a search is one product of sparse matrices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.abilities import Hits, Indexed, ScalesWindows, Searcher
from readbench.engine.kernels.threads import Team
from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import Alignment, Normalisation, Scaler, common_axis, on_grid
from readbench.engine.protocols import Scores
from readbench.engine.registry import RETRIEVERS
from readbench.engine.retrievers._search import require_places
from readbench.engine.room import allocate
from readbench.engine.windows import WindowSet

Integers = NDArray[np.signedinteger]


@dataclass(frozen=True, eq=False)
class Bags:
    """N bags, one after the other.

    Args:
        starts: (N + 1,) where each of them begins.
        words: (M,) numbers of words, each at most once in a bag.
        times: (M,) float32, how often each occurs in its bag.
        vocabulary: how many words there may be.

    >>> bags = Bags.of(np.array([[5, 2, 5], [1, 1, 1]]), vocabulary=6)
    >>> bags.starts.tolist(), bags.words.tolist(), bags.times.tolist()
    ([0, 2, 3], [2, 5, 1], [1.0, 2.0, 3.0])
    >>> bags[1:].words.tolist()
    [1]
    """

    starts: Integers
    words: Integers
    times: NDArray[np.float32]
    vocabulary: int

    @classmethod
    def of(cls, words: Integers, vocabulary: int) -> Self:
        """Bags of (N, W) words, W at least 1."""
        ordered = np.sort(words, axis=1).ravel()
        new = np.ones(words.shape, bool)
        new.ravel()[1:] = ordered[1:] != ordered[:-1]
        new[:, 0] = True
        first = np.flatnonzero(new)
        times = np.diff(first, append=ordered.size).astype(np.float32)
        starts = np.concatenate([[0], np.cumsum(new.sum(axis=1))])
        return cls(starts, ordered[first].astype(_number(vocabulary)), times, vocabulary)

    @classmethod
    def join(cls, parts: Iterable[Bags], count: int, entries: int, vocabulary: int) -> Self:
        """The bags of all parts, without a second copy in memory; very many of them lie in a file.

        Args:
            parts: of this vocabulary.
            count: bags of all of them.
            entries: (word, times) of all of them at most.
            vocabulary: how many words there may be.

        >>> parts = [Bags.of(np.array([[3, 0]]), 4), Bags.of(np.array([[1, 1]]), 4)]
        >>> Bags.join(parts, 2, 4, 4).words.tolist()
        [0, 3, 1]
        """
        words, times = allocate(entries, _number(vocabulary)), allocate(entries)
        starts = np.zeros(count + 1, np.int64)
        bag = at = 0
        for part in parts:
            end = at + len(part.words)
            words[at:end], times[at:end] = part.words, part.times
            starts[bag + 1 : bag + 1 + len(part)] = at + part.starts[1:]
            bag, at = bag + len(part), end
        return cls(starts, words[:at], times[:at], vocabulary)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, part: slice) -> Bags:
        """Bags that follow each other."""
        first, end, _ = part.indices(len(self))
        own = self.starts[first : max(first, end) + 1]
        entries = slice(int(own[0]), int(own[-1]))
        return Bags(own - own[0], self.words[entries], self.times[entries], self.vocabulary)


def _number(vocabulary: int) -> type[np.signedinteger]:
    """Four bytes a word where these suffice."""
    return np.int32 if vocabulary <= np.iinfo(np.int32).max else np.int64


@dataclass(frozen=True, eq=False)
class Lexicon:
    """How series become words.

    Attributes:
        basis: (w, L) one column per letter.
        edges: (C, L, alphabet - 1) ascending bin edges of each channel, or (1, L, alphabet - 1) for all channels; a
            value on an edge is in the upper bin.
        stride: steps from one word window to the next.
        standardise: bring each word window to mean 0 and deviation 1 first.
    """

    basis: NDArray[np.float64]
    edges: NDArray[np.float32]
    stride: int
    standardise: bool

    @property
    def size(self) -> int:
        """Number of different words a channel may have."""
        return int((self.edges.shape[2] + 1) ** self.edges.shape[1])

    def words(self, values: NDArray[np.float32]) -> NDArray[np.int64]:
        """(N, C, W) words of (N, C, T) series, each a number below `size`."""
        found = extract_features(values, self.basis, self.stride, standardise=self.standardise)
        alphabet = self.edges.shape[2] + 1
        words = np.zeros(found.shape[:3], np.int64)
        for letter in range(found.shape[3]):
            words *= alphabet
            for edge in range(alphabet - 1):
                words += found[..., letter] >= self.edges[None, :, letter, edge, None]
        return words

    def bags(self, values: NDArray[np.float32]) -> Bags:
        """The words of (N, C, T) series; those of channel c are numbered from c x `size`."""
        words = self.words(values)
        count, channels, _ = words.shape
        words += self.size * np.arange(channels)[None, :, None]
        return Bags.of(words.reshape(count, -1), channels * self.size)


def extract_features(
    values: NDArray[np.float32], basis: NDArray[np.float64], stride: int, *, standardise: bool
) -> NDArray[np.float32]:
    """(N, C, W, L) features of every word window of (N, C, T) series."""
    from readbench.engine.kernels.words import project  # noqa: PLC0415 - brings numba

    count, channels, length = values.shape
    rows = np.ascontiguousarray(values).reshape(count * channels, length)
    found: NDArray[np.float32] = project(rows, basis, stride, standardise)
    return found.reshape(count, channels, *found.shape[1:])


def segment_means(size: int, letters: int) -> NDArray[np.float64]:
    """(w, L) basis of the piecewise aggregate approximation (Keogh et al., KAIS 2001).

    Segments have equal length w / L. Where that is no whole number, a step belongs to two segments in part.

    >>> segment_means(3, 2).T.round(2).tolist()
    [[0.67, 0.33, 0.0], [0.0, 0.33, 0.67]]
    """
    bounds = np.arange(letters + 1) * size / letters
    steps = np.arange(size)[:, None]
    overlap = np.minimum(bounds[1:], steps + 1) - np.maximum(bounds[:-1], steps)
    return overlap.clip(0) * letters / size


def fourier_columns(size: int, letters: int, *, mean: bool) -> NDArray[np.float64]:
    """(w, L) basis of the lowest Fourier coefficients, real and imaginary parts in turn.

    Args:
        size: w, the length of the word window.
        letters: L, the number of columns.
        mean: begin with the coefficient of frequency 0, which is real, instead of dropping it. Columns beyond the
            highest frequency of a short word window are zero.

    >>> fourier_columns(4, 3, mean=True).T.round(2).tolist()
    [[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, -1.0, -0.0], [-0.0, -1.0, -0.0, 1.0]]
    """
    steps = np.arange(size)
    columns = [np.ones(size)] if mean else []
    frequency = 1
    while len(columns) < letters:
        angle = 2 * np.pi * frequency * steps / size
        known = 2 * frequency <= size
        columns += [np.cos(angle) * known, -np.sin(angle) * (2 * frequency < size)]
        frequency += 1
    return np.stack(columns[:letters], axis=1)


def normal_edges(letters: int, alphabet: int) -> NDArray[np.float32]:
    """(1, L, alphabet - 1) edges between which a standard normal value falls equally often.

    Lin et al., "Experiencing SAX" (DMKD 2007), table of breakpoints:

    >>> normal_edges(1, 4).astype(float).round(2).tolist()
    [[[-0.67, 0.0, 0.67]]]
    """
    edges = [NormalDist().inv_cdf(k / alphabet) for k in range(1, alphabet)]
    return np.tile(np.array(edges, np.float32), (1, letters, 1))


def equal_depth_edges(found: NDArray[np.float32], alphabet: int) -> NDArray[np.float32]:
    """(C, L, alphabet - 1) edges between which equally many of (N, C, W, L) features fall, per channel and column.

    Multiple coefficient binning of Schäfer and Högqvist, "SFA" (EDBT 2012): every coefficient has bins of its own.

    >>> equal_depth_edges(np.arange(6, dtype=np.float32).reshape(6, 1, 1, 1), 3).tolist()
    [[[2.0, 4.0]]]
    """
    columns = np.moveaxis(found, 1, 0).reshape(found.shape[1], -1, found.shape[3])
    depth = columns.shape[1]
    cuts = np.arange(1, alphabet) * depth // alphabet
    return np.moveaxis(np.partition(columns, cuts, axis=1)[:, cuts], 1, 2)


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
        from readbench.engine.kernels.words import build_postings  # noqa: PLC0415 - brings numba

        self.items_ = items = len(documents)
        words, place, held = self._numbered(documents)
        field = self.words_ // (documents.vocabulary // fields)
        weight = inverse_frequency(held, items, field, self.idf) / fields
        starts = np.concatenate([[0], np.cumsum(held)])
        bags = documents.starts, words, documents.times
        pairs = build_postings(bags, place, field, fields, weight, self.k1, self.b, starts, allocate(len(words), PAIR))
        self.postings_ = starts, pairs
        return self

    def score(self, queries: Bags) -> NDArray[np.float32]:
        """(Q, N) scores of the documents for Q queries; every occurrence of a word in a query counts."""
        from readbench.engine.kernels.words import all_scores  # noqa: PLC0415 - brings numba

        scores: NDArray[np.float32] = all_scores(self.lookup(queries), self.postings_, self.items_)
        return scores

    def search(self, queries: Bags, k: int) -> Hits:
        """The k best documents for Q queries, without the whole matrix of scores."""
        from readbench.engine.kernels.words import best_scores  # noqa: PLC0415 - brings numba

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
        from readbench.engine.kernels.words import tally  # noqa: PLC0415 - brings numba

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


BLOCK_BYTES = 16 * 2**20
"""Windows become words in blocks whose values and features fit in this, one a thread."""
SAMPLE_BYTES = 256 * 2**20
"""Bins are fitted on all corpus windows while their features fit in this, else on evenly spaced ones."""


@dataclass(eq=False)
class _Symbolic(ABC):
    """What both methods share: their parameters, the grid, the index and the search."""

    norm: Normalisation = "channel"
    align: Alignment = "name"
    window: Annotated[int, ParameterRange(1)] = 96
    stride: Annotated[int, ParameterRange(1)] = 8
    length: Annotated[int, ParameterRange(1, 12)] = 6
    alphabet: Annotated[int, ParameterRange(2, 20)] = 4
    znorm: bool = True
    idf: Idf = "floor"
    k1: Annotated[float, ParameterRange(0)] = 1.5
    b: Annotated[float, ParameterRange(0, 1)] = 0.75

    uses_labels = False
    corpus_dependent = True

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Index the corpus on the grid of its longest window."""
        self.corpus_ = corpus
        self.scale_ = Scaler.of(self.norm, corpus, normals)
        self.axis_ = common_axis(self.align, corpus)
        self.grid_ = int(corpus.lengths.max(initial=1))
        self.lexicon_, self.index_ = self._index(self.grid_)
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) BM25 scores, averaged over the corpus's channels.

        A query longer than every corpus window asks for a finer grid, and with it for another index of the corpus.
        """
        out = np.empty((len(queries), len(self.corpus_)), np.float32)
        for mine, bags, index in self._by_grid(queries):
            out[mine] = index.score(bags)
        return out

    def search(self, queries: WindowSet, k: int) -> Hits:
        """The k best corpus items for each query, as ranking the scores would find them, without all scores."""
        require_places(k)
        shape = len(queries), min(k, len(self.corpus_))
        hits = Hits(np.empty(shape, np.int64), np.empty(shape, np.float32))

        def work(some: tuple[NDArray[np.intp], Bags, Bm25]) -> None:
            mine, bags, index = some
            found = index.search(bags, k)
            hits.indices[mine], hits.scores[mine] = found.indices, found.scores

        with Team() as team:
            for mine, bags, index in self._by_grid(queries):
                team.each(work, [(mine[own], bags[own], index) for own in team.shares(len(mine))])
        return hits

    @property
    def index_bytes(self) -> int:
        """What the index of the corpus takes."""
        return sum(part.nbytes for part in self.index_.postings_)

    def _by_grid(self, queries: WindowSet) -> Iterator[tuple[NDArray[np.intp], Bags, Bm25]]:
        """Positions and bags of queries that share a grid, and the index of the corpus on it."""
        grids = np.maximum(queries.lengths, self.grid_)
        for grid in np.unique(grids).tolist():
            lexicon, index = (self.lexicon_, self.index_) if grid == self.grid_ else self._index(grid)
            mine = np.flatnonzero(grids == grid)
            yield mine, self._bags(queries[mine], grid, lexicon), index

    def _index(self, grid: int) -> tuple[Lexicon, Bm25]:
        lexicon = self._lexicon(grid)
        bags = self._bags(self.corpus_, grid, lexicon)
        return lexicon, Bm25(self.idf, self.k1, self.b).fit(bags, fields=len(self.axis_))

    @abstractmethod
    def _lexicon(self, grid: int) -> Lexicon:
        """How windows on a grid become words."""

    def _bags(self, windows: WindowSet, grid: int, lexicon: Lexicon) -> Bags:
        channels = len(self.axis_)
        most = len(windows) * channels * self._words(grid)
        parts = self._bags_of_blocks(windows, grid, lexicon)
        return Bags.join(parts, len(windows), most, channels * lexicon.size)

    def _bags_of_blocks(self, windows: WindowSet, grid: int, lexicon: Lexicon) -> Iterator[Bags]:
        """Those of one block of windows after the other."""
        blocks = list(self._blocks(windows, grid))
        with Team() as team:
            for at in range(0, len(blocks), team.size):
                some = blocks[at : at + team.size]
                yield from team.each(lambda block: lexicon.bags(self._values(block, grid)), some)

    def _blocks(self, windows: WindowSet, grid: int) -> Iterator[WindowSet]:
        """A few windows at a time."""
        size = 4 * len(self.axis_) * (grid + self._words(grid) * (self.length + 6))
        return windows.blocks(max(1, BLOCK_BYTES // size))

    def _values(self, block: WindowSet, grid: int) -> NDArray[np.float32]:
        """Scaled windows (B, C, T) on the grid."""
        return on_grid(self.scale_(block), self.axis_, grid, self.align)

    def _words(self, grid: int) -> int:
        """Words per channel."""
        return 1 + max(0, grid - self.window) // self.stride


@RETRIEVERS.register("sax-bm25", title="SAX-BM25", family="symbolic", abilities=(Searcher, ScalesWindows, Indexed))
@dataclass(eq=False)
class SaxBm25(_Symbolic):
    """Bags of SAX words (segment means of each word window) compared by BM25.

    Args:
        norm: scaling of the raw windows before anything else.
        align: match channels by `name`, or by `position` with zeros on the right, as the paper words it.
        window: length of a word window, in steps.
        stride: steps from one word window to the next.
        length: letters in a word, each the mean of a segment.
        alphabet: different letters; the bins between the quantiles of a normal distribution.
        znorm: standardise each word window; without, `norm=window` standardises the whole window.
        idf: weighting of rare against common words.
        k1: how slowly further occurrences of a word add less.
        b: how much windows with many words are held back; on a common grid all have equally many.
    """

    def _lexicon(self, grid: int) -> Lexicon:
        basis = segment_means(min(self.window, grid), self.length)
        return Lexicon(basis, normal_edges(self.length, self.alphabet), self.stride, self.znorm)


@RETRIEVERS.register("sfa-bm25", title="SFA-BM25", family="symbolic", abilities=(Searcher, ScalesWindows, Indexed))
@dataclass(eq=False)
class SfaBm25(_Symbolic):
    """Bags of SFA words (lowest Fourier coefficients of each word window) compared by BM25.

    The letters stand for the real part of frequency 0 (the mean; its imaginary part is always zero and gets no
    letter), then real and imaginary parts of frequencies 1, 2, ... in turn. With `znorm` the mean is dropped and the
    letters begin at frequency 1, as Schäfer and Högqvist (EDBT 2012) do for offset invariance.

    Args:
        norm: scaling of the raw windows before anything else.
        align: match channels by `name`, or by `position` with zeros on the right, as the paper words it.
        window: length of a word window, in steps.
        stride: steps from one word window to the next.
        length: letters in a word, each a real or imaginary part.
        alphabet: different letters; bins that equally many corpus values fall into, per channel and coefficient.
        znorm: standardise each word window and drop its mean.
        idf: weighting of rare against common words.
        k1: how slowly further occurrences of a word add less.
        b: how much windows with many words are held back; on a common grid all have equally many.
    """

    window: Annotated[int, ParameterRange(1)] = 128
    length: Annotated[int, ParameterRange(1, 12)] = 8
    alphabet: Annotated[int, ParameterRange(2, 20)] = 3
    znorm: bool = False

    def _lexicon(self, grid: int) -> Lexicon:
        basis = fourier_columns(min(self.window, grid), self.length, mean=not self.znorm)
        size = 4 * len(self.axis_) * self._words(grid) * self.length
        step = -(-len(self.corpus_) // max(1, SAMPLE_BYTES // size))
        blocks = (self._values(block, grid) for block in self._blocks(self.corpus_[::step], grid))
        found = [extract_features(values, basis, self.stride, standardise=self.znorm) for values in blocks]
        return Lexicon(basis, equal_depth_edges(np.concatenate(found), self.alphabet), self.stride, self.znorm)
