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
from readbench.experiment.budget import ALL
from readbench.experiment.plan import Cell
from readbench.experiment.store import COLUMNS, DONE, TIMES
from readbench.spec import COMPOSED


@dataclass(frozen=True, eq=False)
class Results:
    """Scores of a run as one array, and the facts from `run.json`.

    Args:
        folder: where they were read from.
        datasets: names, in plan order.
        seeds: split seeds.
        levels: pollution levels in percent.
        labels: label budgets, from the first to the last of the plan.
        methods: canonical texts.
        values: metric or time -> (dataset, seed, level, budget, method), NaN where a cell failed or is missing. A
            method that reads no label has the same value under every budget.
        failures: (cell name, reason) of failed cells.
        manifest: content of `run.json`.
    """

    folder: Path
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    levels: tuple[int, ...]
    labels: tuple[str, ...]
    methods: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]
    failures: tuple[tuple[str, str], ...]
    manifest: dict[str, Any]

    def title(self, method: str) -> str:
        """Name of a method in tables."""
        return str(self.manifest["methods"][method]["title"])

    def short_title(self, method: str) -> str:
        """The title of a method; a composed one with other parameters goes by its name and them."""
        for name, text in COMPOSED.items():
            if method.startswith(f"{text}(") and method not in COMPOSED.values():
                return name.capitalize() + method.removeprefix(text)
        return self.title(method)

    def family(self, method: str) -> str:
        """Family of a method."""
        return str(self.manifest["methods"][method]["family"])

    def simulated(self, dataset: str) -> bool:
        """Whether a dataset is simulated."""
        return dataset in self.manifest["simulated"]

    def files(self, dataset: str) -> str:
        """How much of a source's official files were there (`complete`, `partial` ...); empty in older runs."""
        return str(self.manifest["datasets"][dataset].get("files", ""))

    def domain(self, dataset: str) -> str:
        """Diagnostic domain of a dataset."""
        return str(self.manifest["datasets"][dataset]["domain"])

    def sizes(self, dataset: str) -> dict[int, dict[str, Any]]:
        """Split seed -> composition of the task; see `readbench.data.describe.composition_row`."""
        tasks = {seed: self.manifest["sizes"].get(f"{dataset}/seed-{seed}") for seed in self.seeds}
        return {seed: sizes for seed, sizes in tasks.items() if sizes}

    def budgets(self, method: str) -> tuple[str, ...]:
        """Label budgets that a method ran under: `all` alone for one that reads no label."""
        return tuple(self.manifest["methods"][method]["labels"])

    def at(self, metric: str, rho: int) -> NDArray[np.float64]:
        """(dataset, seed, method) values at one level, under the last budget of the plan."""
        values: NDArray[np.float64] = self.values[metric][:, :, self.levels.index(rho), -1]
        return values

    def complete(self) -> NDArray[np.intp]:
        """Indices of the methods with a value in every cell: those that can be ranked against each other."""
        return np.flatnonzero(~np.isnan(self.values["NDCG@10"]).any(axis=(0, 1, 2, 3)))


FACTS = ("plan", "simulated", "datasets", "methods", "notes", "sizes")
"""What a report reads of `run.json`."""
AXES = {"datasets": "dataset", "seeds": "seed", "levels": "rho", "labels": "labels", "methods": "method"}
"""Lists of the plan that are axes of the values, and their columns in `scores.csv`."""


def read_results(folder: Path) -> Results:
    """Read `scores.csv` and `run.json` of a run folder."""
    folder = Path(folder)
    try:
        manifest = _manifest(folder / "run.json")
        with (folder / "scores.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        lists = {name: tuple(manifest["plan"][name]) for name in AXES}
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"{folder} is not a run folder ({error}). Make one: readbench run --out {folder}") from error
    axes = {column: tuple(map(str, lists[name])) for name, column in AXES.items()}
    values = {name: np.full([len(axis) for axis in axes.values()], np.nan) for name in (*COLUMNS, *TIMES)}
    failures = []
    for row in rows:
        if row["status"] != DONE:
            cell = Cell(row["dataset"], int(row["seed"]), int(row["rho"]), row["method"], row["labels"])
            failures.append((str(cell), row["status"]))
            continue
        place = _place(row, axes, manifest["methods"][row["method"]]["labels"])
        for name, array in values.items():
            array[place] = float(row[name])
    return Results(folder=folder, **lists, values=values, failures=tuple(failures), manifest=manifest)


def _manifest(path: Path) -> dict[str, Any]:
    """What `run.json` says; a KeyError where it lacks something that a report reads."""
    manifest: dict[str, Any] = json.loads(path.read_text())
    if missing := [name for name in FACTS if name not in manifest]:
        raise KeyError(", ".join(missing))
    return manifest


def _place(row: dict[str, str], axes: dict[str, tuple[str, ...]], budgets: list[str]) -> tuple[int | slice, ...]:
    """Where the value of a row belongs: everywhere along the budgets for a method that ran once for all of them."""
    return tuple(
        slice(None) if column == "labels" and budgets == [str(ALL)] else axis.index(row[column])
        for column, axis in axes.items()
    )
