"""What the methods of a run stated of each query: how certain they were of a fault type, and whether it was right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from readbench.evaluate import Reliability, calibration_floor, reliability
from readbench.experiment.store import OPINION
from readbench.report.results import Results


@dataclass(frozen=True, eq=False)
class Stated:
    """Answers to n queries.

    Args:
        confidence: (n,) probability of the most likely fault type.
        correct: (n,) whether it is the true one.
        truth: (n,) probability of the true one.
    """

    confidence: NDArray[np.float64]
    correct: NDArray[np.bool_]
    truth: NDArray[np.float64]

    @classmethod
    def together(cls, parts: Iterable[Stated]) -> Self:
        """Several as one."""
        columns = [[getattr(part, name) for name in OPINION] for part in parts]
        return cls(*map(np.concatenate, zip(*columns, strict=True)))

    @property
    def curve(self) -> Reliability:
        """Stated against real certainty."""
        return reliability(self.confidence, self.correct)

    @property
    def floor(self) -> float:
        """The calibration error that honest probabilities would show."""
        return calibration_floor(self.confidence, seed=0)


def read_stated(results: Results) -> dict[tuple[str, int, str], Stated]:
    """What was stated, by method, level and dataset, in plan order; queries of all split seeds together.

    Label budgets are the last of the plan. Empty where no method of the run has an opinion, or the run is an old one.
    """
    path = results.folder / "opinions.parquet"
    if not path.exists():
        return {}
    table = pq.read_table(path)
    keys = zip(*(table[name].to_pylist() for name in ("method", "rho", "dataset", "labels")), strict=True)
    rows: dict[tuple[str, int, str], list[int]] = {}
    for row, (method, rho, dataset, labels) in enumerate(keys):
        if method in results.methods and labels == results.budgets(method)[-1]:
            rows.setdefault((method, rho, dataset), []).append(row)
    columns = [table[name].to_numpy() for name in OPINION]
    order = [(m, rho, d) for m in results.methods for rho in results.levels for d in results.datasets]
    return {key: Stated(*(column[rows[key]] for column in columns)) for key in order if key in rows}


def by_method(stated: dict[tuple[str, int, str], Stated], rho: int) -> dict[str, Stated]:
    """What each method stated at one level, all datasets together."""
    parts: dict[str, list[Stated]] = {}
    for (method, level, _), own in stated.items():
        if level == rho:
            parts.setdefault(method, []).append(own)
    return {method: Stated.together(own) for method, own in parts.items()}
