"""What an encoder is: from a window to a vector, in bounded memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from readbench.windows import WindowSet

Vectors = NDArray[np.float32]
Metric = Literal["euclidean", "cosine"]
BATCH_NUMBERS = 2**23
"""Numbers that the windows of one batch may take while they are encoded."""


class Encoder(Protocol):
    """Anything that maps windows to vectors of one length (no base class to inherit from)."""

    @property
    def metric(self) -> Metric:
        """How its vectors are compared."""
        ...

    @property
    def corpus_dependent(self) -> bool:
        """Its vectors depend on the corpus it was fitted on; it is fitted at each pollution level."""
        ...

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Learn what it needs from the corpus, without labels; frozen encoders learn nothing."""
        ...

    def encode(self, windows: WindowSet) -> Vectors:
        """(N, D) float32; windows may be ragged in length and channels."""
        ...

    def fingerprint(self) -> str:
        """Hash of weights, parameters and what was fitted: vectors of equal fingerprints can be compared."""
        ...


class BatchEncoder(ABC):
    """Base of encoders that take windows in batches, so that memory grows with neither their number nor their size.

    Subclasses write `encode_batch`, and `footprint` where a window takes more room than its own numbers. A window is
    never divided: the largest one alone may exceed the bound.
    """

    @abstractmethod
    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, D) vectors of a batch, which may be empty."""

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers that each window takes while it is encoded: by default channels x length."""
        return windows.channel_counts.astype(np.int64) * windows.lengths

    def batches(self, windows: WindowSet) -> Iterator[WindowSet]:
        """Consecutive pieces of a set, each as large as `BATCH_NUMBERS` admits and at least one window."""
        ends = np.cumsum(self.footprint(windows))
        start, before = 0, 0
        while start < len(windows):
            stop = max(start + 1, int(np.searchsorted(ends, before + BATCH_NUMBERS, side="right")))
            yield windows[start:stop]
            start, before = stop, int(ends[stop - 1])

    def encode(self, windows: WindowSet) -> Vectors:
        """(N, D) float32, computed batch by batch."""
        if not len(windows):
            return self.encode_batch(windows)
        out, done = np.empty((0, 0), np.float32), 0
        for batch in self.batches(windows):
            vectors = self.encode_batch(batch)
            if not done:
                out = np.empty((len(windows), vectors.shape[1]), np.float32)
            out[done : done + len(batch)] = vectors
            done += len(batch)
        return out


def unit(vectors: Vectors) -> Vectors:
    """Rows of length one; rows of length zero stay zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Vectors = np.divide(vectors, norms, out=np.zeros_like(vectors, dtype=np.float32), where=norms > 1e-12)
    return units
