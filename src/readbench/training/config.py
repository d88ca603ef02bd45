"""Everything that decides a training run; stored with the weights."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from readbench.training.body import Shape
from readbench.training.carriers import FAMILIES


@dataclass(frozen=True)
class Config:
    """One run.

    Args:
        steps: optimiser steps.
        pairs: programs per step, two windows each.
        plants: plants per step; 0 leaves out the search for faults.
        channels: of a plant.
        faults: of a plant, two windows each.
        normals: normal windows of a plant.
        families: which carriers.
        mechanisms: share of the programs that carry a fault.
        rate: highest learning rate.
        warmup: steps until it is reached; then it falls along a cosine.
        decay: weight decay of matrices.
        temperature: of both searches.
        plant_weight: of the search for faults in the loss.
        picture_weight: of redrawing in the loss.
        average: decay of the running mean of weights that is kept.
        reuse: steps that one draw of programs and plants serves, augmented anew in each.
        seed: of weights and data.
        shape: of the network.
    """

    steps: int = 900
    pairs: int = 3072
    plants: int = 48
    channels: int = 6
    faults: int = 6
    normals: int = 4
    families: tuple[str, ...] = tuple(FAMILIES)
    mechanisms: float = 0.5
    rate: float = 1.5e-3
    warmup: int = 200
    decay: float = 0.05
    temperature: float = 0.07
    plant_weight: float = 0.2
    picture_weight: float = 0.3
    average: float = 0.999
    reuse: int = 2
    seed: int = 0
    shape: Shape = field(default_factory=Shape)

    def __post_init__(self) -> None:
        if not self.families or not set(self.families) <= set(FAMILIES):
            known, given = ", ".join(FAMILIES), ", ".join(self.families)
            raise ValueError(f"families must be some of {known}. Got {given!r} instead.")

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


TINY = Config(
    steps=6, pairs=8, plants=2, channels=2, faults=2, normals=2, warmup=2,
    shape=Shape(width=32, depth=1, heads=2, hidden=64, patches=16, projection=16),
)  # fmt: skip
"""Seconds on any machine: what the tests train."""
