"""`readbench cases watch`: one round over a folder, places, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.cases import Library
from readbench.cli import app
from tests.cases.samples import CHANNELS, FAST


def run(*words: str) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(app, ["cases", "watch", *words])
    return result.exit_code, result.output, result.exception


def test_one_round_over_a_folder_keeps_its_state_beside_the_library(library: Library, tmp_path: Path) -> None:
    import time  # noqa: PLC0415 - the clock of the round

    folder = tmp_path / "signals"
    folder.mkdir()
    now, values = time.time(), np.random.default_rng(0).normal(size=(3000, 3))
    rows = [f"{now - 3000 + i:.3f}," + ",".join(f"{v:.4f}" for v in row) for i, row in enumerate(values)]
    (folder / "a.csv").write_text("\n".join([f"time,{','.join(CHANNELS)}", *rows, ""]))
    state, log = tmp_path / "state", tmp_path / "notices.jsonl"
    words = ["--source", f"folder://{folder}", "--method", FAST, "--once", "--state", str(state), "--log", str(log)]
    status, said, error = run(library.store.where, *words)
    assert (status, error) == (0, None), said
    assert {"normals.json", "state.json"} <= {path.name for path in state.iterdir()}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "--source"),
        (("--source", "nothere"), "Unknown source"),
        (("--source", "folder:///x", "--normals", "all"), "auto, history or library"),
        (("--source", "folder:///x", "--notify", "teams=http://x"), "--notify json=URL"),
        (("--source", "folder:///x", "--listen", "0.0.0.0:9095", "--method", FAST), "need a token"),
        (
            ("--source", "folder:///x", "--listen", "0.0.0.0:9095", "--listen-secret", "s3cret", "--method", FAST),
            "named, not given",
        ),
        (("--source", "folder:///x", "--notify", "slack=env:NO_SUCH"), "no variable NO_SUCH"),
        (("--source", "folder:///x", "--learn", "long"), "no time"),
    ],
)
def test_what_cannot_be_is_named(library: Library, tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    _, _, error = run(library.store.where, *words, "--state", str(tmp_path / "state"))
    assert error is not None
    assert sentence in str(error)
    assert "s3cret" not in str(error)
