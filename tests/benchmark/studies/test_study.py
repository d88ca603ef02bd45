"""The runner of studies: finished cells are kept, what they depend on counts, failures are named."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from readbench.benchmark.runs import Executor, Local, Processes
from readbench.benchmark.studies import Study, run_study
from readbench.benchmark.studies._study import Rows, name_file
from readbench.common.progress import Progress
from readbench.errors import DataError

CELLS = ("one", "two", "three")


def identify(cell: str, data: str = "data") -> str:
    return f"{cell} on {data}"


def measure(cell: str, progress: Progress, log: Path, broken: str = "") -> Rows:
    """Writes down each measurement; `broken` fails."""
    with log.open("a") as file:
        file.write(f"{cell}\n")
    progress("measuring", 1, 2)
    if cell == broken:
        raise DataError("its file is not there")
    return [{"cell": cell, "value": float("nan") if cell == "two" else 0.1}]


def study(log: Path, data: str = "data", broken: str = "") -> Study[str]:
    return Study(CELLS, partial(identify, data=data), partial(measure, log=log, broken=broken))


@pytest.mark.parametrize("executor", [Local(), Processes(2)], ids=["local", "processes"])
def test_finished_cells_are_kept_and_what_failed_is_tried_again(executor: Executor, tmp_path: Path) -> None:
    log = tmp_path / "log"
    told: list[tuple[str, int, int | None]] = []
    first = run_study(study(log, broken="two"), tmp_path / "out", executor, lambda *far: told.append(far))
    assert list(first.rows) == ["one", "three"]
    assert [(one.cell, one.reason) for one in first.failures] == [("two", "its file is not there")]
    assert [far for what, *far in told if what == "cells"] == [[0, 3], [1, 3], [2, 3], [3, 3]]
    assert {what for what, *_ in told} == {"cells", *(f"{cell}: measuring" for cell in CELLS)}
    log.unlink()
    again = run_study(study(log), tmp_path / "out", executor)
    assert log.read_text().splitlines() == ["two"]
    assert (again.reused, list(again.rows), again.failures) == (2, list(CELLS), ())
    assert again.rows["one"] == first.rows["one"] == [{"cell": "one", "value": 0.1}]
    assert str(again.rows["two"][0]["value"]) == "nan"


def test_cells_that_depend_on_something_else_are_measured_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run_study(study(log), tmp_path)
    assert run_study(study(log), tmp_path).reused == 3
    assert run_study(study(log, data="other data"), tmp_path).reused == 0
    assert len(log.read_text().splitlines()) == 6


@pytest.mark.parametrize("damage", ["", "{}", "[1]", '{"fingerprint": "one on data"}'])
def test_a_damaged_file_is_measured_anew(damage: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    run_study(study(log), tmp_path)
    path = tmp_path / "cells" / f"{name_file('one')}.json"
    whole = path.read_text()
    path.write_text(damage)
    assert run_study(study(log), tmp_path).reused == 2
    assert path.read_text() == whole
    assert json.loads(whole).keys() == {"cell", "fingerprint", "rows"}


def test_an_interruption_keeps_what_was_finished(tmp_path: Path) -> None:
    def stop(what: str, done: int, _: int | None) -> None:
        if (what, done) == ("cells", 2):
            raise KeyboardInterrupt

    log = tmp_path / "log"
    with pytest.raises(KeyboardInterrupt):
        run_study(study(log), tmp_path, progress=stop)
    assert run_study(study(log), tmp_path).reused == 2
    assert log.read_text().splitlines() == list(CELLS)
