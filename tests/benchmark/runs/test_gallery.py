"""The gallery of a run: what is drawn of the windows, and the file that keeps it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from readbench.benchmark.protocol import Task, load_task
from readbench.benchmark.runs import DEPTH, FINEST, merge, parse_shard, read_gallery, run
from readbench.benchmark.runs import _gallery as module
from readbench.benchmark.runs._gallery import (
    MOST_CHANNELS,
    NAME,
    ChannelRelevance,
    rank_channels,
    sketch,
    write_gallery,
)
from readbench.engine.registry import SOURCES
from readbench.engine.spec import build_source
from readbench.engine.windows import WindowSet
from tests.benchmark.runs.helpers import small_plan

PLAN = small_plan(methods=("random", "euclidean"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gallery")
    run(PLAN, folder, cache=tmp_path_factory.getbasetemp() / "cache")
    return folder


def load(cache: Path, dataset: str, seed: int) -> Task:
    return load_task(build_source(dataset), seed=seed, cache=cache)


def copied(folder: Path, target: Path) -> Path:
    """A run folder with the rankings of another."""
    (target / "rankings").mkdir(parents=True)
    (target / "rankings" / "sim_tanks.parquet").write_bytes((folder / "rankings" / "sim_tanks.parquet").read_bytes())
    return target


class TestSketch:
    def test_a_spike_of_one_step_is_kept_with_its_height(self) -> None:
        values = np.zeros((1, 100_000), np.float32)
        values[0, 77_777] = 3.5
        drawn = sketch(values)
        assert drawn.codes.shape[1] <= FINEST
        assert drawn.values().max() == pytest.approx(3.5)

    def test_values_come_back_to_a_small_part_of_each_channels_range(self) -> None:
        values = np.stack([np.linspace(-1, 1, 200), np.linspace(1e6, 1e6 + 8, 200), np.full(200, 7.0)]).astype(
            np.float32
        )
        drawn = sketch(values)
        error = np.abs(drawn.values() - values).max(axis=1)
        assert (error <= np.array([2, 8, 0]) / 65_535 + 1e-9).all()


class TestTelling:
    def test_each_class_has_the_channel_that_departs_in_it(self) -> None:
        rng = np.random.default_rng(0)
        values = rng.standard_normal((60, 4, 50)).astype(np.float32)
        labels = np.repeat([0, 1, 2], 20)
        values[labels == 1, 2] += 3  # another level
        values[labels == 2, 1] *= 4  # another spread
        windows = WindowSet.from_arrays(values, channels=list("abcd"), labels=labels, classes=("normal", "x", "y"))
        told = rank_channels(windows)
        assert told.best("abcd") == {1: "c", 2: "b"}
        assert told.best("bd")[2] == "b"
        assert set(told.order()[:2]) == {"b", "c"}
        assert sorted(told.order()) == list("abcd")

    def test_the_first_channels_show_every_class_before_any_class_twice(self) -> None:
        departure = np.array([[9.0, 8.9, 0.0, 0.0], [9.0, 8.9, 0.0, 0.0], [0.0, 0.0, 0.0, 0.3]])
        assert ChannelRelevance(tuple("abcd"), np.array([1, 2, 3], np.int32), departure).order() == ("a", "d", "b", "c")

    def test_a_corpus_without_faults_keeps_all_its_channels(self) -> None:
        windows = WindowSet.from_arrays(np.ones((2, 2, 5)), labels=[0, 0], classes=("normal",))
        assert rank_channels(windows).order() == ("ch0", "ch1")


def test_a_run_keeps_its_queries_and_the_first_ten_of_every_list(folder: Path, private_cache: Path) -> None:
    task = load(private_cache, "sim_tanks", 7)
    gallery = read_gallery(folder)
    assert gallery is not None
    exhibits = {exhibit.window: exhibit for exhibit in gallery.exhibits["sim_tanks", 7]}
    rankings = pq.read_table(folder / "rankings" / "sim_tanks.parquet", filters=[("place", "<=", DEPTH)])
    assert {name for name, one in exhibits.items() if not one.query} == set(rankings["item"].to_pylist())
    assert {name for name, one in exhibits.items() if one.query} == set(task.queries.ids.tolist())
    for windows in (task.queries, task.corpus):
        for i, window in enumerate(windows):
            if window.id in exhibits:
                own = exhibits[window.id]
                assert (own.label, own.group, own.asset) == (windows.classes[window.label], window.group, window.asset)
                assert own.span == tuple(windows.spans[i])
                assert own.drawn is not None
                rows = [window.channels.index(name) for name in own.channels]
                assert len(rows) == min(MOST_CHANNELS, len(window.channels))
                again = sketch(window.values[rows], own.drawn.codes.shape[1])
                assert (own.drawn.codes == again.codes).all()


def test_facts_count_the_windows_of_each_class(folder: Path, private_cache: Path) -> None:
    task = load(private_cache, "sim_tanks", 7)
    gallery = read_gallery(folder)
    assert gallery is not None
    facts = gallery.facts["sim_tanks"]["tasks"]["7"]
    assert sum(own["queries"] for own in facts.values()) == len(task.queries)
    assert sum(own["corpus"] for own in facts.values()) == len(task.corpus)
    assert facts["normal"]["telling"] == ""
    drawn = {name for exhibit in gallery.exhibits["sim_tanks", 7] for name in exhibit.channels}
    assert {own["telling"] for name, own in facts.items() if name != "normal"} <= drawn


def test_a_finished_run_does_not_write_it_again(folder: Path, private_cache: Path) -> None:
    before = (folder / NAME).stat().st_mtime_ns
    run(PLAN, folder, cache=private_cache)
    assert (folder / NAME).stat().st_mtime_ns == before


@pytest.mark.parametrize("damage", [b"", b"not a table"])
def test_a_damaged_or_missing_file_is_written_anew_with_the_same_bytes(
    folder: Path, tmp_path: Path, private_cache: Path, damage: bytes
) -> None:
    copied(folder, tmp_path / "run")
    if damage:
        (tmp_path / "run" / NAME).write_bytes(damage)
    write_gallery(tmp_path / "run", PLAN.datasets, partial(load, private_cache))
    assert (tmp_path / "run" / NAME).read_bytes() == (folder / NAME).read_bytes()


def test_parts_of_a_run_merge_to_the_same_bytes(folder: Path, tmp_path: Path, private_cache: Path) -> None:
    parts = [tmp_path / "one", tmp_path / "two"]
    for i, part in enumerate(parts, start=1):
        run(PLAN, part, cache=private_cache, shard=parse_shard(f"{i}/2"))
    assert (parts[0] / NAME).read_bytes() != (folder / NAME).read_bytes()
    merge(parts, tmp_path / "whole")
    assert (tmp_path / "whole" / NAME).read_bytes() == (folder / NAME).read_bytes()


def test_a_licence_that_forbids_it_leaves_the_series_out(folder: Path, tmp_path: Path, private_cache: Path) -> None:
    def locked(dataset: str, seed: int) -> Task:
        task = load(private_cache, dataset, seed)
        return replace(task, info=replace(task.info, redistributable=False))

    write_gallery(copied(folder, tmp_path / "run"), PLAN.datasets, locked)
    gallery = read_gallery(tmp_path / "run")
    assert gallery is not None
    exhibits = gallery.exhibits["sim_tanks", 7]
    assert all(exhibit.drawn is None for exhibit in exhibits)
    assert {exhibit.label for exhibit in exhibits} > {"leak in tank 1"}


def test_the_more_channels_the_coarser_and_never_above_the_budget(
    folder: Path, tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_VALUES", 600_000)
    write_gallery(copied(folder, tmp_path / "run"), PLAN.datasets, partial(load, private_cache))
    gallery = read_gallery(tmp_path / "run")
    assert gallery is not None
    sizes = [one.drawn.codes.size for one in gallery.exhibits["sim_tanks", 7] if one.drawn]
    assert max(sizes) == MOST_CHANNELS * 64
    assert sum(sizes) <= 600_000


def test_no_rankings_no_gallery(tmp_path: Path, private_cache: Path) -> None:
    assert write_gallery(tmp_path, PLAN.datasets, partial(load, private_cache)) is None
    assert read_gallery(tmp_path) is None


@pytest.mark.parametrize("name", sorted(entry.name for entry in SOURCES))
def test_every_source_is_either_free_to_show_or_said_not_to_be(name: str) -> None:
    info = SOURCES.get(name).build().info
    unsettled = ("not established", "none stated", "unclear", "no formal licence")
    assert info.redistributable != any(word in info.licence for word in unsettled)


def test_the_metadata_are_plain_json(folder: Path) -> None:
    metadata = json.loads(pq.read_schema(folder / NAME).metadata[b"readbench"])
    assert metadata.keys() == {"origin", "datasets"}
