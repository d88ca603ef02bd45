"""TS2Vec: a network trained on the corpus itself, without labels (Yue et al., AAAI 2022; see `contrast`)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from readbench.abilities import OnDevice
from readbench.encoders.base import BatchEncoder, Metric, Vectors
from readbench.encoders.cache import window_digests
from readbench.encoders.contrast import WIDTH, Weights, initial_weights, represent, train
from readbench.encoders.devices import Device, inference, one_thread, package, pick_device
from readbench.encoders.raw import Grid
from readbench.errors import DataError, MethodError
from readbench.locks import exclusive
from readbench.parameters import Interval
from readbench.paths import cache_root
from readbench.registry import ENCODERS
from readbench.windows import Normalisation, WindowSet

VERSION = 1
"""Raised whenever the network or its training changes, so that stored weights are not mixed."""
TRAINING_BATCH = 8
LAYERS_AT_ONCE = 4
"""Outputs of the widest layers that exist at the same time while a window is encoded."""
SHORTEST = 16
"""Windows are interpolated to at least this many points."""
LARGEST_INPUT = 1e3
"""Scaled readings end here: one reading off an almost dead channel must not decide the training."""
SMALL_CORPUS, FEW_STEPS, MANY_STEPS = 100_000, 200, 600
"""The paper's rule: a corpus of fewer numbers is trained for 200 steps, any other for 600."""


@ENCODERS.register(
    "ts2vec", title="TS2Vec", family="embedder", requires=("torch",), extra="models", abilities=(OnDevice,)
)
class TS2Vec(BatchEncoder):
    """TS2Vec, trained on the corpus without labels: the maximum over time of 320 learned numbers.

    The network sees all channels at once, on the corpus's channel axis (matched by name, a missing one at its mean) and
    on its longest length. Trained weights are kept in the cache under the hash of the windows and the parameters.

    Args:
        steps: batches of 8 windows to learn from; none: 200 for a corpus of up to 100,000 numbers, else 600.
        length: longer windows are interpolated down to this many points.
        metric: how vectors are compared.
        norm: scaling of the windows.
        device: where it is trained and runs.
        seed: of the first weights, crops and masks.
    """

    corpus_dependent = True

    def __init__(
        self,
        steps: Annotated[int, Interval(1)] | None = None,
        length: Annotated[int, Interval(SHORTEST, 4096)] = 1024,
        metric: Metric = "euclidean",
        norm: Normalisation = "channel",
        device: Device = "auto",
        seed: int = 0,
    ) -> None:
        self.steps = steps
        self.length = length
        self.metric = metric
        self.norm = norm
        self.device = device
        self.seed = seed

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Train on the windows of the corpus, or read what an earlier training on them left."""
        if not len(corpus):
            raise DataError("ts2vec needs a corpus to be trained on, and this one is empty.")
        self.grid_ = Grid.of(corpus, normals, self.norm, shortest=SHORTEST, longest=self.length)
        path = cache_root() / "models" / "ts2vec" / f"{self._training_key(corpus)}.npz"
        with exclusive(path.with_suffix(".lock")):
            if not path.exists():
                _store(self._train(corpus), path)
            self.weights_ = _read(path)
        return self

    def _train(self, corpus: WindowSet) -> Weights:
        size = len(corpus) * self.grid_.size
        with one_thread():
            weights = train(
                initial_weights(len(self.grid_.axis), self.seed),
                lambda rows: self._inputs(corpus[rows]),
                windows=len(corpus),
                steps=self.steps or (FEW_STEPS if size <= SMALL_CORPUS else MANY_STEPS),
                batch=TRAINING_BATCH,
                seed=self.seed,
                device=pick_device(self.device, "ts2vec"),
            )
        if not all(np.isfinite(value).all() for value in weights.values()):
            raise MethodError("ts2vec: the training diverged on this corpus. Try norm=window.")
        return weights

    def _inputs(self, windows: WindowSet) -> NDArray[np.float32]:
        """(N, C, T) what the network sees."""
        return self.grid_(windows).clip(-LARGEST_INPUT, LARGEST_INPUT)

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers of each window, on the grid as well, and inside the network."""
        return super().footprint(windows) + self.grid_.size + LAYERS_AT_ONCE * WIDTH * self.grid_.length

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, 320) maxima over time."""
        torch, device = package("torch", "ts2vec"), pick_device(self.device, "ts2vec")
        weights = {name: torch.from_numpy(value).to(device) for name, value in self.weights_.items()}
        with one_thread(), inference(device, "float32"):
            values = torch.from_numpy(self._inputs(windows)).to(device)
            vectors: Vectors = represent(weights, values).amax(dim=2).cpu().numpy()
        return vectors

    def fingerprint(self) -> str:
        """Hash of the trained weights, the grid and the scaling."""
        digest = hashlib.sha256(f"ts2vec {VERSION} {self.grid_.fingerprint()}".encode())
        for name in sorted(self.weights_):
            digest.update(self.weights_[name].tobytes())
        return digest.hexdigest()[:16]

    def _training_key(self, corpus: WindowSet) -> str:
        """Hash of all that the training depends on."""
        settings = (VERSION, self.steps, self.seed, self.grid_.fingerprint())
        digest = hashlib.sha256(repr(settings).encode())
        digest.update(bytes.fromhex("".join(window_digests(corpus))))
        return digest.hexdigest()[:24]


def _store(weights: Weights, path: Path) -> None:
    """Write all or nothing: a killed training leaves no half file."""
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as file:
        np.savez(file, **weights)  # type: ignore[arg-type]  # numpy's stub takes its flag for one of the arrays
    partial.replace(path)


def _read(path: Path) -> Weights:
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}
