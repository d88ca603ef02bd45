"""A metric from another package is shown everywhere by itself, and what was made with it opens without it."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from readbench.benchmark.metrics import ConfidenceInterval
from readbench.benchmark.report import compare, leaderboard, read_results
from readbench.benchmark.report._compare import Side
from readbench.benchmark.runs import RANKING_DEPTH
from readbench.engine.registry import MAX_METRIC_DEPTH, METRICS, MetricRegistry
from readbench.errors import UsageError
from tests.benchmark.report.test_site import embedded
from tests.plugins import Readbench, command_line, install

DOCUMENT = Path(__file__).parents[1] / "docs" / "extending.md"
EXAMPLE = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)[0]
"""The metric that the documentation adds."""
EFFORT = '''

@register_metric("Effort", depth=50, larger_is_better=False, bounds=(0.0, 50.0))
def effort(judged: Judgement) -> np.ndarray:
    """Items looked at until the first relevant one."""
    return np.where(judged.hits.any(axis=1), judged.hits.argmax(axis=1), judged.hits.shape[1]).astype(float)
'''
"""Less is better, and it reads further than any metric of the benchmark."""
COLUMNS = ("MRR@5", "MRR@10", "MRR@20", "Effort")
PLAN = ("--datasets", "sim_tanks", "--methods", "random", "--methods", "euclidean", "--rho", "0", "--seed", "0")


def passed(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "scores.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run called `mine` was made with the plug-in."""
    folder = tmp_path_factory.mktemp("plugin")
    install(folder / "site", "their-metrics", EXAMPLE + EFFORT)
    passed(command_line(folder / "site", folder)("run", *PLAN, "--out", "mine"))
    return folder


@pytest.fixture(scope="module")
def with_it(base: Path) -> Readbench:
    return command_line(base / "site", base)


@pytest.fixture(scope="module")
def without_it(base: Path) -> Readbench:
    return command_line(base / "nowhere", base)


def test_its_columns_come_after_those_of_the_benchmark(base: Path) -> None:
    row = rows_of(base / "mine")[1]
    names = list(row)
    start = names.index("macro_F1") + 1
    assert names[start : start + 4] == [*COLUMNS]
    assert names[start - 16 : start] == METRICS.names()
    table = pq.read_table(base / "mine" / "per_query.parquet", filters=[("metric", "=", "MRR@10")])
    own = [r["value"] for r in table.to_pylist() if r["method"] == "euclidean"]
    assert float(row["MRR@10"]) == pytest.approx(np.mean(own), abs=1e-6)
    assert 0 < float(row["MRR@10"]) <= 1
    assert "MRR@10_sd" in (base / "mine" / "scores_mean.csv").read_text()


def test_the_leaderboard_the_tables_and_the_page_show_it(base: Path, with_it: Readbench) -> None:
    text = passed(with_it("report", "mine", "--out", "shown"))
    assert "NDCG@10 over 1 dataset (simulated by us‡)" in text
    assert "MRR@10" in text
    assert "Effort" in text
    assert "MRR@20" in (base / "shown" / "methods.md").read_text()
    data = json.loads(embedded((base / "shown" / "index.html").read_text(), "data"))
    assert set(COLUMNS) < set(data["metrics"])
    assert data["smaller_is_better"] == ["Effort"]
    assert data["headline"] == "NDCG@10"
    assert data["values"]["MRR@10"][0][0][0] == pytest.approx(
        [float(row["MRR@10"]) for row in rows_of(base / "mine")], abs=1e-4
    )
    assert "MRR@10" in data["errors"]


def test_it_can_be_the_headline_of_a_report_without_being_installed(base: Path, without_it: Readbench) -> None:
    text = passed(without_it("report", "mine", "--metric", "mrr@10", "--out", "led"))
    assert "MRR@10 over 1 dataset (simulated by us‡)" in text
    data = json.loads(embedded((base / "led" / "index.html").read_text(), "data"))
    assert data["headline"] == "MRR@10"


def test_less_is_better_where_it_says_so(base: Path) -> None:
    results = read_results(base / "mine", "Effort")
    board = leaderboard(results)
    means = [row.headline[0].mean for row in board.rows]
    assert means == sorted(float(row["Effort"]) for row in rows_of(base / "mine"))
    best, other = (Side(results, row.method) for row in board.rows)
    (found,) = compare(other, best, metric="Effort").differences
    assert found.interval.mean < 0
    certain = replace(found, over_groups=ConfidenceInterval(-1.0, -2.0, -0.5, 1000, 0.95))
    assert certain.outcome == "second ahead"
    assert replace(certain, larger_is_better=True).outcome == "first ahead"


