"""The network: one channel of a window, 512 points, to 512 numbers.

The series enters twice: its shape (standardised values and scaled differences) through three strided convolutions to
one token per patch, and its level and scale as saturating codes of patch and window statistics, so that a shift of one
deviation and one of thirty are both visible. A class token and the tokens pass through a pre-norm transformer; the
vector is the class token beside the mean of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as ops

from readbench.training.draws import LENGTH

CODE_SCALES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
PATCH_STATISTICS, WINDOW_STATISTICS = 6, 3
FINEST = LENGTH // 8
"""Patches, at most: what the first two convolutions leave."""


@dataclass(frozen=True)
class Shape:
    """Sizes of the network; 5.1 M parameters as given.

    Args:
        width: of a token.
        depth: transformer blocks.
        heads: of attention.
        hidden: width inside a block.
        patches: tokens of a series, the class token aside.
        projection: numbers that the search for a program compares.
        statistics: whether tokens also know level and scale of their patch.
    """

    width: int = 256
    depth: int = 6
    heads: int = 8
    hidden: int = 1024
    patches: int = 16
    projection: int = 128
    statistics: bool = True

    def __post_init__(self) -> None:
        if self.patches < 1 or FINEST % self.patches:
            raise ValueError(f"patches must be a power of two up to {FINEST}. Got {self.patches} instead.")
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads. Got {self.width} and {self.heads} instead.")


class Block(nn.Module):
    """Attention and a two-layer network, each with a norm before and a shortcut around it."""

    def __init__(self, shape: Shape) -> None:
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


class Body(nn.Module):
    """What ships: (B, 512) series to (B, 2 width) vectors."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        width = shape.width
        stride = FINEST // shape.patches
        self.stem = nn.Sequential(
            nn.Conv1d(2, 64, 9, 2, 4),
            nn.GELU(),
            nn.Conv1d(64, 128, 9, 4, 4),
            nn.GELU(),
            nn.Conv1d(128, width, 2 * stride + 1, stride, stride),
        )
        self.register_buffer("code_scales", torch.tensor(CODE_SCALES))
        if shape.statistics:
            self.patch_codes = nn.Linear(PATCH_STATISTICS * len(CODE_SCALES), width)
        self.window_codes = nn.Linear(WINDOW_STATISTICS * len(CODE_SCALES), width)
        self.input_norm = nn.LayerNorm(width)
        self.place = nn.Parameter(torch.randn(shape.patches + 1, width) * 0.02)
        self.summary = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.depth))
        self.output_norm = nn.LayerNorm(width)

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
        """(B, 2 width) vectors."""
        return pooled(self.tokens(series))

    def _codes(self, statistics: Tensor) -> Tensor:
        """Each number through tanh at several scales."""
        return torch.tanh(statistics.unsqueeze(-1) / self.code_scales).flatten(-2)

    def _patch_statistics(self, series: Tensor, shape: Tensor) -> Tensor:
        """(B, patches, 6)."""
        raw, flat = (values.unflatten(1, (self.shape.patches, -1)) for values in (series, shape))
        slope, extent = flat[..., -1] - flat[..., 0], flat.amax(-1) - flat.amin(-1)
        return torch.stack([flat.mean(-1), flat.std(-1), slope, raw.mean(-1), raw.std(-1), extent], -1)


class Learner(nn.Module):
    """The body and the heads that only training needs."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.body = Body(shape)
        size = 2 * shape.width
        self.identity = nn.Sequential(
            nn.LayerNorm(size), nn.Linear(size, 512), nn.GELU(), nn.Linear(512, shape.projection)
        )
        self.picture = nn.Linear(shape.width, LENGTH // shape.patches)

    def forward(self, series: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors (B, 2 width), their projections (B, projection) and every patch redrawn (B, T)."""
        tokens = self.body.tokens(series)
        vectors = pooled(tokens)
        return vectors, self.identity(vectors), self.picture(tokens[:, 1:]).flatten(1)


def pooled(tokens: Tensor) -> Tensor:
    """The class token beside the mean of the others."""
    return torch.cat([tokens[:, 0], tokens[:, 1:].mean(1)], -1)
