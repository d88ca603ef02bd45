"""How often intervals of places hold the true place: `python -m research.coverage --simulations 500 --units 13`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from readbench.benchmark.metrics import simulate_coverage


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate leaderboards with known truth, with true means apart and alike, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m research.coverage", description=__doc__)
    parser.add_argument("--simulations", type=int, default=500, help="leaderboards to simulate")
    parser.add_argument("--units", type=int, default=13, help="datasets of each")
    parser.add_argument("--rivals", type=int, default=8, help="methods of each")
    parser.add_argument("--seed", type=int, default=0, help="of everything")
    asked = parser.parse_args(arguments)
    sizes = {"simulations": asked.simulations, "datasets": asked.units, "methods": asked.rivals, "seed": asked.seed}
    for alike, words in ((False, "true means apart, two of them alike"), (True, "all true means alike")):
        found = simulate_coverage(alike=alike, **sizes)
        wide = f"{found.width:.1f} of {asked.rivals} places wide"
        print(f"{words}: {found.ranks:.1%} of 95 % intervals hold the true place; {wide}")  # noqa: T201


if __name__ == "__main__":
    main()
