"""What goes wrong: sixteen ways in which a fault changes a signal, whatever the signal is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as ops

from readbench.training.carriers import TURN
from readbench.training.draws import LENGTH, Draws, read_at

NAMES = (
    "shift", "drift", "spikes", "freeze", "noise", "speed", "gain", "dropout", "oscillation", "saturation", "transient",
    "smoothing", "coarse", "response", "dead", "delay",
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """Parameters of F faults: which mechanism, which sign, how strong, how fast, and when and how long it acts."""

    kind: Tensor
    sign: Tensor
    size: Tensor
    speed: Tensor
    start: Tensor
    duration: Tensor
    fixed_start: Tensor

    @classmethod
    def draw(cls, draws: Draws, count: int) -> Fault:
        """F faults; nearly half act throughout, and half of the others begin anywhere in each view."""
        throughout = draws.coin(0.45, count)
        return cls(
            kind=draws.choice(len(NAMES), count),
            sign=draws.normal(count).sign(),
            size=draws.scale(0.5, 5, count),
            speed=draws.scale(4, 100, count),
            start=torch.where(throughout, draws.uniform(count, low=-0.3, high=0.0), draws.uniform(count, high=0.7)),
            duration=torch.where(
                throughout, torch.full((count,), 2.0, device=draws.device), draws.scale(0.05, 0.7, count)
            ),
            fixed_start=draws.coin(0.5, count) | throughout,
        )

    def __getitem__(self, rows: Tensor) -> Fault:
        return Fault(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


def inject(draws: Draws, series: Tensor, fault: Fault) -> Tensor:
    """(F, V, T) the standardised series (F, V, T) under their faults; parameters differ a little between views."""
    count, views, _ = series.shape
    time = draws.time
    fixed = draws.shifted(fault.start, views, 0.03)
    begin = torch.where(fault.fixed_start[:, None], fixed, draws.uniform(count, views, low=-0.1, high=0.7))[..., None]
    active = (time >= begin) & (time < begin + draws.stretched(fault.duration, views, 0.1)[..., None])
    since = (time - begin).clamp(min=0)
    size = draws.stretched(fault.size, views, 0.15)[..., None]
    signed = size * fault.sign[:, None, None]
    rising = (fault.sign > 0)[:, None, None]
    speed = draws.stretched(fault.speed, views, 0.05)[..., None]
    held = read_at(series, begin.expand_as(series))
    ratio = torch.where(rising, 1.6 + 0.8 * size, 1 / (1.6 + 0.5 * size))
    folded = torch.remainder(begin + since * ratio, 2.0)
    faster = read_at(series, torch.where(folded > 1, 2 - folded, folded))
    rare = draws.coin(1.0, count, views, LENGTH) & (
        draws.uniform(count, views, LENGTH) < draws.scale(0.005, 0.06, count, 1, 1)
    )
    ceiling = 0.8 - 0.25 * size
    phase = draws.uniform(count, views, 1)
    gaps = torch.sin(TURN * (0.3 * speed * time + phase)) > 0
    wide = torch.where(size > 1.5, _average(series, 41), _average(series, 15))
    step = 0.3 + 0.3 * size
    ringing = torch.exp(-since * 60 / speed) * torch.cos(speed * since)
    late = read_at(series, (time - 0.02 * size).expand_as(series))
    changed = [
        series + signed,
        series + signed * since / 0.4,
        series + rare * signed * 1.5,
        held,
        series + 0.6 * size * draws.normal(count, views, LENGTH),
        faster,
        series * torch.where(rising, 1 + size, (1 + size) ** -1),
        torch.where(gaps, series.amin(-1, keepdim=True) - 0.3, series),
        series + 0.7 * size * torch.sin(TURN * (speed * time + phase)),
        torch.where(rising, torch.minimum(series, ceiling), torch.maximum(series, -ceiling)),
        series + 1.5 * signed * torch.exp(-since * speed / 4),
        wide,
        (series / step).round() * step,
        series + signed * (1 - ringing),
        torch.zeros_like(series) + signed,
        late,
    ]
    result = series
    for number, option in enumerate(changed):
        result = torch.where(active & (fault.kind == number)[:, None, None], option, result)
    return result


def _average(series: Tensor, points: int) -> Tensor:
    return ops.avg_pool1d(series, points, 1, points // 2, count_include_pad=False)
