"""Published rows: many runs in one small folder that reports read as if it were a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from readbench.benchmark.report import (
    read_results,
)
from readbench.benchmark.runs import Cell, PublishedFolder, RunFolder, open_folder, publish, run
from readbench.benchmark.runs._plan import Shard
from readbench.cli import app
from readbench.errors import RunError, UsageError
from tests.benchmark.runs.helpers import small_plan
from tools.docs.blocks import write_block


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with other methods on the same tasks, one of them only half done, and what is published of both."""
    folder = tmp_path_factory.mktemp("published")
    run(small_plan(methods=("random", "stats")), folder / "one", cache=folder / "cache")
    half = small_plan(methods=("euclidean",), seeds=(0, 1))
    run(half, folder / "two", cache=folder / "cache", shard=Shard(1, 2))
    publish([folder / "one", folder / "two"], folder / "results")
    return folder


def test_every_row_of_the_runs_is_there_and_what_is_missing_is_counted(base: Path) -> None:
    own = {tuple(row.items()) for name in ("one", "two") for row in RunFolder(base / name).read_scores()[1]}
    found = {tuple(row.items()) for row in RunFolder(base / "results").read_scores()[1]}
    assert found == own
    plan = PublishedFolder(base / "results").plan
    missing = len(list(plan.cells())) - len(found)
    assert missing > 0
    about = (base / "results" / "README.md").read_text()
    assert f"{len(found)} of {len(found) + missing} planned cells" in about
    assert "Planned, not computed" in about
    assert "`euclidean`" in about


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("seed", "rho", "method", "query", "metric"))


def test_values_of_single_queries_follow_from_lists_and_labels(base: Path) -> None:
    for name in ("one", "two"):
        expected = pq.read_table(base / name / "per_query.parquet").to_pylist()
        wanted = {
            (r["seed"], r["rho"], r["method"], r["query"], r["metric"]): (r["value"], r["group"]) for r in expected
        }
        rows = open_folder(base / "results").read_per_query([("dataset", "=", "sim_tanks")]).to_pylist()
        found = {key(r): (r["value"], r["group"]) for r in rows}
        assert wanted
        assert {key: found[key] for key in wanted} == wanted


def test_reports_read_published_rows_as_they_read_a_run(base: Path) -> None:
    published, one = read_results(base / "results"), read_results(base / "one")
    for method in one.methods:
        ours, theirs = (r.at("NDCG@10", 20)[..., r.methods.index(method)] for r in (published, one))
        place = published.seeds.index(one.seeds[0])
        assert np.array_equal(ours[:, place], theirs[:, 0])
    incomplete = published.methods.index("euclidean")
    assert incomplete not in published.complete()


def test_publishing_again_changes_nothing_and_a_finished_run_fills_the_gaps(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base / "results", tmp_path / "results")
    before = {p: p.read_bytes() for p in sorted((tmp_path / "results").rglob("*")) if p.is_file()}
    publish([base / "one"], tmp_path / "results")
    assert {p: p.read_bytes() for p in before} == before
    run(small_plan(methods=("euclidean",), seeds=(0, 1)), base / "whole", cache=base / "cache")
    done = publish([base / "whole"], tmp_path / "results")
    cells = [cell for cell in PublishedFolder(tmp_path / "results").plan.cells() if cell.method == "euclidean"]
    folder = open_folder(tmp_path / "results")
    assert all(folder.finished(cell) for cell in cells if cell.seed in {0, 1})
    assert done.replaced == ()


def test_what_is_left_out_says_why_and_is_not_missing(base: Path, tmp_path: Path) -> None:
    results, said = tmp_path / "results", "dtw-i on sim_tanks: too slow"
    before = publish([base / "one"], results, ["dtw-i"])
    assert before.planned - before.computed == 2
    shown = CliRunner().invoke(app, ["submit", "--rows", str(results), "--leave-out", said])
    assert shown.exit_code == 0, shown.output
    assert read_results(results).missing() == {}
    assert "| `dtw-i` | sim_tanks | too slow |" in (results / "README.md").read_text()
    assert "Left out: `DTW-I` on sim_tanks (too slow)." in write_block("rows", read_results(results))
    assert publish([], results).planned == before.computed
    for wrong in ("dtw-i", "sbd-d on sim_tanks: too slow", "dtw-i on nowhere: too slow"):
        assert CliRunner().invoke(app, ["submit", "--rows", str(results), "--leave-out", wrong]).exit_code != 0


def test_what_was_left_out_and_is_computed_after_all_is_there(base: Path, tmp_path: Path) -> None:
    publish([base / "one"], tmp_path, left_out={"stats": {"sim_tanks": "too slow"}})
    assert PublishedFolder(tmp_path).read_manifest()["left_out"] == {}


def with_manifest(folder: Path, target: Path, **entries: object) -> Path:
    shutil.copytree(folder, target)
    manifest = json.loads((target / "run.json").read_text())
    (target / "run.json").write_text(json.dumps(manifest | entries))
    return target


def test_other_data_and_label_budgets_are_refused(base: Path, tmp_path: Path) -> None:
    manifest = json.loads((base / "one" / "run.json").read_text())
    tasks = dict.fromkeys(manifest["tasks"], "another")
    other = with_manifest(base / "one", tmp_path / "other", tasks=tasks)
    with pytest.raises(RunError, match=r"differ in sim_tanks/seed-\d \(another and .* different data"):
        publish([base / "one", other], tmp_path / "out")
    plan = manifest["plan"] | {"labels": ["5", "20"]}
    with pytest.raises(UsageError, match="label budgets"):
        publish([with_manifest(base / "one", tmp_path / "budget", plan=plan)], tmp_path / "out")
    plan = manifest["plan"] | {"corpus_cap": 3}
    with pytest.raises(RunError, match="compose their corpora differently"):
        publish([base / "one", with_manifest(base / "one", tmp_path / "cap", plan=plan)], tmp_path / "out")
    with pytest.raises(RunError, match="not a run folder"):
        publish([tmp_path / "nothing"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_rows_of_other_code_give_way_to_the_newer_ones(base: Path, tmp_path: Path) -> None:
    manifest = json.loads((base / "one" / "run.json").read_text())
    newer = {"stats": manifest["computed_by"]["stats"] | {"code": "newer"}}
    plan = manifest["plan"] | {"methods": ["stats"]}
    changed = with_manifest(base / "one", tmp_path / "newer", computed_by=newer, plan=plan)
    lost = next((changed / "cells").rglob("stats*.parquet"))
    lost.unlink()
    shutil.copytree(base / "results", tmp_path / "results")
    done = publish([changed], tmp_path / "results")
    assert done.replaced == ("stats",)
    rows = [row for row in RunFolder(tmp_path / "results").read_scores()[1] if row["method"] == "stats"]
    held = sum(row["method"] == "stats" for row in RunFolder(base / "one").read_scores()[1])
    assert len(rows) == held - 1


def test_the_command_says_how_much_is_there(base: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    done = CliRunner().invoke(app, ["submit", str(base / "two"), "--rows", str(out)])
    assert done.exit_code == 0
    assert "are planned and not computed" in done.output
    assert isinstance(open_folder(out), PublishedFolder)
    cell = Cell("sim_tanks", 0, 0, "euclidean")
    assert open_folder(out).finished(cell) == RunFolder(base / "two").finished(cell)
