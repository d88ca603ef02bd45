"""Parse times: dates in many formats, time zones, and numbers since various epochs.

`read_times` converts a column to seconds. Dates with a zone, in each cell or in the header, become seconds since 1970
in UTC. Dates without one are read as if they were UTC, and `zone` stays empty. A day that the calendar lacks is no
time, nor is one outside the years 1900 to 2199. Only `check_moment` and `check_zone` make a time or zone that may be
stored; `find_clock` displays any stored value.
```
2025-12-31T23:59:58.123+01:00    ISO, with blanks, slashes or dots too; a comma before the fraction; 20251231T235958
31.12.2025 23:59:58,123          day first with dots
12/31/2025 11:59:58 PM           which number is the month is decided by all rows
31-Dec-25 23:59:58               months in English, German, French and Spanish
23:59:58                         time of day: midnight begins a new day
20251231235958                   the same in digits alone
1767225598                       since 1970 in s, ms, us or ns by its size; since 1904 (LabVIEW), since 1601 (Windows)
46022.99998                      days of Excel or MATLAB, if the name contains a date word or steps are below a minute
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any, Literal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from readbench.errors import DataError, UsageError

TimeUnit = Literal["auto", "s", "ms", "us", "ns"]
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Seconds per unit."""
DAY_S = 86400.0
EARLIEST = -2208988800.0
"""Start of 1900 in UTC, seconds since 1970: the earliest accepted time."""
LATEST = 7258118400.0
"""Start of 2200 in UTC, seconds since 1970: the first time too late."""
_TIME_NAMES_TEXT = (
    "time|t|timestamp|timestamps|time stamp|datetime|date time|date|seconds|step|ts|utc|utc time|local time|localtime|"
    "zeit|zeitstempel|zeitpunkt|datum|uhrzeit|datum zeit|datum uhrzeit|x value|epoch|unix time|unixtime|t stamp|"
    "sample time|heure|horodatage|date heure|fecha|fecha hora|hora|tijd|tijdstip|czas|data ora|timestring|"
    "source timestamp|sourcetimestamp|server timestamp|event time|record time|elapsed time|time seconds|datenum"
)
TIME_NAMES = frozenset(_TIME_NAMES_TEXT.split("|"))
"""Names of time columns; compared without case, unit and separators."""
_DATE_WORDS = ("date", "datum", "stamp", "fecha", "horodatage", "datenum", "epoch")
_DIGIT_DATES = 1900_01_01_000000, 2100_01_01_000000
"""Numbers in this range are dates written in digits, of the years 1900 to 2099."""
_MAX_DAY_STEP = 1.0 / 1440.0
"""In days; numbers between 20,000 and 80,000 with shorter steps are days, not seconds sampled at 1440 Hz."""
_FIRST_DAY = date(1970, 1, 1).toordinal()
_MAX_OFFSET_S = 14 * 3600.0
"""Largest offset of any time zone from UTC."""
_MIN_READABLE_SHARE = 0.9
"""Minimum share of cells that must be readable in a column of times."""
_SAMPLE_CELLS = 50
_MAX_DATE_CHARACTERS = 80
"""Maximum characters of a date."""
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar janvier janv ene enero",
            "feb february februar fevrier février févr febrero",
            "mar march mär märz mrz mars marzo",
            "apr april avr avril abr abril",
            "may mai mayo",
            "jun june juni juin junio",
            "jul july juli juil juillet julio",
            "aug august août aout ago agosto",
            "sep sept september septembre septiembre",
            "oct october okt oktober octobre octubre",
            "nov november novembre noviembre",
            "dec december dez dezember déc décembre dic diciembre",
        ),
        start=1,
    )
    for name in names.split()
}
_OFFSETS = {
    "Z": 0.0,
    "UTC": 0.0,
    "GMT": 0.0,
    "WET": 0.0,
    "CET": 1.0,
    "MEZ": 1.0,
    "BST": 1.0,
    "WEST": 1.0,
    "CEST": 2.0,
    "MESZ": 2.0,
    "EET": 2.0,
    "EEST": 3.0,
    "MSK": 3.0,
    "JST": 9.0,
    "EST": -5.0,
    "EDT": -4.0,
    "CST": -6.0,
    "CDT": -5.0,
    "MST": -7.0,
    "MDT": -6.0,
    "PST": -8.0,
    "PDT": -7.0,
}
"""Hours ahead of UTC, by abbreviation."""
_OFFSET = re.compile(r"(?:UTC|GMT)?\s*(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?")
_REGION = re.compile(r"(?<![A-Za-z])[A-Z][A-Za-z]{1,40}/[A-Z][A-Za-z_]{1,40}")
_CLOCK = (
    r"(?:(?:[ T_,;]+|:)(?P<h>\d{1,2}):(?P<mi>\d{2})(?::(?P<s>\d{2})(?:[.,:](?P<f>\d{1,9}))?)?"
    r"\s*(?P<ap>[AaPp]\.? ?[Mm]\.?)?\s*(?P<z>Z|(?:UTC|GMT)?\s?[+-]\d{1,2}(?::?\d{2})?|[A-Z]{3,4})?)?$"
)
_WEEKDAY = r"^(?:[A-Za-zäöü]{2,9}\.?,?\s+)?"
_FORMS = {
    "year first": _WEEKDAY + r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})" + _CLOCK,
    "numbers": _WEEKDAY + r"(?P<a>\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})[-/.](?P<y>\d{4}|\d{2})" + _CLOCK,
    "month by name": _WEEKDAY
    + r"(?P<d>\d{1,2})\.?[-/ .](?P<name>[A-Za-zäéûô]{3,10})\.?,?[-/ .](?P<y>\d{4}|\d{2})"
    + _CLOCK,
    "name first": _WEEKDAY + r"(?P<name>[A-Za-zäéûô]{3,10})\.?[-/ ](?P<d>\d{1,2}),?[-/ ]+(?P<y>\d{4})" + _CLOCK,
    "compact": r"^(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})[T_ -]?(?P<h>\d{2})(?P<mi>\d{2})(?P<s>\d{2})"
    r"(?:[.,](?P<f>\d{1,9}))?(?P<ap>)(?P<z>Z|[+-]\d{2}:?\d{2})?$",
    "time of day": r"^(?P<h>\d{1,5}):(?P<mi>\d{2})(?::(?P<s>\d{2})(?:[.,:](?P<f>\d{1,9}))?)?"
    r"\s*(?P<ap>[AaPp]\.? ?[Mm]\.?)?(?P<z>)$",
}
_NO_BREAK_SPACES = "[\u00a0\u202f]"
_DATE_ONLY = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")


