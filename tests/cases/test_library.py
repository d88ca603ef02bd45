"""The library from Python: arrays are windows, strings are paths, and long work says how far it has come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.cases import Library, encode_cases
from readbench.engine.spec import parse
from readbench.errors import UnknownNameError, UsageError
from tests.cases.samples import CHANNELS, FAST, filled, normals, window, windows

Told = list[tuple[str, int, int | None]]


def test_arrays_are_windows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    library = Library.create(str(tmp_path / "library"))
    library.add_normals(np.stack([window("", rng) for _ in range(6)]), "pump 1", channels=CHANNELS)
    faults = ["leak", "noise"] * 3
    library.add([window(fault, rng, steps=30 + i) for i, fault in enumerate(faults)], channels=CHANNELS, labels=faults)
    (single,) = library.add(window("leak", rng), channels=CHANNELS, labels=[None])
    assert library.stats().labels == {"": 1, "leak": 3, "noise": 3}
    assert library.case(single).label is None
    assert library.normals().assets.tolist() == ["pump 1"] * 6
    asked = window("noise", rng)
    answer = library.search(asked, channels=CHANNELS, method=FAST, k=2)
    assert [hit.case.label for hit in answer.hits] == ["noise", "noise"]
    assert answer == library.search_many(asked[None], channels=CHANNELS, method=FAST, k=2)[0]
    names = {own.name for own in library.explain(asked, single, channels=CHANNELS).channels}
    assert names == set(CHANNELS)


def test_strings_are_paths(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("pressure,flow,speed\n1,2,3\n2,3,4\n")
    library = Library.create(str(tmp_path / "library"))
    (name,) = library.add(str(tmp_path / "a.csv"), labels=["leak"])
    assert library.window(name).values(0).tolist() == [[1, 2], [2, 3], [3, 4]]
    with pytest.raises(UnknownNameError, match="case"):
        library.search(str(tmp_path / "a.csv"))  # of a search, a string is the name of a case, wherever it comes from
    assert library.search(tmp_path / "a.csv", method="euclidean").hits[0].case.label == "leak"


def test_wrong_windows_get_a_sentence(library: Library) -> None:
    with pytest.raises(UsageError, match="got dict"):
        library.add({"pressure": [1.0]})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="names its channels itself"):
        library.search(windows(1), channels=CHANNELS)
    with pytest.raises(UsageError, match="3 windows, but 2 labels"):
        library.add(windows(3, seed=2, prefix="x"), labels=["leak", "leak"])
    with pytest.raises(UsageError, match="Give one window"):
        library.search(np.zeros((2, 3, 8)), channels=CHANNELS)


def test_a_library_shows_what_it_holds(library: Library, tmp_path: Path) -> None:
    library.label("w0", None)
    shown = repr(library)
    assert len(shown.splitlines()) <= 5
    assert "12 cases of 3 faults, 1 of them open; 10 normal windows" in shown
    assert "as of change 1" in repr(Library.open(tmp_path / "library", as_of=1))


def test_what_a_library_answers_is_shown_on_five_lines(library: Library) -> None:
    library.add_one(window("leak", np.random.default_rng(5)), CHANNELS, notes="Seal replaced. " * 80, id="w99")
    answer = library.search("w0", method=FAST, k=10)
    evidence = library.explain("w0", "w3")
    said = [answer, answer.hits[0], answer.faults[0], answer.groups[0], evidence, evidence.channels[0]]
    said += [library.case("w99"), library.details("w99"), library.stats(), library.overview(), *library.history()]
    said += [library.search(np.zeros((3, 40)), channels=CHANNELS, method=FAST)]
    for own in said:
        lines = str(own).splitlines()
        assert str(own) == repr(own)
        assert 1 <= len(lines) <= 5, own
        assert max(map(len, lines)) <= 500, own
    assert f"faults: {answer.faults[0].label} 0." in str(answer)
    assert f"hits: {answer.hits[0].case.id} (" in str(answer)
    assert "cannot be judged: " in str(said[-1])
    long = answer.hits[0].model_copy(update={"case": library.case("w0").model_copy(update={"id": "w" * 100})})
    assert "case=Case(...)" in str(long)


def test_the_overview_is_looked_at_once_after_each_change(library: Library) -> None:
    first = library.overview()
    assert library.overview() is first
    library.label("w0", "noise")
    assert {own.case.id: own.case.label for own in library.overview().points}["w0"] == "noise"


def test_a_first_search_says_how_far_it_has_come(tmp_path: Path) -> None:
    filled(tmp_path / "library")
    told: Told = []
    library = Library.open(tmp_path / "library", progress=lambda *own: told.append(own))
    library.search("w0", method="raw")
    assert told[0] == ("encoding: raw", 0, 12)
    assert ("encoding: raw", 12, 12) in told
    assert told[-1] == ("learning from labels", 1, 1)
    told.clear()
    library.search("w1", method="raw")
    assert told == []


def test_a_first_look_at_a_large_library_says_how_far_it_has_come(tmp_path: Path) -> None:
    filled(tmp_path / "library")
    told: Told = []
    library = Library.open(tmp_path / "library", exact_cases=4, shortlist=4)
    assert library.warm("euclidean", lambda *own: told.append(own)) == 12
    assert told == [("encoding: first look", 0, 12), ("encoding: first look", 12, 12)]


def test_adding_and_encoding_say_how_far_they_have_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readbench.cases._library.ADD_BATCH", 5)
    library, told = Library.create(tmp_path / "library"), list[tuple[str, int, int | None]]()
    library.add_normals(normals(3))
    library.add(windows(12), progress=lambda *own: told.append(own))
    assert told == [("adding windows", done, 12) for done in (0, 5, 10, 12)]
    told.clear()
    monkeypatch.setattr("readbench.cases._bulk.BLOCK", 8)
    encode_cases(library.snapshot(), parse("raw"), progress=lambda *own: told.append(own))
    assert told == [("encoding", done, 12) for done in (0, 8, 12)]
