"""`python -m research.training.ablations`: the same training without one of its parts, once for each part.

Each row becomes a folder with a `sonde.onnx`, which `sonde(weights=FOLDER)` uses in place of the shipped weights. All
rows but `steps-*` take as many steps as `base`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from research.training.loop import TINY, Config
from research.training.make import make, say

STEPS = 450


def rows(base: Config) -> dict[str, Config]:
    """The settings of each row.

    Args:
        base: of the row that has every part.
    """
    return {
        "base": base,
        "steps-0": replace(base, steps=0),
        "steps-half": replace(base, steps=base.steps // 2),
        "steps-double": replace(base, steps=base.steps * 2),
        "no-plants": replace(base, plants=0),
        "no-faults": replace(base, plants=0, mechanisms=0.0),
        "smooth-only": replace(base, families=("smooth",)),
        "no-picture": replace(base, picture_weight=0.0),
        "no-statistics": replace(base, shape=replace(base.shape, statistics=False)),
        "patches-double": replace(base, shape=replace(base.shape, patches=base.shape.patches * 2)),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train every row that has no weights yet."""
    parser = argparse.ArgumentParser(prog="python -m research.training.ablations", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of one folder a row")
    parser.add_argument("--preset", choices=("full", "tiny"), default="full", help="tiny takes seconds on any machine")
    parser.add_argument("--only", help="rows, separated by commas; all of them otherwise")
    options = parser.parse_args(arguments)
    known = rows(TINY if options.preset == "tiny" else replace(Config(), steps=STEPS))
    wanted = options.only.split(",") if options.only else list(known)
    if unknown := sorted(set(wanted) - set(known)):
        parser.error(f"no row {', '.join(unknown)}; there are {', '.join(known)}")
    for name in wanted:
        say(name)
        make(known[name], options.out / name)


if __name__ == "__main__":
    main()
