"""What is worth a second look: cases to label next, labels that look wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.cases import Library, _search as engine
from readbench.common.progress import SILENT
from readbench.engine.rerankers import next_cases
from readbench.engine.spec import parse
from readbench.errors import UsageError
from tests.cases.samples import CHANNELS, FAST, FAULTS, filled, normals, window, windows
from tests.cases.test_search import CHANGES

METHODS = [FAST, "rocket(features=504)|ws(alpha=0.7)|dtw-i+verdict", "euclidean", "rocket(features=504)+gpc"]


def opened(where: Path, count: int = 9, labelled: int = 0) -> Library:
    """A library of open cases, the first ones labelled."""
    library = Library.create(where)
    library.add_normals(normals(10))
    library.add(windows(labelled))
    library.add(windows(count, seed=4, labelled=False, prefix="open "))
    return library


@pytest.mark.parametrize("method", METHODS)
def test_every_open_case_is_suggested_once_and_no_other(tmp_path: Path, method: str) -> None:
    library = opened(tmp_path / "l", labelled=6)
    found = library.next_to_label(100, method)
    assert sorted(own.case.id for own in found) == sorted(f"open {i}" for i in range(9))
    assert library.next_to_label(3, method)[0].case == found[0].case
    assert all(0 <= own.doubt < 1 and own.guess in FAULTS for own in found)
    assert found[-1].tells == 0, "there is no other left to tell about"


def test_without_labels_each_fault_is_asked_for_once(tmp_path: Path) -> None:
    found = opened(tmp_path / "l").next_to_label(3, FAST)
    assert {int(own.case.id.split()[1]) % 3 for own in found} == {0, 1, 2}
    assert [(own.guess, own.doubt) for own in found] == [(None, 1.0)] * 3
    assert [own.tells for own in found][1:] == [2, 2], "each tells about the others of its fault"


def test_the_order_is_that_of_the_active_learner(tmp_path: Path) -> None:
    library = opened(tmp_path / "l", labelled=2)
    library.label("w1", "leak")  # one type only: no opinion, and none in the benchmark's order either
    reviewed = library._engine.review(library.snapshot(), parse(FAST), SILENT)
    fitted = reviewed.fitted
    expected = next_cases(fitted.units, reviewed.knowledge.labels, fitted.groups, 5)
    assert [own.case.id for own in library.next_to_label(5, FAST)] == fitted.corpus.ids[expected].tolist()


def test_a_label_takes_a_case_off_the_list(tmp_path: Path) -> None:
    library = opened(tmp_path / "l", labelled=6)
    first = library.next_to_label(1, FAST)[0]
    library.label(first.case.id, first.guess)
    assert first.case.id not in {own.case.id for own in library.next_to_label(100, FAST)}
    library.undo()
    assert library.next_to_label(1, FAST) == [first]


@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change_both_lists_are_those_of_a_library_built_anew(tmp_path: Path, change: str) -> None:
    library = filled(tmp_path / "changed", 15)
    library.add(windows(6, seed=4, labelled=False, prefix="open "))
    lists(library)  # warm: what is kept must not outlive the change
    CHANGES[change](library)
    rebuilt = Library.create(tmp_path / "rebuilt")
    rebuilt.add_normals(library.normals())
    everything = library.snapshot()
    rebuilt.add(everything.windows(range(len(everything))), library.cases())
    assert lists(library) == lists(rebuilt)


def lists(library: Library) -> list[tuple[object, ...]]:
    """Both lists without what only says when a case was written."""
    following = [(own.case.id, own.guess, own.doubt, own.tells) for own in library.next_to_label(20, FAST)]
    return [*following, *((own.case.id, own.rather, own.probability) for own in library.doubtful(20, FAST))]


def test_a_guess_is_never_what_the_case_is_known_not_to_be(tmp_path: Path) -> None:
    library = opened(tmp_path / "l", count=1, labelled=6)
    assert library.next_to_label(1, FAST)[0].guess == "leak"
    library.reject("open 0", like="w0")
    assert library.next_to_label(1, FAST)[0].guess in {"stuck valve", "noise"}
    library.reject("open 0", like="w1")
    library.reject("open 0", like="w2")
    assert (library.next_to_label(1, FAST)[0].guess, library.next_to_label(1, FAST)[0].doubt) == (None, 1.0)


def test_nothing_to_review(tmp_path: Path) -> None:
    empty = Library.create(tmp_path / "empty")
    assert (empty.next_to_label(), empty.doubtful()) == ([], [])
    silent = opened(tmp_path / "silent", count=2)
    assert silent.doubtful(5, FAST) == []
    assert len(silent.next_to_label(5, FAST)) == 2
    assert filled(tmp_path / "l").next_to_label(5, FAST) == []
    with pytest.raises(UsageError, match="'k' parameter of a review"):
        silent.next_to_label(0)


@pytest.mark.parametrize("method", METHODS)
def test_a_wrong_label_is_doubted_and_the_right_one_named(tmp_path: Path, method: str) -> None:
    library = filled(tmp_path / "l", 18)
    before = library.doubtful(20, method)
    assert "w4" not in {own.case.id for own in before}
    library.label("w4", "noise")
    first = library.doubtful(20, method)[0]
    assert (first.case.id, first.case.label, first.rather) == ("w4", "noise", "stuck valve")
    assert first.probability < 0.5 < first.rather_probability
    library.undo()
    assert library.doubtful(20, method) == before


def test_cases_of_one_recording_do_not_vouch_for_each_other(tmp_path: Path) -> None:
    library, rng = filled(tmp_path / "l", 18), np.random.default_rng(3)
    for number in range(4):
        library.add_one(window("leak", rng), CHANNELS, id=f"same {number}", label="noise", group="run 7")
    doubted = {own.case.id: own.rather for own in library.doubtful(20, FAST)}
    assert doubted.items() >= {(f"same {number}", "leak") for number in range(4)}


def test_of_a_large_library_the_latest_cases_are_reviewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_REVIEWED", 12)
    library = filled(tmp_path / "l", 18)
    library.add(windows(3, seed=4, labelled=False, prefix="open "))
    library.label("w1", None)
    large = Library.open(tmp_path / "l", exact_cases=10, shortlist=8)
    assert {own.case.id for own in large.next_to_label(100, FAST)} == {"open 0", "open 1", "open 2"}
    library.label("w16", "leak")
    assert large.doubtful(5, FAST)[0].case.id == "w16"
    assert large.search("w1", method=FAST).compared == 8


def test_of_faults_that_look_alike_few_labels_are_doubted(tmp_path: Path) -> None:
    rng, library = np.random.default_rng(5), Library.create(tmp_path / "l")
    count = 60
    same = [window("leak", rng) for _ in range(count)]
    library.add(same, channels=CHANNELS, labels=[f"leak {i % 6}" for i in range(count)])
    assert len(library.doubtful(count, FAST)) <= 6


def test_colours_follow_the_order_in_which_faults_were_first_named(tmp_path: Path) -> None:
    library = filled(tmp_path / "l", 6)
    before = library.stats().named
    library.label("w0", "a new fault")
    assert library.stats().named == (*before, "a new fault")
    library.undo()
    assert library.stats().named[: len(before)] == before
