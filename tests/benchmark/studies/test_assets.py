"""Known and unseen assets: what is counted, kept and compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.protocol import Composition, load_task
from readbench.benchmark.report import asset_table, fault_table
from readbench.benchmark.runs import Plan
from readbench.benchmark.studies import CONSTANT, AssetCell, AssetResult, measure_assets
from readbench.benchmark.studies._assets import answer_constantly, judge_by_asset

SOURCE = "sim_tanks(runs=160)"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[AssetResult]:
    plan = Plan(datasets=(SOURCE,), methods=("stats", "departure", CONSTANT), seeds=(0, 1), levels=(0,))
    out = tmp_path_factory.mktemp("assets")
    found, failures = measure_assets(plan, ("group", "asset"), out, cache=out / "cache")
    assert not failures
    return found


def test_every_method_is_measured_under_both_splits(measured: list[AssetResult]) -> None:
    cells = {(one.cell.split_by, one.cell.seed, one.cell.method) for one in measured}
    assert len(cells) == 2 * 2 * 3


def test_no_hit_comes_from_the_own_asset_where_assets_are_held_out(measured: list[AssetResult]) -> None:
    for one in measured:
        assert (one.own <= one.hits).all()
        if one.cell.split_by == "asset":
            assert not one.own.any()
    assert any(one.own.any() for one in measured if one.cell.split_by == "group")


def test_the_constant_answer_is_right_for_the_most_frequent_fault_alone(measured: list[AssetResult]) -> None:
    for one in measured:
        if one.cell.method == CONSTANT:
            faults, counts = np.unique(one.faults, return_counts=True)
            right = one.faults == faults[counts.argmax()]
            assert one.hit.sum() in counts[counts == counts.max()]
            assert right.sum() == counts.max()


def test_own_assets_are_counted_by_hand(tmp_path: Path) -> None:
    task = load_task(SOURCE, cache=tmp_path, settings=Composition())
    corpus = task.corpus_at(0)
    order = answer_constantly(task, 0)
    row = judge_by_asset(task, 0, order)
    q = 3
    items = order[q, :10]
    relevant = [i for i in items if corpus.labels[i] == task.queries.labels[q]]
    assert row["hits"][q] == len(relevant)
    assert row["own"][q] == sum(str(corpus.assets[i]) == str(task.queries.assets[q]) for i in relevant)


def test_the_table_compares_with_the_first_method(measured: list[AssetResult]) -> None:
    table = asset_table(measured)
    assert [row[3] for row in table.rows] == ["stats", "departure", CONSTANT] * 2
    assert [row[8] == "" for row in table.rows] == [True, False, False] * 2
    stats, departure = (
        np.concatenate([one.ndcg for one in measured if one.cell.method == name and one.cell.split_by == "asset"])
        for name in ("stats", "departure")
    )
    assert float(table.rows[1][8]) == pytest.approx((departure - stats).mean(), abs=1e-3)


def test_macro_counts_every_fault_the_same() -> None:
    result = AssetResult(
        AssetCell("d", "m", 0, "asset", 0),
        ndcg=np.array([1.0, 1.0, 1.0, 0.0]),
        hit=np.ones(4),
        hits=np.ones(4, np.int64),
        own=np.zeros(4, np.int64),
        faults=np.array(["a", "a", "a", "b"]),
        groups=np.array(["1", "2", "3", "4"]),
        assets=np.array(["x", "x", "x", "y"]),
        has_before=np.array([True, False, True, True]),
    )
    assert result.macro == 0.5
    assert [row[3:] for row in fault_table([result]).rows] == [
        ["a", "3", "2", "1", "1.000"],
        ["b", "1", "1", "1", "0.000"],
    ]


def test_finished_cells_are_kept(tmp_path: Path) -> None:
    plan = Plan(datasets=(SOURCE,), methods=("stats",), seeds=(0,), levels=(0,))
    first, _ = measure_assets(plan, ("asset",), tmp_path, cache=tmp_path / "cache")
    kept = next((tmp_path / "cells").glob("*.json"))
    stamp = kept.stat().st_mtime_ns
    again, _ = measure_assets(plan, ("asset",), tmp_path, cache=tmp_path / "cache")
    assert kept.stat().st_mtime_ns == stamp
    np.testing.assert_array_equal(first[0].ndcg, again[0].ndcg)
