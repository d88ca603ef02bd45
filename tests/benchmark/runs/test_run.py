from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow.parquet as pq
import pytest

from readbench.benchmark.protocol import Recording
from readbench.benchmark.runs import KEY, RunFolder, _cells as cells, fingerprint_of, run
from readbench.benchmark.simulators import Tanks
from readbench.engine.legs import FittedLeg, Scored
from readbench.engine.protocols import Scores
from readbench.engine.registry import RETRIEVERS, SOURCES
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError
from tests.benchmark.runs.helpers import assert_same_results, rows_without_times, small_plan


class Failing:
    """Scores fine, except for the query sets it is told to fail on."""

    uses_labels = False
    corpus_dependent = True
    fits = 0

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        type(self).fits += 1
        self.items = len(corpus)
        return self

    def score(self, queries: WindowSet) -> Scores:
        if self.items > 1000:
            raise ValueError("too many\nitems")
        return np.zeros((len(queries), self.items), np.float32)


@pytest.fixture
def failing() -> Iterator[type[Failing]]:
    RETRIEVERS.register("failing", family="test")(Failing)
    Failing.fits = 0
    yield Failing
    del RETRIEVERS._entries["failing"]


def test_the_same_plan_gives_the_same_bytes(tmp_path: Path) -> None:
    plan = small_plan()
    run(plan, tmp_path / "one", cache=tmp_path / "cache-one")
    run(plan, tmp_path / "two", cache=tmp_path / "cache-two")
    assert_same_results(tmp_path / "one", tmp_path / "two")


