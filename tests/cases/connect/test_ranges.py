"""A range of a source is asked about: on the library's grid, with the time before; by command and from Python."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.cases import Library
from readbench.cases.connect import LibraryGrid, SourceFile, open_source, parse_range, read_range
from readbench.cli import app
from readbench.errors import DataError, UsageError
from tests.cases import samples
from tests.cases.connect.conftest import START
from tests.cases.samples import CHANNELS, FAST, window

RATE = 2.0
STEPS = 40


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Cases of three faults at two readings a second."""
    library = Library.create(tmp_path / "library")
    library.add_normals(samples.normals(10), rate=RATE)
    rng = np.random.default_rng(0)
    for i in range(12):
        fault = samples.FAULTS[i % 3]
        library.add_one(window(fault, rng), CHANNELS, rate=RATE, label=fault, id=f"w{i}")
    return library


Write = Callable[..., str]


@pytest.fixture
def plant(tmp_path: Path) -> Write:
    """Writes a recording with a fault after some time, and returns its address."""

    def write(fault: str = "leak", names: tuple[str, ...] = CHANNELS, rate: float = 4 * RATE, normal: int = 60) -> str:
        rng = np.random.default_rng(7)
        values = np.concatenate([rng.normal(size=(3, normal)), window(fault, rng, STEPS)], axis=1)
        often = np.repeat(values, round(rate / RATE), axis=1) + 0.01 * rng.normal(size=(3, round(rate / RATE) * 100))
        folder = tmp_path / "signals"
        folder.mkdir(exist_ok=True)
        lines = [f"{START + i / rate:.3f}," + ",".join(f"{v:.5f}" for v in row) for i, row in enumerate(often.T)]
        (folder / "a.csv").write_text("\n".join(["time," + ",".join(names), *lines, ""]))
        return f"folder://{folder}"

    return write


ONSET = START + 60 / RATE
END = START + 100 / RATE - 0.2


def test_a_range_comes_on_the_grid_of_the_library_with_the_time_before(library: Library, plant: Write) -> None:
    assert LibraryGrid.of(library) == LibraryGrid(RATE, STEPS)
    read = read_range(library, open_source(plant()), ONSET, END)
    own = read.windows[0]
    assert own.rate == RATE
    assert own.values.shape == (3, STEPS)
    assert own.before is not None
    assert 38 <= own.before.shape[1] <= 41
    assert "40 steps of 0.5 s" in read.remarks[0]
    answer = library.search(read, method=FAST)
    assert answer.faults[0].label == "leak"
    assert library.case(answer.hits[0].case.id).label == "leak"


def test_an_onset_within_the_range_begins_the_window(library: Library, plant: Write) -> None:
    read = read_range(library, open_source(plant()), START + 10, END, onset=str(ONSET))
    own = read.windows[0]
    assert own.values.shape[1] == STEPS
    assert own.time == ONSET
    assert own.before is not None
    assert own.before.shape[1] >= 40
    with pytest.raises(UsageError, match="onset"):
        read_range(library, open_source(plant()), START + 10, END, onset=str(END + 9))


def test_a_renamed_channel_and_a_vanished_one_are_told(library: Library, plant: Write) -> None:
    answer = library.search(
        read_range(library, open_source(plant(names=("PT-7", "flow", "speed"))), ONSET, END), method=FAST
    )
    assert any("that the window lacks: pressure" in remark for remark in answer.remarks)
    assert any("not compared: PT-7" in remark for remark in answer.remarks)
    library.name_channel("pressure", aliases=["PT-7"])
    answer = library.search(
        read_range(library, open_source(plant(names=("PT-7", "flow", "speed"))), ONSET, END), method=FAST
    )
    assert any("PT-7 is pressure" in remark for remark in answer.remarks)
    path = Path(open_source(plant()).shown.removeprefix("folder://")) / "a.csv"
    rows = [line.split(",") for line in path.read_text().splitlines()]
    half = len(rows) * 55 // 100
    gone = [row if i < half else [*row[:3], ""] for i, row in enumerate(rows)]
    path.write_text("\n".join(",".join(row) for row in gone) + "\n")
    read = read_range(library, open_source(f"folder://{path.parent}"), ONSET, END)
    assert read.windows.channels(0) == ("pressure", "flow")
    assert "No reading in that range, though before it: speed." in read.remarks


def test_units_of_the_source_become_those_of_the_library(library: Library, plant: Write) -> None:
    library.name_channel("pressure", "bar")
    bar = read_range(library, open_source(plant(names=("pressure [bar]", "flow", "speed"))), ONSET, END)
    kilopascal = read_range(library, open_source(plant(names=("pressure [kPa]", "flow", "speed"))), ONSET, END)
    assert bar.windows[0].units[0] == "bar"
    ratio = library.prepare(bar.windows).values(0)[0] / library.prepare(kilopascal.windows).values(0)[0]
    np.testing.assert_allclose(ratio, 100, rtol=1e-3)


def test_what_cannot_be_asked_is_named(library: Library, plant: Write) -> None:
    source = open_source(plant())
    with pytest.raises(DataError, match="no reading"):
        read_range(library, source, START - 500, START - 400)
    with pytest.raises(UsageError, match="before it begins"):
        read_range(library, source, END, ONSET)
    with pytest.raises(DataError, match="no reading of pump 9"):
        read_range(library, source, ONSET, END, asset="pump 9")
    for start, end in ((ONSET, math.inf), (-math.inf, END), (ONSET, 1e306)):
        with pytest.raises(UsageError, match="outside the years 1900 to 2199"):
            read_range(library, source, start, end)
    for start_text in ("1e18", "nan", "-1e306"):
        with pytest.raises(UsageError, match="outside the years 1900 to 2199"):
            parse_range(start_text, "14:02")


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["cases", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_commands_connect_and_search_without_telling_a_secret(
    library: Library, plant: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANT_WORD", "s3cret-word")
    where = library.store.where
    said = [
        run("connect", where, "line", plant(), "--secret", "env:PLANT_WORD", "--option", "by=none"),
        run("connect", where, "--list", "--check"),
        run("connect", where, "line", "--channels"),
        run("search", where, "--from", "line", "--start", str(ONSET), "--end", str(END), "--method", FAST, "--json"),
    ]
    assert "line answers: 3 channels of 1 assets" in said[1]
    assert "pressure" in said[2]
    assert json.loads(said[3])["faults"][0]["label"] == "leak"
    files = [path for path in Path(where).rglob("*") if path.is_file()]
    assert any(path.name == "sources.toml" for path in files)
    assert not any("s3cret" in text for text in said)
    assert not any(b"s3cret" in path.read_bytes() for path in files)
    by_address = run("search", where, "--from", plant(), "--start", str(ONSET), "--end", str(END), "--method", FAST)
    assert "leak" in by_address
    run("connect", where, "line", "--remove")
    assert SourceFile(Path(where) / "sources.toml").all() == []


def test_a_file_keeps_its_interval(library: Library, plant: Write) -> None:
    path = plant().removeprefix("folder://") + "/a.csv"
    assert "leak" in run("search", library.store.where, path, "--from", str(ONSET), "--to", str(END), "--method", FAST)
