"""What is understood of tables as historians write them, and that nothing else can happen."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from readbench.common.tables import Limits, Table, read_table
from readbench.engine.signal_tables import SignalTable, understand_table
from readbench.engine.window_tables import Roles, series_of
from readbench.errors import DataError, ReadbenchError
from tests.engine.layouts import LAYOUTS, Layout


def understand(content: bytes | str, roles: Roles | None = None, file: str = "a.csv") -> SignalTable:
    content = content if isinstance(content, bytes) else content.encode()
    return understand_table(read_table((file, content)), roles or Roles())


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_layouts_are_understood(layout: Layout) -> None:
    found = understand(layout.bytes, file=layout.file)
    (series,) = series_of(found.table, found.roles)
    assert dict(zip(series.channels, series.values.tolist(), strict=True)).keys() == layout.values.keys()
    for name, values in zip(series.channels, series.values, strict=True):
        np.testing.assert_allclose(values, layout.values[name], err_msg=name)
    if layout.start is None:
        assert np.isnan(series.start)
    else:
        assert series.start == pytest.approx(layout.start, abs=1e-3)
        assert series.step == pytest.approx(layout.step, rel=1e-3)
    assert found.zone == layout.zone
    named = {name: unit for name, unit in zip(series.channels, series.units, strict=True) if unit}
    assert named == layout.units
    told = " ".join(found.remarks)
    assert [words for words in layout.says if words not in told] == []


def test_at_least_forty_layouts_are_looked_at() -> None:
    assert len({layout.name for layout in LAYOUTS}) == len(LAYOUTS) >= 40


def test_what_the_user_says_stands() -> None:
    text = "time,T1,other\n0,1,5\n1,2,7\n"
    named = understand(text, Roles(time="other", channels=("T1",)))
    assert (named.roles.time, named.roles.channels) == ("other", ("T1",))
    without = understand(text, Roles(time="-"))
    assert (without.roles.time, without.roles.channels) == ("", ("time", "T1", "other"))
    zoned = understand("time,x\n2026-01-01 01:00,1\n2026-01-01 01:01,2\n", Roles(zone="Europe/Berlin"))
    assert (zoned.table.numbers("time")[0], zoned.zone) == (1767225600.0, "Europe/Berlin")


def test_labels_and_cases_stay_texts() -> None:
    text = "time;run;x;fault\n0;007;1,5;bad\n1;007;2,5;bad\n0;x1;3,5;error\n1;x1;4,5;error\n"
    found = understand(text, Roles(case="run", label="fault"))
    one, two = series_of(found.table, found.roles)
    assert (one.id, one.label, one.values.tolist()) == ("007", "bad", [[1.5, 2.5]])
    assert (two.id, two.label, two.values.tolist()) == ("x1", "error", [[3.5, 4.5]])


def test_times_that_begin_again_are_no_time_without_a_case() -> None:
    text = "t,x,run\n0,1,A\n1,2,A\n0,3,B\n1,4,B\n"
    found = understand(text)
    assert found.roles.time == ""
    assert "begins again" in " ".join(found.remarks)
    assert understand(text, Roles(case="run")).roles.time == "t"


@pytest.mark.parametrize("last", ["1e9999", "-1e9999", "nan"])
def test_endless_numbers_in_the_first_column_are_no_time(last: str) -> None:
    assert understand(f"1,5\n2,6\n{last},7\n").roles.time == ""
    assert understand("1,5\n2,6\n3,7\n").roles.time == "column 1"


def test_a_column_that_holds_no_times_is_named() -> None:
    with pytest.raises(DataError, match="column 'state' holds no times: texts: on, off"):
        understand("state,x\non,1\noff,2\n", Roles(time="state"))


def test_data_frames_with_dates_are_understood() -> None:
    times = pa.array(np.array(["2025-12-31T23:59:58", "2025-12-31T23:59:59"], "datetime64[ns]"))
    found = understand_table(Table("frame", pa.table({"x": [1.0, 2.0], "__index_level_0__": times})), Roles())
    assert (found.roles.time, found.roles.channels) == ("__index_level_0__", ("x",))


@settings(max_examples=150)
@given(
    layout=st.sampled_from(LAYOUTS),
    place=st.floats(0, 1),
    change=st.one_of(st.binary(max_size=6), st.sampled_from([b";", b",", b"\n", b'"', b"\t", b"Bad", b"1e999", b"#"])),
    removed=st.integers(0, 20),
)
def test_damaged_layouts_are_understood_or_refused_in_one_sentence(
    layout: Layout, place: float, change: bytes, removed: int
) -> None:
    content = layout.bytes
    at = int(place * len(content))
    try:
        found = understand_table(
            read_table((layout.file, content[:at] + change + content[at + removed :]), Limits(max_bytes=10**7)), Roles()
        )
        series = series_of(found.table, found.roles)
    except ReadbenchError as error:
        assert len(str(error)) > 20  # noqa: PT017 - either outcome is right
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert all(own.values.shape == (len(own.channels), own.values.shape[1]) for own in series)


@settings(max_examples=150)
@given(
    rows=st.lists(
        st.lists(
            st.sampled_from(
                [
                    "",
                    "1",
                    "1,5",
                    "2.5",
                    "1.234,5",
                    "Bad",
                    "x",
                    "31.12.2025",
                    "23:59",
                    "2025-01-01T00:00Z",
                    "°C",
                    "time",
                    "#",
                ]
            ),
            max_size=4,
        ),
        max_size=8,
    ),
    delimiter=st.sampled_from([",", ";", "\t", "|", " "]),
)
def test_any_cells_are_understood_or_refused_in_one_sentence(rows: list[list[str]], delimiter: str) -> None:
    text = "\n".join(delimiter.join(row) for row in rows)
    try:
        found = understand(text)
        series_of(found.table, found.roles)
    except ReadbenchError as error:
        assert len(str(error)) > 20  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize("grown", ["rows", "columns"])
def test_the_work_grows_as_the_file_does(grown: str) -> None:
    """Twice the rows or columns cost no more than about twice the calls of functions."""

    def calls(size: int) -> int:
        rows, columns = (4, size) if grown == "columns" else (size, 4)
        header = "Zeit;" + ";".join(f"S{i}" for i in range(columns))
        lines = [f"{t},5;" + ";".join(f"{t},{i}" if i % 7 else "Bad" for i in range(columns)) for t in range(rows)]
        text = "\n".join([header, *lines]).encode()
        count = 0

        def note(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(note)
        try:
            understand(text)
        finally:
            sys.setprofile(None)
        return count

    calls(50)
    first, second = calls(200), calls(400)
    assert second < 2.3 * first


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([0, 1, 2, 3, 1e8], "A hole of 3.17 years after 3 s: the rows on both sides are taken as neighbours."),
        ([0, 1, 2, 30, 31, 90], "2 holes, the longest of 59 s, after 31 s: the rows on both sides"),
        ([0, 2, 1, 4, 3], "2 of 5 rows are older than the row above: rows were sorted by time."),
        ([4, 3, 2, 1, 0], "Rows stand with the newest first: they were turned round."),
        ([1e300, 1.1e300, 1.2e300], "Left out: time (numbers outside the years 1900 to 2199)."),
    ],
)
def test_what_was_done_about_times_is_said(times: list[float], words: str) -> None:
    rows = "".join(f"{time},{row}\n" for row, time in enumerate(times))
    assert words in " ".join(understand(f"time,x\n{rows}").remarks)


def test_days_that_the_calendar_does_not_have_are_named() -> None:
    rows = "".join(f"2025-02-29 00:00:0{row},{row}\n" for row in range(4))
    words = "Left out: time (no dates of the years 1900 to 2199: 2025-02-29 00:00:00)."
    assert words in understand(f"time,x\n{rows}").remarks


def test_neither_order_nor_holes_are_looked_for_between_cases() -> None:
    rows = "0,1,A\n1,2,A\n2,3,A\n0,4,B\n1,5,B\n900,6,C\n901,7,C\n"
    said = " ".join(understand(f"t,x,run\n{rows}", Roles(case="run")).remarks)
    assert "hole" not in said
    assert "older" not in said
