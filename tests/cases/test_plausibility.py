"""What is odd about a window is said at every door, and no fault is named where it cannot be judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.cases import UNLIKE, Case, Library
from readbench.cases._plausibility import LibraryProfile, check_window
from readbench.engine.windows import Window, WindowSet
from tests.cases.samples import CHANNELS, FAST, normals, window, windows


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Sixty labelled cases of three faults, forty normals."""
    library = Library.create(tmp_path_factory.mktemp("plausibility") / "library")
    library.add_normals(normals(40))
    library.add(windows(60))
    return library


def asked() -> WindowSet:
    values = window("leak", np.random.default_rng(7))
    return WindowSet.from_arrays([values], channels=CHANNELS)


def test_a_true_window_is_judged_without_a_remark(plant: Library) -> None:
    answer = plant.search(asked(), method=FAST)
    assert answer.judgeable
    assert answer.plausibility == ()
    assert answer.faults[0].label == "leak"


def test_a_wrong_unit_is_named_and_no_fault_is_offered(plant: Library) -> None:
    values = asked().values(0).copy()
    values[2] *= 1000
    answer = plant.search(values, channels=CHANNELS, method=FAST)
    assert not answer.judgeable
    assert answer.plausibility[0].channels == ("speed",)
    assert "1,000 times above" in answer.plausibility[0].words
    assert answer.faults[0].label == UNLIKE
    assert all(fault.possible for fault in answer.faults if fault.probability)


def test_a_case_on_its_way_in_is_warned_of_and_remarked_on_later(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "l")
    library.add_normals(normals(40))
    library.add(windows(60))
    wrong = WindowSet.from_arrays([asked().values(0) * 1e6], channels=CHANNELS)
    added = library.add_checked(wrong, Case(id="wrong"))
    assert added.plausibility
    assert not library.search("wrong", method=FAST).judgeable
    library.label("wrong", "leak")
    assert library.check("w0").judgeable


def test_an_open_case_does_not_widen_what_is_usual(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "l")
    library.add_normals(normals(40))
    library.add(windows(60))
    library.add_one(asked().values(0) * 1e6, CHANNELS)
    assert not library.check(asked().values(0) * 1e6, channels=CHANNELS).judgeable


def test_gaps_are_counted_before_they_are_filled(plant: Library) -> None:
    values = asked().values(0).copy()
    values[:, ::4] = np.nan
    assert plant.check(values, channels=CHANNELS).judgeable
    values[:, 3:] = np.nan
    found = plant.check(values, channels=CHANNELS)
    assert found.plausibility[0].kind == "missing"
    assert not found.judgeable


@pytest.mark.parametrize(("rate", "kinds"), [(10.0, []), (12.0, ["rate"]), (1000.0, ["rate"])])
def test_another_rate_is_remarked_on(rate: float, kinds: list[str]) -> None:
    one = windows(30)[0]
    known = [Window(w.values, w.channels, w.label, w.group, w.asset, w.time, w.id, rate=10.0) for w in windows(30)]
    profile = LibraryProfile.of(WindowSet.of(known), WindowSet.of(known)[:0])
    query = Window(one.values, one.channels, -1, "", "", 0.0, "", rate=rate)
    found = check_window(profile, query)
    assert [remark.kind for remark in found] == kinds
    assert all(remark.judgeable for remark in found) == (rate < 100)


def test_an_empty_library_has_nothing_to_compare_with(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "l")
    assert library.check(asked()).judgeable
    assert not library.check(np.zeros((3, 40)), channels=CHANNELS).judgeable
