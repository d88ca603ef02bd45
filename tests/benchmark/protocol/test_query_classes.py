"""The composition for sources with far more classes than queries."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.protocol import Composition, Protocol, load_task
from readbench.benchmark.protocol._compose import MAX_RELEVANT, MIN_RELEVANT, Selection, select
from tests.benchmark.protocol.fakes import LENGTH, source
from tests.benchmark.protocol.selections import Windows, levels_of, windows

MANY = windows([0] + [14] * 60 + [5] * 20, [0] + [3] * 80)
"""Sixty classes with enough train items and twenty without."""


def compose(data: Windows, settings: Composition, seed: int = 0) -> Selection:
    return select(data.labels, data.test, settings, seed, "query-classes")


def asked(data: Windows, chosen: Selection) -> set[int]:
    return set(data.labels[chosen.queries].tolist())


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Windows, Composition]:
    """Classes with few and many items on either side, caps that bind and caps that do not."""
    sides = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), min_size=1, max_size=12))
    data = windows([draw(st.integers(0, 5)), *(train for train, _ in sides)], [0, *(test for _, test in sides)])
    settings = Composition(
        corpus_cap=draw(st.none() | st.integers(MIN_RELEVANT, 150)),
        query_cap=draw(st.none() | st.integers(1, 12)),
    )
    return data, settings


def assert_every_query_has_ten_to_find(data: Windows, chosen: Selection) -> None:
    there = Counter(data.labels[chosen.corpus].tolist())
    for label in asked(data, chosen):
        assert label > 0
        assert there[label] >= MIN_RELEVANT, f"class {label} has {there[label]} corpus items"


def assert_only_the_queries_classes_are_anomalies(data: Windows, chosen: Selection) -> None:
    """The clean corpus holds classes that are asked for; what pollutes it, and the pool, hold none of them."""
    known, clean = asked(data, chosen), set(levels_of(chosen)[0])
    for i in chosen.corpus.tolist():
        assert (int(data.labels[i]) in known) == (i in clean)
    assert not known & set(data.labels[chosen.normals].tolist())


def assert_caps(data: Windows, settings: Composition, chosen: Selection) -> None:
    """No more than asked for, and as many as there are."""
    supply = sum(int(((data.labels == label) & ~data.test).sum()) for label in asked(data, chosen))
    assert len(levels_of(chosen)[0]) == min(supply, settings.corpus_cap or supply)
    if settings.query_cap is not None:
        assert len(chosen.queries) <= settings.query_cap


@given(pairs(), st.integers(0, 5))
def test_every_query_has_at_least_ten_items_to_find(made: tuple[Windows, Composition], seed: int) -> None:
    data, settings = made
    assert_every_query_has_ten_to_find(data, compose(data, settings, seed))


@given(pairs(), st.integers(0, 5))
def test_other_classes_stand_in_for_normals(made: tuple[Windows, Composition], seed: int) -> None:
    data, settings = made
    assert_only_the_queries_classes_are_anomalies(data, compose(data, settings, seed))


@given(pairs(), st.integers(0, 5))
def test_the_caps_hold(made: tuple[Windows, Composition], seed: int) -> None:
    data, settings = made
    assert_caps(data, settings, compose(data, settings, seed))


@given(pairs(), st.integers(0, 5))
def test_queries_are_held_out_and_nothing_else_is(made: tuple[Windows, Composition], seed: int) -> None:
    data, settings = made
    chosen = compose(data, settings, seed)
    assert data.test[chosen.queries].all()
    assert not data.test[np.concatenate([chosen.corpus, chosen.normals])].any()
    levels = levels_of(chosen)
    for low, high in pairwise(sorted(levels)):
        assert set(levels[low]) <= set(levels[high])


def test_a_corpus_with_room_gives_each_class_ten_to_twelve() -> None:
    data = windows([0] + [40] * 10, [0] + [3] * 10)
    for cap, expected in ((100, [10] * 10), (107, [12, 12, 12, 11] + [10] * 6), (120, [12] * 10)):
        clean = levels_of(compose(data, Composition(corpus_cap=cap)))[0]
        counts = Counter(data.labels[clean].tolist())
        assert sorted(counts.values(), reverse=True) == expected
        assert max(counts.values()) <= MAX_RELEVANT


def test_the_best_supplied_classes_get_more_than_ten() -> None:
    data = windows([0, 10, 50, 11, 30], [0, 5, 5, 5, 5])
    clean = levels_of(compose(data, Composition(corpus_cap=43)))[0]
    assert Counter(data.labels[clean].tolist()) == {1: 10, 2: 12, 3: 10, 4: 11}


def test_a_source_without_normals_is_polluted_by_its_other_classes() -> None:
    chosen = compose(MANY, Composition(corpus_cap=100, query_cap=10))
    assert [len(level) for level in levels_of(chosen).values()] == [100, 111, 125]
    others = [i for i in MANY.indices(test=False, normal=False) if MANY.labels[i] not in asked(MANY, chosen)]
    assert len(chosen.normals) == min(len(others) - 25, 500)


def test_a_small_corpus_asks_for_fewer_classes_rather_than_giving_them_fewer_items() -> None:
    chosen = compose(MANY, Composition(corpus_cap=55, query_cap=30))
    assert len(asked(MANY, chosen)) <= 5
    assert len(levels_of(chosen)[0]) == 55
    assert_every_query_has_ten_to_find(MANY, chosen)


def test_classes_with_too_few_items_are_not_asked_for() -> None:
    ever = {label for seed in range(20) for label in asked(MANY, compose(MANY, Composition(), seed))}
    assert ever == set(range(1, 61))


def test_the_task_labels_other_classes_normal(tmp_path: Path) -> None:
    made = source([0, *[12] * 6, 4, 4], Protocol(length=LENGTH, composition="query-classes"), windows=1)
    task = load_task(made, seed=0, cache=tmp_path, settings=Composition(query_cap=3))
    known = set(task.queries.labels.tolist())
    assert set(task.corpus_at(0).labels.tolist()) == known
    for polluted in (task.corpus_at(20), task.normals):
        for window in polluted:
            own = int(window.id.split("-")[1])
            assert window.label == (own if own in known else 0)
    assert (task.normals.labels == 0).all()


# The rules, broken on purpose: the same checks must see it.

RIGHT = compose(MANY, Composition(corpus_cap=220, query_cap=25))


def test_a_stratified_corpus_is_caught() -> None:
    """In native proportions the corpus is spread over all classes and few of them reach ten items."""
    spread = select(MANY.labels, MANY.test, Composition(corpus_cap=220, query_cap=25), seed=0)
    with pytest.raises(AssertionError, match="corpus items"):
        assert_every_query_has_ten_to_find(MANY, spread)
    with pytest.raises(AssertionError):
        assert_only_the_queries_classes_are_anomalies(MANY, spread)


def test_a_polluting_item_that_is_relevant_is_caught() -> None:
    known = asked(MANY, RIGHT)
    relevant = next(
        i for i in MANY.indices(test=False, normal=False) if MANY.labels[i] in known and i not in RIGHT.corpus
    )
    for broken in (
        replace(RIGHT, corpus=np.append(RIGHT.corpus, relevant)),
        replace(RIGHT, normals=np.append(RIGHT.normals, relevant)),
    ):
        with pytest.raises(AssertionError):
            assert_only_the_queries_classes_are_anomalies(MANY, broken)


def test_a_corpus_beyond_its_cap_is_caught() -> None:
    for cap in (219, 221):
        with pytest.raises(AssertionError):
            assert_caps(MANY, Composition(corpus_cap=cap, query_cap=25), RIGHT)
