"""`readbench run --suite readx`: what is printed, written, and named where it cannot be measured."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from readbench.benchmark.runs import READX, suite
from readbench.cli import app


def test_the_suite_writes_tables_and_names_what_has_one_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readbench.benchmark.studies._readx.MOST_ASSETS", 2)
    monkeypatch.setenv("READBENCH_CACHE", str(tmp_path / "cache"))
    folders = ["--root", str(tmp_path), "--out", str(tmp_path / "out")]
    options = ["--methods", "stats", "--seed", "0", "--rho", "0", *folders]
    done = CliRunner().invoke(app, ["run", "--suite", READX, "--datasets", "sim_tanks(runs=160),skab", *options])
    assert done.exit_code == 1
    assert "skab stats: skab:" in done.output.replace("\n", " ")
    assert "retained" in done.output
    with (tmp_path / "out" / "readx.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["Dataset"], row["Method"], row["Assets"]) == ("sim_tanks(runs=160)†", "Stats", "2")
    assert (tmp_path / "out" / "readx.md").read_text().startswith("**READ-X: the same faults")


def test_the_suite_is_over_sources_with_assets_and_slow_methods_come_last(tmp_path: Path) -> None:
    (tmp_path / "bearings").mkdir()
    (tmp_path / "skab").mkdir()
    plan = suite(READX, tmp_path).plan
    assert plan.datasets[-1] == "bearings"
    assert "skab" not in plan.datasets
    assert "sim_tanks" in plan.datasets
    assert (plan.levels, plan.seeds) == ((0, 20), (0,))
    assert plan.methods.index("euclidean") < plan.methods.index("dtw-i")
