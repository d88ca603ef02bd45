"""Base of pretrained encoders, which encode windows without further training.

A network sees one channel at a time, scaled by the channel statistics of the task; the vectors of a window's channels
are then pooled (`pool_channels`). Equal series give equal vectors at any position in a batch. Between batches of
different size they agree up to rounding, since libraries may sum in another order for other shapes.
"""

# Annotations are values here, not text (no `from __future__ import annotations`): dataclass constructors of subclasses
# in other modules use the fields below, and method texts read their types.

import io
from abc import abstractmethod
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.files import digest
from readbench.engine.devices import (
    Device,
    Precision,
    Torch,
    import_optional,
    inference_mode,
    pick_device,
    use_one_thread,
)
from readbench.engine.encoders._channels import ChannelEncoder, Pooling, Rows
from readbench.engine.encoders._weights import digest_weights, locate_weights
from readbench.engine.kernels.threads import Team
from readbench.engine.parameters import ParameterRange, parameters_of
from readbench.engine.preparation import Normalisation, Scaler
from readbench.engine.protocols import Metric, Vectors
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, MethodError, ReadbenchError

MIN_BATCH = 8
"""Smaller batches are padded with their last series: products of few rows round differently, which networks amplify."""
MAX_ERROR_CHARACTERS = 300
"""Maximum characters of an error of loading weights; torch names them after its first line."""
NEUTRAL_PARAMETERS = ("weights", "device", "batch", "metric")
"""Parameters that change vectors at most by rounding; weights count by their content."""


@dataclass(eq=False)
class FrozenEncoder(ChannelEncoder):
    """Base class of encoders around a pretrained network.

    Subclasses are dataclasses that set `name` and `files`, give `weights` a default, and implement `load` and
    `forward`; further fields are further parameters.

    Args:
        weights: hub id or folder of the network's files, or the file if there is only one.
        pool: pooling of the channels' vectors.
        metric: metric between vectors.
        norm: scaling of the windows.
        dtype: precision of matrix products.
        device: where it runs.
        batch: series per batch.
    """

    name: ClassVar[str]
    distribution: ClassVar[str]
    """Package whose code runs the network; its version is part of the fingerprint."""
    files: ClassVar[tuple[str, ...]]
    """Published file names of the network."""
    licence: ClassVar[str] = ""
    """Licence of the weights, as stated on their page."""
    corpus_dependent: ClassVar[bool] = False

    weights: str = ""
    pool: Pooling = "mean"
    metric: Metric = "euclidean"
    norm: Normalisation = "channel"
    dtype: Precision = "float32"
    device: Device = "auto"
    batch: Annotated[int, ParameterRange(1)] = 32
    scale_: Scaler | None = field(default=None, init=False, repr=False)
    _network: Torch = field(default=None, init=False, repr=False)

    @abstractmethod
    def load(self, paths: tuple[Path, ...], device: str) -> Torch:
        """Load the network from these files to the device, in evaluation mode."""

    @abstractmethod
    def forward(self, network: Torch, series: Torch) -> Torch:
        """(B, d) vectors of series (B, T) of an admissible length, as tensors."""

    def paths(self) -> tuple[Path, ...]:
        """Paths of the network's files."""
        return locate_weights(self.weights, self.files, self.name)

    @property
    def network(self) -> Torch:
        """The network, loaded on first use."""
        if self._network is None:
            torch = import_optional("torch", self.name)
            paths, device = self.paths(), pick_device(self.device, self.name)
            # Building a network draws random weights before it loads the true ones; loaders print.
            with torch.random.fork_rng(devices=[]), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                self._network = self._load_checked(paths, device)
        return self._network

    def _load_checked(self, paths: tuple[Path, ...], device: str) -> Torch:
        try:
            return self.load(paths, device)
        except ReadbenchError:
            raise
        except Exception as error:  # a damaged file, or one of another network, fails in any way
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:MAX_ERROR_CHARACTERS]
            place = paths[0].parent if len(paths) > 1 else paths[0]
            raise DataError(f"{place} holds no weights that {self.name} can load ({reason}).") from error

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Determine the channel statistics for scaling; nothing else is learned."""
        self.scale_ = Scaler.of(self.norm, corpus, normals)
        return self

    @property
    def _scaler(self) -> Scaler:
        """The scaler; before fitting, one that scales windows independently of a corpus."""
        return self.scale_ or Scaler(self.norm)

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, D) pooled vectors of the scaled windows."""
        return super().encode_batch(self._scaler(windows))

    def each(self, work: Callable[[Rows], Vectors], parts: list[Rows]) -> list[Vectors]:
        """On a CPU, distribute parts over threads, one each: vectors do not depend on the number of threads."""
        if pick_device(self.device, self.name) != "cpu":
            return super().each(work, parts)
        with use_one_thread(), Team() as team:
            return [*super().each(work, parts[:1]), *team.each(work, parts[1:])]  # the first part loads the network

    def embed(self, series: NDArray[np.float32]) -> Vectors:
        """(B, d) vectors of series (B, T) of an admissible length."""
        network, device = self.network, pick_device(self.device, self.name)
        rows = np.minimum(np.arange(max(len(series), MIN_BATCH)), len(series) - 1)
        with inference_mode(device, self.dtype):
            tensor = import_optional("torch", self.name).from_numpy(series[rows]).to(device)
            vectors: Vectors = self.forward(network, tensor)[: len(series)].float().cpu().numpy()
        if not np.isfinite(vectors).all():
            raise MethodError(f"{self.name} gave a vector that is not finite: check the weights {self.weights}.")
        return vectors

    def weights_fingerprint(self) -> str:
        """Hash of the weights and of the code that runs the network; known before fitting."""
        return digest(self.name, version(self.distribution), digest_weights(self.paths()))

    def fingerprint(self) -> str:
        """Hash of the weights, the parameters that shape a vector, and the scaling."""
        shaping = {n: getattr(self, n) for n in parameters_of(type(self)) if n not in NEUTRAL_PARAMETERS}
        return digest(self.weights_fingerprint(), sorted(shaping.items()), self._scaler.fingerprint())

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the network, which each process loads."""
        return self.__dict__ | {"_network": None}
