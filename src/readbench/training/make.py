"""From settings to a file of weights: train to the end, export, tell how it goes."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from readbench.training.body import Body
from readbench.training.config import Config
from readbench.training.export import export
from readbench.training.loop import Training
from readbench.training.probe import fault_found

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

    def report(step: int, body: Body) -> None:
        say(f"step {step}  same fault first in a new plant: {fault_found(body, device):.3f}")

    body = training.run(say, report if probe else None)
    export(body, folder / FILE, metadata(config, device))
    say(f"wrote {folder / FILE}")
    return folder / FILE


def metadata(config: Config, device: str) -> dict[str, Any]:
    """What the file of weights says about itself."""
    return {
        "config": config.to_json(),
        "data": "synthetic only: carriers, mechanisms and plants of readbench.training; no dataset of the benchmark",
        "versions": {"readbench": version("readbench"), "torch": torch.__version__},
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "licence": "Apache-2.0",
    }


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