@dataclass(frozen=True, eq=False)
class ReadTimes:
    """A column of times.

    Args:
        seconds: (rows,) since 1970, or since the start of the recording; NaN if missing.
        zone: `UTC`, an offset such as `+01:00` or a region such as `Europe/Berlin`; "" if unknown.
        remarks: decisions made while reading, in sentences.
    """

    seconds: NDArray[np.float64]
    zone: str = ""
    remarks: tuple[str, ...] = ()


def is_time_name(name: str) -> bool:
    """Whether a column has a usual name for times.

    >>> is_time_name("Time [s]"), is_time_name("Date/Time (UTC+1)"), is_time_name("_time"), is_time_name("pressure")
    (True, True, True, False)
    """
    bare = re.split(r"[\[(]", name.strip(), maxsplit=1)[0]
    words = re.sub(r"[\W_]+", " ", bare).strip().casefold()
    return words in TIME_NAMES or re.sub(r" (s|ms|us|ns|sec)$", "", words) in TIME_NAMES


def read_times(column: Any, name: str, unit: TimeUnit = "auto", zone: str = "") -> ReadTimes | None:  # noqa: ANN401
    """Read a column as times, or return None if it holds none.

    Args:
        column: an Arrow column of texts, numbers, dates or times of day.
        name: of the column; may name unit and zone.
        unit: of numbers; `auto` decides by the name and their size.
        zone: of dates that name none.

    >>> texts = pa.chunked_array([["31.12.2025 23:59:58,5", "31.12.2025 23:59:59,5"]])
    >>> read_times(texts, "Zeit").seconds.tolist()
    [1767225598.5, 1767225599.5]
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    told = zone or find_zone(name)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _bound(_settle(_of_timestamps(column), "UTC" if getattr(kind, "tz", None) else "", told))
    if pa.types.is_time(kind):
        micros = column.cast(pa.time64("us"), safe=False).cast(pa.int64())
        return ReadTimes(_unwrap(_numpy(micros) / 1e6))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers = _numpy(column)
        dates = _of_digits(numbers, told) if unit == "auto" else None
        return _bound(dates or _of_numbers(numbers, name, unit, zone))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = pc.replace_substring_regex(column.cast(pa.string()), _NO_BREAK_SPACES, " ")
        return _bound(_of_texts(pc.utf8_trim_whitespace(texts), told))
    return None


def _bound(found: ReadTimes | None) -> ReadTimes | None:
    """Set times outside 1900 to 2199 to NaN; None if they are more than a tenth."""
    if found is None:
        return None
    inside = is_moment(found.seconds)
    outside = np.isfinite(found.seconds) & ~inside
    if not outside.any():
        return found
    if inside.sum() < _MIN_READABLE_SHARE * (inside.sum() + outside.sum()):
        return None
    said = f"{outside.sum():,} of {len(inside):,} times lie outside the years 1900 to 2199, which no recording does."
    return replace(found, seconds=np.where(inside, found.seconds, np.nan), remarks=(*found.remarks, said))


def is_moment(seconds: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(rows,) which numbers are valid moments: years 1900 to 2199, or seconds since the start of a recording."""
    inside: NDArray[np.bool_] = (seconds >= EARLIEST) & (seconds < LATEST)
    return inside


