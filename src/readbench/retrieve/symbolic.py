"""Symbolic retrieval: each channel becomes a bag of words, and BM25 compares the bags.

As the paper has it: windows are brought onto a common grid (linear interpolation to the longest length, zeros for
missing channels), each channel is cut into overlapping word windows, each of those becomes a word, and the BM25
scores of the channels are averaged. A word window longer than the series shrinks to it. Repeated words all count (no
numerosity reduction).

By default both are almost blind to the scale of a channel, since SAX standardises each word window and SFA fits its
bins on the corpus: of the ways to scale (`norm`), only `window` changes what SFA sees, and none what SAX sees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from readbench.abilities import Indexed, ScalesWindows, Searcher
from readbench.kernels.threads import Team
from readbench.parameters import Interval
from readbench.registry import RETRIEVERS
from readbench.retrieve.bags import Bags
from readbench.retrieve.base import Hits, Scores
from readbench.retrieve.blocks import require_places
from readbench.retrieve.bm25 import Bm25, Idf
from readbench.retrieve.rows import Scaler, common_axis, on_grid
from readbench.retrieve.words import (
    Lexicon,
    equal_depth_edges,
    features,
    fourier_columns,
    normal_edges,
    segment_means,
)
from readbench.windows import Normalisation, WindowSet
from readbench.windows.reconcile import Alignment

BLOCK_BYTES = 16 * 2**20
"""Windows become words in blocks whose values and features fit in this, one a thread."""
SAMPLE_BYTES = 256 * 2**20
"""Bins are fitted on all corpus windows while their features fit in this, else on evenly spaced ones."""


@dataclass(eq=False)
class _Symbolic(ABC):
    """What both methods share: their parameters, the grid, the index and the search."""

    norm: Normalisation = "channel"
    align: Alignment = "name"
    window: Annotated[int, Interval(1)] = 96
    stride: Annotated[int, Interval(1)] = 8
    length: Annotated[int, Interval(1, 12)] = 6
    alphabet: Annotated[int, Interval(2, 20)] = 4
    znorm: bool = True
    idf: Idf = "floor"
    k1: Annotated[float, Interval(0)] = 1.5
    b: Annotated[float, Interval(0, 1)] = 0.75

    uses_labels = False
    corpus_dependent = True

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Index the corpus on the grid of its longest window."""
        self.corpus_ = corpus
        self.scale_ = Scaler(self.norm, corpus, normals)
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
        return Bags.joined(parts, len(windows), most, channels * lexicon.size)

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

    window: Annotated[int, Interval(1)] = 128
    length: Annotated[int, Interval(1, 12)] = 8
    alphabet: Annotated[int, Interval(2, 20)] = 3
    znorm: bool = False

    def _lexicon(self, grid: int) -> Lexicon:
        basis = fourier_columns(min(self.window, grid), self.length, mean=not self.znorm)
        size = 4 * len(self.axis_) * self._words(grid) * self.length
        step = -(-len(self.corpus_) // max(1, SAMPLE_BYTES // size))
        blocks = (self._values(block, grid) for block in self._blocks(self.corpus_[::step], grid))
        found = [features(values, basis, self.stride, standardise=self.znorm) for values in blocks]
        return Lexicon(basis, equal_depth_edges(np.concatenate(found), self.alphabet), self.stride, self.znorm)
