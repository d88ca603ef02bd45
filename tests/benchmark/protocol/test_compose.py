from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.protocol import Composition
from readbench.benchmark.protocol._compose import Selection, allocate_places, order_stratified, select
from tests.benchmark.protocol.selections import CHOSEN, SKEWED, Case, Windows, cases, levels_of, windows

# Caps and class balance.


def assert_proportional(places: Sequence[int], counts: Sequence[int], total: int) -> None:
    """Each class within one of its share; classes worth less than one place have one, the others share the rest."""
    assert sum(places) == min(total, sum(counts))
    assert all(1 <= place <= count for place, count in zip(places, counts, strict=True)), "at least one, at most all"
    left, larger = Fraction(sum(places)), set(range(len(counts)))
    while few := {k for k in larger if counts[k] * left < sum(counts[j] for j in larger)}:
        larger -= few
        left -= len(few)
        assert all(places[k] == 1 for k in few)
    for k in larger:
        share = left * counts[k] / sum(counts[j] for j in larger)
        assert abs(places[k] - share) < 1, f"class {k} has {places[k]} places for a share of {float(share):.2f}"


def per_class(labels: NDArray[np.int32], chosen: NDArray[np.intp], among: Sequence[int]) -> tuple[list[int], list[int]]:
    """How many of each class are chosen, and of how many."""
    there, taken = Counter(labels[list(among)].tolist()), Counter(labels[chosen].tolist())
    return [taken[k] for k in sorted(there)], [there[k] for k in sorted(there)]


def assert_stratified(labels: NDArray[np.int32], chosen: NDArray[np.intp], among: Sequence[int], cap: int) -> None:
    assert set(chosen.tolist()) <= set(among)
    assert len(set(chosen.tolist())) == len(chosen)
    places, counts = per_class(labels, chosen, among)
    assert_proportional(places, counts, cap)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=30), st.integers(0, 300))
def test_places_follow_the_native_proportions(counts: list[int], more: int) -> None:
    total = len(counts) + more
    assert_proportional(allocate_places(np.array(counts), total).tolist(), counts, total)


@given(st.lists(st.integers(1, 5), min_size=2, max_size=12), st.data())
def test_fewer_places_than_classes_go_to_the_most_frequent(counts: list[int], data: st.DataObject) -> None:
    total = data.draw(st.integers(0, len(counts) - 1))
    ranked = sorted(range(len(counts)), key=lambda k: (-counts[k], k))
    expected = [1 if k in ranked[:total] else 0 for k in range(len(counts))]
    assert allocate_places(np.array(counts), total).tolist() == expected


def test_equal_remainders_go_to_the_lower_index() -> None:
    assert allocate_places(np.array([10, 10, 10]), 10).tolist() == [4, 3, 3]
    assert allocate_places(np.array([15, 15, 10]), 8).tolist() == [3, 3, 2]


def test_many_rare_classes_do_not_flatten_the_frequent_ones() -> None:
    """Fifty single windows take one place each; what is left keeps the five to one of the two large classes."""
    assert allocate_places(np.array([1000, 200] + [1] * 50), 100).tolist() == [42, 8] + [1] * 50


@given(cases())
def test_queries_and_corpus_are_stratified_up_to_their_caps(case: Case) -> None:
    labels, chosen = case.windows.labels, case.select()
    train = case.windows.indices(test=False, normal=False)
    anomalies = chosen.corpus[labels[chosen.corpus] > 0]
    assert_stratified(labels, anomalies, train, case.settings.corpus_cap or len(train))
    known = set(labels[anomalies].tolist())
    answerable = [i for i in case.windows.indices(test=True, normal=False) if labels[i] in known]
    assert_stratified(labels, chosen.queries, answerable, case.settings.query_cap or len(answerable))


def test_no_cap_takes_everything() -> None:
    data = windows([0, 30, 2000], [0, 10, 300])
    chosen = select(data.labels, data.test, Composition(corpus_cap=None, query_cap=None), seed=0)
    assert (len(chosen.corpus), len(chosen.queries)) == (2030, 310)