def check_moment(seconds: float, what: str) -> float:
    """Return the time unless it is outside 1900 to 2199; raise `UsageError` then.

    >>> check_moment(1.7e9, "time of case a")
    1700000000.0
    """
    if not EARLIEST <= seconds < LATEST:
        raise UsageError(
            f"The {what} is {seconds:g}, which is outside the years 1900 to 2199. Give seconds since 1970, or since the"
            " recording began."
        )
    return float(seconds)


def find_clock(seconds: float | None, zone: str = "") -> datetime | None:
    """Local time of a stored time; None for an invalid time, UTC for an invalid zone. Never raises.

    >>> str(find_clock(1.7e9, "+01:00")), find_clock(1e18), str(find_clock(0.0, "+99:99"))
    ('2023-11-14 23:13:20+01:00', None, '1970-01-01 00:00:00+00:00')
    """
    if seconds is None or not EARLIEST <= seconds < LATEST:
        return None
    return datetime.fromtimestamp(seconds, zone_of(zone) if is_zone(zone) else UTC)


def find_shift(time: float | None, zone: str) -> float:
    """Offset of a zone from UTC in seconds at a stored time; 0 if either is invalid.

    >>> find_shift(1.7e9, "Europe/Berlin"), find_shift(1e18, "Europe/Berlin"), find_shift(1.7e9, "+99:99")
    (3600.0, 0.0, 0.0)
    """
    clock = find_clock(time, zone)
    ahead = None if clock is None else clock.utcoffset()
    return 0.0 if ahead is None else ahead.total_seconds()


