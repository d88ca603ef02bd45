"""`python -m readbench.training`: train the encoder, export it, say how it does on plants it has never seen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from readbench.training.body import Body
from readbench.training.config import TINY, Config
from readbench.training.export import export
from readbench.training.loop import Training
from readbench.training.probe import fault_found


def main(arguments: Sequence[str] | None = None) -> None:
    """Train to the end, from the checkpoint in the folder if there is one, and write `sonde.onnx` beside it."""
    options = _parser().parse_args(arguments)
    config = _configured(options)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)  # the same weights whatever the number of processors
    training = Training(config, options.out, device, compiled=device == "cuda")

    def probe(step: int, body: Body) -> None:
        _say(f"step {step}  same fault first in a new plant: {fault_found(body, device):.3f}")

    body = training.run(_say, probe if options.probe else None)
    export(body, options.out / "sonde.onnx", _metadata(config, device))
    _say(f"wrote {options.out / 'sonde.onnx'}")


def _metadata(config: Config, device: str) -> dict[str, Any]:
    """What the file of weights says about itself."""
    return {
        "config": config.to_json(),
        "data": "synthetic only: carriers, mechanisms and plants of readbench.training; no dataset of the benchmark",
        "versions": {"readbench": version("readbench"), "torch": torch.__version__},
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "licence": "Apache-2.0",
    }


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m readbench.training", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint and the weights")
    parser.add_argument("--preset", choices=("full", "tiny"), default="full", help="tiny takes seconds on any machine")
    parser.add_argument("--probe", action="store_true", help="report retrieval on new plants as training goes on")
    for name in ("steps", "seed", "pairs", "plants", "patches"):
        parser.add_argument(f"--{name}", type=int, help=f"instead of the preset's {name}")
    parser.add_argument("--plant-weight", type=float, help="of the search for faults in the loss")
    parser.add_argument("--families", help="carriers to train on, separated by commas")
    return parser


def _configured(options: argparse.Namespace) -> Config:
    config = TINY if options.preset == "tiny" else Config()
    numbers = {name: getattr(options, name) for name in ("steps", "seed", "pairs", "plants", "plant_weight")}
    config = replace(config, **{name: value for name, value in numbers.items() if value is not None})
    if options.patches is not None:
        config = replace(config, shape=replace(config.shape, patches=options.patches))
    return replace(config, families=tuple(options.families.split(","))) if options.families else config


if __name__ == "__main__":
    main()
