"""Networks whose packages conflict with ours, by way of a file: the vectors are those of their packages.

Needs an interpreter with the package in each variable: `make test-exports` makes both.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from readbench.engine.encoders import Program
from readbench.engine.windows import WindowSet

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


@pytest.mark.long
@pytest.mark.parametrize("name", ["moment", "tspulse"])
def test_a_network_of_another_environment_runs_as_a_program(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    python = os.environ.get(f"READBENCH_{name.upper()}_PYTHON")
    if not python:
        pytest.skip(f"needs READBENCH_{name.upper()}_PYTHON: make test-exports")
    file = tmp_path / f"{name}.pt2"
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    steps = ([HERE / "export_checkpoints.py", name, tmp_path], [ROOT / f"research/exports/{name}.py", tmp_path, file])
    for step in steps:
        subprocess.run([python, *map(str, step)], check=True, env=clean)
    expected = np.load(tmp_path / "expected.npz")
    windows = WindowSet.from_arrays(expected["windows"])
    encoder = Program(str(file), norm="none", device="cpu").fit(windows, windows[:0])
    np.testing.assert_allclose(encoder.encode(windows), expected["vectors"], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(windows[[3]]), expected["vectors"][[3]], rtol=1e-3, atol=1e-5)
