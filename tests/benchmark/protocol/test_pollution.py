from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from readbench.benchmark.protocol import Composition
from readbench.benchmark.protocol._compose import MIN_OWN_NORMALS, Selection, pollution_count, select
from tests.benchmark.protocol.selections import CHOSEN, SKEWED, Case, Windows, cases, levels_of, windows

PAPER_SIZES = [
    (1000, 1111, 1250),
    (305, 339, 381),
    (71, 79, 89),
    (700, 778, 875),
    (977, 1086, 1221),
    (528, 587, 660),
]
"""Corpus sizes at 0, 10 and 20 % of the paper's table of datasets."""


def assert_nested(levels: dict[int, list[int]]) -> None:
    """Each level is the next higher one with some items left out: same items, same order."""
    rising = sorted(levels)
    for low, high in pairwise(rising):
        inside = set(levels[low])
        assert [i for i in levels[high] if i in inside] == levels[low], f"{low} % is not inside {high} %"


def assert_polluted_to_the_level(data: Windows, levels: dict[int, list[int]]) -> None:
    """All levels have the same anomalies, and normals up to their share as far as there are any."""
    available = len(data.indices(test=False, normal=True))
    anomalies = {rho: [i for i in level if data.labels[i] > 0] for rho, level in levels.items()}
    assert len({tuple(items) for items in anomalies.values()}) == 1
    for rho, level in levels.items():
        n = len(anomalies[rho])
        normals = len(level) - n
        exact = int(Fraction(n * rho, 100 - rho) + Fraction(1, 2))
        assert normals == min(exact, available)
        assert len(set(level)) == len(level)


@given(cases())
def test_pollution_levels_are_nested(case: Case) -> None:
    chosen = case.select()
    assert tuple(chosen.levels) == case.settings.rho
    assert_nested(levels_of(chosen))
    assert levels_of(chosen)[max(chosen.levels)] == chosen.corpus.tolist()


@given(cases())
def test_normals_make_up_the_asked_share_of_the_corpus(case: Case) -> None:
    assert_polluted_to_the_level(case.windows, levels_of(case.select()))


@given(cases())
def test_the_clean_corpus_has_no_normals(case: Case) -> None:
    chosen = case.select()
    if 0 in chosen.levels:
        assert (case.windows.labels[levels_of(chosen)[0]] > 0).all()


@given(cases())
def test_which_levels_are_asked_for_does_not_move_the_others(case: Case) -> None:
    chosen = replace(case, settings=replace(case.settings, rho=(0, 10, 20, 40))).select()
    alone = replace(case, settings=replace(case.settings, rho=(10,))).select()
    assert levels_of(alone)[10] == levels_of(chosen)[10]
    assert alone.queries.tolist() == chosen.queries.tolist()


@pytest.mark.parametrize("sizes", PAPER_SIZES)
def test_corpus_sizes_are_the_paper_s(sizes: tuple[int, int, int]) -> None:
    assert tuple(sizes[0] + pollution_count(sizes[0], rho) for rho in (0, 10, 20)) == sizes
    data = windows([500, sizes[0] - 3, 3], [0, 40, 2])
    chosen = select(data.labels, data.test, Composition(), seed=1)
    assert tuple(len(level) for level in levels_of(chosen).values()) == sizes


def test_half_a_normal_is_a_normal() -> None:
    assert [pollution_count(n, 20) for n in (2, 6, 10)] == [1, 2, 3]
    assert pollution_count(1, 10) == 0


def test_too_few_normals_are_noted_and_all_are_used() -> None:
    data = windows([15, 50, 50], [0, 5, 5])
    chosen = select(data.labels, data.test, Composition(), seed=0)
    assert [len(level) for level in levels_of(chosen).values()] == [100, 111, 115]
    assert "only 15 of 25 normal windows for a pollution of 20 %: the corpus has 13 %" in chosen.notes


def test_enough_normals_are_not_worth_a_note() -> None:
    data = windows([25 + MIN_OWN_NORMALS, 50, 50], [0, 5, 5])
    assert select(data.labels, data.test, Composition(), seed=0).notes == ()