def describe_span(seconds: float) -> str:
    """Format a duration in its natural unit.

    >>> describe_span(12.5), describe_span(5400.0), describe_span(2.6e5), describe_span(1e8)
    ('12.5 s', '1.5 hours', '3.01 days', '3.17 years')
    """
    sizes = {"years": 365.25 * DAY_S, "days": DAY_S, "hours": 3600.0, "minutes": 60.0}
    unit = next((name for name, size in sizes.items() if seconds >= 1.25 * size), "s")
    return f"{float(f'{seconds / sizes.get(unit, 1.0):.3g}'):,g} {unit}"


def parse_date(text: str, zone: str = "") -> float | None:
    """Parse one date to seconds since 1970, in `zone` unless it names another; None if it is no date.

    >>> parse_date("31.12.2025 23:59"), parse_date("1.5")
    (1767225540.0, None)
    """
    found = _bound(_of_texts(pa.chunked_array([[text.strip()]]), zone))
    if found is None or _find_form(text.strip()) == "time of day":
        return None
    return float(found.seconds[0])


def find_zone(text: str) -> str:
    """Find the time zone named in a header or in lines above the table; "" for none.

    >>> find_zone("Time (UTC+1)"), find_zone("Zeit [MEZ]"), find_zone("Time zone: Europe/Berlin"), find_zone("Time")
    ('+01:00', '+01:00', 'Europe/Berlin', '')
    """
    if found := _REGION.search(text):
        return found[0] if is_zone(found[0]) else ""
    if found := re.search(r"\b(UTC|GMT)\s*([+-]\d{1,2}(:?\d{2})?)", text):
        return check_zone(found[0])
    words = re.findall(r"\b[A-Z]{3,4}\b", text)
    return next((check_zone(word) for word in words if word in _OFFSETS), "")


def is_zone(text: str) -> bool:
    """Whether a text names a time zone."""
    try:
        check_zone(text)
    except DataError:
        return False
    return True


def check_zone(text: str) -> str:
    """Normalise a time zone to `UTC`, `+01:00` or a region; raise `DataError` for an unknown one.

    >>> check_zone("UTC+1"), check_zone("CEST"), check_zone("Europe/Berlin"), check_zone("Z")
    ('+01:00', '+02:00', 'Europe/Berlin', 'UTC')
    """
    text = text.strip()
    if not text:
        return ""
    if text in _OFFSETS:
        return _name_offset(_OFFSETS[text] * 3600)
    if (found := _OFFSET.fullmatch(text)) and _is_offset(found):
        return _name_offset(_offset_of(found))
    try:
        ZoneInfo(text)
        pc.assume_timezone(pa.array([0], pa.timestamp("s")), text)
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise DataError(
            f"{text[:40]!r} is no time zone. Give UTC, an offset up to 14 hours such as +01:00, or a region such as"
            " Europe/Berlin."
        ) from error
    return text


def zone_of(zone: str) -> tzinfo:
    """Convert a zone accepted by `check_zone` to a `tzinfo`; UTC for "".

    >>> zone_of("+01:00").utcoffset(None)
    datetime.timedelta(seconds=3600)
    """
    zone = check_zone(zone)
    if found := _OFFSET.fullmatch(zone):
        return timezone(timedelta(seconds=_offset_of(found)))
    return UTC if zone in {"", "UTC"} else ZoneInfo(zone)


def _of_timestamps(column: Any) -> NDArray[np.float64]:  # noqa: ANN401 - an Arrow column
    micros = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)), safe=False).cast(pa.int64())
    return _numpy(micros) / 1e6


