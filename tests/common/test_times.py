"""Only moments of the calendar come in, by clocks that exist; what was stored before is shown without an error."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from readbench.common.times import (
    EARLIEST,
    LATEST,
    check_moment,
    check_zone,
    find_clock,
    is_zone,
    parse_date,
    read_times,
    zone_of,
)
from readbench.errors import DataError, UsageError


@pytest.mark.parametrize(
    "text",
    [
        "2025-02-29",
        "2025-02-30 00:00",
        "29.02.1900",
        "0000-01-01 00:00:00",
        "9999-12-31 23:59:59",
        "1899-12-31",
        "2200-01-01",
        "2025-02-01 24:30",
        "2025-02-01 24:00:01",
        "2025-02-01 25:00",
        "2025-02-01T00:00:00+99:99",
        "2025-02-01T00:00:00+14:30",
    ],
)
def test_days_and_clocks_that_are_none_are_no_time(text: str) -> None:
    assert parse_date(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-02-29", 1709164800.0),
        ("2025-02-01 24:00", 1738454400.0),
        ("31.12.69", 3155673600.0),
        ("2016-12-31 23:59:60", 1483228800.0),
        ("1900-01-01", EARLIEST),
        ("2025-02-01T00:00:00+14:00", 1738317600.0),
    ],
)
def test_days_of_the_calendar_are_read(text: str, seconds: float) -> None:
    assert parse_date(text) == seconds


@given(st.datetimes(datetime(1900, 1, 1), datetime(2199, 12, 31)))  # noqa: DTZ001 - clocks without a zone
def test_dates_are_those_of_the_calendar(moment: datetime) -> None:
    wanted = (moment.replace(microsecond=0, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)
    assert parse_date(moment.strftime("%d.%m.") + f"{moment.year:04d} {moment:%H:%M:%S}") == wanted


@pytest.mark.parametrize("numbers", [[1e300, 1.1e300], [1e18 + 1e30, 1e31], [-5e9, -4.9e9]])
def test_numbers_outside_the_calendar_are_no_times(numbers: list[float]) -> None:
    assert read_times(pa.chunked_array([numbers]), "time") is None


def test_a_few_times_outside_the_calendar_are_gaps_and_named() -> None:
    found = read_times(pa.chunked_array([[*np.arange(19.0), 1e12]]), "t")
    assert found is not None
    assert np.isnan(found.seconds).tolist() == [False] * 19 + [True]
    assert found.remarks == ("1 of 20 times lie outside the years 1900 to 2199, which no recording does.",)


def test_cells_without_a_zone_are_read_by_the_one_that_was_told() -> None:
    texts = pa.chunked_array([["2025-06-01T10:00:00Z", "2025-06-01T12:00:01"]])
    found = read_times(texts, "time", zone="Europe/Berlin")
    assert found is not None
    assert np.diff(found.seconds).tolist() == [1.0]
    assert found.remarks == ("1 of 2 times name no zone, and were read by Europe/Berlin; the others name theirs.",)
    alone = read_times(texts, "time")
    assert alone is not None
    assert (np.diff(alone.seconds).tolist(), "read by UTC" in alone.remarks[0]) == ([7201.0], True)


@pytest.mark.parametrize(
    "text",
    ["+99:99", "+14:01", "-15:00", "+01:60", "Mars/Base", "../etc/passwd", "a\0b", "x" * 5000, "America", "\ud800"],
)
def test_a_zone_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="is no time zone"):
        check_zone(text)


@given(
    st.one_of(st.text(), st.from_regex(r"(UTC|GMT)?[+-]\d{1,2}:?\d{2}", fullmatch=True), st.sampled_from(["CEST", "Z"]))
)
def test_a_zone_that_is_taken_has_a_clock(text: str) -> None:
    if is_zone(text):
        assert zone_of(check_zone(text)) is not None
        assert check_zone(check_zone(text)) == check_zone(text)


@given(st.floats(), st.text())
def test_every_stored_moment_can_be_shown(seconds: float, zone: str) -> None:
    clock = find_clock(seconds, zone)
    assert (clock is not None) == (EARLIEST <= seconds < LATEST)


@pytest.mark.parametrize("seconds", [1e18, 1e306, -1e306, float("nan"), float("inf"), LATEST, EARLIEST - 1])
def test_a_moment_outside_the_calendar_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="outside the years 1900 to 2199"):
        check_moment(seconds, "time of case 'a'")
