"""A world on disk: prefixes of one corpus, queries from elsewhere, the same bytes however it was built."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.simulators import Can, Ecg, Motor, Service, Tanks
from readbench.common.progress import SILENT
from readbench.engine import window_files as disk
from readbench.engine.preparation import ChannelStats
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError
from research.scale import world
from research.scale.world import World

SIMULATORS = {"sim_can": Can, "sim_ecg": Ecg, "sim_motor": Motor, "sim_service": Service, "sim_tanks": Tanks}


@pytest.fixture(autouse=True)
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "ASKED_RUNS", 64)
    monkeypatch.setattr(world, "NORMAL_RUNS", 64)
    monkeypatch.setattr(world, "NORMALS", 20)


def build(cache: Path, sizes: tuple[int, ...], jobs: int = 1) -> World:
    made = World("sim_tanks", 8, cache)
    made.build(sizes, jobs, SILENT)
    return made


def test_smaller_corpora_are_the_beginning_of_larger_ones(tmp_path: Path) -> None:
    one = build(tmp_path / "a", (150, 400))
    small, large = one.open(150), one.open(400)
    assert (len(small.corpus), len(large.corpus)) == (150, 400)
    assert small.corpus.with_stats(None).fingerprint() == large.corpus[:150].with_stats(None).fingerprint()
    alone = build(tmp_path / "b", (150,)).open(150)
    assert alone.corpus.fingerprint() == small.corpus.fingerprint()
    assert small.bytes == 150 * 15 * 256 * 4


def test_the_corpus_holds_faults_only_and_carries_its_own_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "PART", 40)
    material = build(tmp_path, (150,)).open(150)
    assert (material.corpus.labels > 0).all()
    assert (material.queries.labels > 0).all()
    assert (material.normals.labels == 0).all()
    assert material.corpus.stats is not None
    for kind in ("mean", "std"):
        whole, stored = (getattr(stats, kind) for stats in (ChannelStats.of(material.corpus), material.corpus.stats))
        assert list(stored) == list(whole)
        np.testing.assert_allclose(list(stored.values()), list(whole.values()), rtol=1e-9)


@pytest.mark.parametrize("source", SIMULATORS)
def test_no_group_of_a_query_is_in_the_corpus(source: str, tmp_path: Path) -> None:
    one = World(source, 8, tmp_path)
    one.build((120,), 1, SILENT)
    material = one.open(120)
    asked, stored = (set(part.groups.tolist()) for part in (material.queries, material.corpus))
    assert len(asked) == len(material.queries) == 8
    assert not asked & stored


def test_more_queries_ask_the_same_corpus(tmp_path: Path) -> None:
    build(tmp_path, (150,))
    more = World("sim_tanks", 9, tmp_path)
    more.build((150,), 1, lambda what, *_: pytest.fail(f"{what}: this is there already"))
    assert len(more.open(150).queries) == 9


def test_a_build_that_was_interrupted_ends_with_the_same_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "PART_BYTES", 2**20)
    whole, built = build(tmp_path / "whole", (900,)), []

    def interrupt(what: str, done: int, total: int | None) -> None:
        built.append(done)
        if done > 400:
            raise KeyboardInterrupt(what, total)

    torn = World("sim_tanks", 8, tmp_path / "torn")
    with pytest.raises(KeyboardInterrupt):
        torn.build((900,), 1, interrupt)
    resumed: list[int] = []
    torn.build((900,), 1, lambda _, done, __: resumed.append(done))
    assert resumed[0] > built[-2]
    assert torn.open(900).corpus.fingerprint() == whole.open(900).corpus.fingerprint()


def test_processes_side_by_side_build_the_same_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "PART", 300)
    one, two = build(tmp_path / "one", (500,)), build(tmp_path / "two", (500,), jobs=2)
    assert one.open(500).corpus.fingerprint() == two.open(500).corpus.fingerprint()  # statistics included


def test_real_data_cannot_be_made_larger(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not simulated"):
        World("skab", 8, tmp_path).build((100,), 1, SILENT)


def test_more_queries_than_groups_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at most as many --queries"):
        World("sim_tanks", 1000, tmp_path).build((100,), 1, SILENT)


def test_the_middle_fault_of_a_group_is_asked_for() -> None:
    values = np.zeros((7, 1, 2))
    groups = ["a", "a", "a", "a", "b", "b", "b"]
    windows = WindowSet.from_arrays(values, labels=[0, 1, 1, 1, 2, 0, 2], groups=groups, classes=("normal", "x", "y"))
    assert world._one_a_group(windows, 2).tolist() == [2, 6]
