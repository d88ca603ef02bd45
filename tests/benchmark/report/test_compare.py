"""Comparing two runs, or two methods of one."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from readbench.benchmark.report import Results, as_json, check_data, compare, markdown, pairs_of, read_results
from readbench.benchmark.report._compare import Compared, Side
from readbench.benchmark.runs import Cell, RunFolder, run
from readbench.cli import app
from readbench.errors import RunError, UsageError
from tests.benchmark.runs.helpers import small_plan

RHO = 20


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    base = tmp_path_factory.mktemp("compare")
    run(small_plan(seeds=(7, 8), methods=("random", "stats", "euclidean")), base / "one", cache=base / "cache")
    run(small_plan(seeds=(8, 9), methods=("euclidean", "stats")), base / "two", cache=base / "cache")
    return base / "one", base / "two"


@pytest.fixture(scope="module")
def results(folders: tuple[Path, Path]) -> tuple[Results, Results]:
    return read_results(folders[0]), read_results(folders[1])


def within(results: Results, first: str, second: str, metric: str = "NDCG@10") -> Compared:
    return compare(Side(results, first), Side(results, second), metric=metric, rho=RHO)


def per_query(folder: Path, method: str, metric: str) -> dict[tuple[int, str], float]:
    """The same numbers, from the long table."""
    wanted = [("method", "=", method), ("metric", "=", metric), ("rho", "=", RHO)]
    rows = pq.read_table(folder / "per_query.parquet", filters=wanted).to_pylist()
    return {(row["seed"], row["query"]): row["value"] for row in rows}


def test_differences_are_those_of_the_queries(results: tuple[Results, Results]) -> None:
    one = results[0]
    found = within(one, "random", "stats").differences[0]
    before, after = (per_query(one.folder, method, "NDCG@10") for method in ("random", "stats"))
    assert found.queries == len(before) == 200
    assert found.first == pytest.approx(np.mean(list(before.values())), abs=1e-12)
    assert found.interval.mean == pytest.approx(np.mean([after[q] - before[q] for q in before]), abs=1e-12)
    assert found.over_groups is not None
    assert found.over_groups.low < found.interval.mean < found.over_groups.high
    assert found.outcome == "second ahead"
    assert within(one, "stats", "random").differences[0].outcome == "first ahead"
    assert within(one, "stats", "stats").differences[0].outcome == "none shown"


def test_flips_are_the_queries_whose_first_hit_changed(results: tuple[Results, Results]) -> None:
    one = results[0]
    flips = within(one, "random", "stats").flips
    before, after = (per_query(one.folder, method, "P@1") for method in ("random", "stats"))
    changed = {query for query in before if before[query] != after[query]}
    assert {(flip.seed, flip.query) for flip in flips} == changed
    assert all(flip.gained == (after[flip.seed, flip.query] == 1) for flip in flips)
    sizes = [abs(flip.difference) for flip in flips]
    assert sizes == sorted(sizes, reverse=True)


def test_flips_lead_to_the_case_browser(results: tuple[Results, Results]) -> None:
    one = results[0]
    pair = within(one, "random", "stats")
    flip = pair.flips[0]
    address = f"../report/index.html#/case/sim_tanks/{flip.seed}/{RHO}/{flip.query}/random/stats"
    facts = json.loads(as_json([pair], one.folder / "compare"))
    assert [unquote(link) for link in facts[0]["flips"][0]["links"]] == [address]
    assert f"]({facts[0]['flips'][0]['links'][0]})" in markdown([pair], one.folder / "compare")


def test_two_runs_are_compared_on_what_they_share(results: tuple[Results, Results]) -> None:
    one, two = results
    check_data(one, two)
    pairs = pairs_of(one, two, [])
    assert [(a.method, b.method) for a, b in pairs] == [("stats", "stats"), ("euclidean", "euclidean")]
    found = compare(*pairs[0], rho=RHO)
    assert found.differences[0].queries == 100
    assert found.differences[0].interval.mean == 0
    assert set(found.left_out) == {"sim_tanks seed 7 is in one run only", "sim_tanks seed 9 is in one run only"}
    mixed = compare(*pairs_of(one, two, ["random", "stats"])[0], rho=RHO)
    assert len(json.loads(as_json([mixed], Path()))[0]["flips"][0]["links"]) == 2
    assert "Left out: sim_tanks seed 7" in markdown([mixed], Path())


def test_runs_on_different_data_are_refused(results: tuple[Results, Results]) -> None:
    one, two = results
    changed = read_results(two.folder)
    changed.manifest["tasks"]["sim_tanks/seed-8"] = "other"
    with pytest.raises(RunError, match="--other-data"):
        check_data(one, changed)


def test_failed_cells_are_left_out_by_name(folders: tuple[Path, Path], tmp_path: Path) -> None:
    run(small_plan(seeds=(7, 8), methods=("stats",)), tmp_path / "run", cache=folders[0].parent / "cache")
    RunFolder(tmp_path / "run").cell_path(Cell("sim_tanks", 7, RHO, "stats")).unlink()
    results = read_results(tmp_path / "run")
    assert within(results, "stats", "stats").left_out == ("sim_tanks seed 7 is not finished in both",)


def test_wrong_questions_are_refused(results: tuple[Results, Results]) -> None:
    one, two = results
    for second, methods in ((None, []), (None, ["stats"]), (two, ["random"]), (two, ["a", "b", "c"])):
        with pytest.raises(UsageError):
            pairs_of(one, second, methods)
    with pytest.raises(UsageError, match="Unknown metric"):
        within(one, "stats", "random", metric="NDCG@7")
    with pytest.raises(UsageError, match="no level 5"):
        compare(Side(one, "stats"), Side(one, "random"), rho=5)


def test_the_command_prints_and_writes(folders: tuple[Path, Path], tmp_path: Path) -> None:
    command = ["compare", str(folders[0]), "--methods", "random", "--methods", "stats", "--rho", "20"]
    result = CliRunner().invoke(app, [*command, "--json", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)[0]["differences"][0]["outcome"] == "second ahead"
    assert json.loads((tmp_path / "compare.json").read_text())[0]["metric"] == "NDCG@10"
    assert "became right for" in (tmp_path / "compare.md").read_text()
    printed = CliRunner().invoke(app, command).stdout
    assert "second ahead" in printed
