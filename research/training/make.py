"""From settings to a file of weights: train to the end, export, tell how it goes.

`fault_found` and `found_elsewhere` say how well a body does on plants and fleets it has never seen: evaluations that
need no dataset.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from readbench.engine.encoders.sonde_network import Draws, SondeNetwork, export
from research.training.data import plants
from research.training.loop import Config, Training, departures, elsewhere, partners_elsewhere

Body = Callable[[Tensor], Tensor]
"""(B, T) series to (B, D) vectors."""
SEED = 2_000_003
"""Far from any seed of training."""


@torch.no_grad()
def fault_found(body: Body, device: str, count: int = 8, channels: int = 6, faults: int = 6, normals: int = 8) -> float:
    """Share of faulty windows whose nearest window of the plant has the same fault."""
    drawn = plants(Draws(device, SEED), count, channels, faults, normals, coarse=0.5)
    faulty = body(drawn.faulty.flatten(0, 3)).unflatten(0, drawn.faulty.shape[:4])
    normal = body(drawn.normal.flatten(0, 2)).unflatten(0, drawn.normal.shape[:3])
    likeness = departures(faulty, normal, standardised=True)
    own = torch.eye(*likeness.shape[1:], dtype=torch.bool, device=likeness.device)
    nearest = likeness.masked_fill(own, -2).argmax(-1)
    partner = torch.arange(likeness.shape[1], device=likeness.device) ^ 1
    return float((nearest == partner).float().mean())


@torch.no_grad()
def found_elsewhere(
    body: Body, device: str, count: int = 16, channels: int = 6, faults: int = 6, normals: int = 8, units: int = 2
) -> float:
    """Share of faulty windows whose nearest window on other units of the fleet has the same fault."""
    drawn = plants(Draws(device, SEED), count, channels, faults, normals, units=units, coarse=0.5)
    faulty = body(drawn.faulty.flatten(0, 3)).unflatten(0, drawn.faulty.shape[:4])
    normal = body(drawn.normal.flatten(0, 2)).unflatten(0, drawn.normal.shape[:3])
    own, right = partners_elsewhere(faults, normals, units, torch.device(device))
    nearest = elsewhere(faulty, normal, drawn.present, units, standardised=True).masked_fill(own, -2).argmax(-1)
    return float(right.expand(len(nearest), -1, -1).gather(-1, nearest[..., None]).float().mean())


FILE = "sonde.onnx"


def make(config: Config, folder: Path, *, probe: bool = False) -> Path:
    """Train, from the checkpoint in the folder if there is one, and write `sonde.onnx` beside it.

    Args:
        config: what to train.
        folder: for the checkpoint and the weights.
        probe: report retrieval on new plants as training goes on.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)  # the same weights whatever the number of processors
    training = Training(config, folder, device, compiled=device == "cuda")

    def report(step: int, body: SondeNetwork) -> None:
        here, there = fault_found(body, device), found_elsewhere(body, device)
        say(f"step {step}  same fault first in a new plant: {here:.3f}, on another unit: {there:.3f}")

    body = training.run(say, report if probe else None)
    export(body, folder / FILE, metadata(config, device), config.digits)
    say(f"wrote {folder / FILE}")
    return folder / FILE


def metadata(config: Config, device: str) -> dict[str, Any]:
    """What the file of weights says about itself."""
    return {
        "config": config.to_json(),
        "data": "synthetic only: carriers, mechanisms and plants of research.training; no dataset of the benchmark",
        "versions": {"readbench": version("readbench"), "torch": torch.__version__},
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "licence": "Apache-2.0",
    }


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
