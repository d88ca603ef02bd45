from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from readbench.cli import app
from readbench.errors import ParameterError, UsageError


def test_opinions_are_measured_printed_and_written(tmp_path: Path) -> None:
    options = ["--datasets", "sim_ecg", "--seeds", "0", "--method", "raw+verdict", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["study", "opinions", *options])
    assert done.exit_code == 0, done.output
    assert "Opinions of raw+verdict" in done.output
    with (tmp_path / "out" / "opinions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["Dataset"] for row in rows] == ["sim_ecg‡"]
    assert 0.8 <= float(rows[0]["coverage"]) <= 1
    names = [f"{stem}.{suffix}" for stem in ("reliability", "novelty") for suffix in ("svg", "png")]
    assert all((tmp_path / "out" / name).stat().st_size for name in names)
    with (tmp_path / "out" / "novelty.csv").open(newline="") as file:
        faults = list(csv.DictReader(file))
    assert float(rows[0]["AUROC"]) == pytest.approx(sum(float(row["AUROC"]) for row in faults) / len(faults), abs=2e-3)


def test_started_again_it_keeps_what_is_finished_and_names_what_fails(tmp_path: Path) -> None:
    options = ["--method", "raw+verdict", "--set", "novelty=false", "--out", str(tmp_path)]
    small = ["--datasets", "sim_ecg(runs=80)"]
    assert CliRunner().invoke(app, ["study", "opinions", *small, "--seeds", "0", *options]).exit_code == 0
    (first,) = tmp_path.glob("cells/*")
    written = first.stat().st_mtime_ns
    more = ["--seeds", "0,1", "--jobs", "2"]
    assert CliRunner().invoke(app, ["study", "opinions", *small, *more, *options]).exit_code == 0
    assert len(list(tmp_path.glob("cells/*"))) == 2
    assert first.stat().st_mtime_ns == written
    absent = ["--root", str(tmp_path / "nowhere"), "--seeds", "0", "--datasets", "skab,sim_ecg(runs=80)"]
    done = CliRunner().invoke(app, ["study", "opinions", *absent, *options])
    assert done.exit_code == 1
    assert "skab seed 0 rho 0 raw+verdict: skab:" in done.output.replace("\n", " ")
    assert "sim_ecg(runs=80)" in (tmp_path / "opinions.csv").read_text()


def test_it_measures_one_method(tmp_path: Path) -> None:
    asked = ["study", "opinions", "--datasets", "sim_ecg", "--methods", "raw+verdict,rocket+verdict"]
    with pytest.raises(UsageError, match="takes one value of --methods"):
        CliRunner().invoke(app, [*asked, "--out", str(tmp_path)], catch_exceptions=False)


def test_without_novelty_no_fault_is_held_out(tmp_path: Path) -> None:
    options = ["--datasets", "sim_ecg", "--seeds", "0", "--method", "raw+verdict", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["study", "opinions", "--set", "novelty=false", *options])
    assert done.exit_code == 0, done.output
    assert not list((tmp_path / "out").glob("novelty*"))
    with (tmp_path / "out" / "opinions.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    assert row["AUROC"] == "-"
    assert float(row["floor"]) > 0


def test_the_command_explains_itself_with_an_example() -> None:
    assert "Example:" in CliRunner().invoke(app, ["study", "--help"]).output


def test_a_method_without_opinion_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="end the method with"):
        CliRunner().invoke(
            app,
            ["study", "opinions", "--datasets", "sim_ecg", "--method", "raw", "--out", str(tmp_path)],
            catch_exceptions=False,
        )
    assert not list(tmp_path.iterdir())


def test_whole_assets_can_be_held_out(tmp_path: Path) -> None:
    options = ["--datasets", "sim_tanks(runs=120)", "--seeds", "0", "--method", "raw+verdict", "--set", "novelty=false"]
    for unit in ("group", "asset"):
        asked = ["--set", f"split_by={unit}", "--out", str(tmp_path / unit)]
        done = CliRunner().invoke(app, ["study", "opinions", *options, *asked])
        assert done.exit_code == 0, done.output
    by_group, by_asset = ((tmp_path / unit / "opinions.csv").read_text() for unit in ("group", "asset"))
    assert by_group != by_asset
    with pytest.raises(ParameterError, match="one of 'group', 'asset'"):
        CliRunner().invoke(app, ["study", "opinions", *options, "--set", "split_by=well"], catch_exceptions=False)