def test_a_class_with_one_window_survives_subsampling() -> None:
    data = windows([0, 5000, 1], [0, 500, 1])
    chosen = select(data.labels, data.test, Composition(), seed=0)
    assert Counter(data.labels[chosen.corpus].tolist()) == {1: 999, 2: 1}
    assert Counter(data.labels[chosen.queries].tolist()) == {1: 99, 2: 1}


# Who may be a query and who may be in the corpus.


def assert_sides(data: Windows, chosen: Selection) -> None:
    assert data.test[chosen.queries].all()
    assert not data.test[chosen.corpus].any()
    assert not data.test[chosen.normals].any()


def assert_queries_are_anomalies_with_an_answer(data: Windows, chosen: Selection) -> None:
    corpus = set(data.labels[chosen.corpus].tolist())
    for label in data.labels[chosen.queries].tolist():
        assert label > 0, "a normal window is a query"
        assert label in corpus, f"class {label} has no corpus item"


def assert_dropped_queries_are_counted(data: Windows, chosen: Selection) -> None:
    corpus = set(data.labels[chosen.corpus].tolist())
    lost = [i for i in data.indices(test=True, normal=False) if data.labels[i] not in corpus]
    notes = [note for note in chosen.notes if "no relevant corpus item" in note]
    assert [int(note.split()[0]) for note in notes] == [len(lost)] * bool(lost)


@given(cases())
def test_queries_come_from_the_test_side_and_everything_else_from_the_train_side(case: Case) -> None:
    assert_sides(case.windows, case.select())


@given(cases())
def test_every_query_is_an_anomaly_with_a_relevant_corpus_item(case: Case) -> None:
    assert_queries_are_anomalies_with_an_answer(case.windows, case.select())


@given(cases())
def test_held_out_windows_that_nothing_answers_are_dropped_and_counted(case: Case) -> None:
    assert_dropped_queries_are_counted(case.windows, case.select())


def assert_drawn_evenly(draw: Callable[[int], list[int]], items: Sequence[int], draws: int = 300) -> None:
    """Over many seeds each item is taken about equally often: within five standard deviations."""
    taken = Counter(item for seed in range(draws) for item in draw(seed))
    share = sum(taken.values()) / draws / len(items)
    spread = 5 * np.sqrt(draws * share * (1 - share))
    assert all(abs(taken[item] - draws * share) < spread for item in items)


MANY = windows([20, 16, 4], [0, 4, 4])


def normals_drawn(seed: int) -> list[int]:
    corpus = select(MANY.labels, MANY.test, Composition(), seed).corpus
    return [i for i in corpus.tolist() if MANY.labels[i] == 0]


def test_normals_are_drawn_evenly() -> None:
    assert_drawn_evenly(normals_drawn, MANY.indices(test=False, normal=True))


def test_anomalies_of_a_class_are_drawn_evenly() -> None:
    items = np.flatnonzero(MANY.labels == 1)

    def drawn(seed: int) -> list[int]:
        chosen: list[int] = order_stratified(items, MANY.labels, 5, np.random.default_rng(seed)).tolist()
        return chosen

    assert_drawn_evenly(drawn, items.tolist())


# Order and seeds.


def assert_order_tells_nothing(labels: Sequence[int]) -> None:
    """Each class enters and leaves as often as in random orders, within five standard deviations."""
    rng = np.random.default_rng(0)
    for label, count in Counter(labels).items():
        if count < 10:
            continue
        own = np.asarray(labels) == label
        shuffled = [np.count_nonzero(np.diff(rng.permutation(own))) for _ in range(200)]
        assert abs(np.count_nonzero(np.diff(own)) - np.mean(shuffled)) < 5 * np.std(shuffled), f"class {label}"


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("cap", [None, 300])
def test_the_order_tells_nothing_about_the_class(cap: int | None, seed: int) -> None:
    settings = Composition(corpus_cap=cap, query_cap=100 if cap else None)
    chosen = select(SKEWED.labels, SKEWED.test, settings, seed)
    for level in levels_of(chosen).values():
        assert_order_tells_nothing(SKEWED.labels[level].tolist())
    assert_order_tells_nothing(SKEWED.labels[chosen.queries].tolist())


