from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.protocol import (
    Built,
    Composition,
    Task,
    build,
    compose_task,
    composition_facts,
    composition_row,
    context_row,
    fault_panels,
)
from readbench.benchmark.protocol._describe import representatives, shape_separation
from readbench.benchmark.simulators import Service, Tanks
from readbench.common.plots import gallery, save
from readbench.engine.windows import WindowSet
from tests.benchmark.protocol.fakes import info


@pytest.fixture(scope="module")
def tanks(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(Tanks(runs=128), None, tmp_path_factory.mktemp("cache"))


def test_the_composition_row_counts_what_the_task_holds(tanks: Built) -> None:
    task = compose_task(tanks, seed=0, settings=Composition(corpus_cap=200, query_cap=20))
    row = composition_row(task)
    assert row["corpus"] == [200, 222, 250]
    assert row["queries"] == 20
    relevant = [(task.corpus_at(0).labels == label).sum() for label in task.queries.labels]
    assert row["relevant_per_query"] == pytest.approx(np.mean(relevant), abs=0.051)


def test_counts_per_class_add_up(tanks: Built) -> None:
    facts = composition_facts(tanks, seed=0)
    assert sum(counts["windows"] for counts in facts["counts"].values()) == facts["windows"] == len(tanks.windows)
    assert facts["counts"]["normal"]["queries"] == 0


def test_what_windows_bring_is_counted_own_and_lent(tanks: Built) -> None:
    task = compose_task(tanks, seed=0, settings=Composition(corpus_cap=200, query_cap=20))
    row = context_row(tanks, task)
    assert task.corpus.context is not None
    assert row["queries"] == {"windows": 20, "own": row["queries"]["own"], "lent": 0}
    assert row["corpus"]["own"] + row["corpus"]["lent"] == task.corpus.context.has_before.sum()
    assert row["corpus"]["lent"] > 0  # windows at the start of a run, from other runs of the same plant
    assert (row["before"], row["rate"], row["facts"]) == ("onset", [0.5, 0.5], [])
    assert len(row["units"]) == sum(bool(channel.unit) for channel in tanks.info.channels)
    assert composition_facts(tanks, seed=0)["context"]["before_steps"] == 2048


def test_nothing_is_counted_where_windows_bring_nothing(tmp_path: Path) -> None:
    bare = build(Tanks(runs=64, before="none"), None, tmp_path)
    row = context_row(bare, compose_task(bare, seed=0, settings=Composition(corpus_cap=50, query_cap=10)))
    assert row["before"] == "none"
    assert (row["queries"]["own"], row["corpus"]["own"]) == (0, 0)


def test_each_fault_has_one_representative_that_shows_its_onset(tanks: Built) -> None:
    found = representatives(tanks.windows)
    assert [f.label for f in found] == list(range(1, 10))
    for f in found:
        assert tanks.windows.labels[f.window] == f.label
        assert tanks.windows.spans[f.window, 0] > 0
        assert f.normal is not None
        assert tanks.windows.labels[f.normal] == 0


def test_the_most_informative_channel_is_where_the_fault_is(tmp_path: Path) -> None:
    built = build(Service(runs=128), None, tmp_path)
    channels = {built.info.classes[f.label]: f.channel for f in representatives(built.windows)}
    assert channels["cpu hog"].endswith("_cpu")
    assert channels["memory leak"].endswith("_memory")


def test_separation_is_one_for_classes_apart_and_half_for_classes_alike() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 2], 40)
    for offset, low, high in ((50.0, 0.99, 1.0), (0.0, 0.4, 0.6)):
        values = rng.standard_normal((80, 1, 16)) + offset * labels[:, None, None]
        windows = WindowSet.from_arrays(values, labels=labels, classes=("normal", "a", "b"))
        task = Task(info(2), 0, windows[:2], windows, {0: np.arange(len(windows))}, windows[:0])
        assert low <= shape_separation(task) <= high


def test_the_same_gallery_gives_the_same_bytes(tanks: Built, tmp_path: Path) -> None:
    panels = fault_panels(tanks)
    assert len(panels) == 9
    for name in ("one.png", "two.png"):
        save(gallery(panels, "Tanks"), tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
