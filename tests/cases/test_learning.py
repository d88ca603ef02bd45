"""A library that lives long answers at once after a change, and learns from it beside the questions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from readbench.cases import Library, _learning, encode_cases
from readbench.common.files import exclusive
from readbench.engine.spec import parse
from readbench.errors import DataError
from tests.cases.samples import CHANNELS, FAST, FAULTS, filled, normals, window, windows

FUSED = "rocket(features=504)|ws(alpha=0.7)|dtw-i+verdict(views=pooled,spread=0.3)"
QUESTIONS = windows(3, seed=5, labelled=False, prefix="q")
WAIT_S = 60.0


@pytest.fixture
def living(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """A library that learns everything in the background, however quick it would be, when it is told to."""
    monkeypatch.setattr(_learning, "QUICK_S", -1.0)
    filled(tmp_path / "library", 24)
    return Library.open(tmp_path / "library", background=True)


@pytest.fixture
def held(living: Library, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The same library with a learner that waits; the function lets it go on and waits for it."""
    gate = threading.Event()
    learn = _learning.Kept._learn_latest

    def wait(kept: _learning.Kept[object]) -> None:
        gate.wait(WAIT_S)
        learn(kept)

    monkeypatch.setattr(_learning.Kept, "_learn_latest", wait)

    def settle() -> None:
        gate.set()
        assert living.settle(WAIT_S)

    return settle


def learns(library: Library, method: str) -> list[str]:
    answer = library.search(QUESTIONS[:1], method=method)
    return [remark for remark in answer.remarks if remark.startswith("Learning")]


CHANGES: dict[str, Callable[[Library], object]] = {
    "case": lambda own: own.add_one(window("leak", np.random.default_rng(3)), CHANNELS, id="new", asset="pump 1"),
    "new type": lambda own: own.add_one(window("noise", np.random.default_rng(3)), CHANNELS, id="new", label="aging"),
    "label": lambda own: own.label("w0", "noise"),
    "label taken back": lambda own: own.label("w0", None),
    "group": lambda own: own.edit("w0", group="w1"),
    "normal": lambda own: own.add_normals(normals(3, seed=7, prefix="m")),
    "false alarm": lambda own: own.label("w0", "normal"),
    "deleted": lambda own: own.delete(["w0", "w5"]),
    "many": lambda own: own.add(windows(9, seed=8, prefix="more")),
}


@pytest.mark.parametrize("method", [FAST, FUSED])
@pytest.mark.parametrize("change", CHANGES)
def test_after_learning_answers_are_those_of_a_library_built_anew(
    living: Library, held: Callable[[], None], change: str, method: str
) -> None:
    living.search(QUESTIONS[:1], method=method)
    CHANGES[change](living)
    assert learns(living, method) == ["Learning from the last change: probabilities follow from the library before it."]
    held()
    asked = [living.search(QUESTIONS[i : i + 1], method=method) for i in range(3)]
    anew = Library.open(living.store.where)
    assert asked == [anew.search(QUESTIONS[i : i + 1], method=method) for i in range(3)]


@pytest.mark.usefixtures("held")
def test_a_new_case_is_found_before_anything_is_learned_from_it(living: Library) -> None:
    living.search(QUESTIONS[:1], method=FUSED)
    own = window("leak", np.random.default_rng(3))
    living.add_one(own, CHANNELS, id="twin", label="aging")
    answer = living.search(own, channels=CHANNELS, method="rocket(features=504)|ws(alpha=0.7)|dtw-i", k=25)
    assert answer.hits[0].case.id == "twin"
    judged = living.search(own, channels=CHANNELS, method=FUSED, k=25)
    assert "twin" in [hit.case.id for hit in judged.hits]
    assert judged.compared == judged.total == 25
    assert "aging" not in [fault.label for fault in judged.faults], "nothing was learned of it yet"


@pytest.mark.usefixtures("held")
def test_what_is_gone_is_not_listed_and_a_label_counts_before_anything_is_learned(living: Library) -> None:
    before = living.search(QUESTIONS[:1], method=FAST, k=24)
    first, second = (hit.case.id for hit in before.hits[:2])
    living.delete([first])
    living.label(second, "noise")
    after = living.search(QUESTIONS[:1], method=FAST, k=24)
    names = [hit.case.id for hit in after.hits]
    assert first not in names
    assert first not in [vote.case.id for vote in after.votes]
    assert names.index(second) > 5, "it is a leak no more, and the question is one"
    assert after.faults[0].label == FAULTS[0]


@pytest.mark.usefixtures("held")
def test_reviews_leave_out_what_was_resolved_meanwhile(living: Library) -> None:
    living.add(windows(6, seed=9, labelled=False, prefix="open"))
    suggested = [own.case.id for own in living.next_to_label(k=6, method=FAST)]
    assert len(suggested) == 6
    living.label(suggested[0], "leak")
    assert set(suggested[1:]) == {own.case.id for own in living.next_to_label(k=6, method=FAST)}


def test_what_fails_in_the_background_is_said_by_the_next_question(
    living: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    living.search(QUESTIONS[:1], method=FAST)
    living.add_one(window("leak", np.random.default_rng(3)), CHANNELS, id="new")

    def fail(*_: object) -> None:
        raise DataError("The disk is gone.")

    monkeypatch.setattr(living._profile, "_learn", fail)
    living.search(QUESTIONS[:1], method=FAST)
    assert living.settle(WAIT_S)
    with pytest.raises(DataError, match="The disk is gone"):
        living.search(QUESTIONS[:1], method=FAST)


def test_small_libraries_and_plain_ones_are_always_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_learning, "QUICK_S", 60.0)  # small on any machine
    filled(tmp_path / "library")
    for background in (False, True):
        library = Library.open(tmp_path / "library", background=background)
        library.search(QUESTIONS[:1], method=FAST)
        library.label("w0", "noise" if background else "leak")
        assert not learns(library, FAST)


def test_readers_do_not_wait_for_a_writer_that_waits(living: Library) -> None:
    living.search(QUESTIONS[:1], method=FAST)
    writer = threading.Thread(target=lambda: living.label("w0", "noise"))
    with exclusive(Path(living.store.where) / "writer.lock"):
        writer.start()
        answered = threading.Event()

        def read() -> None:
            living.search(QUESTIONS[:1], method=FAST)
            living.cases()
            living.find("seal")  # without an index of the notes, which only a writer makes
            answered.set()

        threading.Thread(target=read, daemon=True).start()
        assert answered.wait(WAIT_S)
        assert writer.is_alive(), "it still waits for the other process"
    writer.join()
    assert living.case("w0").label == "noise"


def test_a_large_library_is_encoded_beside_the_searches(tmp_path: Path) -> None:
    filled(tmp_path / "library", 24)
    library = Library.open(tmp_path / "library", background=True, exact_cases=4, shortlist=4)
    library.search(QUESTIONS[:1], method="raw")
    assert library.settle(WAIT_S)
    assert encode_cases(library.snapshot(), parse("raw"), exact_cases=4) == 0
