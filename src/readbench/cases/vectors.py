"""Vectors of cases are computed once and kept in the library itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from readbench.cases.store import Store, Vectors
from readbench.encoders import EmbeddingCache, Encoder
from readbench.encoders.cache import BLOCK, window_digests
from readbench.windows import WindowSet


class StoredVectors(EmbeddingCache):
    """An embedding cache in a library's store.

    Only what is encoded inside `filing` is looked up and kept: the cases. Windows that are asked about are encoded and
    forgotten. Vectors of encoders that are fitted anew with every case are never kept: they would be of no use again.

    Args:
        store: of the library.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(Path())
        self.store = store
        self.encoded = 0
        self._filing = False

    @contextmanager
    def filing(self) -> Iterator[None]:
        """What is encoded inside are cases."""
        self._filing = True
        try:
            yield
        finally:
            self._filing = False

    def encode(self, encoder: Encoder, windows: WindowSet) -> Vectors:
        """(N, D) vectors; `encoded` counts the cases that had to be computed so far."""
        if not self._filing or encoder.corpus_dependent or not len(windows):
            return encoder.encode(windows)
        name = encoder.fingerprint()
        digests = [digest.hex() for digest in window_digests(windows)]
        known = self.store.vectors(name, digests)
        missing = list({digest: i for i, digest in enumerate(digests) if digest not in known}.values())
        for start in range(0, len(missing), BLOCK):
            block = missing[start : start + BLOCK]
            vectors = encoder.encode(windows[block])
            self.store.file_vectors(name, [digests[i] for i in block], vectors)
            known |= {digests[i]: vector for i, vector in zip(block, vectors, strict=True)}
        self.encoded += len(missing)
        return np.stack([known[digest] for digest in digests])
