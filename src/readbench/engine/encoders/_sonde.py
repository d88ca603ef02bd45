"""Sonde: the encoder shipped with the package, trained on synthetic signals only (see docs/encoders.md).

A channel of a window, scaled by its normal operation and resampled to 512 points, becomes 512 numbers. A parameter
decides how the channels of a window become one vector: by default each channel's departure from normal operation,
pooled with the channels' identity (`NormalOperation`, pooling `both` of `pool_channels`); `sonde(pool=mean)` is the
paper's mean over channels. `sonde(size=small)` is a network of a fifth of the cost, trained on departures;
`sonde(views=difference)` adds the step-to-step differences as further channels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.cache import keep_arrays
from readbench.common.files import cache_root, digest
from readbench.engine.abilities import OnDevice, Pretrained, UsesContext
from readbench.engine.context import ABSENT
from readbench.engine.devices import import_optional, inference_mode, pick_device
from readbench.engine.encoders._channels import (
    ChannelEncoder,
    NormalOperation,
    Pooling,
    Rows,
    names_of,
    owners_of,
    pool_channels,
)
from readbench.engine.encoders._weights import digest_weights, locate_weights
from readbench.engine.kernels.threads import Team
from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import Scaler, add_differences, operating_statistics
from readbench.engine.protocols import Metric, Vectors
from readbench.engine.registry import ENCODERS
from readbench.engine.vectors import code_key, window_digests
from readbench.engine.windows import WindowSet, cut_befores
from readbench.errors import ParameterError, UsageError

LENGTH, WIDTH = 512, 512
VERSION = 1
"""Increased when vectors change, so that stored ones are not mixed."""
MAX_REFERENCE_WINDOWS = 256
"""Maximum normal windows for the reference, evenly spread over all."""
MAX_STRETCHES = 4
"""Number of latest stretches of the time before a window that define its usual vectors."""
Reference = Literal["normals", "corpus", "before", "none"]
Runtime = Literal["cpu", "cuda"]
Size = Literal["full", "small"]
Views = Literal["values", "difference"]
SHIPPED = "shipped"
FILE = "sonde.onnx"
SHIPPED_FILES: dict[Size, str] = {"full": FILE, "small": "sonde-small.onnx"}


@ENCODERS.register("sonde", title="Sonde", family="embedder", abilities=(Pretrained, OnDevice, UsesContext))
class Sonde(ChannelEncoder):
    """Departure of each channel from normal operation, pooled with the channel's identity; our encoder.

    Args:
        pool: pooling of the channels' vectors.
        reference: what vectors are measured by: normal windows; the corpus, if no normals are known; the time before
            each window, if it has one (else normals); or nothing.
        metric: metric between vectors.
        device: `cpu` runs anywhere; `cuda` needs torch and is for bulk encoding.
        batch: series per batch.
        weights: those shipped with the package, or a folder with a `sonde.onnx` that you trained.
        size: which of the shipped networks.
        views: what is seen of a channel: its values, or also its step-to-step differences.
    """

    def __init__(  # noqa: PLR0913 - one parameter a choice
        self,
        pool: Pooling = "both",
        reference: Reference = "normals",
        metric: Metric = "cosine",
        device: Runtime = "cpu",
        batch: Annotated[int, ParameterRange(1)] = 32,
        weights: str = SHIPPED,
        *,
        size: Size = "full",
        views: Views = "values",
    ) -> None:
        if views == "difference" and reference == "before":
            raise ParameterError("sonde(reference=before) sees values only: leave out views=difference.")
        self.pool: Pooling = pool
        self.reference: Reference = reference
        self.metric: Metric = metric
        self.device: Runtime = device
        self.batch = batch
        self.weights = weights
        self.size: Size = size
        self.views: Views = views
        self.scale_: Scaler | None = None
        self.usual_: NormalOperation | None = None

    @property
    def corpus_dependent(self) -> bool:
        """Whether the corpus is the reference; otherwise only normals count."""
        return self.reference == "corpus"

    @property
    def uses_context(self) -> bool:
        """Whether the time before the windows is the reference."""
        return self.reference == "before"

    def admissible(self, length: int) -> int:  # noqa: ARG002 - every length becomes the same
        """512 points."""
        return LENGTH

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Determine the scaling of channels and their vectors in normal operation."""
        corpus, normals = self._seen(corpus), self._seen(normals)
        if self.reference == "before":
            self.scale_ = scale = Scaler.of("before", corpus, normals)
        else:
            self.scale_ = scale = Scaler("normals", operating_statistics(corpus, normals))
        usual = {"normals": normals, "before": normals, "corpus": corpus}.get(self.reference)
        self.usual_ = None if usual is None else self._normal_operation(usual, scale)
        return self

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, D) pooled departures."""
        if self.scale_ is None:
            raise UsageError("Fit the encoder first: it scales windows by what it is fitted on.")
        if not len(windows):
            return np.empty((0, 0), np.float32)
        windows = self._seen(windows)
        vectors = self.channel_vectors(self.scale_(windows))
        if self.usual_ is not None:
            counts = np.repeat(windows.channel_counts, windows.channel_counts)
            usual = self._own_usual(windows, vectors.shape[1]) if self.uses_context else None
            vectors = self.usual_.departures(vectors, names_of(windows), counts, usual)
        return pool_channels(vectors, windows, self.pool)

    def embed(self, series: NDArray[np.float32]) -> Vectors:
        """(B, 512) vectors of series (B, 512)."""
        if self.device == "cuda":
            return _on_gpu(self._file, series)
        vectors: Vectors = open_session(self._file).run(["vectors"], {"series": series})[0]
        return vectors

    def each(self, work: Callable[[Rows], Vectors], parts: list[Rows]) -> list[Vectors]:
        """Distribute parts over threads, one each: vectors do not depend on the number of threads."""
        if self.device == "cuda":
            return super().each(work, parts)
        with Team() as team:
            return team.each(work, parts)

    def weights_fingerprint(self) -> str:
        """Hash of the weights and the version of the code."""
        return f"{VERSION}-{digest_weights((self._file,))}"

    def fingerprint(self) -> str:
        """Hash of the weights, the parameters that shape a vector, the scaling and the reference."""
        statistics = self.scale_.fingerprint() if self.scale_ else ""
        usual = self.usual_.fingerprint() if self.usual_ else ""
        return digest(self.weights_fingerprint(), self.pool, self.reference, self.views, statistics, usual)

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers of each window, its further views and its channels' vectors."""
        return super().footprint(windows) * (2 if self.views == "difference" else 1)

    def _seen(self, windows: WindowSet) -> WindowSet:
        """Windows as the network sees them."""
        return add_differences(windows) if self.views == "difference" else windows

    def _own_usual(self, windows: WindowSet, width: int) -> Vectors:
        """(M, D) mean vectors of the channels in the time before their windows; NaN without one."""
        usual = np.full((int(windows.channel_counts.sum()), width), np.nan, np.float32)
        stretches, of, of_window = cut_befores(windows, MAX_STRETCHES)
        if self.scale_ is None or not len(stretches):
            return usual
        vectors, owners = self.channel_vectors(self.scale_(stretches)), owners_of(stretches)
        means: dict[int, Vectors] = {}
        for number in np.unique(of).tolist():
            rows = vectors[of[owners] == number]
            means[number] = rows.reshape((of == number).sum(), -1, width).mean(axis=0)
        ends = np.cumsum(windows.channel_counts)
        for i in np.flatnonzero(of_window != ABSENT):
            usual[ends[i] - windows.channel_counts[i] : ends[i]] = means[int(of_window[i])]
        return usual

    @property
    def _file(self) -> Path:
        if self.weights == SHIPPED:
            return find_shipped_weights(self.size)
        return locate_weights(self.weights, (FILE,), "sonde")[0]

    def _normal_operation(self, normals: WindowSet, scale: Scaler) -> NormalOperation:
        """Statistics of the normals' vectors, cached on disk."""
        if len(normals) > MAX_REFERENCE_WINDOWS:
            normals = normals[np.linspace(0, len(normals) - 1, MAX_REFERENCE_WINDOWS).astype(np.intp)]
        identity = (self.weights_fingerprint(), scale.fingerprint(), code_key(type(self)))
        key = hashlib.sha256(repr(identity).encode())
        key.update(bytes.fromhex("".join(window_digests(normals))))
        path = cache_root() / "models" / "sonde" / f"{key.hexdigest()[:24]}.npz"
        kept = keep_arrays(path, lambda: _arrays_of(self._measure(normals, scale)))
        return NormalOperation(tuple(kept["names"].tolist()), kept["mean"], kept["deviation"])

    def _measure(self, normals: WindowSet, scale: Scaler) -> NormalOperation:
        if not len(normals):
            return NormalOperation.of(np.empty((0, WIDTH), np.float32), np.empty(0, np.str_))
        parts = [(self.channel_vectors(scale(b)), names_of(b)) for b in self.batches(normals)]
        return NormalOperation.of(np.concatenate([v for v, _ in parts]), np.concatenate([n for _, n in parts]))


def find_shipped_weights(size: Size = "full") -> Path:
    """Path of the weights in the package."""
    return Path(str(files("readbench.engine.encoders").joinpath("models", SHIPPED_FILES[size])))


@lru_cache(maxsize=2)
def open_session(weights: Path) -> Any:  # noqa: ANN401 - the runtime has no types
    """Load the network once, with one thread per call."""
    import onnxruntime  # noqa: PLC0415 - slow to import, needed only here

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])


def _on_gpu(weights: Path, series: NDArray[np.float32]) -> Vectors:
    torch = import_optional("torch", "sonde(device=cuda)")
    device = pick_device("cuda", "sonde")
    with inference_mode(device, "float32"):
        vectors: Vectors = _torch_network(weights, device)(torch.from_numpy(series).to(device)).float().cpu().numpy()
    return vectors


@lru_cache(maxsize=2)
def _torch_network(weights: Path, device: str) -> Any:  # noqa: ANN401 - a torch module
    return import_optional("readbench.engine.encoders.sonde_network", "sonde(device=cuda)").load(weights).to(device)


def _arrays_of(usual: NormalOperation) -> dict[str, NDArray[Any]]:
    return {"names": np.array(usual.names, np.str_), "mean": usual.mean, "deviation": usual.deviation}
