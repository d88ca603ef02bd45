"""Shape-based distance: the best alignment of two windows under a sliding lag.

Paparrizos and Gravano, "k-Shape" (SIGMOD 2015), define it for one channel: one minus the largest normalised
cross-correlation over all lags. With several channels, each finds its own lag (SBD-I, distances summed) or all move
together (SBD-D, one correlation of the whole windows). Correlations are computed in the frequency domain; lengths may
differ, and then every lag at which the two windows overlap counts. A window or channel without any signal has
correlation 0 with everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.registry import RETRIEVERS
from readbench.retrieve.base import Scores
from readbench.retrieve.rows import Rows, Scaler, common_axis, joined_channels
from readbench.windows import Normalisation, WindowSet
from readbench.windows.reconcile import Alignment

if TYPE_CHECKING:  # compiled code: imported where it is used
    from readbench.retrieve.kernels.correlator import SpectralCorpus

QUERY_BYTES = 128 * 2**20
"""Queries are compared in batches whose spectra fit in this; the corpus passes by, one tile of items at a time."""


class _ShapeBased:
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
        self.scale_ = Scaler(self.norm, corpus, normals)
        self.axis_ = common_axis(self.align, corpus)
        self._spectra: SpectralCorpus | None = None
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Without the spectra, which are made again where they are needed."""
        return {**self.__dict__, "_spectra": None}

    def _peaks(self, queries: WindowSet) -> NDArray[np.float32]:
        """(Q, N) largest normalised cross-correlations."""
        out = np.empty((len(queries), len(self.corpus_)), np.float32)
        if not out.size:
            return out
        from readbench.retrieve.kernels.correlator import Correlator  # noqa: PLC0415 - brings numba

        corpus = self._corpus(int(queries.lengths.max()))
        known = set(self.axis_)
        axis = (*self.axis_, *(name for name in common_axis(self.align, queries) if name not in known))
        batch = max(2, QUERY_BYTES // corpus.transforms.window_bytes(len(axis)))
        for first, some in zip(range(0, len(queries), batch), queries.blocks(batch), strict=True):
            correlator = Correlator(self._rows(some, axis), corpus.transforms)
            for column, tile in corpus.tiles():
                out[first : first + len(some), column : column + tile.used] = correlator.peaks(tile)
        return out

    def _corpus(self, longest: int) -> SpectralCorpus:
        """Spectra for queries of up to this length: those of the call before where they serve."""
        from readbench.retrieve.kernels.correlator import SpectralCorpus, Transforms, transform_size  # noqa: PLC0415

        size = transform_size(int(self.corpus_.lengths.max()), longest)
        if self._spectra is None or self._spectra.transforms.size != size:
            transforms = Transforms(size, len(self.axis_), joint=self.joint)
            self._spectra = SpectralCorpus(self.corpus_, lambda some: self._rows(some, self.axis_), transforms)
        return self._spectra

    def _rows(self, windows: WindowSet, axis: tuple[str, ...]) -> Rows:
        return Rows.of(self.scale_(windows), axis, self.align)


@RETRIEVERS.register("sbd-i", title="SBD-I", family="distance")
class IndependentShapeBased(_ShapeBased):
    """Shape-based distance with a lag of its own for each channel.

    The distance is summed over the channels that at least one of the two windows has.

    Args:
        norm: scaling of the raw windows before comparing.
        align: match channels by `name`, or by `position` with zeros on the right, as the paper words it.
    """

    joint = False

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) negative distances."""
        similarity = self._peaks(queries)
        similarity -= joined_channels(queries, self.corpus_, self.align)
        return np.minimum(similarity, 0, out=similarity)


@RETRIEVERS.register("sbd-d", title="SBD-D", family="distance")
class DependentShapeBased(_ShapeBased):
    """Shape-based distance with one lag for all channels.

    Args:
        norm: scaling of the raw windows before comparing.
        align: match channels by `name`, or by `position` with zeros on the right, as the paper words it.
    """

    joint = True

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) negative distances."""
        similarity = self._peaks(queries)
        similarity -= 1
        return np.minimum(similarity, 0, out=similarity)
