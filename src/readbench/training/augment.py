"""Two views of one program become two windows of it: cropped, warped, jittered, at another level and scale."""

from __future__ import annotations

import torch
from torch import Tensor

from readbench.training.carriers import TURN
from readbench.training.draws import LENGTH, Draws, read_at, standardised


def augmented(draws: Draws, pairs: Tensor, *, crop: float = 0.3, warp: float = 0.04, jitter: float = 0.1) -> Tensor:
    """(N, 2, T) augmented pairs; half of them keep a level and a scale that both views share."""
    n, views, _ = pairs.shape
    cut = draws.uniform(n, views, 1, high=crop)
    bend = draws.uniform(n, views, 1, high=warp) * 0.5
    wobble = torch.sin(TURN * (draws.time * (1 + draws.choice(3, n, views, 1)) + draws.uniform(n, views, 1)))
    series = read_at(pairs, draws.uniform(n, views, 1) * cut + (1 - cut) * draws.time + bend * wobble)
    loud = draws.coin(0.5, n, views, 1) * draws.uniform(n, views, 1, high=jitter)
    series = series + loud * series.std(-1, keepdim=True) * draws.normal(n, views, LENGTH)
    gap = draws.uniform(n, views, 1, high=0.15) * draws.coin(0.4, n, views, 1)
    at = draws.uniform(n, views, 1)
    series = torch.where((draws.time > at) & (draws.time < at + gap), series.mean(-1, keepdim=True), series)
    series = standardised(series)
    scale = torch.where(draws.coin(0.5, n, 1), torch.ones(1, device=draws.device), draws.scale(0.05, 8, n, 1))
    level = draws.normal(n, 1) * draws.scale(0.3, 4, n, 1)
    placed = series * draws.stretched(scale, views, 0.05) + draws.shifted(level, views, 0.05)
    return torch.where(draws.coin(0.5, n, 1, 1), placed, series)
