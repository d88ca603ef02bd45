"""What labels teach is kept beside a library: who opens it next learns nothing again, and hears the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lancedb", reason="libraries need the extra `cases`: pip install 'readbench[dev,cases]'")

from readbench.cases import Answer, Library, _lessons
from readbench.cases._lessons import FOLDER, _Unpacker, pack_lesson, unpack_lesson
from readbench.engine.method import Knowledge, Method
from readbench.engine.rerankers import Verdict
from tests.cases.samples import FAST, filled, windows

FUSED = "rocket(features=504)|ws(alpha=0.7)|dtw-i+verdict(views=pooled,spread=0.3)"
QUESTIONS = windows(3, seed=5, labelled=False, prefix="q")


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library whose lessons are kept, however few cases teach them."""
    monkeypatch.setattr(_lessons, "MIN_CASES", 1)
    filled(tmp_path / "library", 24)
    return tmp_path / "library"


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one whenever labels are learned from."""
    times, learn = list[str](), Verdict.learn

    def count(*given: object) -> object:
        times.append("learned")
        return learn(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(Verdict, "learn", count)
    return times


def ask(where: Path, method: str = FUSED) -> list[Answer]:
    library = Library.open(where)
    return [library.search(QUESTIONS[i : i + 1], method=method) for i in range(3)]


@pytest.mark.parametrize("method", [FAST, FUSED])
def test_a_lesson_that_was_kept_says_what_a_fresh_one_says(where: Path, learned: list[str], method: str) -> None:
    fresh = ask(where, method)
    assert len(learned) == 1
    assert ask(where, method) == fresh
    assert len(learned) == 1
    shutil.rmtree(where / FOLDER)
    assert ask(where, method) == fresh
    assert len(learned) == 2


def test_a_change_of_labels_or_cases_is_learned_from(where: Path, learned: list[str]) -> None:
    ask(where)
    Library.open(where).label("w0", "noise")
    changed = ask(where)
    Library.open(where).undo()
    ask(where)
    assert len(learned) == 2  # what was taken back is as it was
    Library.open(where).label("w0", "noise")
    assert [answer.faults for answer in ask(where)] == [answer.faults for answer in changed]
    Library.open(where).edit("w0", group="w1")
    ask(where)
    assert len(learned) == 3


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign"])
def test_a_damaged_lesson_is_learned_again(where: Path, learned: list[str], damage: str) -> None:
    fresh = ask(where)
    path = next((where / FOLDER).iterdir())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[:-100], "flipped": bytes(content), "empty": b"", "foreign": b"PK\x03\x04"}[damage])
    assert ask(where) == fresh
    assert len(learned) == 2
    assert path.read_bytes() == whole


def test_lessons_that_cannot_be_kept_are_learned_each_time(where: Path, learned: list[str]) -> None:
    (where / FOLDER).write_text("a file where a folder should be")
    assert ask(where) == ask(where)
    assert len(learned) == 2


def test_few_lessons_are_kept_and_none_of_a_few_cases(
    where: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library.open(where)
    for case in ("w0", "w1", "w2", "w3"):
        library.label(case, None)
        library.search(QUESTIONS[:1], method=FAST)
    assert len(list((where / FOLDER).iterdir())) == _lessons.KEPT_FILES
    monkeypatch.setattr(_lessons, "MIN_CASES", 200)
    filled(tmp_path / "small", 24).search(QUESTIONS[:1], method=FAST)
    assert not (tmp_path / "small" / FOLDER).exists()


def test_other_code_does_not_find_the_lesson(where: Path, learned: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ask(where)
    monkeypatch.setattr(_lessons, "code_key", lambda _: "an edited reranker")
    ask(where)
    assert len(learned) == 2


def test_nothing_but_parts_of_a_lesson_is_made_from_a_file() -> None:
    corpus = windows(12, seed=1)
    fitted = Method("rocket(features=504)+verdict").fit(corpus)
    lesson = fitted.lesson(Knowledge(corpus.labels))
    assert lesson is not None
    content = pack_lesson(lesson.prepare(), fitted.units)
    again = unpack_lesson(content, fitted.units)
    np.testing.assert_array_equal(again.guesses, lesson.guesses)
    assert again.fitted.judgement.views[0].items is fitted.units[0]
    assert again.calibration.exponent == lesson.calibration.exponent
    for module, name in (("os", "system"), ("readbench.engine.rerankers._ridge", "fit_ridge")):
        with pytest.raises(TypeError, match="not allowed in a lesson"):
            _Unpacker([], []).unpack({"class": [module, name], "fields": {}})
