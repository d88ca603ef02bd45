from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.protocol import Built, Composition, Protocol, Task, compose_task, load_task, windows_of
from readbench.engine.preparation import ChannelStats
from readbench.engine.windows import WindowSet, concatenate
from readbench.errors import DataError
from tests.benchmark.protocol.fakes import LENGTH, FakeSource, info, recording, source

SMALL = Composition(corpus_cap=20, query_cap=6, rho=(0, 10, 20))
COUNTS = [12, 10, 6, 2]


def built(made: FakeSource) -> Built:
    """The windows of a source without a detour over the disk."""
    parts = [windows_of(r, made.info.protocol, made.info.classes) for r in made.made]
    return Built(made.info, concatenate([part for part in parts if part is not None]), {}, Path())


def task(made: FakeSource, seed: int = 0, settings: Composition = SMALL) -> Task:
    return compose_task(built(made), seed=seed, settings=settings)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Sources of a few runs of each class; at least one class can be split."""
    counts = [draw(st.integers(0, 12)), draw(st.integers(2, 8)), *draw(st.lists(st.integers(0, 8), max_size=3))]
    made = source(counts, windows=draw(st.integers(1, 4)), seed=draw(st.integers(0, 9)))
    rho = draw(st.sampled_from([(0, 10, 20), (0, 50), (20,)]))
    settings = Composition(corpus_cap=draw(st.none() | st.integers(5, 30)), query_cap=5, rho=rho)
    return task(made, draw(st.integers(0, 9)), settings)


def assert_no_query_in_the_corpus(made: Task) -> None:
    """Neither the window, nor another one of its group, nor the same values under another name."""
    for theirs in (made.corpus, made.normals):
        assert not set(made.queries.ids.tolist()) & set(theirs.ids.tolist())
        assert not set(made.queries.groups.tolist()) & set(theirs.groups.tolist())
        assert not {w.values.tobytes() for w in made.queries} & {w.values.tobytes() for w in theirs}


def assert_levels_are_parts_of_the_largest(made: Task) -> None:
    """Every level keeps the order of the largest, and each contains the one below."""
    largest = made.corpus.ids.tolist()
    levels = [made.corpus_at(rho).ids.tolist() for rho in sorted(made.levels)]
    assert levels[-1] == largest
    for low, high in pairwise(levels):
        assert set(low) <= set(high)
    for level in levels:
        assert level == [name for name in largest if name in set(level)]


def assert_statistics_are_of_the_clean_corpus(made: Task) -> None:
    """At every level the same numbers: those over all readings of the corpus's anomalies."""
    anomalies = [w for w in made.corpus if w.label > 0]
    for rho in made.levels:
        stats = made.corpus_at(rho).stats
        assert stats is not None
        for channel in {name for w in anomalies for name in w.channels}:
            readings = np.concatenate([w.values[w.channels.index(channel)] for w in anomalies]).astype(np.float64)
            assert stats.mean[channel] == pytest.approx(readings.mean(), abs=1e-9)
            assert stats.std[channel] == pytest.approx(readings.std(), abs=1e-9)


def assert_windows_are_as_recorded(made: Task, recorded: FakeSource) -> None:
    series = {r.id: r for r in recorded.made}
    for part in (made.queries, made.corpus, made.normals):
        for window in part:
            name, _, start = window.id.rpartition("@")
            there = series[name].values[:, int(start) : int(start) + window.values.shape[1]]
            np.testing.assert_array_equal(window.values, there.astype(np.float32))
            assert window.label == series[name].labels[int(start)]
            assert window.group == series[name].group


@given(tasks())
def test_queries_are_never_in_the_corpus(made: Task) -> None:
    assert_no_query_in_the_corpus(made)


@given(tasks())
def test_every_level_is_part_of_the_largest(made: Task) -> None:
    assert_levels_are_parts_of_the_largest(made)


@given(tasks())
def test_channel_statistics_come_from_the_clean_corpus_at_every_level(made: Task) -> None:
    assert_statistics_are_of_the_clean_corpus(made)


@given(tasks())
def test_queries_are_anomalies_and_the_pool_is_normal(made: Task) -> None:
    assert (made.queries.labels > 0).all()
    assert (made.normals.labels == 0).all()
    if 0 in made.levels:
        assert (made.corpus_at(0).labels > 0).all()


def test_windows_reach_a_task_as_they_were_recorded(tmp_path: Path) -> None:
    made = source(COUNTS)
    assert_windows_are_as_recorded(load_task(made, seed=0, cache=tmp_path, settings=SMALL), made)


def test_a_task_scales_by_the_clean_corpus_even_where_only_a_polluted_level_is_asked_for() -> None:
    made = source([30, 10, 10])
    alone = task(made, settings=replace(SMALL, rho=(20,))).corpus.stats
    nested = task(made, settings=SMALL).corpus.stats
    assert alone is not None
    assert nested is not None
    assert alone.fingerprint() == nested.fingerprint()


def test_the_fingerprint_is_the_same_from_two_caches_and_from_a_cached_build(tmp_path: Path) -> None:
    made = source(COUNTS)
    names = [load_task(made, seed=1, cache=tmp_path / cache, settings=SMALL).fingerprint() for cache in ("a", "b", "a")]
    assert len(set(names)) == 1
    assert made.given == 2 * len(made.made)


