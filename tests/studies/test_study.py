"""The runner of studies: finished cells are kept, what they depend on counts, failures are named."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from readbench.benchmark.runs import Executor, Local, Processes, load_cell_task
from readbench.common.progress import SILENT, Progress
from readbench.engine.method import Method
from readbench.errors import DataError, UnknownNameError, UsageError
from readbench.studies import STUDIES, EndedCell, Grid, Row, StudyCell, _study, measure_cells
from readbench.studies._study import name_file
from readbench.studies._used_code import UsedCode, find_used_code

CELLS = ("one", "two", "three")


def identify(cell: str, data: str = "data") -> str:
    return f"{cell} on {data}"


def measure(cell: str, progress: Progress, log: Path, broken: str = "") -> list[Row]:
    """Writes down each measurement; `broken` fails."""
    with log.open("a") as file:
        file.write(f"{cell}\n")
    progress("measuring", 1, 2)
    if cell == broken:
        raise DataError("its file is not there")
    return [{"cell": cell, "value": float("nan") if cell == "two" else 0.1}]


def run(
    log: Path,
    out: Path,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    *,
    data: str = "data",
    broken: str = "",
) -> dict[str, EndedCell]:
    work = partial(measure, log=log, broken=broken)
    return measure_cells(CELLS, partial(identify, data=data), work, out, executor, progress)


def count_reused(ended: dict[str, EndedCell]) -> int:
    return sum(one.reused for one in ended.values())


@pytest.mark.parametrize("executor", [Local(), Processes(2)], ids=["local", "processes"])
def test_finished_cells_are_kept_and_what_failed_is_tried_again(executor: Executor, tmp_path: Path) -> None:
    log = tmp_path / "log"
    told: list[tuple[str, int, int | None]] = []
    first = run(log, tmp_path / "out", executor, lambda *far: told.append(far), broken="two")
    assert [first[cell].failure for cell in CELLS] == ["", "its file is not there", ""]
    assert [far for what, *far in told if what == "cells"] == [[0, 3], [1, 3], [2, 3], [3, 3]]
    assert {what for what, *_ in told} == {"cells", *(f"{cell}: measuring" for cell in CELLS)}
    log.unlink()
    again = run(log, tmp_path / "out", executor)
    assert log.read_text().splitlines() == ["two"]
    assert (count_reused(again), tuple(again), {one.failure for one in again.values()}) == (2, CELLS, {""})
    assert again["one"].rows == first["one"].rows == [{"cell": "one", "value": 0.1}]
    assert str(again["two"].rows[0]["value"]) == "nan"


def test_cells_that_depend_on_something_else_are_measured_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run(log, tmp_path)
    assert count_reused(run(log, tmp_path)) == 3
    assert count_reused(run(log, tmp_path, data="other data")) == 0
    assert len(log.read_text().splitlines()) == 6


@pytest.mark.parametrize("damage", ["", "{}", "[1]", '{"fingerprint": "one on data"}'])
def test_a_damaged_file_is_measured_anew(damage: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    run(log, tmp_path)
    path = tmp_path / "cells" / f"{name_file('one')}.json"
    whole = path.read_text()
    path.write_text(damage)
    assert count_reused(run(log, tmp_path)) == 2
    assert path.read_text() == whole
    assert json.loads(whole).keys() == {"cell", "fingerprint", "rows"}


def test_an_interruption_keeps_what_was_finished(tmp_path: Path) -> None:
    def stop(what: str, done: int, _: int | None) -> None:
        if (what, done) == ("cells", 2):
            raise KeyboardInterrupt

    log = tmp_path / "log"
    with pytest.raises(KeyboardInterrupt):
        run(log, tmp_path, progress=stop)
    assert count_reused(run(log, tmp_path)) == 2
    assert log.read_text().splitlines() == list(CELLS)


def test_what_does_not_apply_to_a_study_is_refused() -> None:
    for study, chosen, option in (
        ("ucr", {"levels": [0]}, "--rho"),
        ("ucr", {"datasets": ["skab"]}, "--datasets"),
        ("compound", {"seeds": [1]}, "--seeds"),
        ("cost", {"levels": [20]}, "--rho"),
    ):
        with pytest.raises(UsageError, match=f"{option} does not apply to the study {study}"):
            STUDIES.get(study).grid(chosen)
    with pytest.raises(UnknownNameError, match="Did you mean 'cap'"):
        STUDIES.get("readx").grid(settings=["cop=3"])
    with pytest.raises(UsageError, match="has no settings"):
        STUDIES.get("ucr").grid({"methods": ["random"]}, ["cap=3"])
    with pytest.raises(UsageError, match="one value of --rho"):
        STUDIES.get("active").grid({"datasets": ["sim_ecg"], "levels": [0, 10]})
    with pytest.raises(UsageError, match="no datasets by default"):
        STUDIES.get("active").grid()


def test_a_study_has_what_the_command_and_the_list_need() -> None:
    for study in STUDIES:
        assert study.summary.endswith(".") or study.summary.endswith("?")
        assert (study.origin, STUDIES.get(study.name)) == ("readbench", study)


def test_code_that_shows_does_not_change_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell is measured anew when what computes it changes, and stays when a table, a figure or a docstring does."""
    monkeypatch.syspath_prepend(tmp_path)
    text = """
import math
from readbench.common.calibration import auroc
FACTOR = 2
def measure(cell):
    \"\"\"Measure.\"\"\"
    return weigh(auroc([1], [0]))
def weigh(value):
    return FACTOR * value
def show(rows):
    return math.fsum(rows)
"""
    digests = {}
    changes = {"as_is": ("", ""), "shown": ("fsum", "sqrt"), "said": ("Measure.", "Weigh."), "other": ("= 2", "= 3")}
    for name, (old, new) in {**changes, "helper": ("FACTOR * value", "FACTOR + value")}.items():
        (tmp_path / f"used_by_{name}.py").write_text(text.replace(old, new) if old else text)
        module = importlib.import_module(f"used_by_{name}")
        used = find_used_code(module.measure)
        assert [root.__name__ for root in used.roots] == ["auroc"]
        digests[name] = used.digest
    assert digests["as_is"] == digests["shown"] == digests["said"]
    assert len(set(digests.values())) == 3


def test_what_a_grid_does_counts_where_the_measuring_function_does_not_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def rank(cell, progress, grid):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        return [{"ndcg": grid.method(cell, progress).fit(grid.task(cell).corpus)}]

    monkeypatch.setattr(_study, "fingerprint_of", lambda *roots, **_: roots)
    monkeypatch.setattr(_study, "find_used_code", lambda _: UsedCode((), ""))
    study = replace(STUDIES.get("compound"), measure=rank, depends=lambda *_: "")
    counted: object = _study.identify(StudyCell("sim_ecg", "euclidean"), study, Grid(("sim_ecg",), ("euclidean",)))
    assert isinstance(counted, tuple)
    assert {Method, load_cell_task} <= set(counted)
