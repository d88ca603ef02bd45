"""Real, simulated by others, simulated by us: marks in every table, counts beside every mean; older runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.metrics import bootstrap_datasets
from readbench.benchmark.report import Results, TableStudy, overview, read_results
from readbench.benchmark.report._compare import Side, compare, difference_table
from readbench.benchmark.report._origins import FEW_NORMALS, MARKS, PARTIAL, count_origins, explain_marks, find_real
from readbench.benchmark.report._paper_tables import method_tables, paper_tables
from readbench.benchmark.report._results import dataset_scores, leaderboard
from readbench.benchmark.runs import Cell, RunFolder
from tests.benchmark.report.made_up import made_up_run

MIXED = ("skab", "nppad", "sim_tanks", "road", "hai")
METHODS = ("random", "euclidean", "dtw-i")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_up_run(tmp_path_factory.mktemp("mixed"), METHODS, MIXED, (0, 20), smaller=())


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return read_results(folder)


def test_every_mark_is_another_and_has_a_meaning() -> None:
    marks = [*MARKS.values(), PARTIAL, FEW_NORMALS]
    assert len(set(marks)) == len(marks) == 5
    assert [note[0] for note in explain_marks(marks)] == ["†", "‡", "§", "¶"]
    assert explain_marks(["", ""]) == []


def test_what_is_real_has_a_mean_of_its_own_only_beside_others() -> None:
    assert find_real({"a": "real", "b": "simulated"}) == ("a",)
    assert find_real({"a": "real"}) == find_real({"a": "simulated"}) == ()
    assert count_origins(["simulated by us"] * 2) == "2 datasets (simulated by us‡)"


def test_the_leaderboard_counts_each_kind_and_has_the_mean_over_real_ones(results: Results) -> None:
    table = overview(results).tables[0]
    assert "5 datasets (3 real, 1 simulated†, 1 simulated by us‡)" in table.caption
    assert "over the real ones alone (3)" in table.caption
    real = [MIXED.index(name) for name in ("skab", "road", "hai")]
    for row in leaderboard(results).rows:
        wanted = results.at("NDCG@10", 20)[real, :, results.methods.index(row.method)].mean()
        shown = next(line for line in table.rows if line[0] == row.title)
        assert shown[table.header.index("real ρ=20%")] == f"{wanted:.3f}"


def test_datasets_are_marked_in_every_table_that_names_them(results: Results) -> None:
    first, study = overview(results), TableStudy(results)
    for table in (*first.tables, *paper_tables(study), *method_tables(study)):
        text = table.csv()
        assert text.count("nppad") == text.count("nppad†"), table.name
        assert text.count("sim_tanks") == text.count("sim_tanks‡"), table.name
    assert set(explain_marks("†‡")) <= set(first.remarks)


def test_the_best_is_compared_over_all_and_over_real_datasets(results: Results) -> None:
    found = next(table for table in overview(results).tables if table.name == "comparisons")
    scores = dataset_scores(results, 0)
    best = results.methods[int(np.argmax(scores.mean(axis=0)))]
    other = next(m for m in METHODS if results.title(m) == found.rows[0][0])
    differences = scores[:, METHODS.index(best)] - scores[:, METHODS.index(other)]
    assert found.rows[0][found.header.index("mean")] == f"{differences.mean():+.3f}"
    assert found.rows[0][found.header.index("real mean")] == f"{differences[[0, 3, 4]].mean():+.3f}"


def test_a_run_with_one_kind_has_no_mean_over_real_ones(tmp_path: Path) -> None:
    only = overview(read_results(made_up_run(tmp_path, METHODS, ("skab", "road", "hai"), (0,), smaller=())))
    assert not any("real ρ" in name or "real mean" in name for table in only.tables for name in table.header)
    assert "3 datasets (real)" in only.tables[0].caption


def test_runs_of_an_older_version_tell_what_is_simulated_by_a_list(folder: Path, tmp_path: Path) -> None:
    manifest = json.loads((folder / "run.json").read_text())
    for name, facts in manifest["datasets"].items():
        facts["url"] = "" if name == "sim_tanks" else "https://example.org"
        del facts["data_origin"]
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "run.json").write_text(json.dumps(manifest | {"simulated": ["sim_tanks", "nppad"]}))
    assert read_results(tmp_path).origins == read_results(folder).origins


def test_a_comparison_over_datasets_draws_datasets(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(self: RunFolder, cell: Cell) -> object:
        import pyarrow as pa  # noqa: PLC0415 - here alone

        values = self.read_per_query([("dataset", "=", cell.dataset), ("method", "=", cell.method)])
        kept = [row for row in values.to_pylist() if (row["seed"], row["rho"]) == (cell.seed, cell.rho)]
        columns = {name: [row[name] for row in kept] for name in ("query", "group")}
        return pa.table(columns | {name: [row["value"] for row in kept] for name in ("NDCG@10", "P@1")})

    monkeypatch.setattr(RunFolder, "read", read)
    pair = compare(Side(results, "random"), Side(results, "dtw-i"), rho=0)
    rows = {row.dataset: row for row in pair.differences}
    first, second = ([getattr(rows[name], side) for name in MIXED] for side in ("first", "second"))
    assert rows["mean"].over_datasets == bootstrap_datasets(second, first, seed=0)
    assert rows["mean"].first == pytest.approx(np.mean(first))
    assert rows["real mean"].second == pytest.approx(np.mean([second[0], second[3], second[4]]))
    assert rows["skab"].over_datasets is None
    named = [line[0] for line in difference_table([pair]).rows]
    assert named[:3] == ["skab", "nppad†", "sim_tanks‡"]
    assert named[-2:] == ["mean of 5 datasets (3 real, 1 simulated†, 1 simulated by us‡)", "mean of 3 datasets (real)"]
