"""Shape-based distance: the best alignment of two windows under a sliding lag.

Paparrizos and Gravano, "k-Shape" (SIGMOD 2015), define it for one channel: one minus the largest normalised
cross-correlation over all lags. With several channels, each finds its own lag (SBD-I, distances summed) or all move
together (SBD-D, one correlation of the whole windows). Correlations are computed in the frequency domain; lengths may
differ, and then every lag at which the two windows overlap counts. A window or channel without any signal has
correlation 0 with everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.registry import RETRIEVERS
from readbench.retrieve.base import Scores
from readbench.retrieve.rows import Rows, Scaler, common_axis, joined_channels
from readbench.windows import Normalisation, WindowSet
from readbench.windows.reconcile import Alignment

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
        return self

    def _peaks(self, queries: WindowSet) -> NDArray[np.float32]:
        """(Q, N) largest normalised cross-correlations."""
        from readbench.retrieve.kernels.correlation import LANES  # noqa: PLC0415 - brings numba
        from readbench.retrieve.kernels.correlator import (  # noqa: PLC0415
            Correlator,
            spectrum_bytes,
            transform_size,
        )

        out = np.empty((len(queries), len(self.corpus_)), np.float32)
        axis = common_axis(self.align, self.corpus_, queries)
        size = transform_size(int(self.corpus_.lengths.max(initial=1)), int(queries.lengths.max(initial=1)))
        batch = max(2, QUERY_BYTES // spectrum_bytes(size, len(axis)))
        for first, some in _numbered(queries, batch):
            correlator = Correlator(self._rows(some, axis), size, joint=self.joint)
            for column, tile in _numbered(self.corpus_, LANES):
                found = correlator.peaks(self._rows(tile, axis))
                out[first : first + len(some), column : column + len(tile)] = found
        return out

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


def _numbered(windows: WindowSet, size: int) -> Iterator[tuple[int, WindowSet]]:
    """Blocks of a set, each with the position of its first window."""
    return zip(range(0, len(windows), size), windows.blocks(size), strict=True)
