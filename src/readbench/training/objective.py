"""What the encoder learns: to know a program again, to know a fault again in its plant, to redraw what is hidden."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as ops

from readbench.training.draws import LENGTH, Draws


def same_program(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """InfoNCE: among all 2 N projections the two of one program (N, d) each find one another."""
    every = ops.normalize(torch.cat([first, second]).float(), dim=-1)
    likeness = every @ every.T / temperature
    likeness.fill_diagonal_(-1e4)
    n = len(first)
    partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(first.device)
    return ops.cross_entropy(likeness, partner)


def same_fault(faulty: Tensor, normal: Tensor, temperature: float) -> Tensor:
    """The search itself, as a loss: within a plant the two windows of one fault find one another.

    Windows are compared by the cosine of what departs from the plant's mean normal vector, all channels side by side.

    Args:
        faulty: (P, F, 2, C, D) vectors of the channels.
        normal: (P, V, C, D).
        temperature: of the softmax over the plant's other windows, normal ones included.
    """
    likeness = departures(faulty, normal) / temperature
    _, count, every = likeness.shape
    own = torch.eye(count, every, dtype=torch.bool, device=likeness.device)
    likeness = likeness.masked_fill(own, -1e4)
    partner = torch.arange(count, device=likeness.device) ^ 1
    return ops.cross_entropy(likeness.transpose(1, 2), partner.expand(len(likeness), -1))


def departures(faulty: Tensor, normal: Tensor) -> Tensor:
    """(P, 2 F, 2 F + V) cosines of departures from normal, of the faulty windows to all windows of their plant."""
    usual = normal.float().mean(1, keepdim=True)
    windows = torch.cat([faulty.float().flatten(1, 2), normal.float()], 1)
    units = ops.normalize((windows - usual).flatten(2), dim=-1)
    count = faulty.shape[1] * 2
    return units[:, :count] @ units.transpose(1, 2)


def hidden_patches(draws: Draws, series: Tensor, patches: int) -> tuple[Tensor, Tensor]:
    """Series (B, T) with up to 60 % of their patches at the mean, and which points those are (B, T)."""
    share = draws.uniform(len(series), 1, high=0.6)
    mask = (draws.uniform(len(series), patches) < share).repeat_interleave(LENGTH // patches, 1)
    return torch.where(mask, series.mean(-1, keepdim=True), series), mask


def redrawn(picture: Tensor, series: Tensor, mask: Tensor) -> Tensor:
    """Mean squared error of the standardised series at the hidden points."""
    target = (series - series.mean(-1, keepdim=True)) / (series.std(-1, keepdim=True) + 1e-3)
    error = (picture.float() - target.clamp(-6, 6)) ** 2
    return (error * mask).sum() / mask.sum().clamp(min=1)
