"""ROCKET features: many fixed convolutions without training (Dempster et al., KDD 2021)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.abilities import ScalesWindows
from readbench.engine.encoders._raw import ChannelGrid
from readbench.engine.kernels.threads import Team
from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import Normalisation
from readbench.engine.protocols import BatchEncoder, Metric, Vectors
from readbench.engine.registry import ENCODERS
from readbench.engine.windows import WindowSet
from readbench.errors import DataError

VERSION = 1
"""Increased when vectors change, so that stored ones are not mixed."""
MAX_SAMPLE_NUMBERS = 2**26
"""Maximum numbers on the grid of the windows that kernel levels are drawn from: all windows of most corpora."""
Kind = Literal["mini", "multi", "hydra"]


class _Features(Protocol):
    """A bank of convolutions."""

    def fit(self, windows: NDArray[np.float32]) -> Self:
        """Choose convolutions for windows (N, C, T)."""
        ...

    def transform(self, windows: NDArray[np.float32]) -> Vectors:
        """(N, F) features."""
        ...

    def state(self) -> list[bytes]:
        """Fitted state, for a fingerprint."""
        ...


@ENCODERS.register("rocket", title="MiniRocket", family="embedder", positional="kind", abilities=(ScalesWindows,))
@dataclass(eq=False)
class Rocket(BatchEncoder):
    """MiniRocket features, standardised on the corpus: shares of responses above levels drawn from the corpus.

    Windows are scaled, brought to the channels and longest length of the corpus, and interpolated to at least nine
    points (ten for the other kinds). Features that are constant on the corpus are dropped; if all are, as with one
    window, none is dropped.

    Args:
        features: approximate number; MiniRocket has a multiple of 84.
        kind: `mini` is our implementation; `multi` (MultiRocket) and `hydra` need the package aeon.
        standardise: subtract each feature's mean over the corpus and divide by its deviation.
        norm: scaling of the windows.
        seed: of the channels and windows that are drawn.
        metric: metric between vectors; cosine is our choice, and scores are similar with either.
    """

    corpus_dependent = True

    features: Annotated[int, ParameterRange(84, 1_000_000)] = 9996
    kind: Kind = "mini"
    standardise: bool = True
    norm: Normalisation = "channel"
    seed: Annotated[int, ParameterRange(0, 2**31 - 1)] = 0
    metric: Metric = "cosine"

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Choose convolutions and levels, and measure the features' mean and deviation."""
        if not len(corpus):
            raise DataError("rocket draws its levels from the corpus, and this one is empty.")
        bank, shortest = _bank(self.kind, self.features, self.seed)
        self.grid_ = ChannelGrid.of(corpus, normals, self.norm, shortest=shortest)
        self.bank_ = bank.fit(self.grid_(_sample(corpus, self.grid_, self.seed)))
        self._first: tuple[WindowSet, Vectors] | None = None
        self.mean_, self.deviation_ = self._moments(corpus)
        return self

    def encode(self, windows: WindowSet) -> Vectors:
        """(N, D) float32; reuses the features of a small corpus from fitting."""
        first, self._first = self._first, None
        if first is None or first[0] is not windows:
            return super().encode(windows)
        return self._scale(first[1])

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers of each window, also on the grid, and of its features."""
        return super().footprint(windows) + self.grid_.size + self.features

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, D) float32; D is the number of features that vary on the corpus."""
        return self._scale(self._features(windows))

    def fingerprint(self) -> str:
        """Hash of the parameters that shape a vector, the grid, convolutions and moments."""
        shaping = (VERSION, self.features, self.kind, self.standardise, self.seed, self.grid_.fingerprint())
        digest = hashlib.sha256(f"rocket {shaping}".encode())
        for part in (*self.bank_.state(), self.mean_.tobytes(), self.deviation_.tobytes()):
            digest.update(part)
        return digest.hexdigest()[:16]

    def _scale(self, features: Vectors) -> Vectors:
        kept = self.deviation_ > 0
        vectors: Vectors = (features[:, kept] - self.mean_[kept]) / self.deviation_[kept]
        return vectors

    def _features(self, windows: WindowSet) -> Vectors:
        return self.bank_.transform(self.grid_(windows))

    def _moments(self, corpus: WindowSet) -> tuple[Vectors, Vectors]:
        """Mean and deviation of each feature; the deviation of a feature to drop is 0.

        Sums are relative to the first window's features, so that a constant feature has a deviation of exactly 0.
        """
        shift: NDArray[np.float64] = self._features(corpus[:1])[0].astype(np.float64)
        total, square = np.zeros_like(shift), np.zeros_like(shift)
        for batch in self.batches(corpus) if self.standardise else ():
            features = self._features(batch)
            if len(batch) == len(corpus):
                self._first = corpus, features
            centred = features - shift
            total += centred.sum(axis=0)
            square += np.einsum("nf,nf->f", centred, centred)
        offset = total / len(corpus)
        deviation = np.sqrt(np.maximum(square / len(corpus) - offset**2, 0))
        mean = shift + offset
        deviation[deviation <= np.finfo(np.float32).eps * np.abs(mean)] = 0
        if not deviation.any():
            return np.zeros(len(mean), np.float32), np.ones(len(mean), np.float32)
        return mean.astype(np.float32), deviation.astype(np.float32)


def _sample(corpus: WindowSet, grid: ChannelGrid, seed: int) -> WindowSet:
    """A random sample of windows within the memory bound; usually all."""
    most = max(1, MAX_SAMPLE_NUMBERS // grid.size)
    if len(corpus) <= most:
        return corpus
    return corpus[np.sort(np.random.default_rng(seed).choice(len(corpus), most, replace=False))]


def _bank(kind: Kind, features: int, seed: int) -> tuple[_Features, int]:
    """Unfitted convolutions of a kind, and the minimum number of points."""
    if kind == "mini":
        from readbench.engine.kernels.rocket import SHORTEST  # noqa: PLC0415 - compiles

        return _Mini(features, seed), SHORTEST
    from readbench.engine.kernels import rocket_peers as peers  # noqa: PLC0415

    return (peers.MultiRocket if kind == "multi" else peers.Hydra)(features, seed), peers.SHORTEST


class _Mini:
    """Our MiniRocket on all threads."""

    def __init__(self, features: int, seed: int) -> None:
        self.features, self.seed = features, seed

    def fit(self, windows: NDArray[np.float32]) -> Self:
        """Draw channels and levels."""
        from readbench.engine.kernels.rocket import fit_bank  # noqa: PLC0415

        self.bank = fit_bank(windows, self.features, self.seed)
        return self

    def transform(self, windows: NDArray[np.float32]) -> Vectors:
        """(N, F) shares."""
        from readbench.engine.kernels.rocket import transform  # noqa: PLC0415

        out = np.empty((len(windows), len(self.bank.levels)), np.float32)
        with Team() as team:
            team.share(lambda first, last: transform(self.bank, windows[first:last], out[first:last]), len(windows))
        return out

    def state(self) -> list[bytes]:
        """Numbers of the bank as bytes."""
        return [part.tobytes() for part in self.bank]