def test_a_killed_run_continues_and_ends_with_the_same_bytes(tmp_path: Path, private_cache: Path) -> None:
    seeds = tuple(range(5))
    plan = small_plan(seeds=seeds)
    run(plan, tmp_path / "whole", cache=private_cache)
    command = [sys.executable, "-m", "readbench", "run", "--datasets", "sim_tanks", "--rho", "0,20"]
    command += ["--methods", "random,stats,euclidean", "--seeds", ",".join(map(str, seeds))]
    command += ["--out", str(tmp_path / "killed")]
    environment = os.environ | {"READBENCH_CACHE": str(tmp_path / "cold")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "killed").rglob("cells/**/*.parquet")):
        assert process.poll() is None, "the run ended before its first cell"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = len(list((tmp_path / "killed").rglob("cells/**/*.parquet")))
    assert 0 < finished < len(list(plan.cells()))
    summary = run(plan, tmp_path / "killed", cache=tmp_path / "cold")
    assert summary.reused >= finished - 1  # the last file may be a partial one
    assert_same_results(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.usefixtures("failing")
def test_a_method_that_raises_fails_its_own_cells_only(tmp_path: Path, private_cache: Path) -> None:
    summary = run(small_plan(methods=("failing", "random")), tmp_path, cache=private_cache)
    assert [(r.cell.rho, r.failure) for r in summary.failures] == [(20, "ValueError: too many items")]
    rows = {(row["rho"], row["method"]): row for row in rows_without_times(tmp_path)}
    assert rows["20", "failing"]["status"] == "failed: ValueError: too many items"
    assert rows["20", "failing"]["NDCG@10"] == ""
    assert rows["0", "failing"]["status"] == rows["20", "random"]["status"] == "ok"


def test_failed_cells_are_tried_again(tmp_path: Path, failing: type[Failing], private_cache: Path) -> None:
    plan = small_plan(methods=("failing",))
    run(plan, tmp_path, cache=private_cache)
    before = failing.fits
    summary = run(plan, tmp_path, cache=private_cache)
    assert summary.reused == 1
    assert failing.fits == before + 1


def test_an_unusable_dataset_fails_its_own_cells_only(tmp_path: Path, private_cache: Path) -> None:
    @SOURCES.register("empty")
    class Empty(Tanks):
        """A plant that never ran."""

        def recordings_from(self, first: int) -> Iterator[Recording]:  # noqa: ARG002
            return iter(())

        def fingerprint(self, root: Path | None) -> str:  # noqa: ARG002
            return "empty"

    try:
        summary = run(small_plan(datasets=("empty", "sim_tanks"), methods=("random",)), tmp_path, cache=private_cache)
    finally:
        del SOURCES._entries["empty"]
    assert {r.cell.dataset for r in summary.failures} == {"empty"}
    assert "no labelled window" in summary.failures[0].failure
    assert summary.computed == 2


def test_score_matrices_are_computed_once(tmp_path: Path, failing: type[Failing]) -> None:
    plan = small_plan(methods=("failing",), levels=(0,))
    run(plan, tmp_path / "one", cache=tmp_path / "cache")
    run(plan, tmp_path / "two", cache=tmp_path / "cache")
    assert failing.fits == 1
    assert_same_results(tmp_path / "one", tmp_path / "two")


def test_a_pairwise_method_is_scored_once_for_all_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    original = FittedLeg.measure

    def counting(leg: FittedLeg, queries: WindowSet) -> Scored:
        scored = original(leg, queries)
        computed.append(scored.scores.shape[1])
        return scored

    monkeypatch.setattr(FittedLeg, "measure", counting)
    run(small_plan(methods=("euclidean", "stats"), levels=(0, 10, 20)), tmp_path, cache=tmp_path / "cache")
    assert sorted(computed) == [1000, 1111, 1250, 1250]


def test_results_of_other_code_are_not_mixed_in(
    tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small_plan(methods=("random",))
    run(plan, tmp_path, cache=private_cache)
    assert run(plan, tmp_path, cache=private_cache).computed == 0
    monkeypatch.setattr(cells, "fingerprint_of", lambda *roots, **given: fingerprint_of(*roots, run, **given))
    assert run(plan, tmp_path, cache=private_cache).computed == 2


def test_an_interruption_keeps_what_was_finished(tmp_path: Path, private_cache: Path) -> None:
    def stop(what: str, done: int, _: int | None) -> None:
        if what == "cells" and done == 3:  # two of the first method, one of the second
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(small_plan(), tmp_path, cache=private_cache, progress=stop)
    assert {row["method"] for row in rows_without_times(tmp_path)} == {"random", "stats"}
    assert (tmp_path / "run.json").exists()


def test_a_level_does_not_depend_on_the_other_levels_that_run(tmp_path: Path, private_cache: Path) -> None:
    run(small_plan(levels=(0, 10, 20)), tmp_path / "all", cache=private_cache)
    run(small_plan(levels=(10,)), tmp_path / "one", cache=tmp_path / "cache")
    wanted = [row for row in rows_without_times(tmp_path / "all") if row["rho"] == "10"]
    assert rows_without_times(tmp_path / "one") == wanted


def test_the_run_folder_holds_what_is_promised(tmp_path: Path, private_cache: Path) -> None:
    run(small_plan(), tmp_path, cache=private_cache)
    manifest = json.loads((tmp_path / "run.json").read_text())
    assert manifest["tasks"].keys() == {"sim_tanks/seed-7"}
    assert manifest["datasets"]["sim_tanks"]["data_origin"] == "simulated by us"
    assert manifest["computed_by"]["euclidean"]["packages"].keys() == {"llvmlite", "numba", "numpy"}
    assert manifest["versions"].keys() == {"llvmlite", "numba", "numpy", "pyarrow", "python", "scipy"}
    assert {row["labels"] for row in rows_without_times(tmp_path)} == {"all"}
    per_query = pq.read_table(tmp_path / "per_query.parquet")
    assert per_query.column_names == [*KEY, "query", "group", "metric", "value"]
    assert len(per_query) == 3 * 2 * 100 * 15
    rankings = pq.read_table(tmp_path / "rankings" / "sim_tanks.parquet")
    assert rankings.column_names == [*KEY, "query", "place", "item", "score"]
    assert len(rankings) == 3 * 2 * 100 * 100
    header = (tmp_path / "scores.csv").read_text().splitlines()[0]
    assert header.startswith("dataset,seed,rho,labels,method,queries,P@1,P@3,P@5,P@10,P@20,HR@1")
    assert header.endswith("NDCG@20,macro_F1,encode_s,fit_s,score_s,rerank_s,status")


def test_plans_refuse_nonsense() -> None:
    for changes in ({"methods": ()}, {"seeds": (1, 1)}, {"levels": (0, 100)}):
        with pytest.raises(UsageError):
            small_plan(**changes)


def test_tables_are_written_again_only_where_cells_changed(tmp_path: Path, private_cache: Path) -> None:
    plan = small_plan(methods=("random", "stats"))
    run(plan, tmp_path, cache=private_cache)
    tables = [tmp_path / "per_query.parquet", tmp_path / "rankings" / "sim_tanks.parquet"]
    before = [(path.stat().st_ino, path.read_bytes()) for path in tables]
    run(plan, tmp_path, cache=private_cache)
    assert [path.stat().st_ino for path in tables] == [inode for inode, _ in before]
    RunFolder(tmp_path).cell_path(next(iter(plan.cells()))).unlink()
    RunFolder(tmp_path).write_tables(plan)
    assert len(pq.read_table(tables[0])) == 3 * 100 * 15
    run(plan, tmp_path, cache=private_cache)
    assert [path.read_bytes() for path in tables] == [content for _, content in before]


def test_a_run_remembers_how_much_of_the_official_files_was_there(tmp_path: Path, private_cache: Path) -> None:
    (tmp_path / "data" / "skab" / "valve1").mkdir(parents=True)
    (tmp_path / "data" / "skab" / "valve1" / "0.csv").write_text("datetime;anomaly;changepoint\n")
    plan = small_plan(datasets=("sim_tanks", "skab"), methods=("random",), levels=(0,))
    run(plan, tmp_path / "run", root=tmp_path / "data", cache=private_cache)
    facts = json.loads((tmp_path / "run" / "run.json").read_text())["datasets"]
    assert {name: own["files"] for name, own in facts.items()} == {"sim_tanks": "simulated", "skab": "partial"}