def _settle(seconds: NDArray[np.float64], zone: str, told: str, remarks: tuple[str, ...] = ()) -> ReadTimes:
    """Convert to UTC by the zone `told`, unless the times named a zone."""
    if zone or not told:
        return ReadTimes(seconds, zone, remarks)
    told = check_zone(told)
    if found := _OFFSET.fullmatch(told):
        return ReadTimes(seconds - _offset_of(found), told, remarks)
    if told == "UTC":
        return ReadTimes(seconds, told, remarks)
    first, second = (_shift(seconds, told, ambiguous) for ambiguous in ("earliest", "latest"))
    again = _pass_again(seconds, np.nan_to_num(second - first))
    if again.any():
        remarks += (f"Clocks went back in {told}: the hour that came twice was told apart by the order of rows.",)
    return ReadTimes(np.where(again, second, first), told, remarks)


def _shift(seconds: NDArray[np.float64], region: str, ambiguous: str) -> NDArray[np.float64]:
    """Convert local times of a region to UTC; `ambiguous` picks the earliest or latest meaning of a repeated hour."""
    known = np.isfinite(seconds)
    micros = np.where(known, np.nan_to_num(seconds) * 1e6, 0).astype(np.int64)
    clock = pa.array(micros).cast(pa.timestamp("us"))
    shifted = pc.assume_timezone(clock, region, ambiguous=ambiguous, nonexistent="latest")
    return np.where(known, _numpy(shifted.cast(pa.int64())) / 1e6, np.nan)


