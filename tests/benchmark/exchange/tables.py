"""A small plant whose runs are written as users write theirs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

FAULTS = ("normal", "leak", "jam")
STEPS = 48
ONSET = 16


def rows(runs: int = 18, seed: int = 0) -> list[dict[str, object]]:
    """A row per time step: run R0, R1, ... each normal at first, then with its fault."""
    rng = np.random.default_rng(seed)
    found: list[dict[str, object]] = []
    for run in range(runs):
        fault = FAULTS[run % 3]
        for step in range(STEPS):
            label = fault if step >= ONSET else "normal"
            shift = {"normal": 0.0, "leak": 3.0, "jam": -3.0}[label]
            flow, heat = round(rng.normal() + shift, 4), round(rng.normal(), 4)
            found.append(
                {"t": step, "run": f"R{run}", "plant": f"P{run % 4}", "flow": flow, "heat": heat, "fault": label}
            )
    return found


def write_wide(path: Path, content: Sequence[dict[str, object]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(content[0]))
        writer.writeheader()
        writer.writerows(content)
    return path


def write_long(path: Path, content: Sequence[dict[str, object]]) -> Path:
    keys = ("t", "run", "plant", "fault")
    return write_wide(
        path,
        [
            {**{key: row[key] for key in keys}, "sensor": sensor, "reading": row[sensor]}
            for row in content
            for sensor in ("flow", "heat")
        ],
    )


def write_cases(folder: Path, content: Sequence[dict[str, object]]) -> Path:
    """A file per run with its readings after the onset, and a table of them."""
    folder.mkdir(parents=True, exist_ok=True)
    cases = []
    for run in dict.fromkeys(row["run"] for row in content):
        own = [row for row in content if row["run"] == run and int(str(row["t"])) >= ONSET]
        write_wide(folder / f"{run}.csv", [{key: row[key] for key in ("t", "flow", "heat")} for row in own])
        cases.append({"file": f"{run}.csv", "label": own[0]["fault"], "group": run, "asset": own[0]["plant"]})
    return write_wide(folder / "cases.csv", cases)


def onset_rows(runs: int = 18) -> list[dict[str, object]]:
    """The same runs with one label each; a column marks the steps from the onset on, and another has the speed."""
    found = []
    for number, row in enumerate(rows(runs)):
        run, step = divmod(number, STEPS)
        fault = FAULTS[run % 3]
        began = int(step >= ONSET and fault != "normal")
        found.append(row | {"fault": fault, "began": began, "speed": 25 + run})
    return found
