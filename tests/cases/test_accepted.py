"""Whatever is taken can be searched, checked, reported, drawn, exported and imported; bounds are kept at the door."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from readbench.cases import Case, Library, _journal as journal, draw_evidence, export_library, import_library
from readbench.cases._journal import JournalEntry
from readbench.cases._reports import report_case
from readbench.cases.limits import MAX_FACTS, MAX_LINKS, MAX_TAGS
from readbench.common.plots import save
from readbench.engine.context import Context
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, ReadbenchError, UsageError
from tests.cases.accepted import BROUGHT, CHANNELS, KNOWN, READINGS
from tests.cases.samples import CHANNELS as USUAL, FAST, filled, windows


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library that takes whatever it is given."""
    return filled(tmp_path_factory.mktemp("accepted") / "plant")


@pytest.mark.filterwarnings("ignore:Single precision cannot resolve", "ignore:Glyph")
@settings(
    max_examples=settings().max_examples // 5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(known=KNOWN, brought=BROUGHT, channels=CHANNELS, values=READINGS, usual=st.booleans())
def test_what_is_taken_can_be_shown_everywhere(
    plant: Library,
    known: dict[str, Any],
    brought: dict[str, Any],
    channels: list[str],
    values: list[list[float]],
    usual: bool,  # noqa: FBT001 - drawn
) -> None:
    names = list(USUAL[:2]) if usual else channels
    try:
        case = plant.add_one(np.array(values), names, **brought, **known).id
    except ReadbenchError as error:
        assert str(error).encode()  # noqa: PT017 - a sentence that can be printed
        return
    show_everything(plant, case)
    plant.delete([case])


def show_everything(library: Library, case: str) -> None:
    assert library.search(case, method=FAST).hits
    library.check(case)
    library.details(case)
    library.describe_contexts(library.cases())
    assert report_case(library, case, method=FAST).startswith("<!")
    with TemporaryDirectory() as folder:
        save(draw_evidence(library.explain("w0", case)), Path(folder) / "evidence.pdf")
        export_library(library, Path(folder) / "all.parquet")
        other = Library.create(Path(folder) / "other")
        import_library(other, Path(folder) / "all.parquet")
        assert other.case(case).model_copy(update={"changed": 0.0}) == library.case(case).model_copy(
            update={"changed": 0.0}
        )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"time": 1e18}, "outside the years 1900 to 2199"),
        ({"end": 1e306}, "outside the years 1900 to 2199"),
        ({"zone": "+99:99"}, "no time zone"),
        ({"tags": [str(i) for i in range(MAX_TAGS + 1)]}, "101 tags: at most 100"),
        ({"links": [f"https://a/{i}" for i in range(MAX_LINKS + 1)]}, "101 links: at most 100"),
        ({"facts": {str(i): 1.0 for i in range(MAX_FACTS + 1)}}, "101 facts"),
        ({"facts": {"speed": 1e308}}, "no finite number"),
        ({"rate": 1e-300}, "from 1e-09 to 1e"),
        ({"rate": 1e300}, "from 1e-09 to 1e"),
        ({"units": ["bar"] * 10_001}, "10,001 units"),
        ({"notes": "a\ud800"}, "no file can hold"),
        ({"label": "a\udfff"}, "control characters"),
    ],
)
def test_what_lies_outside_the_bounds_is_refused(library: Library, given: dict[str, Any], words: str) -> None:
    with pytest.raises((DataError, UsageError), match=words):
        library.add_one(windows(1).values(0), USUAL, id="x", **given)
    assert len(library) == 12


def test_a_zone_is_kept_in_one_form(library: Library) -> None:
    assert library.add_one(windows(1, seed=5).values(0), USUAL, id="x", time=1.7e9, zone="CEST").zone == "+02:00"


def test_a_reading_is_below_its_bound_or_a_gap(library: Library) -> None:
    values = windows(1, seed=5).values(0).astype(np.float64)
    values[0, 3], values[1, 4], values[2, 5] = 1e30, -np.inf, 1e300
    library.add_one(values, USUAL, id="x")
    assert np.abs(library.window("x").values(0)).max() < 1e3
    (odd,) = [own.words for own in library.check(values, channels=USUAL).plausibility][:1]
    assert odd == "3 of its 120 readings are infinite or 1e+30 and more: taken as missing."


def test_windows_without_any_reading_say_why(library: Library) -> None:
    with pytest.raises(DataError, match=r"0 of 30 are missing, and 30 are infinite or 1e\+30 and more"):
        library.search(np.full((3, 10), 1e300), channels=USUAL, method=FAST)


@pytest.mark.parametrize(
    ("what", "words"),
    [(np.inf, "12 of its 120 readings are infinite"), (np.nan, "50% of its readings are missing")],
)
def test_gaps_get_a_word(library: Library, what: float, words: str) -> None:
    values = windows(1, seed=3).values(0).copy()
    values[:, :: 2 if np.isnan(what) else 10] = what
    answer = library.search(values, channels=USUAL, method=FAST)
    assert any(words in own.words for own in answer.plausibility)


def store_as_before(library: Library, case: Case, values: np.ndarray, rate: float = 1.0) -> None:
    """What a version without bounds would have written."""
    window = WindowSet.from_arrays([values], channels=USUAL, ids=[case.id])
    window = window.with_context(Context.of(1, rates=[rate]))
    state = library.snapshot().state
    (digest,), (context,) = library.store.file_windows(window), library.store.file_contexts(window)
    entry = JournalEntry(case, state.steps, digest, False, context)  # noqa: FBT003 - no normal window
    rows = journal.journal_rows([entry], "add", state.change + 1, state.steps, state.next_stamp())
    library.store.append(rows)


@pytest.mark.parametrize("time", [1e18, 1e306, -1e306])
def test_what_an_older_version_stored_opens_and_can_be_mended(library: Library, time: float) -> None:
    values = np.tile(np.array([3e38, -3e38], np.float32), (3, 20))
    old = Case(id="old", label="leak", time=time, end=time, zone="+99:99", tags=tuple(str(i) for i in range(300)))
    store_as_before(library, old, values, rate=1e-300)
    again = Library.open(library.store.where)
    assert again.search("old", method=FAST).hits
    again.check("old")
    assert "outside the calendar" in report_case(again, "old", method=FAST)
    assert again.label("old", "stuck valve").label == "stuck valve"
    assert again.edit("old", time=1.7e9, end=None, zone="UTC").time == 1.7e9
    with pytest.raises(UsageError, match="outside the years"):
        again.edit("old", time=1e17)
    again.delete(["old"])
