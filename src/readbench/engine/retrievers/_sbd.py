"""Shape-based distance: the best alignment of two windows under a sliding lag.

Paparrizos and Gravano, "k-Shape" (SIGMOD 2015), define it for one channel: one minus the largest normalised
cross-correlation over all lags. With several channels, each finds its own lag (SBD-I, distances summed) or all move
together (SBD-D, one correlation of the whole windows). Correlations are computed in the frequency domain; lengths may
differ, and then every lag at which the two windows overlap counts. A window or channel without any signal has
correlation 0 with everything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from readbench.engine.abilities import Hits, ScalesWindows, Searcher
from readbench.engine.preparation import Alignment, Normalisation, Scaler, WindowRows, common_axis, join_channels
from readbench.engine.protocols import Scores
from readbench.engine.registry import RETRIEVERS
from readbench.engine.retrievers._search import Block, best_of, fill_scores, require_places, score_blocks
from readbench.engine.windows import WindowSet

if TYPE_CHECKING:  # compiled code: imported where it is used
    from readbench.engine.kernels.correlation import SpectralCorpus

QUERY_BYTES = 128 * 2**20
"""Queries are compared in batches whose spectra fit in this; the corpus passes by, one tile of items at a time."""


class _ShapeBased(ABC):
    """What both variants share: scaling, blocks, and the peaks of the correlations."""

    uses_labels = False
    corpus_dependent = False
    joint: bool
    """Whether the channels move together."""

    def __init__(self, norm: Normalisation = "channel", align: Alignment = "name") -> None:
        self.norm = norm
        self.align = align

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Keep the corpus and the statistics to scale it by."""
        self.corpus_ = corpus
        self.scale_ = Scaler.of(self.norm, corpus, normals)
        self.axis_ = common_axis(self.align, corpus)
        self._spectra: SpectralCorpus | None = None
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Without the spectra, which are made again where they are needed."""
        return {**self.__dict__, "_spectra": None}

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) negative distances."""
        out = np.empty((len(queries), len(self.corpus_)), np.float32)
        for first, some in self._batches(queries):
            fill_scores(self._blocks(some), out[first : first + len(some)])
        return out

    def search(self, queries: WindowSet, k: int) -> Hits:
        """The k best of the corpus for each query, exactly those at the top of `score`, without the whole matrix."""
        require_places(k)
        shape = len(queries), min(k, len(self.corpus_))
        hits = Hits(np.empty(shape, np.int64), np.empty(shape, np.float32))
        for first, some in self._batches(queries):
            mine = slice(first, first + len(some))
            best = best_of(self._blocks(some), len(some), k)
            hits.indices[mine], hits.scores[mine] = best.indices, best.scores
        return hits

    @abstractmethod
    def _scores(self, peaks: Scores, queries: WindowSet, items: slice) -> Scores:
        """(Q, B) negative distances from the largest correlations of queries with some corpus items, in place."""

    def _batches(self, queries: WindowSet) -> Iterator[tuple[int, WindowSet]]:
        """Queries whose spectra fit in memory together, each batch with the number of its first."""
        if not len(queries) or not len(self.corpus_):
            return
        longest = int(queries.lengths.max())
        batch = max(2, QUERY_BYTES // self._corpus(longest).transforms.window_bytes(len(self._axis(queries))))
        for first in range(0, len(queries), batch):
            yield first, queries[first : first + batch]

    def _blocks(self, queries: WindowSet) -> Iterator[Block]:
        """Scores of a batch, block by block of the corpus."""
        from readbench.engine.kernels.correlation import LANES, Correlator  # noqa: PLC0415 - brings numba

        corpus = self._corpus(int(queries.lengths.max()))
        correlator = Correlator(self._rows(queries, self._axis(queries)), corpus.transforms)

        def work(items: slice) -> Scores:
            return self._scores(correlator.peaks(corpus.tile(items.start)), queries, items)

        return score_blocks(len(self.corpus_), LANES, work)

    def _axis(self, queries: WindowSet) -> tuple[str, ...]:
        """The corpus's channels, then those that only queries have: they count for the norm of a query."""
        known = set(self.axis_)
        return (*self.axis_, *(name for name in common_axis(self.align, queries) if name not in known))

    def _corpus(self, longest: int) -> SpectralCorpus:
        """Spectra for queries of up to this length: those of the call before where they serve."""
        from readbench.engine.kernels.correlation import SpectralCorpus, Transforms, transform_size  # noqa: PLC0415

        size = transform_size(int(self.corpus_.lengths.max()), longest)
        spectra = self._spectra  # another thread may put those for longer queries there at any time
        if spectra is None or spectra.transforms.size != size:
            transforms = Transforms(size, len(self.axis_), joint=self.joint)
            spectra = SpectralCorpus(self.corpus_, lambda some: self._rows(some, self.axis_), transforms)
            self._spectra = spectra
        return spectra

    def _rows(self, windows: WindowSet, axis: tuple[str, ...]) -> WindowRows:
        return WindowRows.of(self.scale_(windows), axis, self.align)


@RETRIEVERS.register("sbd-i", title="SBD-I", family="distance", abilities=(Searcher, ScalesWindows))
class IndependentShapeBased(_ShapeBased):
    """Shape-based distance with a lag of its own for each channel.

    The distance is summed over the channels that at least one of the two windows has.

    Args:
        norm: scaling of the raw windows before comparing.
        align: match channels by `name`, or by `position` with zeros on the right, as the paper words it.
    """

    joint = False

    def _scores(self, peaks: Scores, queries: WindowSet, items: slice) -> Scores:
        peaks -= join_channels(queries, self.corpus_[items], self.align)
        return np.minimum(peaks, 0, out=peaks)


@RETRIEVERS.register("sbd-d", title="SBD-D", family="distance", abilities=(Searcher, ScalesWindows))
class DependentShapeBased(_ShapeBased):
    """Shape-based distance with one lag for all channels.

    Args:
        norm: scaling of the raw windows before comparing.
        align: match channels by `name`, or by `position` with zeros on the right, as the paper words it.
    """

    joint = True

    def _scores(self, peaks: Scores, queries: WindowSet, items: slice) -> Scores:  # noqa: ARG002 - distances are 1 - peak
        peaks -= 1
        return np.minimum(peaks, 0, out=peaks)
