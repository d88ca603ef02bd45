"""The report of a run over label budgets, against values worked out by hand."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from readbench.benchmark.metrics import mean_interval
from readbench.benchmark.report import Results, TableStudy, read_results, write_report
from readbench.benchmark.report._budgets import RESAMPLES, budget_curve, budget_table, curves, draw_budgets
from readbench.benchmark.runs import run
from readbench.common.plots import METHOD_COLOURS, REFERENCE_GREY
from readbench.engine.spec import COMPOSED
from readbench.errors import RunError, UsageError
from tests.benchmark.runs.helpers import small_plan

METHODS = ("euclidean", "euclidean+majvote", "euclidean+gpc")
BUDGETS = ("0", "5", "50")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    folder = tmp_path_factory.mktemp("budgets")
    plan = small_plan(methods=METHODS, labels=BUDGETS, seeds=(0, 1), levels=(0,))
    run(plan, folder, cache=shared_cache)
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return read_results(folder)


def naive_mean(folder: Path, method: str, labels: str) -> float:
    with (folder / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    own = [float(r["NDCG@10"]) for r in rows if r["method"] == method and r["labels"] in {labels, "all"}]
    assert len(own) == 2
    return sum(own) / 2


def test_the_curve_is_the_mean_under_each_budget(folder: Path, results: Results) -> None:
    curve = budget_curve(results)
    assert curve is not None
    assert [line.flat for line in curve.lines] == [True, False, False]
    for method, line in zip(METHODS, curve.lines, strict=True):
        expected = [naive_mean(folder, method, labels) for labels in BUDGETS]
        assert [figure.mean for figure in line.figures] == pytest.approx(expected)
    assert len({figure.mean for figure in curve.lines[0].figures}) == 1
    assert curve.lines[1].figures[0].mean == curve.lines[0].figures[0].mean
    assert curve.lines[1].figures[2].mean != curve.lines[0].figures[2].mean


def test_the_leaderboard_and_the_comparisons_are_those_of_the_last_budget(folder: Path, results: Results) -> None:
    assert results.at("NDCG@10", 0).shape == (1, 2, 3)
    for m, method in enumerate(METHODS):
        assert results.at("NDCG@10", 0)[:, :, m].mean() == pytest.approx(naive_mean(folder, method, "50"))
    page = write_report(TableStudy(results), folder / "report")[0].read_text()
    assert "; with 50 labels a query" in page
    table = (folder / "report" / "tables" / "comparisons.csv").read_text().splitlines()
    best = max(METHODS, key=lambda method: naive_mean(folder, method, "50"))
    other = next(method for method in METHODS if results.title(method) == table[1].split(",")[0])
    difference = naive_mean(folder, best, "50") - naive_mean(folder, other, "50")
    assert float(table[1].split(",")[1]) == pytest.approx(difference, abs=6e-4)


def test_names_are_cut_down_to_what_they_add(results: Results) -> None:
    curve = budget_curve(results)
    assert curve is not None
    table = budget_table(curve)
    assert table.header == ["Method", *BUDGETS]
    assert [row[0] for row in table.rows] == ["ED", "+Majority-Vote", "+GPC"]


def test_the_picture_has_a_dashed_line_and_a_colour_for_each_method(results: Results) -> None:
    curve = budget_curve(results)
    assert curve is not None
    axis = draw_budgets(curve).axes[0]
    drawn = axis.get_lines()
    assert [line.get_color() for line in drawn] == [REFERENCE_GREY, *METHOD_COLOURS[:2]]
    assert [line.is_dashed() for line in drawn] == [True, False, False]
    assert [tick.get_text() for tick in axis.get_xticklabels()] == list(BUDGETS)
    for line, expected in zip(drawn, curve.lines, strict=True):
        assert np.array(line.get_ydata()).tolist() == [figure.mean for figure in expected.figures]


def test_the_report_is_written_with_its_figures_and_is_the_same_again(folder: Path, results: Results) -> None:
    first = {path.name: path.read_bytes() for path in write_report(TableStudy(results), folder / "one")}
    second = {path.name: path.read_bytes() for path in write_report(TableStudy(results), folder / "two")}
    assert first == second
    assert {"budgets.csv", "budgets.svg", "budgets.png"} <= first.keys()


def test_one_budget_has_no_curve(tmp_path: Path, private_cache: Path) -> None:
    run(small_plan(methods=("random",), levels=(0,)), tmp_path, cache=private_cache)
    results = read_results(tmp_path)
    assert budget_curve(results) is None
    assert not [path for path in write_report(TableStudy(results), tmp_path / "report") if path.stem == "budgets"]


def test_a_folder_of_another_version_is_no_run_folder(tmp_path: Path, private_cache: Path) -> None:
    run(small_plan(methods=("random",), levels=(0,)), tmp_path, cache=private_cache)
    manifest = tmp_path / "run.json"
    manifest.write_text(manifest.read_text().replace('"labels"', '"other"'))
    with pytest.raises(RunError, match="is not a run folder"):
        read_results(tmp_path)


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Results:
    """A run over wrong labels and many levels."""
    folder = tmp_path_factory.mktemp("hard")
    methods = ("euclidean", "euclidean+majvote")
    plan = small_plan(methods=methods, labels=("all", "all~30%"), seeds=(0, 1), levels=(0, 10, 20, 30))
    run(plan, folder, cache=shared_cache)
    return read_results(folder)


def test_wrong_labels_and_many_levels_have_curves_of_their_own(hard: Results) -> None:
    noise, pollution = curves(hard)
    assert (noise.name, noise.unit, noise.budgets) == ("noise", "wrong labels, all labels known", ("0%", "30%"))
    assert (pollution.name, pollution.budgets) == ("pollution", ("0%", "10%", "20%", "30%"))
    assert [line.flat for line in noise.lines] == [True, False]
    values = hard.values["NDCG@10"].mean(axis=(0, 1))
    for m in range(2):
        assert [figure.mean for figure in noise.lines[m].figures] == pytest.approx(values[0, :, m])
        assert [figure.mean for figure in pollution.lines[m].figures] == pytest.approx(values[:, -1, m])


def test_intervals_are_those_of_the_queries_of_a_method_at_a_place(hard: Results) -> None:
    noise, pollution = curves(hard)
    table = pq.read_table(hard.folder / "per_query.parquet").to_pylist()
    wanted = {"rho": 30, "labels": "all~30%", "method": "euclidean+majvote", "metric": "NDCG@10"}
    own = [row for row in table if all(row[name] == value for name, value in wanted.items())]
    columns = ([row[name] for row in own] for name in ("value", "dataset", "group"))
    assert pollution.lines[1].intervals[3] == mean_interval(*columns, seed=0, resamples=RESAMPLES)
    for line in (*noise.lines, *pollution.lines):
        assert all(i.low <= f.mean <= i.high for i, f in zip(line.intervals, line.figures, strict=True))


def test_curves_of_other_runs_stand_in_the_same_report(results: Results, hard: Results, tmp_path: Path) -> None:
    files = write_report(TableStudy(results, others=(hard,)), tmp_path)
    for name in ("budgets", "noise", "pollution"):
        assert {f"{name}.csv", f"{name}.tex", f"{name}.svg"} <= {path.name for path in files if path.stem == name}
        assert f"(figures/{name}.svg)" in files[0].read_text()
    tables = next(path for path in files if path.name == "tables.md").read_text()
    assert "`shares`" in tables
    assert "`noise`" not in tables
    with pytest.raises(UsageError, match="has the curve 'noise'"):
        write_report(TableStudy(hard, others=(hard,)), tmp_path / "twice")


def test_shares_of_the_corpus_have_a_name_of_their_own(results: Results) -> None:
    curve = budget_curve(replace(results, labels=("1%", "5%", "all")))
    assert curve is not None
    assert (curve.name, curve.unit) == ("shares", "labelled share of the corpus")


def test_intervals_are_drawn_as_bands(hard: Results) -> None:
    noise, pollution = (draw_budgets(curve).axes[0] for curve in curves(hard))
    assert (len(noise.collections), len(pollution.collections)) == (1, 2)
    files = {path.name for path in write_report(TableStudy(hard), hard.folder / "report")}
    assert {"noise.csv", "noise.svg", "noise.png", "pollution.csv", "pollution.svg", "pollution.png"} <= files


def test_changed_composed_methods_go_by_name_and_change(hard: Results) -> None:
    titles = {text: {"title": "Own title"} for text in (*COMPOSED.values(), "x")}
    named = replace(hard, manifest={"methods": titles})
    changed = COMPOSED["flagship"].replace("+verdict(", "+verdict(drop_normals=false,")
    assert named.title(changed) == "Flagship(drop_normals=false)"
    changed = COMPOSED["flagship-window"].replace("+verdict", "+verdict(drop_normals=false)")
    assert named.title(changed) == "Flagship-window(drop_normals=false)"
    assert named.title("x") == "Own title"


def test_composed_methods_have_the_name_of_today_also_where_rows_are_older(hard: Results) -> None:
    titles = {text: {"title": "Ours"} for text in (*COMPOSED.values(), "sonde|dtw-i")}  # a name that others have now
    older = replace(hard, manifest={"methods": titles})
    found = [older.title(text) for text in COMPOSED.values()]
    assert found == [name.capitalize() for name in COMPOSED]
    assert [older.title(text) for text in COMPOSED.values()] == found
    assert older.title("sonde|dtw-i") == "Ours"
