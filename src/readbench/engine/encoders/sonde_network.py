"""The network of Sonde in torch, for training and GPUs; importing this module needs torch and onnx.

The network maps one channel of a window, 512 points, to 512 numbers. The series enters twice: its shape (standardised
values and scaled differences) through three strided convolutions to one token per patch, and its level and scale as
saturating codes of patch and window statistics, so that shifts of one and of thirty deviations are both visible. A
class token and the tokens pass through a pre-norm transformer; the vector concatenates the class token and the mean of
the others.

In reading order: `Draws`, seeded random parameters of synthetic programs on any device; the network `SondeNetwork` and
the `Learner` around it; `export` of a trained body to the shipped file (ONNX, weights in half precision, arithmetic in
single), and `load`.
"""

from __future__ import annotations

import io
import json
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.nn import functional as ops

LENGTH = 512
"""Points of a series."""


class Draws:
    """Random numbers on a device.

    A *program* is a set of parameters; a *view* is one realisation of it. Shapes start with (N programs); `views` adds
    the second axis: V jittered copies of each parameter.
    """

    def __init__(self, device: str, seed: int) -> None:
        self.device = torch.device(device)
        self.generator = torch.Generator(self.device)
        self.generator.manual_seed(seed)
        self.time = torch.linspace(0, 1, LENGTH, device=self.device)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Uniform between two numbers."""
        return torch.rand(*shape, device=self.device, generator=self.generator) * (high - low) + low

    def normal(self, *shape: int) -> Tensor:
        """Standard normal."""
        return torch.randn(*shape, device=self.device, generator=self.generator)

    def scale(self, low: float, high: float, *shape: int) -> Tensor:
        """Log-uniform between two positive numbers."""
        return torch.exp(self.uniform(*shape, low=math.log(low), high=math.log(high)))

    def coin(self, chance: float, *shape: int) -> Tensor:
        """True with this probability."""
        return torch.rand(*shape, device=self.device, generator=self.generator) < chance

    def choice(self, count: int, *shape: int) -> Tensor:
        """Integers from 0 to count - 1."""
        return torch.randint(0, count, shape, device=self.device, generator=self.generator)

    def order(self, count: int) -> Tensor:
        """A random permutation."""
        return torch.randperm(count, device=self.device, generator=self.generator)

    def shifted(self, parameter: Tensor, views: int, jitter: float) -> Tensor:
        """(N, ...) -> (N, V, ...) with additive jitter in each view."""
        copies = parameter.unsqueeze(1).expand(-1, views, *parameter.shape[1:])
        return copies + jitter * self.normal(*copies.shape)

    def stretched(self, parameter: Tensor, views: int, jitter: float) -> Tensor:
        """(N, ...) -> (N, V, ...) with multiplicative jitter in each view."""
        copies = parameter.unsqueeze(1).expand(-1, views, *parameter.shape[1:])
        return copies * torch.exp(jitter * self.normal(*copies.shape))

    def noise(self, count: int, views: int, length: int, own: Tensor) -> Tensor:
        """(N, V, length) normal noise, of which a part `own` (N, 1, 1) is independent in each view."""
        common = self.normal(count, 1, length)
        return torch.sqrt(1 - own**2) * common + own * self.normal(count, views, length)


def standardise(series: Tensor, floor: float = 1e-4) -> Tensor:
    """Scale to mean 0 and deviation 1 along time."""
    return (series - series.mean(-1, keepdim=True)) / (series.std(-1, keepdim=True) + floor)


def read_at(series: Tensor, position: Tensor) -> Tensor:
    """Interpolate (..., T) linearly at fractional positions (..., T) in 0..1."""
    last = series.shape[-1] - 1
    place = position.clamp(0, 1) * last
    left = place.floor().long().clamp(max=last - 1)
    weight = place - left
    return series.gather(-1, left) * (1 - weight) + series.gather(-1, left + 1) * weight


CODE_SCALES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
PATCH_STATISTICS, WINDOW_STATISTICS = 6, 3
MAX_PATCHES = LENGTH // 8
"""Maximum patches: the output length of the first two convolutions."""


@dataclass(frozen=True)
class NetworkShape:
    """Sizes of the network; the defaults have 5.1 M parameters.

    Args:
        width: of a token.
        depth: transformer blocks.
        heads: of attention.
        hidden: width inside a block.
        patches: tokens per series, besides the class token.
        projection: length of the projections compared in training.
        statistics: whether tokens also encode level and scale of their patch.
        stem: widths of the first two convolutions.
        vector: length of the vector, by a linear map after the tokens; 0 for none, which gives 2 width.
    """

    width: int = 256
    depth: int = 6
    heads: int = 8
    hidden: int = 1024
    patches: int = 16
    projection: int = 128
    statistics: bool = True
    stem: tuple[int, int] = (64, 128)
    vector: int = 0

    @property
    def size(self) -> int:
        """Length of a vector."""
        return self.vector or 2 * self.width

    def __post_init__(self) -> None:
        if self.patches < 1 or MAX_PATCHES % self.patches:
            raise ValueError(f"patches must be a power of two up to {MAX_PATCHES}. Got {self.patches} instead.")
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads. Got {self.width} and {self.heads} instead.")


class TransformerBlock(nn.Module):
    """Attention and a two-layer network, each with pre-norm and residual connection."""

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.before_attention = nn.LayerNorm(shape.width)
        self.attention = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.before_network = nn.LayerNorm(shape.width)
        self.network = nn.Sequential(
            nn.Linear(shape.width, shape.hidden), nn.GELU(), nn.Linear(shape.hidden, shape.width)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, P, W) -> (B, P, W)."""
        batch, count, width = tokens.shape
        parts = self.attention(self.before_attention(tokens))
        query, key, value = parts.view(batch, count, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind()
        mixed = ops.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(batch, count, width)
        tokens = tokens + self.out(mixed)
        return tokens + self.network(self.before_network(tokens))


class SondeNetwork(nn.Module):
    """The shipped network: (B, 512) series to (B, size) vectors."""

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        self.shape = shape
        width = shape.width
        stride = MAX_PATCHES // shape.patches
        first, second = shape.stem
        self.stem = nn.Sequential(
            nn.Conv1d(2, first, 9, 2, 4),
            nn.GELU(),
            nn.Conv1d(first, second, 9, 4, 4),
            nn.GELU(),
            nn.Conv1d(second, width, 2 * stride + 1, stride, stride),
        )
        self.register_buffer("code_scales", torch.tensor(CODE_SCALES))
        if shape.statistics:
            self.patch_codes = nn.Linear(PATCH_STATISTICS * len(CODE_SCALES), width)
        self.window_codes = nn.Linear(WINDOW_STATISTICS * len(CODE_SCALES), width)
        self.input_norm = nn.LayerNorm(width)
        self.place = nn.Parameter(torch.randn(shape.patches + 1, width) * 0.02)
        self.summary = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.blocks = nn.ModuleList(TransformerBlock(shape) for _ in range(shape.depth))
        self.output_norm = nn.LayerNorm(width)
        self.head = nn.Linear(2 * width, shape.vector) if shape.vector else nn.Identity()

    def tokens(self, series: Tensor) -> Tensor:
        """(B, patches + 1, width) after the last norm; the first is the class token."""
        mean, spread = series.mean(-1, keepdim=True), series.std(-1, keepdim=True)
        shape = (series - mean) / (spread + 1e-4)
        change = ops.pad(shape[:, 1:] - shape[:, :-1], (1, 0))
        roughness = change.std(-1, keepdim=True)
        both = torch.stack([shape, change / (roughness + 1e-3)], 1).clamp(-12, 12)
        patches = self.stem(both).transpose(1, 2)
        if self.shape.statistics:
            patches = patches + self.patch_codes(self._codes(self._patch_statistics(series, shape)))
        window = torch.cat([mean, torch.log(spread + 1e-3), torch.log(roughness + 1e-3)], 1)
        first = self.summary + self.window_codes(self._codes(window)).unsqueeze(1)
        tokens = self.input_norm(torch.cat([first.to(patches.dtype), patches], 1)) + self.place
        for block in self.blocks:
            tokens = block(tokens)
        return self.output_norm(tokens)

    def forward(self, series: Tensor) -> Tensor:
        """(B, size) vectors."""
        return self.pooled(self.tokens(series))

    def pooled(self, tokens: Tensor) -> Tensor:
        """(B, size) class token and mean of the others, concatenated, through the head."""
        vectors: Tensor = self.head(torch.cat([tokens[:, 0], tokens[:, 1:].mean(1)], -1))
        return vectors

    def _codes(self, statistics: Tensor) -> Tensor:
        """Map each number through tanh at several scales."""
        return torch.tanh(statistics.unsqueeze(-1) / self.code_scales).flatten(-2)

    def _patch_statistics(self, series: Tensor, shape: Tensor) -> Tensor:
        """(B, patches, 6)."""
        raw, flat = (values.unflatten(1, (self.shape.patches, -1)) for values in (series, shape))
        slope, extent = flat[..., -1] - flat[..., 0], flat.amax(-1) - flat.amin(-1)
        return torch.stack([flat.mean(-1), flat.std(-1), slope, raw.mean(-1), raw.std(-1), extent], -1)


class Learner(nn.Module):
    """The body with heads used only in training."""

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        self.body = SondeNetwork(shape)
        size = shape.size
        self.identity = nn.Sequential(
            nn.LayerNorm(size), nn.Linear(size, 512), nn.GELU(), nn.Linear(512, shape.projection)
        )
        self.picture = nn.Linear(shape.width, LENGTH // shape.patches)

    def forward(self, series: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors (B, size), their projections (B, projection) and reconstructed patches (B, T)."""
        tokens = self.body.tokens(series)
        vectors = self.body.pooled(tokens)
        return vectors, self.identity(vectors), self.picture(tokens[:, 1:]).flatten(1)


OPSET = 17
HALF = ".half"
HALF_DIGITS = 10
"""Binary digits of the fraction in half precision."""
MIN_HALF_SIZE = 64
"""Minimum numbers of a tensor stored in half precision."""


def export(body: SondeNetwork, path: Path, metadata: dict[str, Any], digits: int = HALF_DIGITS) -> None:
    """Write the body as ONNX: input `series` (B, 512), output `vectors` (B, size), any B.

    Args:
        body: trained.
        path: the file.
        metadata: stored in the file.
        digits: binary digits of a weight's fraction; fewer compress better.
    """
    model = store_in_half(_traced(body.cpu()), digits)
    helper.set_model_props(model, {name: json.dumps(value) for name, value in metadata.items()})
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())


def _traced(body: SondeNetwork) -> onnx.ModelProto:
    """The body as a graph whose tensors keep the names of its parameters, so that `load` finds them."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that keeps names is deprecated and warns
        torch.onnx.export(
            body,
            (torch.zeros(2, LENGTH),),
            buffer,
            input_names=["series"],
            output_names=["vectors"],
            dynamic_axes={"series": {0: "count"}, "vectors": {0: "count"}},
            opset_version=OPSET,
            do_constant_folding=False,
            training=torch.onnx.TrainingMode.TRAINING,  # otherwise equal tensors are merged and lose their names
            dynamo=False,
        )
    return onnx.load_model_from_string(buffer.getvalue())


def store_in_half(model: onnx.ModelProto, digits: int = HALF_DIGITS) -> onnx.ModelProto:
    """Store large float tensors in float16, rounded to `digits`, with a cast on loading."""
    casts = []
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.size < MIN_HALF_SIZE:
            continue
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(_rounded(values, digits).astype(np.float16), f"{name}{HALF}"))
        casts.append(helper.make_node("Cast", [f"{name}{HALF}"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def _rounded(values: NDArray[np.float32], digits: int) -> NDArray[np.float32]:
    """Round to this many binary digits of the fraction."""
    if digits >= HALF_DIGITS:
        return values
    fraction, exponent = np.frexp(values)
    rounded: NDArray[np.float32] = np.ldexp(np.round(fraction * 2 ** (digits + 1)), exponent - digits - 1)
    return rounded


def load(path: Path) -> SondeNetwork:
    """Load the body from a file written by `export`."""
    model = onnx.load_model(path)
    config = json.loads(next(item.value for item in model.metadata_props if item.key == "config"))
    lists = {name: tuple(value) for name, value in config["shape"].items() if isinstance(value, list)}
    body = SondeNetwork(NetworkShape(**config["shape"] | lists))
    stored = {t.name.removesuffix(HALF): numpy_helper.to_array(t) for t in model.graph.initializer}
    body.load_state_dict({name: torch.from_numpy(stored[name].astype(np.float32)) for name in body.state_dict()})
    return body.eval()