def _pass_again(seconds: NDArray[np.float64], shift: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(rows,) times in the second pass of a repeated hour; `shift` is non-zero in repeated hours.

    The second pass begins at a step back that vanishes once clocks are corrected: its corrected step is no longer than
    other steps in repeated hours.

    >>> clock, shift = np.array([0.0, 60.0, 90.0, 60.0, 90.0, 120.0]), np.array([0, 60, 60, 60, 60, 0])
    >>> _pass_again(clock, shift).astype(int).tolist()
    [0, 0, 0, 1, 1, 0]
    """
    steps = np.diff(seconds)
    if (steps < 0).sum() > (steps > 0).sum():  # the newest row is the first
        return _pass_again(seconds[::-1], shift[::-1])[::-1]
    twice = shift > 0
    goes_on = twice[1:] & twice[:-1]
    longest = steps[goes_on].max(initial=0.0)
    back = np.concatenate([[False], goes_on & (steps < 0) & (steps + shift[1:] <= longest)])
    starts = np.where(twice & ~np.concatenate([[False], goes_on]), np.arange(len(twice)), 0)
    passes = np.cumsum(back)
    again: NDArray[np.bool_] = twice & (passes > passes[np.maximum.accumulate(starts)])
    return again


def _of_digits(numbers: NDArray[np.float64], told: str) -> ReadTimes | None:
    """Read numbers as dates in digits (20251231235958) if all of them are."""
    known = np.isfinite(numbers)
    if not known.any() or numbers[known].min() < _DIGIT_DATES[0] or numbers[known].max() >= _DIGIT_DATES[1]:
        return None
    whole = pa.array(np.where(known, numbers, 0.0).astype(np.int64), mask=~known)
    return _of_texts(pa.chunked_array([whole.cast(pa.string())]), told)


def _of_numbers(numbers: NDArray[np.float64], name: str, unit: TimeUnit, zone: str) -> ReadTimes | None:
    """Read numbers as times by the unit in the header, else by their size."""
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        return None
    if unit != "auto":
        return ReadTimes(numbers * SECONDS[unit])
    low, high = float(known.min()), float(known.max())
    written = _unit_in(name)
    if written:
        seconds = numbers * written
        return ReadTimes(seconds, "UTC" if low * written >= 1e9 else "")
    if found := _of_days(numbers, name, zone):
        return found
    for least, most, scale, since, what in (
        (1.1e17, 1.5e17, 1e-7, 11644473600.0, "steps of 100 ns since 1601 (Windows)"),
        (5e17, 1e19, 1e-9, 0.0, "nanoseconds since 1970"),
        (5e14, 1e17, 1e-6, 0.0, "microseconds since 1970"),
        (5e11, 5e14, 1e-3, 0.0, "milliseconds since 1970"),
        (3.3e9, 4.3e9, 1.0, 2082844800.0, "seconds since 1904 (LabVIEW)"),
    ):
        if least <= low and high < most:
            return ReadTimes(numbers * scale - since, "UTC", (f"The times in {name!r} are {what}.",))
    return ReadTimes(numbers, "UTC" if low >= 1e9 and high < 3.3e9 else "")


def _of_days(numbers: NDArray[np.float64], name: str, zone: str) -> ReadTimes | None:
    """Read numbers as days if the name contains a word for date or the steps are too short for seconds."""
    known = np.sort(numbers[np.isfinite(numbers)])
    short = len(known) > 1 and 0 < np.median(np.diff(known)) < _MAX_DAY_STEP
    if not (short or any(word in name.casefold() for word in _DATE_WORDS)):
        return None
    for what, first, last, origin in (("Excel", 2e4, 8e4, 25569.0), ("MATLAB", 7e5, 8e5, 719529.0)):
        if first <= known[0] and known[-1] <= last:
            days = np.round((numbers - origin) * DAY_S, 3)
            return _settle(days, "", zone, (f"The times in {name!r} are days as {what} counts them.",))
    return None


def _unit_in(name: str) -> float:
    """Seconds of the unit named in a header; 0 for none."""
    found = re.search(r"(?:[\[(]|[_ ])(s|sec|ms|us|µs|ns|min|h)[\])]?$", name.strip())
    units = SECONDS | {"sec": 1.0, "µs": 1e-6, "min": 60.0, "h": 3600.0}
    return units[found[1]] if found else 0.0


def _of_texts(texts: Any, told: str) -> ReadTimes | None:  # noqa: ANN401 - an Arrow column of trimmed texts
    """Read texts as times if most of them are."""
    count = len(texts) - texts.null_count
    sample = [text for text in texts.slice(0, 20 * _SAMPLE_CELLS).to_pylist() if text][:_SAMPLE_CELLS]
    forms = list(dict.fromkeys(form for text in sample if (form := _find_form(text))))
    if not count or not forms:
        return None
    seconds, zones = np.full(len(texts), np.nan), _Zones(np.zeros(len(texts), bool))
    remarks: list[str] = []
    for form in forms:
        found = pc.extract_regex(texts, _FORMS[form]).combine_chunks()
        rows = np.flatnonzero(_numpy(found.is_valid()))
        if not len(rows):
            continue
        parts = {field.name: found.field(field.name).take(pa.array(rows)) for field in found.type}
        seconds[rows], said = _seconds_of(parts, form, rows, zones)
        remarks += said
    read = np.isfinite(seconds)
    filled = _numpy(pc.and_(texts.is_valid(), pc.not_equal(pc.coalesce(texts, ""), ""))).astype(bool)
    if read.sum() < _MIN_READABLE_SHARE * filled.sum() or not read.any():
        return None
    if forms == ["time of day"]:
        return ReadTimes(_unwrap(seconds))
    return zones.settle(seconds, told, tuple(remarks))


@dataclass(eq=False)
class _Zones:
    """Time zones named in the cells of a column.

    Args:
        named: (rows,) cells that name a zone.
        offsets: distinct offsets from UTC, seconds.
    """

    named: NDArray[np.bool_]
    offsets: set[float] = field(default_factory=set)

    def settle(self, seconds: NDArray[np.float64], told: str, remarks: tuple[str, ...]) -> ReadTimes:
        """Convert to UTC: cells without a zone use `told`."""
        if not self.offsets:
            return _settle(seconds, "", told, remarks)
        zone = _name_offset(min(self.offsets)) if len(self.offsets) == 1 else "UTC"
        bare = np.isfinite(seconds) & ~self.named
        if not bare.any():
            return ReadTimes(seconds, zone, remarks)
        rest = _settle(np.where(bare, seconds, np.nan), "", told)
        count = f"{bare.sum():,} of {len(bare):,} times"
        said = f"{count} name no zone, and were read by {rest.zone or 'UTC'}; the others name theirs."
        return ReadTimes(np.where(bare, rest.seconds, seconds), zone, (*remarks, *rest.remarks, said))


def _find_form(text: str) -> str:
    if len(text) > _MAX_DATE_CHARACTERS:  # patterns with two runs of blanks backtrack on long texts
        return ""
    plain = re.sub(_NO_BREAK_SPACES, " ", text)
    return next((form for form, pattern in _FORMS.items() if re.match(pattern, plain)), "")


def is_date(text: str) -> bool:
    """Whether a cell holds a date or a time of day.

    >>> is_date("31.12.2025"), is_date("12:30:05"), is_date("1.5")
    (True, True, False)
    """
    return bool(_find_form(text))


def is_bare_date(text: str) -> bool:
    """Whether a cell holds a date without a time of day."""
    return bool(_DATE_ONLY.fullmatch(text)) and bool(_find_form(text))


def is_time_of_day(text: str) -> bool:
    """Whether a cell holds a time of day without a date."""
    return _find_form(text) == "time of day"


def _seconds_of(
    parts: dict[str, Any], form: str, rows: NDArray[np.intp], zones: _Zones
) -> tuple[NDArray[np.float64], list[str]]:
    """Seconds of date parts in one format, NaN for invalid dates; adds named zones to `zones`."""
    hours, minutes, whole = (_integers(parts[name]) for name in ("h", "mi", "s"))
    fraction = pc.binary_join_element_wise("0", pc.if_else(pc.equal(parts["f"], ""), "0", parts["f"]), ".")
    half = pc.utf8_lower(parts["ap"])
    afternoon, morning = (_numpy(pc.starts_with(half, letter)).astype(bool) for letter in ("p", "a"))
    hours = np.where(afternoon & (hours < 12), hours + 12, np.where(morning & (hours == 12), 0, hours))
    seconds = 3600.0 * hours + 60.0 * minutes + whole + _numpy(fraction.cast(pa.float64()))
    wrong = (minutes > 59) | (whole > 60)
    if form == "time of day":
        return np.where(wrong, np.nan, seconds), []
    years = _integers(parts["y"])
    short = _numpy(pc.utf8_length(parts["y"])) <= 2  # two digits mean 1970 to 2069
    years = np.where(short, np.where(years < 70, years + 2000, years + 1900), years)
    months, days, remarks = _months_and_days(parts, form, years)
    late = np.where(hours > 23, DAY_S, np.nextafter(DAY_S + 1, 0))  # 24:00 ends a day, 23:59:60 may be a leap second
    wrong |= seconds > late
    shift = _shifts(parts["z"], rows, zones)
    return np.where(wrong, np.nan, DAY_S * _days(years, months, days) + seconds - shift), remarks


def _months_and_days(
    parts: dict[str, Any], form: str, years: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    if "name" in parts:
        names = parts["name"].dictionary_encode()
        codes = np.array([_MONTHS.get(name.casefold(), 0) for name in names.dictionary.to_pylist()], np.int64)
        return codes[names.indices.to_numpy(zero_copy_only=False)], _integers(parts["d"]), []
    if form != "numbers":
        return _integers(parts["m"]), _integers(parts["d"]), []
    first, second = _integers(parts["a"]), _integers(parts["b"])
    day_first, said = _is_day_first(parts, first, second, years)
    return (second, first, said) if day_first else (first, second, said)


def _is_day_first(
    parts: dict[str, Any], first: NDArray[np.int64], second: NDArray[np.int64], years: NDArray[np.int64]
) -> tuple[bool, list[str]]:
    """Decide whether the day precedes the month, by numbers above 12, dots, or the order of rows; else remark it."""
    mark = parts["mark"][0].as_py()
    late_first, late_second = bool((first > 12).any()), bool((second > 12).any())
    if mark == "." or late_first != late_second:
        return mark == "." or late_first, []
    by_day, by_month = _days(years, second, first), _days(years, first, second)
    rising = [bool((np.diff(days) >= 0).all()) for days in (by_day, by_month)]
    steps = [float(np.fmax.reduce(np.diff(days), initial=0.0)) for days in (by_day, by_month)]
    if rising[0] != rising[1] or steps[0] != steps[1]:  # the right order gives the shorter jumps
        return (rising[0] if rising[0] != rising[1] else steps[0] < steps[1]), []
    chosen = mark == "-"
    if parts["ap"][0].as_py() or (by_day == by_month).all():
        return chosen, []
    text = f"{first[0]:02d}{mark}{second[0]:02d}{mark}{years[0]}"
    order = "day before month" if chosen else "month before day"
    return chosen, [
        f"Dates such as {text} were read with the {order}: no row tells. Write 2025-12-31 if that is wrong."
    ]


def _days(years: NDArray[np.int64], months: NDArray[np.int64], days: NDArray[np.int64]) -> NDArray[np.float64]:
    """Days since 1970; NaN for dates the calendar lacks. Each distinct date is looked up once."""
    coded = pa.array((years * 100 + months) * 100 + days).dictionary_encode()
    found = np.array([_ask_calendar(code) for code in coded.dictionary.to_pylist()], np.float64)
    return np.asarray(found[coded.indices.to_numpy(zero_copy_only=False)], np.float64)


def _ask_calendar(code: int) -> float:
    """Days since 1970 of a date given as the number YYYYMMDD; NaN if it does not exist.

    >>> _ask_calendar(20240229), _ask_calendar(20250229)
    (19782.0, nan)
    """
    try:
        return float(date(code // 10000, code // 100 % 100, code % 100).toordinal() - _FIRST_DAY)
    except ValueError:
        return float("nan")


def _shifts(texts: Any, rows: NDArray[np.intp], zones: _Zones) -> NDArray[np.float64]:  # noqa: ANN401 - an Arrow array
    """(rows,) seconds ahead of UTC; 0 for a cell without a zone, NaN for an impossible one."""
    encoded = texts.dictionary_encode()
    shifts, named = [], []
    for text in encoded.dictionary.to_pylist():
        zone = text.strip()
        found = _OFFSET.fullmatch(zone)
        shift = _offset_of(found) if found else _OFFSETS.get(zone, 0.0) * 3600
        named.append(bool(found) or zone in _OFFSETS)
        if found and not _is_offset(found):
            shift = np.nan
        elif named[-1]:
            zones.offsets.add(shift)
        shifts.append(shift)
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    zones.named[rows] = np.array(named, bool)[codes]
    return np.array(shifts, np.float64)[codes]


def _is_offset(found: re.Match[str]) -> bool:
    return int(found["minutes"] or 0) < 60 and abs(_offset_of(found)) <= _MAX_OFFSET_S


def _offset_of(found: re.Match[str]) -> float:
    seconds = 3600.0 * int(found["hours"]) + 60.0 * int(found["minutes"] or 0)
    return -seconds if found["sign"] == "-" else seconds


def _name_offset(seconds: float) -> str:
    minutes = round(abs(seconds) / 60)
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if minutes else "UTC"


def _unwrap(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add a day at each midnight to times of day."""
    nights = np.cumsum(np.diff(seconds, prepend=seconds[:1]) < -DAY_S / 2)
    return seconds + DAY_S * nights


def _integers(texts: Any) -> NDArray[np.int64]:  # noqa: ANN401 - an Arrow array of digits, or nothing
    filled = pc.if_else(pc.equal(texts, ""), "0", texts)
    return np.asarray(filled.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _numpy(column: Any) -> NDArray[Any]:  # noqa: ANN401 - an Arrow array, whole or in chunks
    if pa.types.is_boolean(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
