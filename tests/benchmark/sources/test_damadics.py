"""DAMADICS days are joined with the fault schedule by second of the day, and nothing damaged passes."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.protocol import Recording, build
from readbench.benchmark.sources import Damadics
from readbench.benchmark.sources._damadics import NAMES, SCHEDULE, _recordings, episodes_of
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck

PACKERS = [bytes, gzip.compress]
COLUMNS = ("date_ddmmyyyy", "item", "fault", "start_second", "end_second_inclusive")
NORMAL_DAY = "05112001"


def day_lines(seconds: list[int]) -> list[str]:
    """Rows of a day; the first reading is the second itself, the others tell their column."""
    rest = [f"{column}.5" for column in range(3, 34)]
    return ["\t".join([str(second), f"{second}.0", *rest]) for second in seconds]


def put(root: Path, day: str, content: list[str] | bytes, *, inside: str = "Lublin_all_data", ending: str = "") -> Path:
    path = root / "damadics" / inside / f"{day}.txt{ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, bytes) else "\n".join([*content, ""]).encode()
    path.write_bytes(gzip.compress(text) if ending else text)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The hours of four days in which faults were staged, and a part of a normal one."""
    put(tmp_path, "30102001", day_lines([*range(57_000, 60_200)]))
    put(tmp_path, "09112001", day_lines([*range(57_000, 61_400)]))
    put(tmp_path, "17112001", day_lines([*range(53_400, 58_700)]))
    put(tmp_path, "20112001", day_lines([*range(37_400, 38_800), *range(44_000, 46_000)]))
    put(tmp_path, NORMAL_DAY, day_lines([*range(1000)]))
    return tmp_path


def read(root: Path) -> list[Recording]:
    return list(Damadics().recordings(root))


def test_every_step_has_the_label_that_the_schedule_gives_its_second(root: Path) -> None:
    midnights = {day: np.datetime64(f"2001-{day[2:4]}-{day[:2]}", "s").astype(int) for day in SCHEDULE}
    for recording in read(root):
        day, first = recording.id.split("-")
        seconds = recording.values[0].astype(int)
        faults = SCHEDULE.get(day, {}).values()
        expected = [sum(fault for fault, begin, end in faults if begin <= s <= end) for s in seconds.tolist()]
        assert recording.labels.tolist() == expected
        assert seconds[0] == int(first)
        if day in midnights:
            assert recording.start == midnights[day] + seconds[0]


def test_each_fault_is_a_group_of_its_own(root: Path) -> None:
    groups: dict[str, set[int]] = {}
    for recording in read(root):
        groups.setdefault(recording.group, set()).update(recording.labels.tolist())
    items = {f"item-{item:02d}" for faults in SCHEDULE.values() for item in faults}
    assert {group for group, labels in groups.items() if labels - {0}} == items
    assert all(len(labels - {0}) <= 1 for labels in groups.values())
    assert groups[NORMAL_DAY] == {0}


def test_cutting_loses_no_second(root: Path) -> None:
    seconds = np.concatenate([r.values[0] for r in read(root) if r.id.startswith("17112001")])
    np.testing.assert_array_equal(seconds, np.arange(53_400, 58_700))


def test_no_recording_reaches_across_missing_seconds(root: Path) -> None:
    put(root, NORMAL_DAY, day_lines([*range(300), *range(301, 600), *range(900, 1000)]))
    starts = [int(recording.id[-5:]) for recording in read(root) if recording.group == NORMAL_DAY]
    assert starts == [0, 301, 900]


def test_a_fault_cut_by_missing_seconds_stays_one_group(root: Path) -> None:
    put(root, "30102001", day_lines([*range(58_500, 59_000), *range(59_500, 60_000)]))
    parts = [recording for recording in read(root) if recording.group == "item-01"]
    assert [int((part.labels > 0).sum()) for part in parts] == [200, 301]


def test_the_schedule_is_in_order_and_without_overlap() -> None:
    for day in SCHEDULE:
        found = episodes_of(day, 0, 86_400)
        assert len(found) == len(SCHEDULE[day])
        assert all(one.stop < two.start for one, two in pairwise(found))


def test_days_come_in_order_of_time_whatever_their_names(root: Path) -> None:
    days = [recording.id.split("-")[0] for recording in read(root)]
    assert list(dict.fromkeys(days)) == ["30102001", NORMAL_DAY, "09112001", "17112001", "20112001"]


def test_channels_stand_in_the_order_of_the_columns(root: Path) -> None:
    recording = read(root)[0]
    assert recording.channels == NAMES
    assert recording.values[1:, 0].tolist() == [column + 0.5 for column in range(3, 34)]


@pytest.mark.parametrize(("inside", "ending"), [("", ""), ("part1/Lublin_all_data", ".gz")])
def test_other_places_and_gzip_give_the_same(root: Path, tmp_path: Path, inside: str, ending: str) -> None:
    other = tmp_path / "other"
    for path in (root / "damadics/Lublin_all_data").iterdir():
        put(other, path.stem, path.read_bytes(), inside=inside, ending=ending)
    for one, two in zip(read(root), read(other), strict=True):
        assert one.id == two.id
        assert np.array_equal(one.values, two.values)


