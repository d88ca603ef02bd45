"""Names and units that are given late count for cases that are in already."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.cases import Library, encode_cases
from readbench.engine.spec import parse
from tests.cases.samples import FAST

METHOD = "raw|dtw-i"


def fill(where: Path, *, named: bool) -> Library:
    """A library whose first case came under another name and in another unit than the rest."""
    library, rng = Library.create(where), np.random.default_rng(0)
    if named:
        library.name_channel("pressure", "bar", ["PT-101 [kPa]"])
    for i in range(8):
        values = rng.standard_normal((2, 32))
        values[0] += (3 if i % 2 else -3) * np.linspace(0, 1, 32)
        first = i % 4 == 0
        given = values * [[100.0], [1.0]] if first else values
        names = ["PT-101", "flow"] if first else ["pressure", "flow"]
        library.add_one(given, names, id=f"c{i}", label="rise" if i % 2 else "fall")
    return library


@pytest.mark.parametrize("method", [FAST, METHOD])
def test_a_name_given_later_is_as_good_as_one_given_before(tmp_path: Path, method: str) -> None:
    early, late = fill(tmp_path / "early", named=True), fill(tmp_path / "late", named=False)
    asked = np.random.default_rng(1).standard_normal((2, 32)) + np.array([[2.0], [0.0]])
    late.search(asked, channels=["pressure", "flow"], method=method)  # what is kept of the old names must not count
    late.name_channel("pressure", "bar", ["PT-101 [kPa]"])
    assert late.window("c0").channels(0) == ("pressure", "flow")
    np.testing.assert_allclose(late.window("c0").values(0), early.window("c0").values(0), rtol=1e-6)
    answers = [own.search(asked, channels=["pressure", "flow"], method=method) for own in (early, late)]
    first, second = ([(hit.case.id, hit.score) for hit in answer.hits] for answer in answers)
    assert [name for name, _ in first] == [name for name, _ in second]
    assert [score for _, score in first] == pytest.approx([score for _, score in second], rel=1e-4)
    assert encode_cases(late.snapshot(), parse(METHOD)) == (0 if method == METHOD else 8)


def test_windows_to_which_a_name_cannot_apply_stay(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "l")
    library.add_one(np.ones((2, 4)), ["PT-101", "pressure"], id="both")
    library.add_one(np.ones((1, 4)), ["heat"], id="warm", units=["K"])
    library.name_channel("pressure", "bar", ["PT-101 [kPa]"])
    library.name_channel("heat", "bar")
    assert library.window("both").channels(0) == ("PT-101", "pressure")
    assert library.window("warm").values(0).tolist() == [[1, 1, 1, 1]]


def test_a_search_says_what_is_renamed_missing_and_new(tmp_path: Path) -> None:
    library = fill(tmp_path / "l", named=True)
    answer = library.search(np.ones((2, 32)), channels=["PT-101", "heat"], method=FAST)
    told = " ".join(answer.remarks)
    assert "PT-101 is pressure" in told
    assert "lacks: flow" in told
    assert "not compared: heat" in told
    same = library.search(np.ones((2, 32)), channels=["pressure", "flow"], method=FAST)
    assert not any("Renamed" in remark or "lack" in remark for remark in same.remarks)


def test_cases_keep_start_end_and_zone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,x\n2026-01-01 01:00:00+01:00,1\n2026-01-01 01:00:09+01:00,2\n")
    library = Library.create(tmp_path / "l")
    (name,) = library.add(tmp_path / "a.csv")
    kept = Library.open(tmp_path / "l").case(name)
    assert (kept.time, kept.end, kept.zone) == (1767225600.0, 1767225609.0, "+01:00")


def test_an_older_library_takes_times_when_they_come(tmp_path: Path) -> None:
    old = Library.create(tmp_path / "l")
    journal = old.store._tables["journal"]  # type: ignore[attr-defined]
    journal.drop_columns(["end", "zone"])
    library = Library.open(tmp_path / "l")
    library.add_one(np.ones((1, 4)), ["x"], id="a")
    assert (library.case("a").end, library.case("a").zone) == (None, "")
    library.add_one(np.ones((1, 4)), ["x"], id="b", time=5.0, end=9.0, zone="UTC")
    known = Library.open(tmp_path / "l")
    assert [(case.id, case.end, case.zone) for case in known.cases()] == [("a", None, ""), ("b", 9.0, "UTC")]
