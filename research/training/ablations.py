"""`python -m research.training.ablations`: the same training without one of its parts, once for each part.

Each row becomes a folder with a `sonde.onnx`, which `sonde(weights=FOLDER)` uses in place of the shipped weights. All
rows but `steps-*` take as many steps as `base`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from research.training.loop import SMALL, TINY, Config
from research.training.make import make, say


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
        "plain-departures": replace(base, standardised=False),
        "one-width": replace(base, channel_counts=()),
        "no-coarse": replace(base, coarse=0.0),
        "no-rotating": replace(base, families=tuple(name for name in base.families if name != "rotating")),
        "fleets": replace(base, units=2, fleet_weight=0.1),
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
    parser.add_argument(
        "--preset", choices=("small", "tiny"), default="small", help="tiny takes seconds on any machine"
    )
    parser.add_argument("--seed", type=int, default=0, help="of weights and data")
    parser.add_argument("--only", help="rows, separated by commas; all of them otherwise")
    options = parser.parse_args(arguments)
    known = rows(TINY if options.preset == "tiny" else replace(SMALL, seed=options.seed))
    wanted = options.only.split(",") if options.only else list(known)
    if unknown := sorted(set(wanted) - set(known)):
        parser.error(f"no row {', '.join(unknown)}; there are {', '.join(known)}")
    for name in wanted:
        say(name)
        make(known[name], options.out / name)


if __name__ == "__main__":
    main()
