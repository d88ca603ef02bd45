"""Dives of the Haizhe vehicle are cut alike, without what tells the session, and half hours are never divided."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from readbench.benchmark.audit import find_leaks
from readbench.benchmark.protocol import Built, Composition, Recording, build, compose_task, windows_of
from readbench.benchmark.sources import HaizheAuv
from readbench.benchmark.sources._haizhe_auv import NAMES, PRESS, STATES, VOLTAGE, YAW
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck
from tests.damage import MANY, Damage, Outcomes, damaged, damages

ROWS, EACH = 195, 6
NORMAL_ROWS = 296


def lines(clock: str = "202252", rows: int = ROWS, offset: float = 0.0) -> list[str]:
    """A dive; readings tell row and column, the heading turns through 180 degrees."""
    table = [",".join(["time", *NAMES])]
    for row in range(rows):
        readings = [row + column / 100 + offset for column in range(len(NAMES))]
        readings[YAW] = (170 + row + 180) % 360 - 180
        table.append(",".join([clock, *(f"{value:.2f}" for value in readings)]))
    return table


def write(root: Path, *, inside: str = "Dataset", pack: Callable[[bytes], bytes] = bytes) -> None:
    """Six dives of each state in each part, in six half hours."""
    for part in ("train", "test"):
        for state in STATES:
            folder = root / "haizhe_auv" / inside / part / state
            folder.mkdir(parents=True)
            for number in range(EACH):
                clock = f"{10 + number // 2:02d}{30 * (number % 2) + 7:02d}52"
                text = "\n".join([*lines(clock, NORMAL_ROWS if state == "Normal" else ROWS, float(number)), ""])
                ending = ".csv" if pack is bytes else ".csv.gz"
                (folder / f"{state}_{number}{ending}").write_bytes(pack(text.encode()))


def read(root: Path, source: HaizheAuv | None = None) -> dict[str, Recording]:
    return {recording.id: recording for recording in (source or HaizheAuv()).recordings(root)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path)
    return tmp_path


DIVE = "haizhe_auv/Dataset/train/AddWeight/AddWeight_0.csv"


def test_the_class_is_the_folder_and_both_parts_are_read(root: Path) -> None:
    found = read(root)
    assert len(found) == 2 * len(STATES) * EACH
    for part in ("train", "test"):
        labels = [set(found[f"{part}/{state}/{state}_3"].labels.tolist()) for state in STATES]
        assert labels == [{0}, {1}, {2}, {3}, {4}]


def test_a_window_are_the_first_192_rows_however_long_the_dive(root: Path) -> None:
    source = HaizheAuv()
    for recording in read(root).values():
        windows = windows_of(recording, source.info.protocol, source.info.classes)
        assert windows is not None
        assert len(windows) == 1
        assert windows[0].values.shape == (16, 192)
        assert windows[0].before is None


def test_a_shorter_dive_gives_no_window(root: Path) -> None:
    (root / DIVE).write_text("\n".join(lines(rows=191)))
    source = HaizheAuv()
    recording = read(root)["train/AddWeight/AddWeight_0"]
    assert windows_of(recording, source.info.protocol, source.info.classes) is None


def test_pressure_voltage_and_heading_are_relative_to_the_first_row(root: Path) -> None:
    values = read(root)["train/AddWeight/AddWeight_4"].values
    for channel in (PRESS, VOLTAGE, YAW):
        np.testing.assert_allclose(values[channel], np.arange(192), atol=1e-9)
    np.testing.assert_allclose(values[0], np.arange(192) + 4)


def test_levels_are_as_read_on_request(root: Path) -> None:
    recording = read(root, HaizheAuv(levels=True))["train/AddWeight/AddWeight_4"]
    np.testing.assert_allclose(recording.values[PRESS], np.arange(192) + PRESS / 100 + 4)
    assert recording.values[YAW].max() < 180
    assert HaizheAuv(levels=True).fingerprint(root) != HaizheAuv().fingerprint(root)


def test_dives_of_a_half_hour_are_one_group_whatever_the_state(root: Path) -> None:
    groups: dict[str, set[str]] = {}
    for recording in read(root).values():
        groups.setdefault(recording.group, set()).add(recording.id.split("/")[1])
    assert sorted(groups) == ["10:00", "10:30", "11:00", "11:30", "12:00", "12:30"]
    assert all(states == set(STATES) for states in groups.values())


def test_odd_seconds_of_the_clock_do_not_matter(root: Path) -> None:
    (root / DIVE).write_text("\n".join(lines(clock="020289")))
    recording = read(root)["train/AddWeight/AddWeight_0"]
    assert recording.group == "02:00"


@pytest.mark.parametrize(("inside", "pack"), [("", bytes), ("a/copy", bytes), ("Dataset", gzip.compress)])
def test_other_folders_and_gzipped_files_give_the_same(
    root: Path, tmp_path_factory: pytest.TempPathFactory, inside: str, pack: Callable[[bytes], bytes]
) -> None:
    other = tmp_path_factory.mktemp("other")
    write(other, inside=inside, pack=pack)
    one, two = read(root), read(other)
    assert list(one) == list(two)
    assert all(np.array_equal(one[name].values, two[name].values) for name in one)


def test_a_missing_state_is_named_with_where_to_get_it(root: Path) -> None:
    for part in ("train", "test"):
        (root / "haizhe_auv/Dataset" / part / "AddWeight").rename(root / f"{part}-elsewhere")
    with pytest.raises(SourceMissingError, match=r"no .*/train/AddWeight/\*\.csv or .* in .*doi\.org/10\.17632"):
        read(root)


def test_a_dive_that_is_there_twice_is_refused(root: Path) -> None:
    copy = root / "haizhe_auv/copy/train/AddWeight/AddWeight_0.csv"
    copy.parent.mkdir(parents=True)
    copy.write_text("\n".join(lines()))
    with pytest.raises(DataError, match=r"AddWeight_0\.csv: the same dive is in"):
        read(root)


def with_line(number: int, change: Callable[[str], str]) -> bytes:
    table = lines()
    table[number] = change(table[number])
    return "\n".join(table).encode()


DAMAGED = {
    "empty": (b"", "Empty CSV file"),
    "header only": (f"{lines()[0]}\n".encode(), "no rows after the header"),
    "cut inside a row": ("\n".join(lines()).encode()[:-30], "line 196: Expected 17 columns"),
    "cut gzip": (gzip.compress("\n".join(lines()).encode())[:-20], "damaged or incomplete"),
    "no column": (with_line(0, lambda line: line.replace("voltage", "power")), "'voltage' is not in the header"),
    "text": (with_line(5, lambda line: line.replace("4.02", "wet")), r"line 6: .*invalid value 'wet'"),
    "gap": (with_line(5, lambda line: line.replace("4.02", "")), "row 5: no reading of 'pwm3'"),
    "no clock": (with_line(1, lambda line: line.replace("202252", "")), r"row 1: nan is no hour and minute"),
    "minute 61": (with_line(1, lambda line: line.replace("202252", "206152")), "206152 is no hour and minute"),
    "hour 25": (with_line(1, lambda line: line.replace("202252", "252252")), "252252 is no hour and minute"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    content, message = DAMAGED[name]
    (root / DIVE).write_bytes(content)
    with pytest.raises(DataError, match=rf"AddWeight_0\.csv.*{message}"):
        read(root)


def test_the_fingerprint_follows_contents_and_places(root: Path) -> None:
    prints = [HaizheAuv().fingerprint(root)]
    (root / DIVE).rename((root / DIVE).with_name("AddWeight_9.csv"))
    prints.append(HaizheAuv().fingerprint(root))
    (root / DIVE).with_name("AddWeight_9.csv").write_text("\n".join(lines()))
    prints.append(HaizheAuv().fingerprint(root))
    assert len(set(prints)) == 3


def test_a_changed_file_gives_a_dive_or_a_data_error(tmp_path: Path) -> None:
    path, outcomes = tmp_path / "train" / "AddWeight" / "AddWeight_0.csv", Outcomes()
    path.parent.mkdir(parents=True)
    whole = "\n".join(lines(rows=30)).encode()

    @settings(max_examples=MANY)
    @given(damage=damages(len(whole), st.sampled_from(b"0123456789.,\n-x")))
    def try_damage(damage: Damage) -> None:
        path.write_bytes(damaged(whole, damage))
        outcomes.note(lambda: [HaizheAuv()._recording("dive", path).values])

    try_damage()
    outcomes.check_both()


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(root: Path, check: SourceCheck) -> None:
    check(HaizheAuv(), root)


@pytest.fixture(scope="module")
def built_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("haizhe_auv")


def windows(real_data: Path, folder: Path) -> Built:
    return build(HaizheAuv(), real_data, folder)


def test_real_dives_give_the_known_windows(real_data: Path, built_folder: Path) -> None:
    found = windows(real_data, built_folder).windows
    assert Counter(found.labels.tolist()) == {0: 178, 1: 267, 2: 264, 3: 247, 4: 257}
    assert len(set(np.asarray(found.groups)[found.labels > 0].tolist())) == 19
    assert found.context is not None
    assert not found.context.has_before.any()


def test_a_real_task_has_queries_of_all_faults(real_data: Path, built_folder: Path) -> None:
    task = compose_task(windows(real_data, built_folder), seed=0, settings=Composition())
    assert find_leaks(task).sound
    assert set(task.queries.labels) == {1, 2, 3, 4}
    assert len(task.queries) == 100


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(HaizheAuv(), real_data)
