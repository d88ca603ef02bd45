"""A run that nobody named a folder for does not write over another."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from readbench.cli import app
from readbench.errors import UsageError

RUN = ["run", "--datasets", "sim_tanks", "--seed", "0", "--rho", "0"]


def test_a_run_of_another_plan_is_not_written_over_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, [*RUN, "--methods", "random"]).exit_code == 0
    rows = (tmp_path / "runs" / "quick" / "scores.csv").read_text()
    refused = CliRunner().invoke(app, [*RUN, "--methods", "euclidean"])
    assert isinstance(refused.exception, UsageError)
    assert "runs/quick holds a run of another plan" in str(refused.exception)
    assert (tmp_path / "runs" / "quick" / "scores.csv").read_text() == rows
    assert CliRunner().invoke(app, [*RUN, "--methods", "random"]).exit_code == 0
    assert CliRunner().invoke(app, [*RUN, "--methods", "euclidean", "--out", "runs/quick"]).exit_code == 0
