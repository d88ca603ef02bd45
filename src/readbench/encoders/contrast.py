"""The network and the training of TS2Vec.

Written from Yue et al., "TS2Vec: towards universal representation of time series", AAAI 2022:

* **Network**: a linear map of the channels at each timestep to 64 numbers, then ten residual blocks of two convolutions
  each (kernel 3, dilation 2^l in block l), the last of them 320 wide. During training each timestep's 64 numbers are
  set to zero with probability one half, after the linear map, so that a masked step differs from a reading of zero.
* **Views**: two overlapping crops of the windows of a batch, masked differently; they are compared where they overlap.
* **Loss**: a timestep's vector should resemble that of the same step in the other view, more than those of other steps
  of its window (temporal contrast) and of other windows at its step (instance contrast). The sum of both is averaged
  over resolutions: time is halved by max pooling until one step is left.

Weights are a plain dictionary of arrays, so that they can be hashed, stored and sent without torch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from readbench.encoders.devices import Torch, package

HIDDEN, WIDTH, BLOCKS, KERNEL = 64, 320, 10, 3
LEARNING_RATE = 1e-3
SHORTEST_OVERLAP = 2

Weights = dict[str, NDArray[np.float32]]
Batches = Callable[[NDArray[np.intp]], NDArray[np.float32]]
"""(B, C, T) values of the windows with these numbers."""


def initial_weights(channels: int, seed: int) -> Weights:
    """Uniform in plus or minus 1 / sqrt(inputs of the neuron); biases zero."""
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
        weights[f"{name}.bias"] = np.zeros(outputs, np.float32)
    return weights


def represent(weights: dict[str, Torch], values: Torch, keep: Torch = None) -> Torch:
    """(B, 320, T) vectors of each timestep of values (B, C, T).

    Args:
        weights: tensors by name.
        values: scaled windows.
        keep: (B, 1, T) ones, and zeros at the timesteps that are masked; None masks nothing.
    """
    ops = package("torch.nn.functional", "ts2vec")

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
    ops = package("torch.nn.functional", "ts2vec")
    levels = [_dual_loss(left, right)]
    while left.shape[2] > 1:
        left, right = ops.max_pool1d(left, 2), ops.max_pool1d(right, 2)
        levels.append(_dual_loss(left, right))
    return sum(levels) / len(levels)


def _dual_loss(left: Torch, right: Torch) -> Torch:
    torch = package("torch", "ts2vec")
    steps = torch.cat([left, right], dim=2).permute(0, 2, 1)  # (B, 2T, D): the steps of one window side by side
    windows = torch.cat([left, right], dim=0).permute(2, 0, 1)  # (T, 2B, D): the windows at one step
    return _contrast(steps) + _contrast(windows)


def _contrast(vectors: Torch) -> Torch:
    """Mean cross entropy of finding each vector's partner among the others of its group.

    Args:
        vectors: (G, 2M, D); the partner of item m is item m + M.
    """
    torch, ops = package("torch", "ts2vec"), package("torch.nn.functional", "ts2vec")
    groups, count, _ = vectors.shape
    similarity = vectors @ vectors.transpose(1, 2)
    itself = torch.eye(count, dtype=torch.bool, device=vectors.device)
    similarity = similarity.masked_fill(itself, -torch.inf)
    partner = torch.arange(count, device=vectors.device).roll(count // 2).repeat(groups)
    return ops.cross_entropy(similarity.flatten(0, 1), partner)


def train(
    weights: Weights, batches: Batches, *, windows: int, steps: int, batch: int, seed: int, device: str
) -> Weights:
    """Weights after some steps of AdamW.

    Args:
        weights: to start from.
        batches: gives windows by their numbers.
        windows: how many there are.
        steps: batches to learn from.
        batch: windows in a batch.
        seed: of the order of windows, the crops and the masks.
        device: `cpu` or `cuda`; only a CPU gives the same bytes each time.
    """
    torch = package("torch", "ts2vec")
    rng = np.random.default_rng(seed)
    tensors = {name: torch.tensor(value, device=device, requires_grad=True) for name, value in weights.items()}
    optimiser = torch.optim.AdamW(tensors.values(), lr=LEARNING_RATE)
    queue = np.empty(0, np.intp)
    for _ in range(steps):
        if len(queue) < min(batch, windows):
            queue = rng.permutation(windows)
        values = torch.from_numpy(batches(queue[:batch])).to(device)
        queue = queue[batch:]
        loss = hierarchical_loss(*_views(tensors, values, rng))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return {name: value.detach().cpu().numpy() for name, value in tensors.items()}


def _views(weights: dict[str, Torch], values: Torch, rng: np.random.Generator) -> tuple[Torch, Torch]:
    """Representations (B, 320, overlap) of two masked crops where they overlap."""
    length = values.shape[2]
    overlap = int(rng.integers(min(SHORTEST_OVERLAP, length), length + 1))
    start = int(rng.integers(0, length - overlap + 1))
    left = int(rng.integers(0, start + 1))
    right = int(rng.integers(start + overlap, length + 1))
    first = _masked(weights, values[:, :, left : start + overlap], rng)
    second = _masked(weights, values[:, :, start:right], rng)
    return first[:, :, start - left :], second[:, :, :overlap]


def _masked(weights: dict[str, Torch], crop: Torch, rng: np.random.Generator) -> Torch:
    keep = (rng.random((crop.shape[0], 1, crop.shape[2])) < 0.5).astype(np.float32)
    return represent(weights, crop, package("torch", "ts2vec").from_numpy(keep).to(crop.device))
