"""READ-X: chance, what is beyond it, how queries count, and that a study goes on where it was."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.benchmark.metrics import evaluate, expect
from readbench.benchmark.protocol import POOLS
from readbench.cli import app
from readbench.studies import STUDIES, Grid, StudyCell, run_study, write_study
from readbench.studies._readx import (
    READX_METRICS,
    ReadxBlock,
    ReadxResult,
    draw_readx,
    ranking_table,
    readx_table,
    standings,
)
from readbench.studies._study import find_blocks

SOURCE = "sim_tanks(runs=160)"


@pytest.mark.parametrize(("relevant", "size"), [(3, 40), (15, 60), (4, 8), (20, 20)])
def test_chance_is_what_random_lists_reach(relevant: int, size: int) -> None:
    corpus = np.array([1] * relevant + [2] * (size - relevant))
    rng = np.random.default_rng(0)
    lists = rng.permuted(np.tile(np.arange(size), (20_000, 1)), axis=1)[:, :20]
    reached = evaluate(lists, np.ones(len(lists), int), corpus, READX_METRICS).values
    for metric in READX_METRICS:
        assert expect(np.array([1]), corpus, metric)[0] == pytest.approx(reached[metric].mean(), abs=0.01)


def result(
    asset: str,
    scores: dict[str, list[float]],
    chance: dict[str, list[float]],
    faults: list[str],
    *,
    dataset: str = "sim_tanks",
    method: str = "euclidean",
) -> ReadxResult:
    """NDCG and HR alike; pools that are not named lack every fault type."""
    none = [float("nan")] * len(faults)
    ndcg, expected = (np.array([[values.get(pool, none) for pool in POOLS]] * 2) for values in (scores, chance))
    names = np.array([f"{asset}/{i}" for i in range(len(faults))])
    return ReadxResult(
        StudyCell(dataset, method, part=asset),
        queries=names,
        faults=np.array(faults),
        groups=names,
        scores=ndcg,
        chance=expected,
    )


def test_the_retained_share_is_beyond_chance_of_each_pool() -> None:
    chance = {"same": [0.5, 0.5], "other": [0.1, 0.2]}
    x = result("x", {"same": [0.9, 0.7], "other": [0.4, 0.5]}, chance, ["a", "a"])
    y = result("y", {"same": [0.8], "other": [0.3]}, {"same": [0.2], "other": [0.2]}, ["a"])
    block = ReadxBlock.of((x, y), by_query=True)
    same, other = (0.4 + 0.2 + 0.6) / (0.5 + 0.5 + 0.8), (0.3 + 0.3 + 0.1) / (0.9 + 0.8 + 0.8)
    assert block.corrected("same", block.paired) == pytest.approx(same)
    assert block.other == pytest.approx(other)
    assert block.retained() == pytest.approx(other / same)
    interval = block.retained_interval(block.assets)
    assert interval is not None
    only_x, only_y = (0.6 / 1.7) / (0.6 / 1.0), (0.1 / 0.8) / (0.6 / 0.8)
    assert [interval.low, interval.high] == pytest.approx(sorted([only_x, only_y]))


def test_queries_count_in_pairs_where_both_pools_have_something_to_find() -> None:
    nan = float("nan")
    block = ReadxBlock.of(
        (
            result(
                "x",
                {"same": [0.9, nan, 1.0, 0.6], "other": [0.5, 0.5, 0.5, nan]},
                {"same": [0.5, nan, 1.0, 0.5], "other": [0.1, 0.1, 0.1, nan]},
                ["a", "b", "c", "d"],
            ),
        )
    )
    assert block.paired.tolist() == [True, False, False, False]  # lacking; all are relevant; lacking elsewhere
    assert block.can_find("other").tolist() == [True, True, True, False]


def test_a_fault_type_counts_once_and_in_it_an_asset() -> None:
    ones = {"same": [0.5] * 4, "other": [0.0] * 4}
    block = ReadxBlock.of(
        (
            result("x", {"same": [1.0] * 4, "other": [1.0] * 4}, ones, ["a", "a", "a", "b"]),
            result("y", {"same": [1.0], "other": [0.0]}, {"same": [0.5], "other": [0.0]}, ["a"]),
        )
    )
    assert block.other == pytest.approx((0.5 + 1) / 2)
    assert replace(block, by_query=True).other == pytest.approx(4 / 5)


def test_no_share_where_the_same_asset_is_at_chance() -> None:
    block = ReadxBlock.of((result("x", {"same": [0.5], "other": [0.9]}, {"same": [0.5], "other": [0.1]}, ["a"]),))
    assert np.isnan(block.retained())
    assert block.retained_interval(block.assets) is None


def test_methods_are_ranked_on_datasets_that_all_have() -> None:
    measured = [
        result(asset, {"same": [0.9], "other": [score]}, {"same": [0.1], "other": [0.1]}, ["a"], dataset=data, method=m)
        for data in ("sim_tanks", "sim_motor", "sim_ecg")
        for asset in ("x", "y")
        for m, score in (("euclidean", 0.4), ("dtw-i", 0.8), ("orders", 1.0))
        if m != "orders" or data == "sim_motor"
    ]
    board = standings(measured)
    assert board is not None
    assert board.titles == ["ED", "DTW-I"]
    table = ranking_table(measured)
    assert table is not None
    assert [row[0] for row in table.rows] == ["DTW-I", "ED"]
    assert [float(row[3].split()[0]) for row in table.rows] == pytest.approx([7 / 8, 3 / 8], abs=1e-3)
    assert ranking_table(measured, real=True) is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readx")


@pytest.fixture(scope="module")
def measured(folder: Path) -> list[ReadxResult]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("readbench.studies._readx.MOST_ASSETS", 6)
        found = run_study(STUDIES.get("readx"), grid_of(folder, "stats", "random", "orders"))
    assert not found.failures
    return found.results


def grid_of(folder: Path, *methods: str) -> Grid:
    axes = {"datasets": [SOURCE], "methods": methods}
    return STUDIES.get("readx").grid(axes, out=folder, cache=folder / "cache")


def test_the_same_queries_are_searched_at_each_level_by_each_method(measured: list[ReadxResult]) -> None:
    assert {one.cell.method for one in measured} == {"stats", "random"}  # no shaft speed is known here
    asked: dict[str, set[tuple[str, ...]]] = {}
    for one in measured:
        asked.setdefault(one.cell.part, set()).add(tuple(one.queries.tolist()))
    assert len(asked) == 6
    assert all(len(sets) == 1 for sets in asked.values())


def test_random_lists_are_at_chance_in_every_pool(measured: list[ReadxResult]) -> None:
    for results in find_blocks([one for one in measured if one.cell.method == "random"]).values():
        own = ReadxBlock.of(results, by_query=True)
        for pool in POOLS:
            chosen, at = own.can_find(pool), POOLS.index(pool)
            gains = (own.scores - own.chance)[0, at, chosen]
            error = gains.std() / np.sqrt(len(gains)) / (1 - own.chance[0, at, chosen]).mean()
            assert own.corrected(pool, chosen) == pytest.approx(0, abs=4 * error)
            assert error < 0.1


def test_levels_differ_in_chance(measured: list[ReadxResult]) -> None:
    clean, polluted = (np.concatenate([one.chance[0, 2] for one in measured if one.cell.rho == rho]) for rho in (0, 20))
    both = ~np.isnan(clean)
    np.testing.assert_allclose(polluted[both], 0.8 * clean[both], rtol=0.05)


def test_tables_and_picture_are_written(measured: list[ReadxResult], folder: Path) -> None:
    files = {f"readx.{suffix}" for suffix in ("md", "csv", "svg", "png")} | {"readx-queries.csv"}
    assert set(write_study(STUDIES.get("readx"), measured, grid_of(folder, "stats"))) == files
    table = readx_table(measured)
    assert len(table.rows) == 2 * 2
    assert all(len(row) == len(table.header) for row in table.rows)
    figure = draw_readx(measured)
    assert figure is not None
    assert [axis.get_title(loc="left") for axis in figure.axes][:2] == ["Stats", "Random"]


def test_finished_cells_are_kept(measured: list[ReadxResult], folder: Path) -> None:
    stamps = {path: path.stat().st_mtime_ns for path in (folder / "cells").glob("*.json")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("readbench.studies._readx.MOST_ASSETS", 6)
        again = run_study(STUDIES.get("readx"), grid_of(folder, "stats")).results
    assert {path: path.stat().st_mtime_ns for path in (folder / "cells").glob("*.json")} == stamps
    np.testing.assert_array_equal(again[0].scores, measured[0].scores)


def test_the_command_writes_tables_and_names_what_has_one_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readbench.studies._readx.MOST_ASSETS", 2)
    monkeypatch.setenv("READBENCH_CACHE", str(tmp_path / "cache"))
    folders = ["--root", str(tmp_path), "--out", str(tmp_path / "out")]
    options = ["--methods", "stats", "--seed", "0", "--rho", "0", *folders]
    done = CliRunner().invoke(app, ["study", "readx", "--datasets", f"{SOURCE},skab", *options])
    assert done.exit_code == 1
    assert "skab stats: skab:" in done.output.replace("\n", " ")
    assert "retained" in done.output
    with (tmp_path / "out" / "readx.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["Dataset"], row["Method"], row["Assets"]) == (f"{SOURCE}†", "Stats", "2")
    assert (tmp_path / "out" / "readx.md").read_text().startswith("**READ-X: the same faults")


def test_the_study_is_over_sources_with_assets_and_slow_methods_come_last(tmp_path: Path) -> None:
    (tmp_path / "bearings").mkdir()
    (tmp_path / "skab").mkdir()
    grid = STUDIES.get("readx").grid(root=tmp_path)
    assert grid.datasets[-1] == "bearings"
    assert "skab" not in grid.datasets
    assert "sim_tanks" in grid.datasets
    assert (grid.levels, grid.seeds) == ((0, 20), (0,))
    assert grid.methods.index("euclidean") < grid.methods.index("dtw-i")
