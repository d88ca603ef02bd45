from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from readbench.cli import app
from readbench.errors import UsageError


def test_opinions_are_measured_printed_and_written(tmp_path: Path) -> None:
    options = ["--datasets", "sim_ecg", "--seeds", "0", "--method", "raw+verdict", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["opinions", *options])
    assert done.exit_code == 0, done.output
    assert "Opinions of raw+verdict" in done.output
    with (tmp_path / "out" / "opinions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["Dataset"] for row in rows] == ["sim_ecg"]
    assert 0.8 <= float(rows[0]["coverage"]) <= 1
    assert all((tmp_path / "out" / f"reliability.{suffix}").stat().st_size for suffix in ("svg", "png"))


def test_the_command_explains_itself_with_an_example() -> None:
    assert "Example:" in CliRunner().invoke(app, ["opinions", "--help"]).output


def test_a_method_without_opinion_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="end the method with"):
        CliRunner().invoke(
            app,
            ["opinions", "--datasets", "sim_ecg", "--method", "raw", "--out", str(tmp_path)],
            catch_exceptions=False,
        )
    assert not list(tmp_path.iterdir())
