"""Recordings with an onset: rows before it are the time before, rows from it on the window; and all the way round."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.cases import Library, ToldContext, export_library, import_library, windows_from
from readbench.cli import app
from readbench.common.tables import read_table
from readbench.engine.window_tables import Roles
from readbench.errors import DataError, UsageError
from tests.cases.samples import FAST, filled, window

RUNNER = CliRunner()
MIDNIGHT = 1714521600
"""2024-05-01, in seconds since 1970."""
HEADER = "t,pressure,flow,speed"


def recording(path: Path, fault: str = "leak", *, steps: int = 100, seed: int = 5, start: float = 0.0) -> Path:
    """A table of normal operation, the last 40 rows of which are a fault."""
    rng = np.random.default_rng(seed)
    values = np.concatenate([window("", rng, steps - 40), window(fault, rng)], axis=1)
    rows = [f"{start + t}," + ",".join(map(str, row)) for t, row in enumerate(values.T.astype(np.float32).tolist())]
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def run(*arguments: object) -> str:
    result = RUNNER.invoke(app, ["cases", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def refuse(*arguments: object) -> str:
    with pytest.raises((DataError, UsageError)) as caught:
        RUNNER.invoke(app, ["cases", *map(str, arguments)], catch_exceptions=False, standalone_mode=False)
    return str(caught.value)


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    filled(tmp_path / "plant")
    return tmp_path / "plant"


def test_rows_before_the_onset_are_the_time_before(plant: Path, tmp_path: Path) -> None:
    file = recording(tmp_path / "a.csv")
    run("add", plant, file, "--time", "t", "--onset", "60", "--rate", "10", "--fact", "speed=29.5", "--name", "a")
    whole = windows_from(file, Roles(time="t"))[0].values
    own = Library.open(plant).window("a")[0]
    np.testing.assert_array_equal(own.before, whole[:, :60])
    np.testing.assert_array_equal(own.values, whole[:, 60:])
    assert (own.rate, own.facts) == (10.0, {"speed": 29.5})
    assert "60 steps before, 10 Hz, speed = 29.5" in " ".join(run("list", plant).split())
    shown = " ".join(run("show", plant, "a").split())
    assert "Before 60 steps" in shown
    assert "Facts speed = 29.5" in shown
    told = json.loads(run("show", plant, "a", "--json"))
    assert (told["steps"], told["before"], told["rate"], told["facts"]) == (40, 60, 10.0, {"speed": 29.5})


@pytest.mark.parametrize(
    ("start", "onset"),
    [
        (MIDNIGHT + 14 * 3600, "14:01"),
        (MIDNIGHT + 14 * 3600, "14:01:00"),
        (MIDNIGHT + 14 * 3600, "2024-05-01T14:01"),
        (MIDNIGHT - 60, "00:00"),
        (0, "60"),
    ],
)
def test_an_onset_is_a_time_of_day_a_date_or_seconds(tmp_path: Path, start: float, onset: str) -> None:
    file = recording(tmp_path / "a.csv", start=start)
    own = windows_from(file, Roles(time="t"), told=ToldContext(onset=onset))[0]
    assert own.before is not None
    assert (own.before.shape, own.values.shape, own.time) == ((3, 60), (3, 40), start + 60)


def test_without_times_an_onset_is_a_row(tmp_path: Path) -> None:
    file = recording(tmp_path / "a.csv")
    own = windows_from(file, Roles(channels=("flow",)), told=ToldContext(onset="60"))[0]
    assert own.before is not None
    assert own.before.shape == (1, 60)


def test_a_column_says_where_each_case_begins(plant: Path, tmp_path: Path) -> None:
    rows = []
    for seed, (case, onset) in enumerate((("a", 60), ("b", 70))):
        lines = recording(tmp_path / f"{case}.csv", seed=seed).read_text().splitlines()[1:]
        rows += [f"{line},{case},{int(i >= onset)}" for i, line in enumerate(lines)]
    table = tmp_path / "both.csv"
    table.write_text("\n".join([HEADER + ",incident,begun", *rows]) + "\n")
    run("add", plant, table, "--time", "t", "--case", "incident", "--onset-column", "begun")
    library = Library.open(plant)
    for name, onset in (("a", 60), ("b", 70)):
        own = library.window(name)[0]
        assert own.before is not None
        assert (own.before.shape[1], own.values.shape[1]) == (onset, 100 - onset)
        assert "begun" not in own.channels


def test_the_time_before_may_come_from_another_file(plant: Path, tmp_path: Path) -> None:
    quiet, file = recording(tmp_path / "q.csv", "", start=0), recording(tmp_path / "a.csv", start=100)
    columns = quiet.read_text().splitlines()
    swapped = [",".join(line.split(",")[i] for i in (0, 3, 1, 2)) for line in columns]
    quiet.write_text("\n".join(swapped) + "\n")
    run("add", plant, file, "--time", "t", "--before", quiet, "--name", "a")
    own = Library.open(plant).window("a")[0]
    expected = windows_from(quiet, Roles(time="t"))[0]
    assert own.before is not None
    np.testing.assert_array_equal(own.before[0], expected.values[expected.channels.index("pressure")])


def test_what_cannot_be_a_time_before_is_said_in_a_sentence(plant: Path, tmp_path: Path) -> None:
    file, late = recording(tmp_path / "a.csv", start=100), recording(tmp_path / "late.csv", start=50)
    other = tmp_path / "other.csv"
    other.write_text("t,pressure,flow\n0,1,2\n1,1,2\n")
    add = ("add", plant, file, "--time", "t")
    assert "overlaps the window: it ends at 149 s, and the window begins at 100 s" in refuse(*add, "--before", late)
    assert "has channels pressure, flow, the window pressure, flow, speed" in refuse(*add, "--before", other)
    assert "There is no file" in refuse(*add, "--before", tmp_path / "none.csv")
    assert "not both" in refuse(*add, "--before", other, "--onset", "150")
    assert "is empty, or the window is: the onset 100 is not within 100 s to 199 s" in refuse(*add, "--onset", "100")
    assert "is not within" in refuse(*add, "--onset", "500")
    assert "has no dates" in refuse(*add, "--onset", "14:02")
    assert "is no time" in refuse(*add, "--onset", "noon")
    assert "NAME=NUMBER" in refuse(*add, "--fact", "speed")
    assert "positive number" in refuse(*add, "--rate", "-1")
    assert "applies to one file" in refuse("add", plant, file, late, "--time", "t", "--before", other)
    assert len(Library.open(plant)) == 12


def test_a_constant_time_before_is_taken_with_a_remark(plant: Path, tmp_path: Path) -> None:
    still = tmp_path / "still.csv"
    still.write_text(f"{HEADER}\n0,1,2,3\n1,1,2.5,3\n")
    file = recording(tmp_path / "a.csv", start=100)
    said = run("add", plant, file, "--time", "t", "--before", still)
    assert "In the time before, pressure, speed never moved" in said
    found = run("search", plant, file, "--time", "t", "--before", still, "--method", FAST)
    assert "In the time before, pressure, speed never moved" in " ".join(found.split())


def test_a_question_brings_its_time_before(plant: Path, tmp_path: Path) -> None:
    file = recording(tmp_path / "a.csv")
    said = run("explain", plant, file, "w0", "--time", "t", "--onset", "60")
    assert "compared with the 60 steps before it; for the case, 5 normal windows of pump 0" in said
    whole, cut = (
        json.loads(run("search", plant, file, "--time", "t", *more, "--method", FAST, "--json"))
        for more in ((), ("--onset", "60"))
    )
    assert whole["hits"] != cut["hits"]
    assert cut["hits"][0]["case"]["label"] == "leak"


def test_a_csv_with_an_onset_goes_out_and_comes_back_the_same(plant: Path, tmp_path: Path) -> None:
    run("channel", plant, "pressure", "--unit", "bar")
    for number, onset in enumerate(("60", "70")):
        file = recording(tmp_path / f"{number}.csv", seed=number)
        run("add", plant, file, "--time", "t", "--onset", onset, "--fact", f"load={number}", "--name", f"r{number}")
    run("normals", plant, recording(tmp_path / "n.csv", ""), "--time", "t", "--length", "50", "--fact", "speed=30")
    library, copy = Library.open(plant), Library.create(tmp_path / "copy")
    export_library(library, tmp_path / "plant.parquet")
    import_library(copy, tmp_path / "plant.parquet")
    everything = range(len(library))
    assert copy.snapshot().windows(everything).fingerprint() == library.snapshot().windows(everything).fingerprint()
    assert copy.normals().fingerprint() == library.normals().fingerprint()
    own = copy.window("r1")[0]
    assert own.before is not None
    assert (own.before.shape, own.facts, own.units[0]) == ((3, 70), {"load": 1.0}, "bar")
    assert copy.normals()[10].facts == {"speed": 30.0}
    assert copy.window("w0")[0].before is None, "what is lent to a case is not its own"


def test_the_marks_of_skab_are_its_onsets_in_a_library_too(real_data: Path, tmp_path: Path) -> None:
    """Official files as they are: the column `anomaly` is 0 until the valve is closed."""
    files = sorted((real_data / "skab").glob("valve1/*.csv*"))[:4]
    if not files:
        pytest.skip("READBENCH_DATA has no skab")
    Library.create(tmp_path / "loop")
    columns = ("--time", "datetime", "--channels", "Pressure,Current", "--onset-column", "anomaly")
    run("add", tmp_path / "loop", *files, *columns, "--label", "valve 1")
    library, copy = Library.open(tmp_path / "loop"), Library.create(tmp_path / "copy")
    windows = library.snapshot().windows(range(len(files)))
    for file, own in zip(files, windows, strict=True):
        table = read_table(file)
        onset = int(np.argmax(table.numbers("anomaly") == 1))
        pressure = table.numbers("Pressure").astype(np.float32)
        assert own.before is not None
        np.testing.assert_array_equal(own.before[0], pressure[:onset])
        np.testing.assert_array_equal(own.values[0], pressure[onset:])
    export_library(library, tmp_path / "loop.parquet")
    import_library(copy, tmp_path / "loop.parquet")
    assert copy.snapshot().windows(range(len(files))).fingerprint() == windows.fingerprint()
    said = run("explain", tmp_path / "loop", library.cases()[0].id, library.cases()[1].id)
    assert f"compared with the {windows[0].before.shape[1]} steps before it" in said  # type: ignore[union-attr]
