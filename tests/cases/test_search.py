"""Answers: right with many labels, useful with few, honest with none; and always those of a library built anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from readbench.cases import UNLIKE, Answer, Filter, Library, facts_of
from readbench.engine.method import Method
from readbench.engine.preparation import ChannelStats
from readbench.engine.ranking import rank
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, UsageError
from tests.cases.samples import CHANNELS, FAST, FAULTS, filled, normals, window, windows

QUESTIONS = windows(6, seed=5, labelled=False, prefix="q")


def places(answer: Answer) -> list[tuple[str, float]]:
    return [(hit.case.id, hit.score) for hit in answer.hits]


def opinion(answer: Answer) -> list[tuple[str, float]]:
    return [(fault.label, fault.probability) for fault in answer.faults]


METHODS = [
    FAST,
    "dtw-i",
    "euclidean+verdict",
    "raw|dtw-i",
    "rocket(features=504)|ws(alpha=0.7)|dtw-i+verdict(drop_normals=false)",
    "rocket(features=504)+gpc",
]


@pytest.mark.parametrize("method", METHODS)
def test_the_order_is_that_of_the_engine(library: Library, method: str) -> None:
    corpus = windows(12).with_stats(ChannelStats.of(windows(12)))
    expected = rank(Method(method).fit(corpus, normals(10)).score(QUESTIONS))
    answers = library.search_many(QUESTIONS, k=12, method=method)
    assert [[hit.case.id for hit in answer.hits] for answer in answers] == corpus.ids[expected].tolist()


def test_the_flagship_is_the_default_and_names_the_fault(library: Library) -> None:
    for i in range(3):
        answer = library.search(QUESTIONS[i : i + 1])
        assert answer.faults[0].label == FAULTS[i % 3]
        assert answer.hits[0].case.label == FAULTS[i % 3]
        assert answer.method.startswith("sonde|")
    assert library.warm() == 0, "vectors of the cases are kept"


def test_hits_are_grouped_by_fault_type_the_likeliest_first(library: Library) -> None:
    answer = library.search(QUESTIONS[:1], k=2, method=FAST)
    shares = {fault.label: fault.probability for fault in answer.faults}
    assert [group.probability for group in answer.groups] == [shares[group.label or ""] for group in answer.groups]
    assert [group.label for group in answer.groups] == sorted(
        (str(group.label) for group in answer.groups), key=lambda label: -shares[label]
    )
    listed = {hit.case.id for hit in answer.hits}
    assert listed <= {hit.case.id for group in answer.groups for hit in group.hits}
    possible = {fault.label for fault in answer.faults if fault.possible} - {UNLIKE}
    assert possible <= {group.label for group in answer.groups}, "each that cannot be ruled out has its best cases"
    for group in answer.groups:
        assert {hit.case.label for hit in group.hits} == {group.label}
        assert [hit.place for hit in group.hits] == sorted(hit.place for hit in group.hits)


def test_probabilities_are_those_of_all_options(library: Library) -> None:
    answer = library.search(QUESTIONS[:1], method=FAST)
    assert sum(fault.probability for fault in answer.faults) == pytest.approx(1.0)
    assert UNLIKE in {fault.label for fault in answer.faults}
    known = {fault.label: fault.probability for fault in answer.faults}
    for hit in answer.hits:
        assert hit.probability == pytest.approx(known[hit.case.label or ""])


def test_a_fault_that_was_never_seen_is_unlike_anything_here(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "l")
    library.add_normals(normals(20))
    known = windows(90)
    library.add(known[np.flatnonzero(known.labels != 1 + FAULTS.index("stuck valve"))])
    old, new = (library.search(QUESTIONS[i : i + 1], method=FAST) for i in (0, 1))
    share = [next(f.probability for f in answer.faults if f.label == UNLIKE) for answer in (new, old)]
    assert share[0] > 2 * share[1]
    assert new.novel
    assert not old.novel


def test_a_warm_library_answers_like_a_cold_one(library: Library, tmp_path: Path) -> None:
    warm = [library.search(QUESTIONS[i : i + 1], method=FAST) for i in (0, 1, 0)]
    assert warm[0] == warm[2]
    assert Library.open(tmp_path / "library").search(QUESTIONS[1:2], method=FAST) == warm[1]


CHANGES: dict[str, Callable[[Library], object]] = {
    "add": lambda library: library.add(windows(3, seed=3, prefix="late")),
    "label": lambda library: library.label("w3", "stuck valve"),
    "unlabel": lambda library: library.label("w3", None),
    "false alarm": lambda library: library.label("w3", "normal"),
    "delete": lambda library: library.delete(["w3", "w4"]),
    "reject": lambda library: (library.label("w3", None), library.reject("w3", "w0")),
    "normals": lambda library: library.add_normals(normals(3, seed=1, prefix="late")),
    "undo": lambda library: (library.label("w3", "other"), library.undo()),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", [FAST, "rocket(features=504)+gpc"])
def test_a_change_counts_exactly_as_in_a_library_built_anew(tmp_path: Path, change: str, method: str) -> None:
    library = filled(tmp_path / "changed")
    library.search(QUESTIONS[:1], method=method)  # warm: what is kept must not outlive the change
    CHANGES[change](library)
    rebuilt = Library.create(tmp_path / "rebuilt")
    rebuilt.add_normals(library.normals())
    everything = library.snapshot()
    rebuilt.add(everything.windows(range(len(everything))), library.cases())
    for i in range(3):
        ours, theirs = (each.search(QUESTIONS[i : i + 1], k=20, method=method) for each in (library, rebuilt))
        assert places(ours) == places(theirs)
        assert opinion(ours) == opinion(theirs)


def test_confirming_counts_at_once(library: Library) -> None:
    new = library.add_one(QUESTIONS.values(0), CHANNELS)
    before = library.search(new.id, method=FAST)
    library.confirm(new.id, like="w0")
    assert library.case(new.id).label == "leak"
    after = library.search(QUESTIONS[:1], method=FAST)
    assert after.hits[0].case.id == new.id
    assert new.id not in {hit.case.id for hit in before.hits}, "a case is not its own answer"


def test_rejecting_counts_at_once(library: Library) -> None:
    new = library.add_one(QUESTIONS.values(0), CHANNELS)
    asked = library.search(new.id, method=FAST)
    assert asked.hits[0].case.label == "leak"
    library.reject(new.id, like="w0")
    answer = library.search(new.id, method=FAST)
    assert answer.hits[0].case.label != "leak"
    before, after = dict(opinion(asked)), dict(opinion(answer))
    assert after["leak"] == 0.0
    assert before[UNLIKE] > before["noise"]
    assert after[UNLIKE] > after["noise"], "the odds of the others stay"
    other = library.search(QUESTIONS[:1], k=13, method=FAST)
    shared = {hit.case.id: hit.probability for hit in other.hits}
    assert (shared[new.id] or 0) < (shared["w0"] or 0) / 2


def test_without_labels_the_order_is_by_likeness(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "l")
    library.add(windows(6, labelled=False))
    answer = library.search(QUESTIONS[:1], method="dtw-i+verdict")
    assert answer.faults == ()
    assert answer.hits[0].probability is None
    assert {answer.hits[0].case.id, answer.hits[1].case.id} == {"w0", "w3"}
    assert any("No case has a label" in remark for remark in answer.remarks)
    assert any("no normal windows" in remark for remark in answer.remarks)


def test_one_case_of_one_fault_is_enough_for_an_answer(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "l")
    library.add(windows(1))
    answer = library.search(QUESTIONS[1:2], method=FAST)
    assert [hit.case.id for hit in answer.hits] == ["w0"]
    assert dict(opinion(answer))[UNLIKE] > 0.3, "one case says little about what else may come"


def test_missing_and_extra_channels_are_fine(library: Library) -> None:
    values = QUESTIONS.values(0)
    fewer = WindowSet.from_arrays([values[:2]], channels=CHANNELS[:2])
    more = WindowSet.from_arrays([np.vstack([values, values[:1]])], channels=(*CHANNELS, "new sensor"))
    for asked in (fewer, more):
        for method in (FAST, "dtw-i+verdict"):
            assert library.search(asked, method=method).faults[0].label == "leak"
    with pytest.raises(DataError, match="No channel of the window is known here"):
        library.search(WindowSet.from_arrays([values], channels=("a", "b", "c")), method=FAST)


def test_aliases_and_units_meet(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "l")
    library.name_channel("pressure", "bar", ["PT-101 [kPa]", "druck"])
    library.add(windows(6))
    values = QUESTIONS.values(0).copy()
    plain = library.search(QUESTIONS[:1], method="dtw-i")
    values[0] *= 100
    for headers in (("pt-101", "flow", "speed"), ("Pressure [kPa]", "flow", "speed")):
        asked = WindowSet.from_arrays([values], channels=headers)
        own = library.search(asked, method="dtw-i")
        assert [hit.case.id for hit in own.hits] == [hit.case.id for hit in plain.hits]
        assert [hit.score for hit in own.hits] == pytest.approx([hit.score for hit in plain.hits], rel=1e-4)
    with pytest.raises(DataError, match="cannot be converted"):
        library.search(WindowSet.from_arrays([values], channels=("pressure [degC]", "flow", "speed")))
    with pytest.raises(DataError, match="are both 'pressure'"):
        library.search(WindowSet.from_arrays([values], channels=("druck", "pressure", "speed")))


def test_filters_choose_what_is_listed_not_what_is_known(library: Library) -> None:
    library.edit("w5", tags=("night",), time=1000.0)
    everything = library.search(QUESTIONS[:1], method=FAST)
    for where, expected in (
        (Filter(asset="pump 1"), {"w1", "w3", "w5", "w7", "w9", "w11"}),
        (Filter(label="leak"), {"w0", "w3", "w6", "w9"}),
        (Filter(tag="night"), {"w5"}),
        (Filter(since=999.0, until=1000.0), {"w5"}),
        (Filter(until=999.0), set()),
    ):
        answer = library.search(QUESTIONS[:1], k=20, method=FAST, where=where)
        assert {hit.case.id for hit in answer.hits} == expected
        assert answer.faults == everything.faults


def test_windows_with_gaps_are_filled(library: Library) -> None:
    values = QUESTIONS.values(0).copy()
    values[0, 3:6] = np.nan
    values[2] = np.nan
    asked = WindowSet.from_arrays([values], channels=CHANNELS)
    assert library.search(asked, method=FAST).faults[0].label == "leak"
    with pytest.raises(DataError, match="no reading at all"):
        library.search(WindowSet.from_arrays([np.full((1, 4), np.nan)], channels=("flow",)))


def test_an_empty_library_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no cases yet"):
        Library.create(tmp_path / "l").search(QUESTIONS[:1])


def test_votes_name_the_cases_that_decided(library: Library) -> None:
    answer = library.search(QUESTIONS[:1], method=FAST)
    assert answer.votes[0].case.label == "leak"
    assert answer.votes[0].weight > 0
    weights = {label: sum(vote.weight for vote in answer.votes if vote.case.label == label) for label in FAULTS}
    assert max(weights, key=lambda label: weights[label]) == "leak"
    assert [abs(vote.weight) for vote in answer.votes] == sorted((abs(v.weight) for v in answer.votes), reverse=True)


class TestShortlist:
    """A large library compares a shortlist; here it is large with thirteen cases."""

    def test_a_shortlist_of_all_cases_changes_nothing(self, tmp_path: Path) -> None:
        exact = filled(tmp_path / "l", 30)
        large = Library.open(tmp_path / "l", exact_cases=10, shortlist=30)
        for i in range(3):
            asked = QUESTIONS[i : i + 1]
            assert places(exact.search(asked, method=FAST)) == places(large.search(asked, method=FAST))

    def test_the_answer_says_how_many_were_compared(self, tmp_path: Path) -> None:
        filled(tmp_path / "l", 30)
        large = Library.open(tmp_path / "l", exact_cases=10, shortlist=12)
        answer = large.search(QUESTIONS[:1], method=FAST)
        assert (answer.compared, answer.total) == (12, 30)
        assert "12 cases nearest at first sight" in answer.remarks[0]
        assert answer.hits[0].case.label == "leak"

    def test_it_follows_every_change(self, tmp_path: Path) -> None:
        library = filled(tmp_path / "l", 30)
        large = Library.open(tmp_path / "l", exact_cases=10, shortlist=5)
        assert library.search(QUESTIONS[:1], method=FAST).hits
        first = large.search(QUESTIONS[:1], method=FAST).hits[0].case.id
        library.delete([first])
        assert first not in {hit.case.id for hit in large.search(QUESTIONS[:1], method=FAST).hits}
        library.add(replace(QUESTIONS[:1], ids=np.array(["twin"], np.dtypes.StringDType())))
        assert "twin" in {hit.case.id for hit in large.search(QUESTIONS[:1], k=5, method=FAST).hits}


def test_facts_of_a_set_become_facts_of_cases() -> None:
    facts = facts_of(windows(2))
    assert [(fact.id, fact.label, fact.asset) for fact in facts] == [
        ("w0", "leak", "pump 0"),
        ("w1", "stuck valve", "pump 1"),
    ]


def test_windows_of_other_lengths_are_fine(library: Library) -> None:
    longer = WindowSet.from_arrays([window("leak", np.random.default_rng(2), steps=90)], channels=CHANNELS)
    for method in (FAST, "euclidean+verdict"):
        assert library.search(longer, method=method).faults[0].label == "leak"
