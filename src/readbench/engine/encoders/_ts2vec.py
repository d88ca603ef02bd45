"""TS2Vec: a network trained without labels on the corpus that it encodes.

From Yue et al., "TS2Vec: towards universal representation of time series", AAAI 2022, with details of the authors'
program (github.com/zhihanyue/ts2vec) that the text lacks:

* **Network**: a linear map of the channels at each timestep to 64 numbers, then eleven residual blocks of two
  convolutions each (kernel 3, dilation 2^l in block l), the last of them 320 wide. In training each timestep's 64
  numbers are set to zero with probability one half, after the linear map, so that a masked step differs from a reading
  of zero; a tenth of the 320 numbers is dropped.
* **Views**: two overlapping crops of the windows of a batch, shifted per window and masked differently; they are
  compared where they overlap.
* **Average**: the weights used for encoding are the mean of those at the start and after every step.
* **Loss**: a timestep's vector should resemble that of the same step in the other view, more than those of other steps
  of its window (temporal contrast) and of other windows at its step (instance contrast). The sum is averaged over
  resolutions: time is halved by max pooling until one step is left.

Weights are a dictionary of arrays, so that they can be hashed, stored and sent without torch. Network and training come
first, then the encoder `TS2Vec`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.cache import keep_arrays
from readbench.common.files import cache_root
from readbench.engine.abilities import OnDevice, ScalesWindows
from readbench.engine.devices import Device, Torch, import_optional, inference_mode, pick_device, use_one_thread
from readbench.engine.encoders._raw import ChannelGrid
from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import Normalisation
from readbench.engine.protocols import BatchEncoder, Metric, Vectors
from readbench.engine.registry import ENCODERS
from readbench.engine.vectors import code_key, window_digests
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, MethodError

HIDDEN, WIDTH, BLOCKS, KERNEL = 64, 320, 11, 3
LEARNING_RATE = 1e-3
DROPOUT = 0.1
"""Share of a timestep's numbers that training sets to zero."""
MIN_OVERLAP = 2

Weights = dict[str, NDArray[np.float32]]
Batches = Callable[[NDArray[np.intp]], NDArray[np.float32]]
"""(B, C, T) values of the windows with these indices."""


def initial_weights(channels: int, seed: int) -> Weights:
    """Draw weights uniformly in plus or minus 1 / sqrt(inputs of the neuron)."""
    rng = np.random.default_rng(seed)
    shapes = {"input": (HIDDEN, channels, 1)}
    for block in range(BLOCKS):
        width = WIDTH if block == BLOCKS - 1 else HIDDEN
        shapes |= {f"{block}.first": (width, HIDDEN, KERNEL), f"{block}.second": (width, width, KERNEL)}
    shapes["skip"] = (WIDTH, HIDDEN, 1)
    weights: Weights = {}
    for name, (outputs, inputs, kernel) in shapes.items():
        bound = (inputs * kernel) ** -0.5
        weights[f"{name}.weight"] = rng.uniform(-bound, bound, (outputs, inputs, kernel)).astype(np.float32)
        weights[f"{name}.bias"] = rng.uniform(-bound, bound, outputs).astype(np.float32)
    return weights


