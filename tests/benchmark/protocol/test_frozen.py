"""The protocol is frozen: a change that moves a task must be meant.

To move it on purpose, say why in the changelog and run `python -m tests.benchmark.protocol.test_frozen` with
READBENCH_DATA set.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readbench.benchmark.protocol import Source, Task, load_task
from readbench.engine.spec import build_source

FILE = Path(__file__).with_name("frozen.json")
SEEDS = (0, 1, 2)
SIMULATED = ("sim_tanks", "sim_motor", "sim_service", "sim_can", "sim_ecg")
REAL = (
    "ctsr", "mit_bih", "petrobras_3w", "tennessee_eastman", "road", "skab", "rcaeval", "robot_failures",
    "dbsherlock", "itu_5gc", "haizhe_auv", "bearings", "itsc_motor", "phmap23", "nppad", "lbnl_ahu",
)  # fmt: skip
NUMPY = ".".join(np.__version__.split(".")[:2])


def task_fingerprints(name: str, root: Path | None, cache: Path, *, bare: bool = False) -> dict[str, str]:
    """Of the tasks of a source, by split seed; `bare`: without what windows bring along, as before they brought any."""
    source: Source = build_source(name)
    tasks = {str(seed): load_task(source, seed=seed, root=root, cache=cache) for seed in SEEDS}
    return {seed: (strip_context(task) if bare else task).fingerprint() for seed, task in tasks.items()}


def strip_context(task: Task) -> Task:
    parts = (task.queries, task.corpus, task.normals)
    queries, corpus, normals = (windows.with_context(None) for windows in parts)
    return replace(task, queries=queries, corpus=corpus, normals=normals)


def frozen() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text())
    return content


KINDS = pytest.mark.parametrize("kind", ["tasks", "bare"])


@KINDS
@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_tasks_have_not_moved(name: str, kind: str, private_cache: Path) -> None:
    found = task_fingerprints(name, None, private_cache, bare=kind == "bare")
    if found != frozen()[kind][name] and frozen()["numpy"] != NUMPY:
        pytest.skip(f"frozen with numpy {frozen()['numpy']}; {NUMPY} draws other random numbers")
    assert found == frozen()[kind][name]


@KINDS
@pytest.mark.parametrize("name", REAL)
def test_real_tasks_have_not_moved(name: str, kind: str, real_data: Path, private_cache: Path) -> None:
    source: Source = build_source(name)
    if source.fingerprint(real_data) != frozen()["files"][name]:
        pytest.skip(f"the files of {name} are not those that were frozen")
    found = task_fingerprints(name, real_data, private_cache, bare=kind == "bare")
    assert found == frozen()[kind][name]


@pytest.mark.parametrize("name", ["skab", "petrobras_3w"])
def test_without_the_time_before_rates_and_units_tasks_are_what_they_were(
    name: str, real_data: Path, private_cache: Path
) -> None:
    source = build_source(name)
    if source.fingerprint(real_data) != frozen()["files"][name]:
        pytest.skip(f"the files of {name} are not those that were frozen")
    assert task_fingerprints(f"{name}(before=none)", real_data, private_cache, bare=True) == frozen()["bare"][name]


def freeze(root: Path) -> None:
    """Write what is now."""
    with tempfile.TemporaryDirectory() as cache:
        tasks, bare = (
            {name: task_fingerprints(name, root, Path(cache), bare=stripped) for name in (*SIMULATED, *REAL)}
            for stripped in (False, True)
        )
    files = {name: build_source(name).fingerprint(root) for name in REAL}
    FILE.write_text(json.dumps({"numpy": NUMPY, "files": files, "tasks": tasks, "bare": bare}, indent=1) + "\n")


if __name__ == "__main__":
    freeze(Path(os.environ["READBENCH_DATA"]))