def test_a_gap_in_a_channel_is_no_reading(root: Path) -> None:
    lines = day_lines([*range(300)])
    lines[7] = lines[7].replace("\t5.5\t", "\tNaN\t")
    put(root, NORMAL_DAY, lines)
    recording = next(recording for recording in read(root) if recording.group == NORMAL_DAY)
    assert np.argwhere(np.isnan(recording.values)).tolist() == [[3, 7]]


def test_missing_files_are_named_with_where_to_get_them(tmp_path: Path) -> None:
    (tmp_path / "damadics").mkdir()
    with pytest.raises(SourceMissingError, match=r"\.txt in .*iair\.mchtr\.pw\.edu\.pl"):
        read(tmp_path)


def test_a_day_that_is_there_twice_is_refused(root: Path) -> None:
    put(root, NORMAL_DAY, day_lines([1, 2]), inside="copy")
    with pytest.raises(DataError, match=r"05112001\.txt: the same day is in .*05112001\.txt"):
        read(root)


@pytest.mark.parametrize("name", ["99112001", "readme2001", "2001"])
def test_a_name_that_is_no_day_is_refused(root: Path, name: str) -> None:
    put(root, name, day_lines([1, 2]))
    with pytest.raises(DataError, match=rf"{name}\.txt: files are named DDMMYYYY\.txt"):
        read(root)


GOOD = day_lines([*range(300)])
DAMAGED = {
    "empty": (b"", "Empty CSV file"),
    "cut inside a row": ("\n".join(GOOD).encode()[:-30], "line 300: Expected 33 columns"),
    "cut gzip": (gzip.compress("\n".join(GOOD).encode())[:-20], "damaged or incomplete"),
    "commas": ("\n".join(GOOD).replace("\t", ",").encode(), "Expected 33 columns"),
    "word": ("\n".join(GOOD).replace("\t7.0\t", "\tdry\t").encode(), "line 8: .*invalid value 'dry'"),
    "a header": ("\n".join(["\t".join(["second", *NAMES]), *GOOD]).encode(), "line 1: .*invalid value 'second'"),
    "repeated second": ("\n".join([*GOOD[:9], *GOOD[8:]]).encode(), "row 10: the time is missing or not later than"),
    "no second": ("\n".join(["NaN" + GOOD[0][1:], *GOOD[1:]]).encode(), "row 1: nan in the first column is no second"),
    "next day": ("\n".join([*GOOD, *day_lines([86_400])]).encode(), "row 301: 86400 in the first column is no second"),
    "half a second": ("\n".join([*GOOD, "301.5" + GOOD[1][1:]]).encode(), "row 301: 301.5 in the first column is no"),
    "no reading": ("\n".join(GOOD).replace("\t5.5\t", "\tNaN\t").encode(), "column 'F51_01' has no reading"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_day_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    content, message = DAMAGED[name]
    put(root, NORMAL_DAY, content)
    with pytest.raises(DataError, match=rf"05112001\.txt.*{message}"):
        read(root)


def test_the_fingerprint_follows_contents_and_days(root: Path) -> None:
    prints = [Damadics().fingerprint(root)]
    path = put(root, NORMAL_DAY, GOOD)
    prints.append(Damadics().fingerprint(root))
    path.rename(path.with_name("06112001.txt"))
    prints.append(Damadics().fingerprint(root))
    assert len(set(prints)) == 3


@given(at=st.integers(0, 3000), new=st.binary(max_size=6), cut=st.integers(0, 6), packer=st.sampled_from(PACKERS))
def test_a_changed_day_gives_recordings_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes, cut: int, packer: Callable[[bytes], bytes]
) -> None:
    content = packer("\n".join(GOOD[:20]).encode())
    path = put(tmp_path_factory.getbasetemp(), "17112001", content[:at] + new + content[at + cut :])
    try:
        found = list(_recordings("17112001", path))
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert all(recording.values.shape == (32, len(recording.labels)) for recording in found)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(root: Path, check: SourceCheck) -> None:
    check(Damadics(), root)


def test_the_schedule_is_the_published_one(real_data: Path) -> None:
    with (real_data / "damadics/fault_schedule.csv").open() as file:
        rows = list(csv.DictReader(file))
    own = {
        (day, item, f"f{15 + fault}", first, last)
        for day, faults in SCHEDULE.items()
        for item, (fault, first, last) in faults.items()
    }
    assert own == {
        (row[0], int(row[1]), row[2], int(row[3]), int(row[4])) for row in ([r[name] for name in COLUMNS] for r in rows)
    }


def test_the_real_excerpt_is_labelled_as_its_publisher_did(real_data: Path) -> None:
    """The excerpt's own marks (a fault or not) agree with the schedule, but for ten rows past the end of item 4."""
    recordings = read(real_data)
    assert sum(len(recording.labels) for recording in recordings) == 2818
    with (real_data / "damadics/DAMADICS.csv").open() as file:
        rows = [[float(field) for field in row] for row in list(csv.reader(file))[1:]]
    marked = {tuple(row[:32]): row[32] > 0 for row in rows}
    differing = Counter(
        recording.group
        for recording in recordings
        for column, label in zip(recording.values.T, recording.labels, strict=True)
        if marked[tuple(column.tolist())] != (label > 0)
    )
    assert differing == {"item-04": 10}


def test_the_real_excerpt_gives_the_known_windows(real_data: Path, tmp_path: Path) -> None:
    found = build(Damadics(), real_data, tmp_path).windows
    assert Counter(found.labels.tolist()) == {0: 8, 1: 6, 3: 2}