def test_the_fingerprint_changes_with_the_seed() -> None:
    assert len({task(source(COUNTS), seed).fingerprint() for seed in range(4)}) == 4


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(replace(SMALL, corpus_cap=19), id="corpus"),
        pytest.param(replace(SMALL, query_cap=5), id="queries"),
        pytest.param(replace(SMALL, rho=(0, 20)), id="levels"),
        pytest.param(replace(SMALL, normals_cap=3), id="normals"),
    ],
)
def test_the_fingerprint_changes_with_the_composition(change: Composition) -> None:
    assert task(source(COUNTS)).fingerprint() != task(source(COUNTS), settings=change).fingerprint()


def changed_value(windows: WindowSet) -> WindowSet:
    own = windows.compact()
    own.chunks[0][0] += 1.0
    return own


@pytest.mark.parametrize("part", ["queries", "corpus", "normals"])
@pytest.mark.parametrize(
    "change",
    [
        changed_value,
        lambda w: w[::-1],
        lambda w: w[1:],
        lambda w: replace(w, labels=w.labels + 1),
        lambda w: replace(w, groups=w.groups[::-1]),
        lambda w: replace(w, classes=("normal", "other", "names", "here")),
    ],
    ids=["value", "order", "one less", "labels", "groups", "classes"],
)
def test_the_fingerprint_sees_every_part(part: str, change: Callable[[WindowSet], WindowSet]) -> None:
    made = task(source(COUNTS))
    assert replace(made, **{part: change(getattr(made, part))}).fingerprint() != made.fingerprint()  # type: ignore[arg-type]


def test_a_source_whose_classes_have_one_group_each_has_no_query() -> None:
    with pytest.raises(DataError, match="fake: split seed 3 leaves no query"):
        task(source([5, 1, 1]), seed=3)


def test_a_source_without_any_fault_has_no_query() -> None:
    with pytest.raises(DataError, match="no query"):
        task(source([5, 0]))


def test_a_task_says_what_could_not_be_met() -> None:
    labels = [[1, 2], [1, 3], [4], [4], [0]]
    series = [recording([label for label in own for _ in range(LENGTH)], name=f"r{i}") for i, own in enumerate(labels)]
    notes = task(FakeSource(info(4), series)).notes
    assert any("on one side only" in note for note in notes)
    assert any("left outside the corpus" in note for note in notes)


def test_windows_of_different_channels_meet_in_one_task() -> None:
    dropped = Protocol(length=LENGTH, missing="drop")
    made = source([0, 6], dropped)
    half = [
        recording(r.labels, [r.values[0], np.full(r.values.shape[1], np.nan if i % 2 else float(i))], name=r.id)
        for i, r in enumerate(made.made)
    ]
    corpus = task(FakeSource(made.info, half)).corpus
    assert set(corpus.channel_counts.tolist()) == {1, 2}
    assert corpus.stats is not None
    assert set(corpus.stats.mean) == {"x0", "x1"}


# The rules, broken on purpose: the same checks must see it.

RIGHT = task(source(COUNTS))


def test_a_query_in_the_corpus_is_caught() -> None:
    query = RIGHT.queries[:1]
    renamed = replace(query, ids=RIGHT.corpus.ids[:1], groups=RIGHT.corpus.groups[:1])
    same_group = replace(RIGHT.corpus[:1], groups=query.groups)
    for intruder in (query, renamed, same_group):
        with pytest.raises(AssertionError):
            assert_no_query_in_the_corpus(replace(RIGHT, corpus=concatenate([RIGHT.corpus, intruder])))
    with pytest.raises(AssertionError):
        assert_no_query_in_the_corpus(replace(RIGHT, normals=concatenate([RIGHT.normals, query])))


def test_levels_that_are_not_nested_are_caught() -> None:
    clean, low, high = (RIGHT.levels[rho] for rho in (0, 10, 20))
    assert len(clean) < len(low) < len(high) == len(RIGHT.corpus)
    outside = np.setdiff1d(high, low)
    redrawn = np.sort(np.concatenate([clean, outside]))[: len(low)]
    broken = [
        {0: low, 10: redrawn, 20: high},
        {0: clean, 10: low[::-1], 20: high},
        {0: clean, 10: low, 20: high[1:]},
    ]
    for levels in broken:
        with pytest.raises(AssertionError):
            assert_levels_are_parts_of_the_largest(replace(RIGHT, levels=levels))


def test_statistics_of_anything_else_are_caught() -> None:
    for other in (RIGHT.corpus, RIGHT.normals, concatenate([RIGHT.corpus_at(0), RIGHT.queries])):
        broken = replace(RIGHT, corpus=RIGHT.corpus.with_stats(ChannelStats.of(other)))
        with pytest.raises(AssertionError):
            assert_statistics_are_of_the_clean_corpus(broken)
    with pytest.raises(AssertionError):
        assert_statistics_are_of_the_clean_corpus(replace(RIGHT, corpus=RIGHT.corpus.with_stats(None)))


def test_windows_that_are_not_as_recorded_are_caught() -> None:
    made = source(COUNTS)
    broken = [
        changed_value(RIGHT.corpus),
        replace(RIGHT.corpus, labels=RIGHT.corpus.labels + 1),
        replace(RIGHT.corpus, groups=RIGHT.corpus.groups[::-1]),
    ]
    for corpus in broken:
        with pytest.raises(AssertionError):
            assert_windows_are_as_recorded(replace(RIGHT, corpus=corpus), made)
