"""Plants: channels driven by a few hidden processes, in normal operation and under faults that propagate.

A plant has M hidden processes (carriers). Each channel reads a lagged mixture of them and has a life of its own. A
*process* fault changes one hidden process, so it reaches every channel that reads it, each with its own gain and lag;
a *sensor* fault changes one channel. Two windows of the same fault share its parameters and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from readbench.training.carriers import FAMILIES, carriers
from readbench.training.draws import LENGTH, Draws, read_at, standardised
from readbench.training.mechanisms import Fault, inject

PROCESSES = 3


@dataclass(frozen=True)
class Plants:
    """Windows of P plants with C channels, scaled per channel by the plant's own normal operation.

    Args:
        faulty: (P, F, 2, C, T) two windows of each of F faults.
        normal: (P, V, C, T) windows of normal operation.
    """

    faulty: Tensor
    normal: Tensor


def plants(
    draws: Draws, count: int, channels: int, faults: int, normals: int, families: tuple[str, ...] = tuple(FAMILIES)
) -> Plants:
    """Draw plants and their windows."""
    views = 2 * faults + normals
    hidden = carriers(draws, count * PROCESSES, views, families).view(count, PROCESSES, views, LENGTH)
    own = carriers(draws, count * channels, views, families).view(count, channels, views, LENGTH)
    fault = Fault.draw(draws, count * faults)
    in_process = draws.coin(0.6, count, faults)
    hidden = _at(draws, hidden, fault, draws.choice(PROCESSES, count, faults), in_process, faults)
    reading = _mixture(draws, hidden, channels) + draws.scale(0.1, 2, count, channels, 1, 1) * own
    reading = standardised(reading.reshape(count, channels, -1)).view_as(reading)
    reading = _at(draws, reading, fault, draws.choice(channels, count, faults), ~in_process, faults)
    reading = _operated(draws, reading)
    usual = reading[:, :, 2 * faults :].reshape(count, channels, -1)
    centre, spread = usual.mean(-1)[..., None, None], usual.std(-1)[..., None, None]
    scaled = ((reading - centre) / (spread + 1e-3)).clamp(-30, 30).transpose(1, 2)
    return Plants(scaled[:, : 2 * faults].unflatten(1, (faults, 2)), scaled[:, 2 * faults :])


def _at(draws: Draws, series: Tensor, fault: Fault, where: Tensor, chosen: Tensor, faults: int) -> Tensor:
    """(P, S, V, T) with fault f of a plant in views 2 f and 2 f + 1 of series number `where` (P, F), if `chosen`."""
    series = series.clone()
    plant, number = torch.nonzero(chosen, as_tuple=True)
    if not len(plant):
        return series
    row, views = where[plant, number], torch.stack([2 * number, 2 * number + 1], 1)
    before = series[plant[:, None], row[:, None], views]
    series[plant[:, None], row[:, None], views] = inject(draws, before, fault[plant * faults + number])
    return series


def _mixture(draws: Draws, hidden: Tensor, channels: int) -> Tensor:
    """(P, C, V, T) what each channel reads of the hidden processes: sparse gains of both signs, small lags."""
    count, processes, views, _ = hidden.shape
    gain = draws.normal(count, channels, processes) * draws.coin(0.5, count, channels, processes)
    total = torch.zeros(count, channels, views, LENGTH, device=hidden.device)
    for m in range(processes):
        lag = draws.uniform(count, channels, 1, 1, high=0.08)
        source = hidden[:, m, None].expand(-1, channels, -1, -1)
        total = total + gain[:, :, m, None, None] * read_at(source, (draws.time - lag).expand_as(source))
    return total


def _operated(draws: Draws, reading: Tensor) -> Tensor:
    """Another operating point in each window: small changes of level and gain, larger in some plants than in others."""
    count, channels, views, _ = reading.shape
    restless = draws.scale(0.02, 0.6, count, 1, 1, 1)
    level = restless * draws.normal(count, channels, views, 1)
    gain = torch.exp(0.3 * restless * draws.normal(count, channels, views, 1))
    return gain * reading + level