def test_methods_are_compared_by_it(with_it: Readbench, without_it: Readbench) -> None:
    for readbench in (with_it, without_it):
        pair = ("compare", "mine", "--methods", "random", "--methods", "euclidean")
        assert "MRR@10 at ρ=0%" in passed(readbench(*pair, "--metric", "MRR@10"))
        wrong = readbench(*pair, "--metric", "MRR@100")
        assert wrong.returncode != 0
        assert "Did you mean" in wrong.stderr
        overall = readbench(*pair, "--metric", "macro_F1")
        assert overall.returncode != 0
        assert "no value for a single query" in overall.stderr


def test_submissions_are_checked_as_far_as_it_is_installed(
    base: Path, with_it: Readbench, without_it: Readbench
) -> None:
    checked = passed(with_it("submit", "mine", "--name", "ours", "--out", "known/ours.readbench.zip"))
    assert "not checked" not in checked
    text = passed(with_it("leaderboard", "known", "--metric", "MRR@10"))
    assert "MRR@10, mean over 1 dataset (simulated by us‡)" in text
    facts = json.loads((base / "known" / "leaderboard" / "leaderboard.json").read_text())
    expected = {row["method"]: float(row["MRR@10"]) for row in rows_of(base / "mine")}
    assert {entry["method"]: entry["means"]["0"] for entry in facts["entries"]} == pytest.approx(expected)

    unchecked = passed(without_it("submit", "mine", "--name", "ours", "--out", "elsewhere/ours.readbench.zip"))
    assert f"not checked, because not installed: {', '.join(COLUMNS)}" in unchecked
    assert (base / "elsewhere" / "ours.readbench.zip").read_bytes() == (
        base / "known" / "ours.readbench.zip"
    ).read_bytes()
    passed(without_it("leaderboard", "known", "--out", "plain"))
    page = (base / "plain" / "leaderboard.md").read_text()
    assert "not checked and not shown" in page
    assert "MRR@10 |" not in page
    refused = without_it("leaderboard", "known", "--metric", "MRR@10", "--out", "plain")
    assert refused.returncode != 0
    assert "Unknown metric 'MRR@10'" in refused.stderr


def test_a_run_that_goes_on_with_it_is_judged_again(base: Path, with_it: Readbench, without_it: Readbench) -> None:
    passed(without_it("run", *PLAN, "--out", "later"))
    before = rows_of(base / "later")
    assert "MRR@10" not in before[0]
    assert read_results(base / "later").metrics.keys() == set(METRICS.names())
    passed(with_it("run", *PLAN, "--out", "later"))
    after = rows_of(base / "later")
    assert [row["MRR@10"] for row in after] == [row["MRR@10"] for row in rows_of(base / "mine")]
    assert [{name: row[name] for name in METRICS.names()} for row in after] == [
        {name: row[name] for name in METRICS.names()} for row in before
    ]


def test_a_folder_from_before_run_json_knew_metrics_opens(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base / "mine", tmp_path / "old")
    manifest: dict[str, Any] = json.loads((tmp_path / "old" / "run.json").read_text())
    del manifest["metrics"]
    (tmp_path / "old" / "run.json").write_text(json.dumps(manifest))
    results = read_results(tmp_path / "old")
    assert results.metrics["NDCG@10"].per_query
    assert results.metrics["MRR@10"].cutoff == 10
    assert results.values["MRR@10"].shape == results.values["NDCG@10"].shape


def test_no_metric_reads_more_than_a_run_keeps() -> None:
    assert MAX_METRIC_DEPTH == RANKING_DEPTH


@pytest.mark.parametrize(
    ("name", "declared", "message"),
    [
        ("items", {"depth": 5}, "capital letter"),
        ("Mean rank", {"depth": 5}, "capital letter"),
        ("Deep", {"depth": 101}, "between 1 and 100"),
        ("Deep", {"cutoffs": (0, 5)}, "between 1 and 100"),
        ("Deep", {}, "Set cutoffs or depth"),
    ],
)
def test_what_cannot_be_a_column_is_refused(name: str, declared: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MetricRegistry("metric").register(name, **declared)