# The pool of normals.


def assert_pool(data: Windows, settings: Composition, chosen: Selection) -> None:
    """Outside the corpus while enough are left; else all of the train side, and the notes say so."""
    normals = set(data.indices(test=False, normal=True))
    free = normals - set(chosen.corpus.tolist())
    own = len(free) >= MIN_OWN_NORMALS
    pool = chosen.normals.tolist()
    assert set(pool) <= (free if own else normals)
    assert len(set(pool)) == len(pool) == min(settings.normals_cap, len(free if own else normals))
    notes = [note for note in chosen.notes if "left outside the corpus" in note]
    expected = f"only {len(free)} normals are left outside the corpus: {len(pool)} of all {len(normals)} are used"
    assert notes == ([] if own else [expected])


@given(cases())
def test_the_pool_is_outside_the_corpus_while_enough_normals_are_left(case: Case) -> None:
    assert_pool(case.windows, case.settings, case.select())


@pytest.mark.parametrize(("spare", "shared"), [(MIN_OWN_NORMALS, 0), (MIN_OWN_NORMALS - 1, 25)])
def test_thirty_normals_of_its_own_are_enough_for_the_pool(spare: int, shared: int) -> None:
    data = windows([25 + spare, 100], [0, 5])
    chosen = select(data.labels, data.test, Composition(), seed=0)
    assert len(set(chosen.normals.tolist()) & set(chosen.corpus.tolist())) == shared


# The rules, broken on purpose: the same checks must see it.

CLEAN, LOW, HIGH = levels_of(CHOSEN).values()


def test_levels_with_their_own_draws_are_caught() -> None:
    normals = SKEWED.indices(test=False, normal=True)
    redrawn = CLEAN + [i for i in normals if i not in LOW][: len(LOW) - len(CLEAN)]
    reordered = [*LOW[1:], LOW[0]]
    assert_nested({0: CLEAN, 10: LOW, 20: HIGH})
    for broken in (redrawn, reordered):
        with pytest.raises(AssertionError, match="not inside"):
            assert_nested({0: CLEAN, 10: broken, 20: HIGH})


def test_a_wrong_pollution_is_caught() -> None:
    normals = [i for i in SKEWED.indices(test=False, normal=True) if i not in HIGH]
    per_anomaly = {0: CLEAN, 10: CLEAN + normals[:10]}  # 10 % of the anomalies instead of 10 % of the corpus
    dirty_at_zero = {0: CLEAN + normals[:1]}
    an_anomaly_makes_room = {0: CLEAN, 10: [i for i in LOW if i != CLEAN[0]] + normals[:1]}
    a_normal_twice = {10: [*[i for i in LOW if SKEWED.labels[i] > 0], *normals[:10], normals[0]]}
    assert_polluted_to_the_level(SKEWED, {0: CLEAN, 10: LOW, 20: HIGH})
    for broken in (per_anomaly, dirty_at_zero, an_anomaly_makes_room, a_normal_twice):
        with pytest.raises(AssertionError):
            assert_polluted_to_the_level(SKEWED, broken)


def test_a_wrong_pool_is_caught() -> None:
    settings = Composition(corpus_cap=100, query_cap=20)
    corpus_normals = CHOSEN.corpus[SKEWED.labels[CHOSEN.corpus] == 0]
    for broken in (
        replace(CHOSEN, normals=np.append(CHOSEN.normals[1:], corpus_normals[0])),
        replace(CHOSEN, normals=CHOSEN.normals[1:]),
        replace(CHOSEN, normals=np.append(CHOSEN.normals[1:], CHOSEN.normals[-1])),
        replace(CHOSEN, notes=("only 3 normals are left outside the corpus: 4 of all 7 are used",)),
    ):
        with pytest.raises(AssertionError):
            assert_pool(SKEWED, settings, broken)
    assert_pool(SKEWED, settings, CHOSEN)
