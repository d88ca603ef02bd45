"""How often intervals of places hold the true place: `python -m research.coverage --simulations 500 --units 13`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import rank_methods

GROUPS, QUERIES = 10, 90
"""Split groups and queries of a simulated dataset."""


@dataclass(frozen=True)
class Coverage:
    """Result of a simulation.

    Args:
        ranks: share of intervals that hold the true rank; where true means tie, all the tied ranks.
        width: mean number of ranks in an interval.
    """

    ranks: float
    width: float


def simulate_coverage(
    *, simulations: int, seed: int, datasets: int = 13, methods: int = 8, resamples: int = 500, alike: bool = False
) -> Coverage:
    """Count how often rank intervals hold the true rank on simulated leaderboards.

    A method's value on a query is its true mean, plus effects of the dataset on all methods and on this one (deviation
    .08), of the split group (.15), and noise (.2); one dataset in five has effects three times as large, as real ones
    do. True means are .70, .70, .69, .66 and so on downwards; with `alike` all are the same.
    """
    rng = np.random.default_rng(seed)
    steps = np.array([0.0, 0.0, 0.01, *np.linspace(0.04, 0.3, max(methods - 3, 0))])[:methods]
    truth = 0.7 - steps * (not alike)
    best = 1 + (truth[None, :] > truth[:, None]).sum(axis=1)
    worst = methods - (truth[None, :] < truth[:, None]).sum(axis=1)
    held, width = [], []
    names = [str(g) for g in np.arange(QUERIES) % GROUPS]
    for number in range(simulations):
        tables = [_simulate_dataset(rng, truth) for _ in range(datasets)]
        found = rank_methods(tables, [names] * datasets, seed=number, resamples=resamples)
        held.append((found.low <= best) & (found.high >= worst))
        width.append(found.high - found.low + 1)
    return Coverage(float(np.mean(held)), float(np.mean(width)))


def _simulate_dataset(rng: np.random.Generator, truth: NDArray[np.float64]) -> NDArray[np.float64]:
    m, group = len(truth), np.arange(QUERIES) % GROUPS
    scale = 0.08 * (3.0 if rng.random() < 0.2 else 1.0)
    mean = truth + rng.normal(0, 0.15) + rng.normal(0, scale, m)
    by_group = rng.normal(0, 0.15, GROUPS) + rng.normal(0, 0.15, (m, GROUPS))
    values: NDArray[np.float64] = mean[:, None] + by_group[:, group] + rng.normal(0, 0.2, (m, QUERIES))
    return values


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
