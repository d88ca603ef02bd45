"""The study: one fresh process a cell, one file a finished cell, figures that mean what they say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readbench.benchmark.metrics import evaluate
from readbench.common.progress import SILENT, Progress
from readbench.engine.legs import conceal
from readbench.engine.method import Method
from readbench.engine.ranking import rank
from readbench.errors import RunError, UsageError
from research.scale import measuring as study
from research.scale.measuring import ScaleCell, ScaleStudy, exponent, measure, measure_scale
from research.scale.world import World

SIZES = (150, 400)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World("sim_tanks", 10, tmp_path_factory.mktemp("cache"))
    made.build(SIZES, 1, lambda *_: None)
    return made


def cell(world: World, method: str, folder: Path, size: int = 400) -> ScaleCell:
    return ScaleCell(world, size, method, folder)


@pytest.mark.parametrize("method", ["euclidean", "sax-bm25", "raw+nr"])
def test_a_cell_finds_what_the_benchmark_would_score(method: str, world: World, tmp_path: Path) -> None:
    found, material = measure(cell(world, method, tmp_path), SILENT), world.open(400)
    scores = Method(method).fit(material.corpus, material.normals).score(material.queries)
    judged = evaluate(rank(scores, 20), material.queries.labels, material.corpus.labels)
    assert found.ndcg == pytest.approx(judged.values["NDCG@10"].mean(), abs=1e-6)
    assert (found.size, found.queries, found.method) == (400, 10, method)
    assert found.search_s > 0
    assert found.memory_bytes > 2**20
    assert (found.encode_s > 0) == (method == "raw+nr")


def test_disk_is_what_a_search_reads(world: World, tmp_path: Path) -> None:
    values = 400 * 15 * 256 * 4
    sizes = {name: measure(cell(world, name, tmp_path), SILENT).disk_bytes for name in ("dtw-i", "raw", "sax-bm25")}
    assert sizes["dtw-i"] == sizes["raw"] == values
    assert 0 < sizes["sax-bm25"] < values


def test_vectors_are_removed_unless_they_are_needed_again(world: World, tmp_path: Path) -> None:
    one = cell(world, "raw", tmp_path / "vectors")
    measure(replace(one, keep=True), SILENT)
    assert list((tmp_path / "vectors").rglob("*.npy"))
    measure(one, SILENT)
    assert not list((tmp_path / "vectors").rglob("*.npy"))


def test_methods_see_windows_only(world: World) -> None:
    corpus = world.open(150).corpus
    seen = conceal(corpus, in_place=True)
    assert set(seen.labels.tolist()) == {-1}
    assert seen.ids.tolist() == seen.groups.tolist() == [str(i) for i in range(len(seen))]
    assert set(seen.assets.tolist()) == {""}
    assert seen.classes == ()
    assert not seen.spans.any()
    np.testing.assert_array_equal(seen.values(7), corpus.values(7))
    assert np.shares_memory(seen.values(7), corpus.values(7))


@pytest.mark.parametrize("method", ["sonde|dtw-i", "dtw-i+gpc", "majority"])
def test_methods_that_need_more_than_a_search_are_refused(method: str, world: World) -> None:
    with pytest.raises(UsageError):
        ScaleStudy(world, SIZES, (method,))


def test_a_study_that_was_killed_goes_on(world: World, tmp_path: Path) -> None:
    out, listed = tmp_path / "out", ["--methods", "euclidean", "raw+nr"]
    command = [sys.executable, "-m", "research.scale", "--sizes", "150", "--queries", "10", *listed]
    environment = {**os.environ, "READBENCH_CACHE": str(world.cache)}
    process = subprocess.Popen([*command, "--out", str(out)], env=environment)
    while not list(out.glob("cells/euclidean-at-150-*.json")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (first,) = out.glob("cells/euclidean-at-150-*.json")
    before = first.read_bytes()
    assert len(list(out.glob("cells/*.json"))) == 1
    subprocess.run([*command, "--out", str(out)], env=environment, check=True, capture_output=True)
    assert first.read_bytes() == before
    assert len(list(out.glob("cells/*.json"))) == 2
    assert {path.name for path in out.glob("scale.*")} == {"scale.csv", "scale.md", "scale.svg", "scale.png"}
    assert not list(out.glob("vectors/*/*.npy"))


def test_finished_cells_are_read_and_others_measured(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here in this process: the processes have a test of their own."""
    measured: list[str] = []

    def here(
        work: Callable[[ScaleCell, Progress], list[dict[str, Any]]], one: ScaleCell, progress: Progress
    ) -> list[dict[str, Any]]:
        measured.append(str(one))
        if one.method == "random" and one.size == 400:
            raise RunError("it ended")
        return work(one, progress)

    monkeypatch.setattr(study, "in_fresh_process", here)
    told: list[tuple[str, int, int | None]] = []
    plan = ScaleStudy(world, SIZES, ("random", "raw"), two_stage="raw")
    found = measure_scale(plan, tmp_path, lambda *far: told.append(far))
    assert measured == [f"{method} at {size}" for size in SIZES for method in ("random", "raw", "raw with dtw-i")]
    assert [far for what, *far in told if what == "cells"] == [[done, 6] for done in range(7)]
    assert {what for what, *_ in told} >= {"raw at 150: fitting", "raw with dtw-i at 400: exact search"}
    began, ended = ({what for what, done, total in told if over == (done == total)} for over in (False, True))
    assert began == ended
    assert [(one.method, one.size) for one in found.measured] == [("random", 150), ("raw", 150), ("raw", 400)]
    assert [(one.cell, one.reason) for one in found.failures] == [("random at 400", "it ended")]
    assert {(one.size, one.shortlist) for one in found.two_stage} == {(150, 50), (150, 100), (400, 50), (400, 100)}
    measured.clear()
    again = measure_scale(plan, tmp_path)
    assert measured == ["random at 400"]
    assert again.measured == found.measured
    assert again.two_stage == found.two_stage


def test_a_result_is_that_of_its_world_size_and_method(world: World, tmp_path: Path) -> None:
    one = cell(world, "raw", tmp_path)
    others = [replace(one, size=150), replace(one, method="raw+nr"), replace(one, two_stage=True)]
    others.append(replace(one, world=replace(world, queries=9)))
    assert len({study.identify_cell(own) for own in (one, *others)}) == 5
    assert study.identify_cell(replace(one, jobs=3, keep=True)) == study.identify_cell(one)


@pytest.mark.parametrize(("power", "factor"), [(1.0, 2e-6), (0.5, 3.0), (2.0, 1e-9), (0.0, 7.0)])
def test_exponents_of_powers_are_those_powers(power: float, factor: float) -> None:
    sizes = [10_000, 100_000, 1_000_000]
    assert exponent(sizes, [factor * size**power for size in sizes]) == pytest.approx(power, abs=1e-6)


def test_exponents_need_two_sizes_that_say_something() -> None:
    assert exponent([10, 100], [0.0, 1.0]) is None
    assert exponent([10, 10], [1.0, 2.0]) is None
    assert exponent([10, 100, 1000], [0.0, 2.0, 20.0]) == pytest.approx(1.0)


def test_cells_are_plain_json(world: World, tmp_path: Path) -> None:
    row = study.measure_here(cell(world, "random", tmp_path), SILENT)
    assert json.loads(json.dumps(row)) == row
