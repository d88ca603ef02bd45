"""Known and unseen assets: what is counted, kept and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readbench.benchmark.protocol import Composition, load_task
from readbench.studies import STUDIES, StudyCell, run_study
from readbench.studies._assets import (
    CONSTANT,
    AssetResult,
    answer_constantly,
    asset_table,
    fault_table,
    judge_by_asset,
)

SOURCE = "sim_tanks(runs=160)"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[AssetResult]:
    study, out = STUDIES.get("assets"), tmp_path_factory.mktemp("assets")
    axes: dict[str, list[Any]] = {
        "datasets": [SOURCE],
        "methods": ["stats", "departure", CONSTANT],
        "seeds": [0, 1],
        "levels": [0],
    }
    found = run_study(study, study.grid(axes, ["probes=false"], out=out, cache=out / "cache"))
    assert not found.failures
    return found.results


def test_every_method_is_measured_under_both_splits(measured: list[AssetResult]) -> None:
    cells = {(one.cell.part, one.cell.seed, one.cell.method) for one in measured}
    assert len(cells) == 2 * 2 * 3


def test_no_hit_comes_from_the_own_asset_where_assets_are_held_out(measured: list[AssetResult]) -> None:
    for one in measured:
        assert (one.own <= one.hits).all()
        if one.cell.part == "asset":
            assert not one.own.any()
    assert any(one.own.any() for one in measured if one.cell.part == "group")


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
        np.concatenate([one.ndcg for one in measured if one.cell.method == name and one.cell.part == "asset"])
        for name in ("stats", "departure")
    )
    assert float(table.rows[1][8]) == pytest.approx((departure - stats).mean(), abs=1e-3)


def test_macro_counts_every_fault_the_same() -> None:
    result = AssetResult(
        StudyCell("d", "m", part="asset"),
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
    study = STUDIES.get("assets")
    axes: dict[str, list[Any]] = {"datasets": [SOURCE], "methods": ["stats"], "seeds": [0], "levels": [0]}
    grid = study.grid(axes, ["split_by=asset", "probes=false"], out=tmp_path, cache=tmp_path / "cache")
    first = run_study(study, grid).results
    kept = next((tmp_path / "cells").glob("*.json"))
    stamp = kept.stat().st_mtime_ns
    again = run_study(study, grid).results
    assert kept.stat().st_mtime_ns == stamp
    np.testing.assert_array_equal(first[0].ndcg, again[0].ndcg)
