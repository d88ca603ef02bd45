"""Splits that hold out the same are one split: taken once, said, and never averaged as if they were several."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.protocol import Composition, build, find_copies
from readbench.benchmark.report import leaderboard, read_results
from readbench.benchmark.runs import Plan, RunFolder, publish, run
from readbench.engine.registry import SOURCES
from tests.benchmark.protocol.fakes import LENGTH, FakeSource, info, recording

NAME = "two-rigs"
SEEDS = (3, 4, 5, 6, 7)


def two_rigs() -> FakeSource:
    """Two faults on each of two rigs: whole rigs can be held out in two ways."""
    rng = np.random.default_rng(0)
    made = [
        recording([fault] * LENGTH, rng.normal(fault, 1, (1, LENGTH)), name=f"{rig}-{fault}-{n}", asset=rig)
        for rig, count in (("left", 3), ("right", 4))
        for fault in (0, 1, 2)
        for n in range(count)
    ]
    return FakeSource(replace(info(2, name=NAME), asset_unit="rig"), made)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run over more split seeds than there are splits."""
    folder = tmp_path_factory.mktemp("copies")
    SOURCES.register(NAME)(two_rigs)
    try:
        plan = Plan((NAME,), ("random", "stats"), SEEDS, (0,), split_by="asset")
        run(plan, folder / "run", cache=folder / "cache")
        yield folder
    finally:
        del SOURCES._entries[NAME]


def test_seeds_that_hold_out_the_same_assets_are_found(base: Path) -> None:
    copies = find_copies(build(NAME, None, base / "cache"), SEEDS, Composition(split_by="asset"))
    assert len(SEEDS) - len(copies) == 2, "one rig, or the other one"
    assert all(earlier < seed and earlier not in copies for seed, earlier in copies.items())
    assert find_copies(build(NAME, None, base / "cache"), SEEDS, Composition()) == {}


def test_a_split_is_taken_once_and_the_run_says_so(base: Path) -> None:
    copies = find_copies(build(NAME, None, base / "cache"), SEEDS, Composition(split_by="asset"))
    manifest = RunFolder(base / "run").read_manifest()
    assert {int(row["seed"]) for row in RunFolder(base / "run").read_scores()[1]} == set(SEEDS) - copies.keys()
    for seed, earlier in copies.items():
        note = f"holds out the same as split seed {earlier}, and is taken once"
        assert manifest["notes"][f"{NAME}/seed-{seed}"] == [note]
    results = read_results(base / "run")
    assert results.told_seeds == f"5 split seeds (2 of {NAME}: no others differ)"
    assert results.missing() == {}
    assert results.complete().tolist() == [0, 1]


def test_means_and_spreads_are_over_splits_that_differ(base: Path) -> None:
    rows = [row for row in RunFolder(base / "run").read_scores()[1] if row["method"] == "stats"]
    values = np.array([float(row["NDCG@10"]) for row in rows])
    assert len(values) == 2
    figure = leaderboard(read_results(base / "run")).rows
    found = next(row.headline[0] for row in figure if row.method == "stats")
    assert found.mean == pytest.approx(values.mean())
    assert found.spread == pytest.approx(values.std(ddof=1))


@pytest.fixture(scope="module")
def older(base: Path) -> Path:
    """The run as an earlier version made it: each copy has rows, of other values, and nothing says that it is one."""
    folder = base / "older"
    shutil.copytree(base / "run", folder)
    manifest = json.loads((folder / "run.json").read_text())
    first = {seed: earlier for _, seed, earlier in manifest["plan"].pop("copies")}
    lines = (folder / "scores.csv").read_text().splitlines()
    for seed, earlier in first.items():
        shutil.copy(folder / f"tasks/{NAME}/seed-{earlier}.parquet", folder / f"tasks/{NAME}/seed-{seed}.parquet")
        lines += [
            line.replace(f"{NAME},{earlier},", f"{NAME},{seed},") for line in lines if f"{NAME},{earlier}," in line
        ]
    (folder / "scores.csv").write_text("\n".join(lines) + "\n")
    (folder / "run.json").write_text(json.dumps(manifest))
    return folder


def test_rows_of_copies_in_an_older_run_are_not_averaged(base: Path, older: Path) -> None:
    assert len(RunFolder(older).read_scores()[1]) == len(SEEDS) * 2
    one, two = (read_results(folder) for folder in (base / "run", older))
    assert two.plan.copies == one.plan.copies
    np.testing.assert_array_equal(two.at("NDCG@10", 0), one.at("NDCG@10", 0))


def test_published_rows_hold_no_copies(base: Path) -> None:
    plan = Plan((NAME,), ("random",), SEEDS, (0,), split_by="asset")
    folder = base / "by-seed"
    for seed in SEEDS:  # alone, no run can know that another has the same split
        run(Plan((NAME,), ("random",), (seed,), (0,), split_by="asset"), folder / str(seed), cache=base / "cache")
    done = publish([folder / str(seed) for seed in SEEDS], base / "results")
    copies = read_results(base / "run").plan.copies
    assert (done.computed, done.planned) == (2, 2)
    assert read_results(base / "results").plan.copies == copies
    names = {path.stem for path in (base / "results" / "tasks" / NAME).iterdir()}
    assert names == {f"seed-{seed}" for seed in plan.seeds if seed not in {own for _, own, _ in copies}}
    told = ", ".join(f"{NAME} {seed} as {earlier}" for _, seed, earlier in copies)
    assert f"are taken once: {told}." in (base / "results" / "README.md").read_text()
    again = publish([folder / str(copies[0][1])], base / "results")
    assert again.computed == 2, "what is known to be a copy stays out"
