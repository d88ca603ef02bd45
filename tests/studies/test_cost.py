"""What a method costs: nothing that is remembered counts, and reports show what was measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from readbench.benchmark.report import TableStudy, places_table, read_results
from readbench.benchmark.report._figures import runtime
from readbench.benchmark.runs import COSTS, MethodCost, read_costs, write_costs
from readbench.cli import app
from readbench.common.files import cache_root
from readbench.common.progress import SILENT
from readbench.studies import STUDIES, Grid, StudyCell, StudyResult, _cost, run_study
from tests.benchmark.report.made_up import made_up_run

SMALL = "sim_ecg(runs=24)"
METHODS = ("euclidean", "dtw-i", "sbd-d")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("READBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def measure(folder: Path, *methods: str) -> StudyResult[_cost.CostResult]:
    study = STUDIES.get("cost")
    return run_study(study, study.grid({"datasets": [SMALL], "methods": methods}, out=folder))


def test_methods_are_measured_once_and_kept(tmp_path: Path) -> None:
    found = measure(tmp_path, "random", "euclidean")
    assert not found.failures
    assert [one.cell.method for one in found.results] == ["random", "euclidean"]
    assert all(one.cpu_s > 0 for one in found.results)
    assert found.results[0].task.startswith(f"{SMALL}: ")
    assert "cases of 2 x 256" in found.results[0].task
    assert measure(tmp_path, "random", "euclidean").results == found.results


def test_the_cache_is_empty_and_one_thread_works(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def spend(*_: object) -> None:
        seen.append((cache_root() == own_cache, list(cache_root().iterdir()), os.environ["READBENCH_THREADS"]))

    monkeypatch.setattr(_cost, "spend", spend)
    _cost.measure_cell(StudyCell(SMALL, "ts2vec"), SILENT, Grid((SMALL,), ("ts2vec",), out=tmp_path))
    assert seen == [(False, [], "1")] * 2
    assert cache_root() == own_cache


def test_a_method_that_asks_a_model_is_told_where_its_cost_is(tmp_path: Path) -> None:
    found = measure(tmp_path, "euclidean+llm(model=m)")
    assert not found.results
    assert "usage.csv" in found.failures[0].reason


def test_costs_of_the_same_task_stay(tmp_path: Path) -> None:
    write_costs(tmp_path, [MethodCost("a", "one", 1.0), MethodCost("b", "one", 2.0)])
    write_costs(tmp_path, [MethodCost("b", "one", 3.0)])
    assert {name: cost.cpu_s for name, cost in read_costs(tmp_path).items()} == {"a": 1.0, "b": 3.0}
    write_costs(tmp_path, [MethodCost("b", "another", 4.0)])
    assert set(read_costs(tmp_path)) == {"b"}


def test_reports_show_what_was_measured(tmp_path: Path) -> None:
    folder = made_up_run(tmp_path / "run", methods=METHODS)
    table = places_table(read_results(folder))
    assert table is not None
    assert "Seconds" in table.header
    write_costs(folder, [MethodCost("euclidean", "a task", 0.25), MethodCost("dtw-i", "a task", 2.0)])
    study = TableStudy(read_results(folder))
    table = places_table(study.results)
    assert table is not None
    assert "Seconds" not in table.header
    assert "(a task)" in table.caption
    column = table.header.index("CPU seconds")
    assert {row[1]: row[column] for row in table.rows} == {"ED": "0.25", "DTW-I": "2", "SBD-D": "-"}
    assert runtime(study) is None  # two methods were measured
    write_costs(folder, [MethodCost("sbd-d", "a task", 1.0)])
    figure = runtime(study)
    assert figure is not None
    assert figure.axes[0].get_xlabel() == "seconds of a processor (a task)"


def test_the_command_measures_the_methods_of_a_run(tmp_path: Path) -> None:
    folder = made_up_run(tmp_path / "run", methods=("random", "euclidean"))
    options = ["--set", f"run={folder}", "--dataset", SMALL, "--out", str(tmp_path / "cells")]
    shown = CliRunner().invoke(app, ["study", "cost", *options])
    assert shown.exit_code == 0, shown.output
    assert set(read_costs(folder)) == {"random", "euclidean"}
    assert (folder / COSTS).exists()
