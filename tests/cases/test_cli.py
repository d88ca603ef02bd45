"""The commands, as a new user types them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.cases import NORMAL_OPERATION, UNLIKE, Library
from readbench.cli import app
from readbench.errors import UsageError
from research.speed.library import main as measure_library
from tests.cases.samples import CHANNELS, FAST, FAULTS, window

RUNNER = CliRunner()


def said(*words: str | Path) -> str:
    """What a command prints; how far it has come, said on a busy machine, is apart from that."""
    result = RUNNER.invoke(app, ["cases", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def write_csv(path: Path, values: np.ndarray) -> Path:
    rows = np.column_stack([np.arange(values.shape[1]), values.T])
    np.savetxt(path, rows, delimiter=",", header=",".join(("t", *CHANNELS)), comments="")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a library of two cases of each fault and some normals, made by commands, and a new window."""
    folder, rng = tmp_path_factory.mktemp("made"), np.random.default_rng(0)
    said("init", folder / "plant")
    quiet = write_csv(folder / "quiet.csv", window("", rng, steps=210))
    assert "added 5 normal windows" in said("normals", folder / "plant", quiet, "--time", "t", "--length", "40")
    for number in range(2):
        for fault in FAULTS:
            file = write_csv(folder / "case.csv", window(fault, rng))
            said(
                *("add", folder / "plant", file, "--time", "t", "--label", fault, "--name", f"{fault} {number}"),
                *("--notes", f"About {fault}.", "--asset", "pump", "--tag", "x"),
            )
    write_csv(folder / "new.csv", window("leak", rng))
    return folder


