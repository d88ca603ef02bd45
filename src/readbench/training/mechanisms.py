"""What goes wrong: sixteen ways in which a fault changes a signal, whatever the signal is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as ops

from readbench.training.carriers import TURN
from readbench.training.draws import LENGTH, Draws, read_at


@dataclass(frozen=True)
class Fault:
    """Parameters of F faults, (F,) each: which mechanism, which sign, how strong, how fast, when and how long it acts.

    One without a `fixed_start` begins anywhere in each view.
    """

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
            kind=draws.choice(len(MECHANISMS), count),
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


@dataclass(frozen=True)
class Action:
    """F faults at work in V views, with parameters that differ a little between the views.

    Args:
        draws: more random numbers, for mechanisms that need them.
        sign: (F, 1, 1).
        size: (F, V, 1).
        speed: (F, V, 1).
        phase: (F, V, 1) in turns.
        begin: (F, V, 1) when it begins, in 0..1 of the window.
        active: (F, V, T) where it acts.
    """

    draws: Draws
    sign: Tensor
    size: Tensor
    speed: Tensor
    phase: Tensor
    begin: Tensor
    active: Tensor

    @classmethod
    def draw(cls, draws: Draws, fault: Fault, views: int) -> Action:
        """The faults in so many views."""
        count = len(fault.kind)
        fixed = draws.shifted(fault.start, views, 0.03)
        free = draws.uniform(count, views, low=-0.1, high=0.7)
        begin = torch.where(fault.fixed_start[:, None], fixed, free)[..., None]
        end = begin + draws.stretched(fault.duration, views, 0.1)[..., None]
        return cls(
            draws=draws,
            sign=fault.sign[:, None, None],
            size=draws.stretched(fault.size, views, 0.15)[..., None],
            speed=draws.stretched(fault.speed, views, 0.05)[..., None],
            phase=draws.uniform(count, views, 1),
            begin=begin,
            active=(draws.time >= begin) & (draws.time < end),
        )

    @property
    def signed(self) -> Tensor:
        """(F, V, 1) size with its sign."""
        return self.size * self.sign

    @property
    def rising(self) -> Tensor:
        """(F, 1, 1) whether the sign is positive."""
        return self.sign > 0

    @property
    def since(self) -> Tensor:
        """(F, V, T) time since it began."""
        return (self.draws.time - self.begin).clamp(min=0)


def inject(draws: Draws, series: Tensor, fault: Fault) -> Tensor:
    """(F, V, T) the standardised series (F, V, T) under their faults."""
    action = Action.draw(draws, fault, series.shape[1])
    result = series
    for number, mechanism in enumerate(MECHANISMS.values()):
        here = action.active & (fault.kind == number)[:, None, None]
        result = torch.where(here, mechanism(series, action), result)
    return result


def _spikes(series: Tensor, action: Action) -> Tensor:
    """Single points off, up to 6 % of them."""
    count, views, _ = series.shape
    rare = action.draws.uniform(count, views, LENGTH) < action.draws.scale(0.005, 0.06, count, 1, 1)
    return series + rare * action.signed * 1.5


def _faster(series: Tensor, action: Action) -> Tensor:
    """Time runs faster or slower, and back again from the end."""
    ratio = torch.where(action.rising, 1.6 + 0.8 * action.size, 1 / (1.6 + 0.5 * action.size))
    folded = torch.remainder(action.begin + action.since * ratio, 2.0)
    return read_at(series, torch.where(folded > 1, 2 - folded, folded))


def _dropout(series: Tensor, action: Action) -> Tensor:
    """Now and then the signal falls below its lowest value."""
    gaps = torch.sin(TURN * (0.3 * action.speed * action.draws.time + action.phase)) > 0
    return torch.where(gaps, series.amin(-1, keepdim=True) - 0.3, series)


def _saturation(series: Tensor, action: Action) -> Tensor:
    """Nothing beyond a ceiling, or below a floor."""
    ceiling = 0.8 - 0.25 * action.size
    return torch.where(action.rising, torch.minimum(series, ceiling), torch.maximum(series, -ceiling))


def _smoothing(series: Tensor, action: Action) -> Tensor:
    """A moving average."""
    return torch.where(action.size > 1.5, _average(series, 41), _average(series, 15))


def _average(series: Tensor, points: int) -> Tensor:
    return ops.avg_pool1d(series, points, 1, points // 2, count_include_pad=False)


def _coarse(series: Tensor, action: Action) -> Tensor:
    """Rounded to a coarse grid."""
    step = 0.3 + 0.3 * action.size
    return (series / step).round() * step


def _response(series: Tensor, action: Action) -> Tensor:
    """A step that is answered with ringing."""
    ringing = torch.exp(-action.since * 60 / action.speed) * torch.cos(action.speed * action.since)
    return series + action.signed * (1 - ringing)


Mechanism = Callable[[Tensor, Action], Tensor]
"""From standardised series (F, V, T) to what they would be if the fault acted throughout."""

MECHANISMS: dict[str, Mechanism] = {
    "shift": lambda series, action: series + action.signed,
    "drift": lambda series, action: series + action.signed * action.since / 0.4,
    "spikes": _spikes,
    "freeze": lambda series, action: read_at(series, action.begin.expand_as(series)),
    "noise": lambda series, action: series + 0.6 * action.size * action.draws.normal(*series.shape),
    "speed": _faster,
    "gain": lambda series, action: series * (1 + action.size) ** action.sign,
    "dropout": _dropout,
    "oscillation": lambda series, action: (
        series + 0.7 * action.size * torch.sin(TURN * (action.speed * action.draws.time + action.phase))
    ),
    "saturation": _saturation,
    "transient": lambda series, action: series + 1.5 * action.signed * torch.exp(-action.since * action.speed / 4),
    "smoothing": _smoothing,
    "coarse": _coarse,
    "response": _response,
    "dead": lambda series, action: torch.zeros_like(series) + action.signed,
    "delay": lambda series, action: read_at(series, (action.draws.time - 0.02 * action.size).expand_as(series)),
}
"""Name -> mechanism; a fault's `kind` is its number here."""