@given(cases())
def test_the_same_seed_gives_the_same_selection(case: Case) -> None:
    one, other = case.select(), case.select()
    assert one.queries.tolist() == other.queries.tolist()
    assert one.corpus.tolist() == other.corpus.tolist()
    assert one.normals.tolist() == other.normals.tolist()
    assert levels_of(one) == levels_of(other)


def test_another_seed_gives_another_selection() -> None:
    settings = Composition(corpus_cap=100, query_cap=20)
    one, other = (select(SKEWED.labels, SKEWED.test, settings, seed) for seed in (0, 1))
    assert set(one.corpus.tolist()) != set(other.corpus.tolist())
    assert set(one.queries.tolist()) != set(other.queries.tolist())


# The rules, broken on purpose: the same checks must see it.


@pytest.mark.parametrize(
    "places",
    [
        pytest.param([25, 25, 25, 25], id="classes flattened"),
        pytest.param([70, 29, 1, 0], id="a class lost"),
        pytest.param([71, 27, 1, 1], id="two too few"),
        pytest.param([69, 28, 1, 1], id="below the cap"),
        pytest.param([67, 29, 2, 2], id="more of a class than there is"),
    ],
)
def test_another_share_is_caught(places: list[int]) -> None:
    assert_proportional([69, 29, 1, 1], [700, 290, 10, 1], 100)
    with pytest.raises(AssertionError):
        assert_proportional(places, [700, 290, 10, 1], 100)


def test_a_plain_random_subsample_that_loses_a_class_is_caught() -> None:
    train = SKEWED.indices(test=False, normal=False)
    lost = np.array([i for i in train if SKEWED.labels[i] != 4][:100])
    with pytest.raises(AssertionError, match="at least one"):
        assert_stratified(SKEWED.labels, lost, train, 100)


def test_windows_on_the_wrong_side_are_caught() -> None:
    train, held_out = SKEWED.indices(test=False, normal=False), SKEWED.indices(test=True, normal=False)
    for broken in (
        replace(CHOSEN, queries=np.array(train[:5])),
        replace(CHOSEN, corpus=np.append(CHOSEN.corpus, held_out[0])),
        replace(CHOSEN, normals=np.array(SKEWED.indices(test=True, normal=True))),
    ):
        with pytest.raises(AssertionError):
            assert_sides(SKEWED, broken)


def test_a_normal_query_and_a_query_without_an_answer_are_caught() -> None:
    normal = replace(CHOSEN, queries=np.array(SKEWED.indices(test=True, normal=True)))
    with pytest.raises(AssertionError, match="normal window"):
        assert_queries_are_anomalies_with_an_answer(SKEWED, normal)
    unanswered = replace(CHOSEN, corpus=CHOSEN.corpus[SKEWED.labels[CHOSEN.corpus] != 1])
    with pytest.raises(AssertionError, match="no corpus item"):
        assert_queries_are_anomalies_with_an_answer(SKEWED, unanswered)


def test_silently_dropped_queries_are_caught() -> None:
    data = windows([0, 5], [0, 5, 3])
    chosen = select(data.labels, data.test, Composition(), seed=0)
    assert_dropped_queries_are_counted(data, chosen)
    for notes in ((), ("2 held-out windows have no relevant corpus item and are no queries",)):
        with pytest.raises(AssertionError):
            assert_dropped_queries_are_counted(data, replace(chosen, notes=notes))


def test_a_draw_that_always_takes_the_first_normals_is_caught() -> None:
    normals = MANY.indices(test=False, normal=True)
    with pytest.raises(AssertionError):
        assert_drawn_evenly(lambda _: normals[:5], normals)


def test_a_telling_order_is_caught() -> None:
    labels = SKEWED.labels[CHOSEN.corpus].tolist()
    by_turns = [label for pair in zip([1] * 50, [2] * 50, strict=True) for label in pair]
    normals_last = sorted(labels, key=lambda label: label == 0)
    for telling in (sorted(labels), normals_last, by_turns):
        with pytest.raises(AssertionError):
            assert_order_tells_nothing(telling)
