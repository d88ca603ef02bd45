"""The gallery of a run: what is drawn of the windows, and the file that keeps it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree

import numpy as np
import pyarrow.parquet as pq
import pytest

from readbench.benchmark.protocol import Task
from readbench.benchmark.report import (
    DEPTH,
    FINEST,
    Gallery,
    Results,
    _gallery as module,
    keep_gallery,
    read_gallery,
    read_results,
    tasks_of,
)
from readbench.benchmark.report._gallery import MAX_CHANNELS, ChannelRelevance, rank_channels, sketch
from readbench.benchmark.runs import merge, parse_shard, run
from readbench.engine.registry import SOURCES
from readbench.engine.windows import WindowSet
from readbench.errors import DataError
from tests.benchmark.runs.helpers import small_plan

NAME = "gallery.parquet"
PLAN = small_plan(methods=("random", "euclidean"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    """A run folder whose report was made."""
    folder, cache = tmp_path_factory.mktemp("gallery"), shared_cache
    run(PLAN, folder, cache=cache)
    assert not (folder / NAME).exists()
    assert not keep(folder, cache)
    return folder


def keep(folder: Path, cache: Path) -> str:
    results = read_results(folder)
    return keep_gallery(results, tasks_of(results, cache=cache))


def load(folder: Path, cache: Path) -> Task:
    return tasks_of(read_results(folder), cache=cache)("sim_tanks", 7)


def kept(folder: Path) -> Gallery:
    gallery = read_gallery(folder)
    assert gallery is not None
    return gallery


def copied(folder: Path, target: Path) -> Results:
    """The same run before its report."""
    copytree(folder, target)
    (target / NAME).unlink()
    return read_results(target)


def absent(dataset: str, seed: int) -> Task:
    """A machine without data."""
    raise DataError(f"no files of {dataset} for seed {seed}.")


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
    task = load(folder, private_cache)
    gallery = kept(folder)
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
                assert len(rows) == min(MAX_CHANNELS, len(window.channels))
                again = sketch(window.values[rows], own.drawn.codes.shape[1])
                assert (own.drawn.codes == again.codes).all()


def test_facts_count_the_windows_of_each_class(folder: Path, private_cache: Path) -> None:
    task = load(folder, private_cache)
    gallery = kept(folder)
    facts = gallery.facts["sim_tanks"]["tasks"]["7"]
    assert sum(own["queries"] for own in facts.values()) == len(task.queries)
    assert sum(own["corpus"] for own in facts.values()) == len(task.corpus)
    assert facts["normal"]["telling"] == ""
    drawn = {name for exhibit in gallery.exhibits["sim_tanks", 7] for name in exhibit.channels}
    assert {own["telling"] for name, own in facts.items() if name != "normal"} <= drawn


def test_it_is_made_once_and_used_where_no_data_are(folder: Path, private_cache: Path) -> None:
    before = (folder / NAME).stat().st_mtime_ns
    assert not keep(folder, private_cache)
    assert not keep_gallery(read_results(folder), absent)
    assert (folder / NAME).stat().st_mtime_ns == before


def test_without_data_or_gallery_a_sentence_says_why(folder: Path, tmp_path: Path) -> None:
    results = copied(folder, tmp_path / "run")
    reason = keep_gallery(results, absent)
    assert reason == "Cases are drawn from the data, which are not at hand here: no files of sim_tanks for seed 7."
    assert not (tmp_path / "run" / NAME).exists()


def test_data_that_are_not_those_of_the_run_are_refused(folder: Path, tmp_path: Path, private_cache: Path) -> None:
    results = copied(folder, tmp_path / "run")
    results.manifest["tasks"]["sim_tanks/seed-7"] = "other"
    assert "not the task that was run" in keep_gallery(results, tasks_of(results, cache=private_cache))


def test_one_of_other_rankings_is_not_used(folder: Path, tmp_path: Path, private_cache: Path) -> None:
    copytree(folder, tmp_path / "run")
    run(small_plan(methods=("random",)), tmp_path / "run", cache=private_cache)
    assert read_gallery(tmp_path / "run") is None
    assert not keep(tmp_path / "run", private_cache)
    assert len(kept(tmp_path / "run").exhibits["sim_tanks", 7]) < len(kept(folder).exhibits["sim_tanks", 7])


@pytest.mark.parametrize("damage", [b"", b"not a table"])
def test_a_damaged_or_missing_file_is_written_anew_with_the_same_bytes(
    folder: Path, tmp_path: Path, private_cache: Path, damage: bytes
) -> None:
    copied(folder, tmp_path / "run")
    if damage:
        (tmp_path / "run" / NAME).write_bytes(damage)
    assert not keep(tmp_path / "run", private_cache)
    assert (tmp_path / "run" / NAME).read_bytes() == (folder / NAME).read_bytes()


def test_a_run_merged_from_parts_gives_the_same_bytes(folder: Path, tmp_path: Path, private_cache: Path) -> None:
    parts = [tmp_path / "one", tmp_path / "two"]
    for i, part in enumerate(parts, start=1):
        run(PLAN, part, cache=private_cache, shard=parse_shard(f"{i}/2"))
    assert not keep(parts[0], private_cache)  # as parts of earlier versions have one
    merge(parts, tmp_path / "whole")
    assert read_gallery(tmp_path / "whole") is None
    assert not keep(tmp_path / "whole", private_cache)
    assert (tmp_path / "whole" / NAME).read_bytes() == (folder / NAME).read_bytes()


def test_a_licence_that_forbids_it_leaves_the_series_out(folder: Path, tmp_path: Path, private_cache: Path) -> None:
    def locked(*_: object) -> Task:
        task = load(folder, private_cache)
        return replace(task, info=replace(task.info, redistributable=False))

    keep_gallery(copied(folder, tmp_path / "run"), locked)
    gallery = kept(tmp_path / "run")
    exhibits = gallery.exhibits["sim_tanks", 7]
    assert all(exhibit.drawn is None for exhibit in exhibits)
    assert {exhibit.label for exhibit in exhibits} > {"leak in tank 1"}


def test_the_more_channels_the_coarser_and_never_above_the_budget(
    folder: Path, tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_VALUES", 600_000)
    copied(folder, tmp_path / "run")
    keep(tmp_path / "run", private_cache)
    gallery = kept(tmp_path / "run")
    sizes = [one.drawn.codes.size for one in gallery.exhibits["sim_tanks", 7] if one.drawn]
    assert max(sizes) == MAX_CHANNELS * 64
    assert sum(sizes) <= 600_000


def test_no_rankings_no_gallery(folder: Path, tmp_path: Path, private_cache: Path) -> None:
    copytree(folder, tmp_path / "run")
    rmtree(tmp_path / "run" / "rankings")
    assert "no rankings" in keep(tmp_path / "run", private_cache)
    assert read_gallery(tmp_path / "run") is None


@pytest.mark.parametrize("name", sorted(entry.name for entry in SOURCES))
def test_every_source_is_either_free_to_show_or_said_not_to_be(name: str) -> None:
    info = SOURCES.get(name).build().info
    unsettled = ("not established", "none stated", "unclear", "no formal licence")
    assert info.redistributable != any(word in info.licence for word in unsettled)


def test_the_metadata_are_plain_json(folder: Path) -> None:
    metadata = json.loads(pq.read_schema(folder / NAME).metadata[b"readbench"])
    assert metadata.keys() == {"origin", "datasets"}
