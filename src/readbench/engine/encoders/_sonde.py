"""Sonde: the encoder that ships with the package, trained on synthetic signals alone (see docs/encoders.md).

A channel of a window, scaled by its normal operation and brought to 512 points, becomes 512 numbers. How the channels
of a window become one vector is a parameter: by default each channel's departure from normal operation, at places of
its own (`NormalOperation`, and the pooling `both` of `pool_channels`); the paper's mean over channels is
`sonde(pool=mean)`. `sonde(size=small)` is a network of a fifth of the cost, trained by this very measure of departures;
`sonde(views=difference)` shows the network how each channel changes from step to step, as further channels.
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
"""Raised whenever vectors change, so that stored ones are not mixed."""
REFERENCE_WINDOWS = 256
"""Normal windows that the reference is taken from, at most: evenly spread over those there are."""
STRETCHES = 4
"""Latest stretches of the time before a window whose vectors say what is usual."""
Reference = Literal["normals", "corpus", "before", "none"]
Runtime = Literal["cpu", "cuda"]
Size = Literal["full", "small"]
Views = Literal["values", "difference"]
SHIPPED = "shipped"
FILE = "sonde.onnx"
SHIPPED_FILES: dict[Size, str] = {"full": FILE, "small": "sonde-small.onnx"}


@ENCODERS.register("sonde", title="Sonde", family="embedder", abilities=(Pretrained, OnDevice, UsesContext))
class Sonde(ChannelEncoder):
    """Our own encoder: what each channel does beyond normal operation, and which channel it is.

    Args:
        pool: how the vectors of the channels become one.
        reference: what vectors are measured by: the windows of normal operation, those of the corpus where nobody
            knows what is normal, the time before each window where it brings one (else normal operation), or nothing.
        metric: how vectors are compared.
        device: `cpu` runs anywhere; `cuda` needs the package torch and is for bulk encoding.
        batch: series at a time.
        weights: those that ship with the package, or a folder with the `sonde.onnx` of a training run of your own.
        size: which of the shipped networks.
        views: what is seen of a channel: its values, or also their difference from step to step.
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
        """Only the normals count, unless the corpus is the reference."""
        return self.reference == "corpus"

    @property
    def uses_context(self) -> bool:
        """Whether the time before the windows is the reference."""
        return self.reference == "before"

    def admissible(self, length: int) -> int:  # noqa: ARG002 - every length becomes the same
        """512 points, whatever the window has."""
        return LENGTH

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Settle how channels are scaled, and what their vectors are in normal operation."""
        corpus, normals = self._seen(corpus), self._seen(normals)
        if self.reference == "before":
            self.scale_ = scale = Scaler.of("before", corpus, normals)
        else:
            self.scale_ = scale = Scaler("normals", operating_statistics(corpus, normals))
        usual = {"normals": normals, "before": normals, "corpus": corpus}.get(self.reference)
        self.usual_ = None if usual is None else self._normal_operation(usual, scale)
        return self

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, D) pooled vectors of the departures."""
        if self.scale_ is None:
            raise UsageError("Fit the encoder first: it scales windows by what it is fitted on.")
        if not len(windows):
            return np.empty((0, 0), np.float32)
        windows = self._seen(windows)
        vectors = self.channel_vectors(self.scale_(windows))
        if self.usual_ is not None:
            counts = np.repeat(windows.channel_counts, windows.channel_counts)
            own = self._own_usual(windows, vectors.shape[1]) if self.uses_context else None
            vectors = self.usual_.departures(vectors, names_of(windows), counts, own)
        return pool_channels(vectors, windows, self.pool)

    def embed(self, series: NDArray[np.float32]) -> Vectors:
        """(B, 512) vectors of series (B, 512)."""
        if self.device == "cuda":
            return _on_gpu(self._file, series)
        vectors: Vectors = open_session(self._file).run(["vectors"], {"series": series})[0]
        return vectors

    def each(self, work: Callable[[Rows], Vectors], parts: list[Rows]) -> list[Vectors]:
        """Parts share the threads, one each: the vectors are the same for any number of threads."""
        if self.device == "cuda":
            return super().each(work, parts)
        with Team() as team:
            return team.each(work, parts)

    def weights_fingerprint(self) -> str:
        """Hash of the weights and of the code that uses them."""
        return f"{VERSION}-{digest_weights((self._file,))}"

    def fingerprint(self) -> str:
        """Hash of the weights, the parameters that shape a vector, the scaling and the reference."""
        statistics = self.scale_.fingerprint() if self.scale_ else ""
        usual = self.usual_.fingerprint() if self.usual_ else ""
        return digest(self.weights_fingerprint(), self.pool, self.reference, self.views, statistics, usual)

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers of each window, of its further views and of the vectors of its channels."""
        return super().footprint(windows) * (2 if self.views == "difference" else 1)

    def _seen(self, windows: WindowSet) -> WindowSet:
        """The windows as the network is shown them."""
        return add_differences(windows) if self.views == "difference" else windows

    def _own_usual(self, windows: WindowSet, width: int) -> Vectors:
        """(M, D) mean vectors of the channels in the time before their windows; NaN where there is none."""
        own = np.full((int(windows.channel_counts.sum()), width), np.nan, np.float32)
        stretches, of, of_window = cut_befores(windows, STRETCHES)
        if self.scale_ is None or not len(stretches):
            return own
        vectors, owners = self.channel_vectors(self.scale_(stretches)), owners_of(stretches)
        means: dict[int, Vectors] = {}
        for number in np.unique(of).tolist():
            rows = vectors[of[owners] == number]
            means[number] = rows.reshape((of == number).sum(), -1, width).mean(axis=0)
        ends = np.cumsum(windows.channel_counts)
        for i in np.flatnonzero(of_window != ABSENT):
            own[ends[i] - windows.channel_counts[i] : ends[i]] = means[int(of_window[i])]
        return own

    @property
    def _file(self) -> Path:
        """The file of weights."""
        if self.weights == SHIPPED:
            return find_shipped_weights(self.size)
        return locate_weights(self.weights, (FILE,), "sonde")[0]

    def _normal_operation(self, normals: WindowSet, scale: Scaler) -> NormalOperation:
        """Statistics of the normals' vectors; kept in the cache, since encoding them takes its time."""
        if len(normals) > REFERENCE_WINDOWS:
            normals = normals[np.linspace(0, len(normals) - 1, REFERENCE_WINDOWS).astype(np.intp)]
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
    """The weights in the package."""
    return Path(str(files("readbench.engine.encoders").joinpath("models", SHIPPED_FILES[size])))


@lru_cache(maxsize=2)
def open_session(weights: Path) -> Any:  # noqa: ANN401 - the runtime has no types
    """The network, loaded once, one thread a call."""
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