def represent(weights: dict[str, Torch], values: Torch, keep: Torch = None) -> Torch:
    """(B, 320, T) vectors of each timestep of values (B, C, T).

    Args:
        weights: tensors by name.
        values: scaled windows.
        keep: (B, 1, T) ones, and zeros at masked timesteps; None masks nothing.
    """
    ops = import_optional("torch.nn.functional", "ts2vec")

    def convolve(name: str, tensor: Torch, dilation: int = 1) -> Torch:
        kernel = weights[f"{name}.weight"]
        padding = dilation * (kernel.shape[2] // 2)
        return ops.conv1d(tensor, kernel, weights[f"{name}.bias"], padding=padding, dilation=dilation)

    hidden = convolve("input", values)
    if keep is not None:
        hidden = hidden * keep
    for block in range(BLOCKS):
        inner = convolve(f"{block}.first", ops.gelu(hidden), 2**block)
        inner = convolve(f"{block}.second", ops.gelu(inner), 2**block)
        hidden = inner + (convolve("skip", hidden) if block == BLOCKS - 1 else hidden)
    return hidden


def hierarchical_loss(left: Torch, right: Torch) -> Torch:
    """Temporal and instance contrast of two views (B, D, T), averaged over resolutions."""
    ops = import_optional("torch.nn.functional", "ts2vec")
    levels = [_dual_loss(left, right)]
    while left.shape[2] > 1:
        left, right = ops.max_pool1d(left, 2), ops.max_pool1d(right, 2)
        levels.append(_dual_loss(left, right))
    return sum(levels) / len(levels)


def _dual_loss(left: Torch, right: Torch) -> Torch:
    torch = import_optional("torch", "ts2vec")
    steps = torch.cat([left, right], dim=2).permute(0, 2, 1)  # (B, 2T, D): the steps of one window side by side
    windows = torch.cat([left, right], dim=0).permute(2, 0, 1)  # (T, 2B, D): the windows at one step
    return _contrast(steps) + _contrast(windows)


def _contrast(vectors: Torch) -> Torch:
    """Mean cross entropy of identifying each vector's partner among the others of its group.

    Args:
        vectors: (G, 2M, D); the partner of item m is item m + M.
    """
    torch, ops = import_optional("torch", "ts2vec"), import_optional("torch.nn.functional", "ts2vec")
    groups, count, _ = vectors.shape
    similarity = vectors @ vectors.transpose(1, 2)
    itself = torch.eye(count, dtype=torch.bool, device=vectors.device)
    similarity = similarity.masked_fill(itself, -torch.inf)
    partner = torch.arange(count, device=vectors.device).roll(count // 2).repeat(groups)
    return ops.cross_entropy(similarity.flatten(0, 1), partner)


def train(
    weights: Weights, batches: Batches, *, windows: int, steps: int, batch: int, seed: int, device: str
) -> Weights:
    """Train by AdamW; return the mean of the weights at the start and after each step.

    Args:
        weights: initial weights.
        batches: returns windows by their indices.
        windows: number of windows.
        steps: number of batches.
        batch: windows per batch.
        seed: of the order of windows, crops and masks.
        device: `cpu` or `cuda`; only a CPU is reproducible to the byte.
    """
    torch = import_optional("torch", "ts2vec")
    rng = np.random.default_rng(seed)
    tensors = {name: torch.tensor(value, device=device, requires_grad=True) for name, value in weights.items()}
    optimiser = torch.optim.AdamW(tensors.values(), lr=LEARNING_RATE)
    means = {name: value.detach().clone() for name, value in tensors.items()}
    queue = np.empty(0, np.intp)
    for step in range(steps):
        if len(queue) < min(batch, windows):
            queue = rng.permutation(windows)
        values = torch.from_numpy(batches(queue[:batch])).to(device)
        queue = queue[batch:]
        loss = hierarchical_loss(*_views(tensors, values, rng))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        for name, mean in means.items():
            mean.lerp_(tensors[name].detach(), 1 / (step + 2))
    return {name: mean.cpu().numpy() for name, mean in means.items()}


def _views(weights: dict[str, Torch], values: Torch, rng: np.random.Generator) -> tuple[Torch, Torch]:
    """Representations (B, 320, overlap) of two masked crops where they overlap."""
    length = values.shape[2]
    overlap = int(rng.integers(min(MIN_OVERLAP, length), length + 1))
    start = int(rng.integers(0, length - overlap + 1))
    left = int(rng.integers(0, start + 1))
    right = int(rng.integers(start + overlap, length + 1))
    shifts = rng.integers(-left, length - right + 1, len(values))
    first = _masked(weights, _crop(values, shifts + left, start + overlap - left), rng)
    second = _masked(weights, _crop(values, shifts + start, right - start), rng)
    return first[:, :, start - left :], second[:, :, :overlap]


def _crop(values: Torch, starts: NDArray[np.int64], length: int) -> Torch:
    """(B, C, length) crops from the given step of each window."""
    torch = import_optional("torch", "ts2vec")
    steps = torch.from_numpy(starts[:, None] + np.arange(length)).to(values.device)
    return values.gather(2, steps[:, None].expand(-1, values.shape[1], -1))


def _masked(weights: dict[str, Torch], crop: Torch, rng: np.random.Generator) -> Torch:
    torch = import_optional("torch", "ts2vec")
    keep = (rng.random((crop.shape[0], 1, crop.shape[2])) < 0.5).astype(np.float32)
    vectors = represent(weights, crop, torch.from_numpy(keep).to(crop.device))
    kept = rng.random(tuple(vectors.shape), dtype=np.float32) >= DROPOUT
    return vectors * torch.from_numpy(kept).to(crop.device) / (1 - DROPOUT)


VERSION = 2
"""Increased when the network or its training changes, so that stored weights are not mixed."""
TRAINING_BATCH = 8
LAYERS_IN_MEMORY = 4
"""Outputs of the widest layers in memory at the same time while encoding."""
MIN_LENGTH = 16
"""Minimum points; shorter windows are interpolated."""
MAX_INPUT = 1e3
"""Scaled readings are clipped here, so that a nearly dead channel does not dominate training."""
SMALL_CORPUS, FEW_STEPS, MANY_STEPS = 100_000, 200, 600
"""The paper's rule: 200 steps for a corpus of fewer numbers, otherwise 600."""


@ENCODERS.register(
    "ts2vec",
    title="TS2Vec",
    family="embedder",
    requires=("torch",),
    extra="models",
    abilities=(OnDevice, ScalesWindows),
)
@dataclass(eq=False)
class TS2Vec(BatchEncoder):
    """TS2Vec, trained on the corpus without labels: the maximum over time of 320 learned numbers.

    The network sees all channels at once, on the corpus's channel axis (matched by name, a missing one at its mean) and
    longest length. Trained weights are cached under the hash of windows and parameters.

    Args:
        steps: training batches of 8 windows; none: 200 for a corpus of up to 100,000 numbers, else 600.
        length: longer windows are interpolated down to this many points.
        metric: metric between vectors.
        norm: scaling of the windows.
        device: where it is trained and runs.
        seed: of initial weights, crops and masks.
    """

    corpus_dependent = True

    steps: Annotated[int, ParameterRange(1)] | None = None
    length: Annotated[int, ParameterRange(MIN_LENGTH, 4096)] = 1024
    metric: Metric = "euclidean"
    norm: Normalisation = "channel"
    device: Device = "auto"
    seed: int = 0

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Train on the windows of the corpus, or load cached weights."""
        if not len(corpus):
            raise DataError("ts2vec needs a corpus to be trained on, and this one is empty.")
        self.grid_ = ChannelGrid.of(corpus, normals, self.norm, shortest=MIN_LENGTH, longest=self.length)
        path = cache_root() / "models" / "ts2vec" / f"{self._training_key(corpus)}.npz"
        self.weights_ = keep_arrays(path, lambda: self._train(corpus))
        return self

    def _train(self, corpus: WindowSet) -> Weights:
        size = len(corpus) * self.grid_.size
        with use_one_thread():
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
        """(N, C, T) inputs of the network."""
        return self.grid_(windows).clip(-MAX_INPUT, MAX_INPUT)

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers of each window, also on the grid, and inside the network."""
        return super().footprint(windows) + self.grid_.size + LAYERS_IN_MEMORY * WIDTH * self.grid_.length

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, 320) maxima over time."""
        torch, device = import_optional("torch", "ts2vec"), pick_device(self.device, "ts2vec")
        weights = {name: torch.from_numpy(value).to(device) for name, value in self.weights_.items()}
        with use_one_thread(), inference_mode(device, "float32"):
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
        settings = (code_key(type(self)), self.steps, self.seed, self.grid_.fingerprint())
        digest = hashlib.sha256(repr(settings).encode())
        digest.update(bytes.fromhex("".join(window_digests(corpus))))
        return digest.hexdigest()[:24]
