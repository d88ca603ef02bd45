"""Comparing run folders."""

from __future__ import annotations

import csv
from pathlib import Path

from readbench.benchmark.runs import Plan


def small_plan(**changes: object) -> Plan:
    settings: dict[str, object] = {
        "datasets": ("sim_tanks",),
        "methods": ("random", "stats", "euclidean"),
        "seeds": (7,),
        "levels": (0, 20),
    }
    return Plan(**(settings | changes))  # type: ignore[arg-type]


def rows_without_times(folder: Path) -> list[dict[str, str]]:
    with (folder / "scores.csv").open(newline="") as file:
        return [{k: v for k, v in row.items() if not k.endswith("_s")} for row in csv.DictReader(file)]


def assert_same_results(one: Path, two: Path) -> None:
    """Everything but times is the same to the byte."""
    assert rows_without_times(one) == rows_without_times(two)
    for name in ("scores_mean.csv", "per_query.parquet", "rankings/sim_tanks.parquet"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
