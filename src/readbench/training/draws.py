"""Random parameters of synthetic programs: seeded, on any device, in many draws of one program at a time."""

from __future__ import annotations

import math

import torch
from torch import Tensor

LENGTH = 512
"""Points of a series."""


class Draws:
    """Random numbers on a device.

    A *program* is a set of parameters; a *view* is one realisation of it. Shapes start with (N programs), and
    `views` adds the second axis: V jittered copies of each parameter.
    """

    def __init__(self, device: str, seed: int) -> None:
        self.device = torch.device(device)
        self.generator = torch.Generator(self.device)
        self.generator.manual_seed(seed)
        self.time = torch.linspace(0, 1, LENGTH, device=self.device)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Evenly between two numbers."""
        return torch.rand(*shape, device=self.device, generator=self.generator) * (high - low) + low

    def normal(self, *shape: int) -> Tensor:
        """Standard normal."""
        return torch.randn(*shape, device=self.device, generator=self.generator)

    def scale(self, low: float, high: float, *shape: int) -> Tensor:
        """Evenly on a logarithmic axis between two positive numbers."""
        return torch.exp(self.uniform(*shape, low=math.log(low), high=math.log(high)))

    def coin(self, chance: float, *shape: int) -> Tensor:
        """True with this chance."""
        return torch.rand(*shape, device=self.device, generator=self.generator) < chance

    def choice(self, count: int, *shape: int) -> Tensor:
        """Whole numbers from 0 to count - 1."""
        return torch.randint(0, count, shape, device=self.device, generator=self.generator)

    def order(self, count: int) -> Tensor:
        """A random permutation."""
        return torch.randperm(count, device=self.device, generator=self.generator)

    def shifted(self, parameter: Tensor, views: int, jitter: float) -> Tensor:
        """(N, ...) -> (N, V, ...) with a little added in each view."""
        copies = parameter.unsqueeze(1).expand(-1, views, *parameter.shape[1:])
        return copies + jitter * self.normal(*copies.shape)

    def stretched(self, parameter: Tensor, views: int, jitter: float) -> Tensor:
        """(N, ...) -> (N, V, ...) each view multiplied by a factor near one."""
        copies = parameter.unsqueeze(1).expand(-1, views, *parameter.shape[1:])
        return copies * torch.exp(jitter * self.normal(*copies.shape))

    def noise(self, count: int, views: int, length: int, own: Tensor) -> Tensor:
        """(N, V, length) normal noise of which a part `own` (N, 1, 1) is drawn anew in each view."""
        common = self.normal(count, 1, length)
        return torch.sqrt(1 - own**2) * common + own * self.normal(count, views, length)


def standardised(series: Tensor, floor: float = 1e-4) -> Tensor:
    """Mean 0 and deviation 1 along time."""
    return (series - series.mean(-1, keepdim=True)) / (series.std(-1, keepdim=True) + floor)


def read_at(series: Tensor, position: Tensor) -> Tensor:
    """Values of (..., T) at fractional positions in 0..1 (..., T), linearly between neighbours."""
    last = series.shape[-1] - 1
    place = position.clamp(0, 1) * last
    left = place.floor().long().clamp(max=last - 1)
    weight = place - left
    return series.gather(-1, left) * (1 - weight) + series.gather(-1, left + 1) * weight
