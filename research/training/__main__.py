"""`python -m research.training`: train the encoder, export it, say how it does on plants it has never seen."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from research.training.loop import SMALL, TINY, Config
from research.training.make import make

PRESETS = {"full": Config(), "small": SMALL, "tiny": TINY}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train to the end, from the checkpoint in the folder if there is one, and write `sonde.onnx` beside it."""
    options = _parser().parse_args(arguments)
    make(_configured(options), options.out, probe=options.probe)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m research.training", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint and the weights")
    parser.add_argument(
        "--preset",
        choices=tuple(PRESETS),
        default="full",
        help="small is a fifth of the cost; tiny takes seconds on any machine",
    )
    parser.add_argument("--probe", action="store_true", help="report retrieval on new plants as training goes on")
    for name in ("steps", "seed", "pairs", "plants", "units", "patches"):
        parser.add_argument(f"--{name}", type=int, help=f"instead of the preset's {name}")
    parser.add_argument("--plant-weight", type=float, help="of the search for faults in the loss")
    parser.add_argument("--fleet-weight", type=float, help="of the search for faults on other units in the loss")
    parser.add_argument("--families", help="carriers to train on, separated by commas")
    return parser


def _configured(options: argparse.Namespace) -> Config:
    config = PRESETS[options.preset]
    numbers = {
        name: getattr(options, name)
        for name in ("steps", "seed", "pairs", "plants", "units", "plant_weight", "fleet_weight")
    }
    config = replace(config, **{name: value for name, value in numbers.items() if value is not None})
    if options.patches is not None:
        config = replace(config, shape=replace(config.shape, patches=options.patches))
    return replace(config, families=tuple(options.families.split(","))) if options.families else config


if __name__ == "__main__":
    main()
