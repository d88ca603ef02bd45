"""The common grid of a corpus, and the encoder `raw`: the window on that grid."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.files import digest
from readbench.engine.abilities import ScalesWindows
from readbench.engine.preparation import Normalisation, Scaler, channel_axis, dense
from readbench.engine.protocols import BatchEncoder, Metric, Vectors
from readbench.engine.registry import ENCODERS
from readbench.engine.windows import WindowSet


@dataclass(frozen=True, eq=False)
class ChannelGrid:
    """Scaling, channel axis and length of a corpus, for windows of any shape.

    Channels are matched by name: a missing one is zero (at its mean, once scaled), one unknown to the corpus is
    dropped. Time is interpolated to the longest length of the corpus.

    >>> corpus = WindowSet.from_arrays([[[1.0, 3.0, 5.0]]], channels=("level",))
    >>> grid = ChannelGrid.of(corpus, corpus[:0], "none")
    >>> grid(WindowSet.from_arrays([[[2.0, 4.0]]], channels=("level",))).tolist()
    [[[2.0, 3.0, 4.0]]]
    """

    scale: Scaler
    axis: tuple[str, ...]
    length: int

    @classmethod
    def of(
        cls,
        corpus: WindowSet,
        normals: WindowSet,
        norm: Normalisation,
        *,
        shortest: int = 1,
        longest: int | None = None,
    ) -> Self:
        """Determine the grid of a corpus, of `shortest` to `longest` points."""
        length = max(shortest, int(corpus.lengths.max(initial=1)))
        length = length if longest is None else min(length, longest)
        return cls(Scaler.of(norm, corpus, normals), channel_axis(corpus), length)

    def __call__(self, windows: WindowSet) -> NDArray[np.float32]:
        """(N, C, T) windows on the grid."""
        return dense(self.scale(windows), channels=self.axis, length=self.length)

    @property
    def size(self) -> int:
        """Numbers per window."""
        return len(self.axis) * self.length

    def fingerprint(self) -> str:
        """Hash of scaling, channels and length."""
        return digest(self.scale.norm, self.scale.fingerprint(), self.axis, self.length)


@ENCODERS.register("raw", title="Raw window", family="embedder", abilities=(ScalesWindows,))
class Raw(BatchEncoder):
    """The window itself: scaled, on the corpus's channel axis and longest length, flattened.

    Args:
        norm: scaling of the windows.
        metric: metric between vectors.
    """

    corpus_dependent = False

    def __init__(self, norm: Normalisation = "channel", metric: Metric = "euclidean") -> None:
        self.norm = norm
        self.metric = metric

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Determine the grid."""
        self.grid_ = ChannelGrid.of(corpus, normals, self.norm)
        return self

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers of each window and of its vector."""
        return super().footprint(windows) + self.grid_.size

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, C * T) float32, channel by channel."""
        return self.grid_(windows).reshape(len(windows), self.grid_.size)

    def fingerprint(self) -> str:
        """Hash of the grid."""
        return hashlib.sha256(f"raw {self.grid_.fingerprint()}".encode()).hexdigest()[:16]
