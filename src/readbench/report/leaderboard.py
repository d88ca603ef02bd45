"""The leaderboard of a run: mean and spread, mean ranks, significance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.evaluate import FriedmanResult, critical_difference, friedman, mean_ranks
from readbench.report.results import Results, metrics_beside

MIN_DATASETS = 3
"""Fewest datasets over which ranks are tested; below that the queries themselves are the better sample."""


@dataclass(frozen=True)
class Figure:
    """A mean over datasets and seeds, and its standard deviation over the seeds; NaN for a single seed."""

    mean: float
    spread: float

    def __str__(self) -> str:
        if np.isnan(self.mean):
            return "-"
        return f"{self.mean:.3f}" + ("" if np.isnan(self.spread) else f" ±{self.spread:.3f}")


@dataclass(frozen=True)
class Row:
    """One method: the headline at each level, other metrics by title and the mean rank at the first level.

    All are those under the last label budget of the run.
    """

    method: str
    title: str
    family: str
    headline: dict[int, Figure]
    others: dict[str, Figure]
    rank: float


@dataclass(frozen=True)
class Significance:
    """Friedman and Nemenyi over datasets at one level."""

    rho: int
    test: FriedmanResult
    critical_difference: float


@dataclass(frozen=True)
class Leaderboard:
    """Rows from best to worst, and the tests where there are enough datasets."""

    rows: list[Row]
    significance: list[Significance]


def leaderboard(results: Results) -> Leaderboard:
    """Order methods by the headline metric at the first level and test the order."""
    first = results.levels[0]
    ranks = _ranks(results)
    beside = metrics_beside(results.metrics, results.headline)
    rows = [
        Row(
            method=method,
            title=results.title(method),
            family=results.family(method),
            headline={rho: figure(results, results.headline, rho, m) for rho in results.levels},
            others={metric.title: figure(results, metric.name, first, m) for metric in beside},
            rank=ranks.get(m, float("nan")),
        )
        for m, method in enumerate(results.methods)
    ]
    rows.sort(key=lambda row: worst_last(results.orient(np.array(row.headline[first].mean))))
    return Leaderboard(rows, _significance(results))


def worst_last(oriented: NDArray[np.float64]) -> float:
    """Key that sorts the best of oriented values first, and what has none last."""
    return float(np.nan_to_num(-oriented, nan=np.inf))


def figure(results: Results, metric: str, rho: int, method: int) -> Figure:
    """Mean over datasets and seeds of one metric, spread over seeds of the mean over datasets."""
    return figure_of(results.at(metric, rho)[:, :, method])


def figure_of(values: NDArray[np.float64]) -> Figure:
    """Mean of (datasets, seeds) values, and the spread over seeds of the mean over datasets."""
    per_seed = values.mean(axis=0)
    spread = float(per_seed.std(ddof=1)) if len(per_seed) > 1 else float("nan")
    return Figure(float(per_seed.mean()), spread)


def dataset_scores(results: Results, rho: int) -> NDArray[np.float64]:
    """(datasets, methods) headline metric at one level, averaged over seeds."""
    scores: NDArray[np.float64] = results.at(results.headline, rho).mean(axis=1)
    return scores


def _ranks(results: Results) -> dict[int, float]:
    complete = results.complete()
    if len(complete) < 2 or len(results.datasets) < 2:
        return {}
    ranks = mean_ranks(results.orient(dataset_scores(results, results.levels[0])[:, complete]))
    return {int(m): float(rank) for m, rank in zip(complete, ranks, strict=True)}


def _significance(results: Results) -> list[Significance]:
    complete = results.complete()
    if len(results.datasets) < MIN_DATASETS or len(complete) < 3:
        return []
    difference = critical_difference(len(complete), len(results.datasets))
    return [
        Significance(rho, friedman(results.orient(dataset_scores(results, rho)[:, complete])), difference)
        for rho in results.levels
    ]
