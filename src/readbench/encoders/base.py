"""What an encoder is: from a window to a vector."""

from __future__ import annotations

from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from readbench.windows import WindowSet

Vectors = NDArray[np.float32]
Metric = Literal["euclidean", "cosine"]


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
