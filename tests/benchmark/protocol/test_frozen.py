"""The protocol is frozen: a change that moves a task must be meant.

To move it on purpose, say why in the changelog and run `python -m tests.benchmark.protocol.test_frozen` with
READBENCH_DATA set.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readbench.benchmark.protocol import Source, load_task
from readbench.engine.spec import build_source

FILE = Path(__file__).with_name("frozen.json")
SEEDS = (0, 1, 2)
SIMULATED = ("sim_tanks", "sim_motor", "sim_service", "sim_can", "sim_ecg")
REAL = ("ctsr", "mit_bih", "petrobras_3w", "tennessee_eastman", "road", "skab", "rcaeval", "robot_failures")
NUMPY = ".".join(np.__version__.split(".")[:2])


def task_fingerprints(name: str, root: Path | None, cache: Path) -> dict[str, str]:
    source: Source = build_source(name)
    return {str(seed): load_task(source, seed=seed, root=root, cache=cache).fingerprint() for seed in SEEDS}


def frozen() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text())
    return content


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_tasks_have_not_moved(name: str, private_cache: Path) -> None:
    found = task_fingerprints(name, None, private_cache)
    if found != frozen()["tasks"][name] and frozen()["numpy"] != NUMPY:
        pytest.skip(f"frozen with numpy {frozen()['numpy']}; {NUMPY} draws other random numbers")
    assert found == frozen()["tasks"][name]


@pytest.mark.parametrize("name", REAL)
def test_real_tasks_have_not_moved(name: str, real_data: Path, private_cache: Path) -> None:
    source: Source = build_source(name)
    if source.fingerprint(real_data) != frozen()["files"][name]:
        pytest.skip(f"the files of {name} are not those that were frozen")
    assert task_fingerprints(name, real_data, private_cache) == frozen()["tasks"][name]


def freeze(root: Path) -> None:
    """Write what is now."""
    with tempfile.TemporaryDirectory() as cache:
        tasks = {name: task_fingerprints(name, root, Path(cache)) for name in (*SIMULATED, *REAL)}
    files = {name: build_source(name).fingerprint(root) for name in REAL}
    FILE.write_text(json.dumps({"numpy": NUMPY, "files": files, "tasks": tasks}, indent=1) + "\n")


if __name__ == "__main__":
    freeze(Path(os.environ["READBENCH_DATA"]))
