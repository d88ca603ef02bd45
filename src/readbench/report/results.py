"""The results of a run, read back from its folder alone."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.errors import RunError
from readbench.experiment.store import COLUMNS, DONE


@dataclass(frozen=True, eq=False)
class Results:
    """Scores of a run as one array, and the facts from `run.json`.

    Args:
        folder: where they were read from.
        datasets: names, in plan order.
        seeds: split seeds.
        levels: pollution levels in percent.
        methods: canonical texts.
        values: metric -> (dataset, seed, level, method), NaN where a cell failed or is missing.
        failures: (cell name, reason) of failed cells.
        manifest: content of `run.json`.
    """

    folder: Path
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    levels: tuple[int, ...]
    methods: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]
    failures: tuple[tuple[str, str], ...]
    manifest: dict[str, Any]

    def title(self, method: str) -> str:
        """Name of a method in tables."""
        return str(self.manifest["methods"][method]["title"])

    def family(self, method: str) -> str:
        """Family of a method."""
        return str(self.manifest["methods"][method]["family"])

    def simulated(self, dataset: str) -> bool:
        """Whether a dataset is simulated."""
        return dataset in self.manifest["simulated"]

    def complete(self) -> NDArray[np.intp]:
        """Indices of the methods with a value in every cell: those that can be ranked against each other."""
        return np.flatnonzero(~np.isnan(self.values["NDCG@10"]).any(axis=(0, 1, 2)))


def read_results(folder: Path) -> Results:
    """Read `scores.csv` and `run.json` of a run folder."""
    folder = Path(folder)
    try:
        manifest = json.loads((folder / "run.json").read_text())
        with (folder / "scores.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, ValueError) as error:
        raise RunError(f"{folder} is not a run folder ({error}). Make one: readbench run --out {folder}") from error
    plan = manifest["plan"]
    axes = [list(map(str, plan[name])) for name in ("datasets", "seeds", "levels", "methods")]
    values = {name: np.full([len(axis) for axis in axes], np.nan) for name in COLUMNS}
    failures = []
    for row in rows:
        place = tuple(
            axis.index(row[key]) for axis, key in zip(axes, ("dataset", "seed", "rho", "method"), strict=True)
        )
        if row["status"] != DONE:
            failures.append((f"{row['dataset']} seed {row['seed']} rho {row['rho']} {row['method']}", row["status"]))
            continue
        for name in COLUMNS:
            values[name][place] = float(row[name])
    return Results(
        folder=folder,
        datasets=tuple(plan["datasets"]),
        seeds=tuple(plan["seeds"]),
        levels=tuple(plan["levels"]),
        methods=tuple(plan["methods"]),
        values=values,
        failures=tuple(failures),
        manifest=manifest,
    )
