"""How well a body does on plants it has never seen: an evaluation that needs no dataset."""

from __future__ import annotations

import torch

from readbench.training.body import Body
from readbench.training.draws import Draws
from readbench.training.objective import departures
from readbench.training.plants import plants

SEED = 2_000_003
"""Far from any seed of training."""


@torch.no_grad()
def fault_found(body: Body, device: str, count: int = 8, channels: int = 6, faults: int = 6, normals: int = 4) -> float:
    """Share of faulty windows whose nearest window of the plant has the same fault."""
    drawn = plants(Draws(device, SEED), count, channels, faults, normals)
    faulty = body(drawn.faulty.flatten(0, 3)).unflatten(0, drawn.faulty.shape[:4])
    normal = body(drawn.normal.flatten(0, 2)).unflatten(0, drawn.normal.shape[:3])
    likeness = departures(faulty, normal)
    own = torch.eye(*likeness.shape[1:], dtype=torch.bool, device=likeness.device)
    nearest = likeness.masked_fill(own, -2).argmax(-1)
    partner = torch.arange(likeness.shape[1], device=likeness.device) ^ 1
    return float((nearest == partner).float().mean())