@pytest.fixture
def plant(made: Path, tmp_path: Path) -> Path:
    """A copy of the library, the new window beside it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "plant"


def test_a_new_window_finds_its_fault(plant: Path) -> None:
    new = plant.parent / "new.csv"
    answer = json.loads(said("search", plant, new, "--time", "t", "--method", FAST, "--json"))
    assert answer["faults"][0]["label"] == "leak"
    assert answer["hits"][0]["case"]["notes"] == "About leak."
    shown = said("search", plant, new, "--time", "t", "--method", FAST, "-k", "2", "--asset", "pump", "--tag", "x")
    assert UNLIKE in shown
    assert "Only 6 cases have a label" in shown
    assert shown.count("About") == 6, "two of each of three fault types that cannot be ruled out"


def test_explaining_draws_a_figure(plant: Path, tmp_path: Path) -> None:
    shown = said("explain", plant, tmp_path / "new.csv", "leak 0", "--time", "t", "--figure", tmp_path / "why.png")
    assert shown.count(" for ") == 2
    assert "5 normal windows of all assets" in shown
    assert "of pump" not in said("explain", plant, tmp_path / "new.csv", "leak 0", "--time", "t", "--asset", "other")
    assert (tmp_path / "why.png").stat().st_size > 10_000


def test_feedback_and_history(plant: Path, tmp_path: Path) -> None:
    said("add", plant, tmp_path / "new.csv", "--time", "t", "--name", "monday", "--from", "0", "--to", "30")
    assert Library.open(plant).window("monday").lengths.tolist() == [31]
    assert "monday is now leak" in said("label", plant, "monday", "--like", "leak 0")
    assert "monday is not noise" in said("label", plant, "monday", "--unlike", "noise 0")
    said("label", plant, "monday", "")
    said("label", plant, "monday", "--note", "Nobody knows.")
    assert "monday" in said("list", plant, "--text", "nobody")
    assert "monday" in said("list", plant)
    assert "monday" not in said("list", plant, "--tag", "x")
    said("delete", plant, "monday", "leak 1")
    assert "reverted change 13: delete of 2 cases" in said("undo", plant)
    assert "reapplied change 13" in said("undo", plant, "--redo")
    assert "reverted change 13" in said("undo", plant, "13")
    assert said("history", plant).count("undone") == 2
    assert json.loads(said("list", plant, "--counts", "--json"))["labels"] == {
        "": 1,
        "leak": 2,
        "noise": 2,
        "stuck valve": 2,
    }
    assert "7 cases, 5 normal windows" in said("list", plant, "--counts")


def test_open_cases_and_doubtful_labels_are_listed(plant: Path, tmp_path: Path) -> None:
    assert "every case has a label" in said("review", plant, "--method", FAST)
    said("add", plant, tmp_path / "new.csv", "--time", "t", "--name", "monday", "--group", "run 7")
    shown = said("review", plant, "-k", "3", "--method", FAST)
    assert all(word in shown for word in ("monday", "run 7", "leak", "Similar open"))
    assert json.loads(said("review", plant, "--method", FAST, "--json"))[0]["guess"] == "leak"
    said("label", plant, "monday", "noise")
    assert (
        json.loads(said("review", plant, "--what", "doubtful", "-k", "1", "--method", FAST, "--json"))[0]["rather"]
        == "leak"
    )
    assert "monday" in said("review", plant, "--what", "doubtful", "--method", FAST)
    said("delete", plant, "monday")
    assert "every label agrees" in said("review", plant, "--what", "doubtful", "--method", FAST)


def test_many_cases_in_one_table(plant: Path, tmp_path: Path) -> None:
    rows = [f"{t},{case},{fault},{t * 1.0},2,3" for case, fault in (("A", "leak"), ("B", "")) for t in range(5)]
    (tmp_path / "many.csv").write_text("\n".join(["t,incident,fault,pressure,flow,speed", *rows]))
    words = ("--time", "t", "--case", "incident", "--label-column", "fault", "--notes", "both")
    assert "added 2 cases" in said("add", plant, tmp_path / "many.csv", *words)
    library = Library.open(plant)
    assert (library.case("A").label, library.case("B").label, library.case("B").notes) == ("leak", None, "both")
    with pytest.raises(UsageError, match="--name applies to one"):
        said("add", plant, tmp_path / "many.csv", "--time", "t", "--case", "incident", "--name", "x")


def test_names_units_export_and_import(plant: Path, tmp_path: Path) -> None:
    said("channel", plant, "pressure", "--unit", "bar", "--alias", "PT-1 [kPa]")
    assert Library.open(plant).naming().resolve("pt-1").name == "pressure"
    assert "wrote 11 windows" in said("export", plant, tmp_path / "out.parquet")
    said("init", tmp_path / "other")
    assert "added 11 windows" in said("import", tmp_path / "other", tmp_path / "out.parquet")


def test_a_file_that_is_not_there(plant: Path) -> None:
    with pytest.raises(UsageError, match="There is no file nowhere"):
        said("search", plant, "nowhere.csv")


@pytest.mark.parametrize("text", ["soon", "2024-99-01"])
def test_a_time_that_is_none(plant: Path, text: str) -> None:
    with pytest.raises(UsageError, match="is no time"):
        said("search", plant, "leak 0", "--since", text)


def test_the_demo_can_be_asked(tmp_path: Path) -> None:
    said(
        "init",
        tmp_path / "demo",
        "--demo",
        "--datasets",
        "sim_ecg",
        "--cases",
        "30",
        "--normals",
        "10",
        "--new",
        tmp_path / "new",
    )
    truth = json.loads((tmp_path / "new" / "truth.json").read_text())
    assert len(truth) >= 2
    found = [
        json.loads(
            said("search", tmp_path / "demo", tmp_path / "new" / name, "--time", "step", "--method", FAST, "--json")
        )
        for name in truth
    ]
    labels = Library.open(tmp_path / "demo").stats().labels
    assert {own["fault"] for own in truth.values()} <= set(labels)
    assert all(
        {fault["label"] for fault in answer["faults"]} == {*labels, UNLIKE, NORMAL_OPERATION} for answer in found
    )
    with pytest.raises(UsageError, match="not empty"):
        said("init", tmp_path / "again", "--demo", "--new", tmp_path / "new")


def test_a_library_can_be_measured(capsys: pytest.CaptureFixture[str]) -> None:
    measure_library(["--cases", "30", "--queries", "2", "--methods", "euclidean+verdict"])
    found = json.loads(capsys.readouterr().out)
    assert found["cases"] == 30
    assert found["compared"] == 30
    assert found["disk_gigabytes"] > 0
