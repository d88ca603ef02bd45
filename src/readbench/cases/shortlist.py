"""The first look at a large library: which cases are worth comparing in full.

Coarse MiniRocket features, drawn from the first cases so that they stay while a library grows, are compared with all
cases exactly; the nearest go to the method.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readbench.cases.snapshot import Snapshot
from readbench.cases.store import Vectors
from readbench.cases.vectors import LibraryVectors
from readbench.encoders import Encoder, encode_missing
from readbench.pipeline import conceal
from readbench.registry import ENCODERS
from readbench.retrieve.vectors import top_k
from readbench.windows import WindowSet

FEATURES = 996
BLOCK = 2048
"""Cases read and encoded at a time."""


class Shortlister:
    """Keeps the coarse vectors of all cases in memory, and in the library.

    Args:
        vectors: of the library.
    """

    def __init__(self, vectors: LibraryVectors) -> None:
        self._store = vectors
        self._first: list[str] = []
        self._encoder: Encoder | None = None
        self._name = ""
        self._digests: list[str] = []
        self._vectors: Vectors = np.empty((0, 0), np.float32)

    def nearest(self, snapshot: Snapshot, window: WindowSet, count: int) -> NDArray[np.int64]:
        """Positions of the `count` nearest cases of one window, ascending."""
        encoder = self._fitted(snapshot)
        self._update(snapshot, encoder)
        found = top_k(encoder.encode(conceal(window)), self._vectors, count, encoder.metric).indices[0]
        return np.sort(found)

    def _fitted(self, snapshot: Snapshot) -> Encoder:
        """The encoder of the first cases, which rarely change."""
        first = [snapshot.entries[i].digest for i in snapshot.first]
        if self._encoder is None or first != self._first:
            self._encoder, self._first = coarse_encoder(snapshot), first
        return self._encoder

    def _update(self, snapshot: Snapshot, encoder: Encoder) -> None:
        """Bring the vectors in line with the snapshot; those of cases that stayed are kept."""
        wanted, name = [entry.digest for entry in snapshot.entries], encoder.fingerprint()
        if name == self._name and wanted == self._digests:
            return
        same = name == self._name and wanted[: len(self._digests)] == self._digests
        start = len(self._digests) if same else 0
        positions = np.arange(start, len(wanted))
        pieces = [
            encode_missing(self._store, encoder, conceal(snapshot.windows(positions[at : at + BLOCK])), block=BLOCK)
            for at in range(0, len(positions), BLOCK)
        ]
        new = np.concatenate(pieces) if pieces else self._vectors[:0]
        self._vectors = np.concatenate([self._vectors, new]) if start else new
        self._digests, self._name = wanted, name


def coarse_encoder(snapshot: Snapshot) -> Encoder:
    """The encoder of the first look, fitted on the first cases."""
    first = conceal(snapshot.windows(snapshot.first))
    encoder: Encoder = ENCODERS.get("rocket").build(features=FEATURES)
    return encoder.fit(first.with_stats(snapshot.reference), first[:0])
