"""LBNL air handlers: days have the class of the tables of faults; before them is a normal day in like weather."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.audit import find_leaks
from readbench.benchmark.protocol import Composition, Recording, build, compose_task
from readbench.benchmark.sources import LbnlAhu
from readbench.benchmark.sources._lbnl_ahu import FAULTS, NAMES, OUTDOOR, read_days, read_faults
from readbench.engine.spec import build_source
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck

Packer = Callable[[bytes], bytes]
PACKERS: list[Packer] = [bytes, gzip.compress]
DAYS: dict[str, dict[str, tuple[int, float]]] = {
    "MZVAV-2-1": {"8/28/2007": (3, 80.0), "8/30/2007": (3, 70.0), "8/19/2008": (0, 79.0), "5/3/2009": (0, 60.0)},
    "MZVAV-2-2": {"8/28/2007": (3, 80.0), "2/12/2008": (1, 30.0), "8/27/2008": (0, 80.0), "2/11/2009": (0, 30.0)},
    "SZCAV": {"3/11/2017": (2, 62.0), "3/20/2017": (6, 55.0), "3/22/2017": (4, 50.0), "4/1/2017": (0, 60.0)},
    "SZVAV": {"9/11/2017": (5, 81.0), "9/19/2017": (4, 75.0), "9/20/2017": (0, 74.0), "9/21/2017": (0, 82.0)},
}
"""Fault and outdoor temperature of each day of each system."""


def records(system: str, every: int = 1) -> list[str]:
    """Readings tell day, minute and channel; names begin and end as in the published files."""
    points = [f"AHU: {name}{'  ' if 'Damper' in name else ''}" for name in NAMES]
    table = [",".join(["Datetime", *points, "AHU: Other", "Occupancy Mode Indicator", "Fault Detection Ground Truth"])]
    for number, (date, (fault, outdoor)) in enumerate(DAYS[system].items()):
        truth = int(fault > 0 and date != "8/30/2007")
        for minute in range(0, 1440, every):
            readings = [str(outdoor if c == OUTDOOR else 100 * number + minute + c / 100) for c in range(len(NAMES))]
            clock = f"{date} {minute // 60}:{minute % 60:02d}"
            table.append(",".join([clock, *readings, "7", str(int(360 <= minute < 1080)), str(truth)]))
    return table


def faults(system: str) -> list[str]:
    rows = [f"{FAULTS[fault - 1]},50%,{date}" for date, (fault, _) in DAYS[system].items() if fault]
    short = [row.replace("/2017", "/17") for row in rows]
    return ["fault type,fault intensity,fault occurred time", *short]


def write(root: Path, *, inside: str = "", ending: str = ".csv", pack: Packer = bytes) -> None:
    folder = root / "lbnl_ahu" / inside
    folder.mkdir(parents=True)
    for system in DAYS:
        (folder / f"{system}{ending}").write_bytes(pack("\n".join(records(system)).encode()))
        (folder / f"{system}-faults.csv").write_text("\n".join(faults(system)))


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four systems, for tests that only read."""
    root = tmp_path_factory.mktemp("official")
    write(root)
    return root


@pytest.fixture
def root(official: Path, tmp_path: Path) -> Path:
    copytree(official / "lbnl_ahu", tmp_path / "lbnl_ahu")
    return tmp_path


def read(root: Path, text: str = "lbnl_ahu") -> dict[str, Recording]:
    return {recording.id: recording for recording in build_source(text).recordings(root)}


def iso(date: str) -> str:
    month, day, year = date.split("/")
    return f"{year}-{int(month):02d}-{int(day):02d}"


def test_the_class_of_a_day_is_that_of_the_table(official: Path) -> None:
    found = {name: set(recording.labels.tolist()) for name, recording in read(official).items()}
    assert found == {f"{s}/{iso(date)}": {fault} for s, days in DAYS.items() for date, (fault, _) in days.items()}
    assert LbnlAhu.info.classes[3] == "leaking heating coil valve"


def test_a_day_is_read_while_the_building_is_in_use(official: Path) -> None:
    recording = read(official)["SZVAV/2017-09-19"]
    assert recording.channels == NAMES
    assert recording.values.shape == (11, 720)
    np.testing.assert_allclose(recording.values[0], 100 + np.arange(360, 1080))
    np.testing.assert_allclose(recording.values[3], 100.03 + np.arange(360, 1080))
    assert recording.start == np.datetime64("2017-09-19T06:00").astype("datetime64[s]").astype(int)


def test_what_one_building_had_on_one_date_is_one_group(official: Path) -> None:
    days = read(official)
    real, twin = days["MZVAV-2-1/2007-08-28"], days["MZVAV-2-2/2007-08-28"]
    assert real.group == twin.group == "ERS 2007-08-28"
    assert real.asset == twin.asset == "AHU-A"
    assert days["SZCAV/2017-03-11"].asset != days["SZVAV/2017-09-11"].asset
    assert days["SZCAV/2017-03-11"].group != days["SZVAV/2017-09-11"].group


def befores(root: Path, cache: Path, text: str, day: str) -> list[tuple[int, NDArray[np.float32] | None]]:
    windows = build(text, root, cache).windows
    wanted = [i for i in range(len(windows)) if windows.ids[i].startswith(f"{day}@")]
    return [(int(windows.ids[i].partition("@")[2]), windows[i].before) for i in wanted]


@pytest.mark.parametrize(
    ("day", "number"), [("MZVAV-2-1/2007-08-28", 2), ("MZVAV-2-2/2008-02-12", 3), ("SZVAV/2017-09-11", 3)]
)
def test_the_time_before_is_the_same_hours_of_a_normal_day_in_like_weather(
    official: Path, tmp_path: Path, day: str, number: int
) -> None:
    found = befores(official, tmp_path, "lbnl_ahu", day)
    assert [start for start, _ in found] == list(range(0, 601, 60))
    for start, before in found:
        assert before is not None
        np.testing.assert_allclose(before[0], 100 * number + 360 + start + np.arange(120))


def test_a_normal_day_takes_another_one_and_the_only_one_has_none(official: Path, tmp_path: Path) -> None:
    other = befores(official, tmp_path, "lbnl_ahu", "SZVAV/2017-09-20")[0][1]
    assert other is not None
    np.testing.assert_allclose(other[0], 300 + 360 + np.arange(120))
    assert all(before is None for _, before in befores(official, tmp_path, "lbnl_ahu", "SZCAV/2017-04-01"))


def test_preceding_rows_are_those_of_the_same_day(official: Path, tmp_path: Path) -> None:
    found = befores(official, tmp_path, "lbnl_ahu(before=preceding,before_steps=60)", "SZCAV/2017-03-11")
    assert found[0][1] is None
    for start, before in found[1:]:
        assert before is not None
        np.testing.assert_allclose(before[0], 360 + start - 60 + np.arange(60))


def test_windows_are_cut_as_asked(official: Path, tmp_path: Path) -> None:
    found = befores(official, tmp_path, "lbnl_ahu(window=240,stride=240,normal_stride=480)", "SZCAV/2017-03-11")
    assert [start for start, _ in found] == [0, 240, 480]
    assert (
        len(befores(official, tmp_path, "lbnl_ahu(window=240,stride=240,normal_stride=480)", "SZCAV/2017-04-01")) == 2
    )


def test_without_the_twin_only_measured_days_are_read(official: Path) -> None:
    found = read(official, "lbnl_ahu(twin=false)")
    assert {name.partition("/")[0] for name in found} == {"MZVAV-2-1", "SZCAV", "SZVAV"}
    assert LbnlAhu(twin=False).fingerprint(official) != LbnlAhu().fingerprint(official)


@pytest.mark.parametrize(("inside", "ending", "pack"), [("data/raw", ".csv", bytes), ("", ".csv.gz", gzip.compress)])
def test_other_places_and_gzipped_tables_give_the_same(
    official: Path, tmp_path: Path, inside: str, ending: str, pack: Packer
) -> None:
    write(tmp_path, inside=inside, ending=ending, pack=pack)
    one, two = read(official), read(tmp_path)
    assert list(one) == list(two)
    assert all(np.array_equal(one[name].values, two[name].values) for name in one)


@pytest.mark.parametrize("name", ["SZVAV.csv", "MZVAV-2-1-faults.csv"])
def test_a_missing_table_is_named_with_where_to_get_it(root: Path, name: str) -> None:
    (root / "lbnl_ahu" / name).unlink()
    with pytest.raises(SourceMissingError, match=rf"no \*\*/{name} .*doi\.org/10\.1038/s41597-020-0398-6"):
        read(root)


def test_a_table_that_is_there_twice_is_refused(root: Path) -> None:
    (root / "lbnl_ahu/raw").mkdir()
    (root / "lbnl_ahu/raw/SZCAV.csv").write_text("\n".join(records("SZCAV")))
    with pytest.raises(DataError, match=r"SZCAV\.csv: the same table is in .*SZCAV\.csv"):
        read(root)


def test_bad_cells_and_missing_minutes_are_gaps(root: Path) -> None:
    table = records("SZCAV")
    at = 1 + 1440 + 400
    table[at] = table[at].replace(",500.02,", ",#VALUE!,")
    assert "#VALUE!" in table[at]
    table[at + 1] = table[at + 1].replace(",501.0,", ",,")
    del table[at + 2]
    (root / "lbnl_ahu/SZCAV.csv").write_text("\n".join(table))
    values = read(root)["SZCAV/2017-03-20"].values
    assert np.isnan(values[2, 40])
    assert np.isnan(values[0, 41])
    assert np.isnan(values[:, 42]).all()
    assert np.isnan(values).sum() == 13


GOOD = "\n".join(records("SZCAV", 60))
LATE = "3/20/2017 23:00"
DAMAGED = {
    "empty": ("", "no header"),
    "header only": (GOOD.partition("\n")[0] + "\n", "no rows after the header"),
    "text": (GOOD.replace(",360.0,", ",warm,"), "invalid value 'warm'"),
    "no damper": (GOOD.replace("Return Air Damper", "Damper"), "no column Return Air Damper Control Signal"),
    "no truth": (GOOD.replace("Fault Detection Ground Truth", "Truth"), "no column Fault Detection Ground Truth"),
    "cut inside a row": (GOOD[:-20], "Expected 15 columns"),
    "other time": (GOOD.replace(LATE, "2017-03-20 23:00"), "invalid value '2017-03-20 23:00'"),
    "no time": (GOOD.replace(LATE, ""), "row 48: the time is missing"),
    "time goes back": (GOOD.replace(LATE, "3/20/2017 3:00"), "the time is missing or not later than in the row before"),
    "day without reading": (GOOD.replace(",62.0,", ",,"), "'Outdoor Air Temperature' has no reading .* on 2017-03-11"),
    "fault that is none": (GOOD.replace("7,0,0", "7,0,1"), "on 2017-04-01 the table of faults has no fault, but"),
    "fault in part": (
        GOOD.replace("7,1,1", "7,1,0"), "on 2017-03-11 the table of faults has Stuck Cooling Coil Valve, but"
    ),
    "day missing": (
        "\n".join(row for row in GOOD.split("\n") if not row.startswith("3/20")), "has 2017-03-20, but no row here"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_records_are_named_with_what_is_wrong(tmp_path: Path, name: str) -> None:
    content, message = DAMAGED[name]
    path = tmp_path / "SZCAV.csv"
    path.write_text(content)
    table = {iso(date): fault for date, (fault, _) in DAYS["SZCAV"].items() if fault}
    with pytest.raises(DataError, match=rf"SZCAV\.csv.*{message}"):
        read_days(path, "SZCAV", table)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Stuck OA", "Stuck RA", "row 2: fault type 'Stuck RA Damper' is none of Stuck OA Damper,"),
        ("2/12/2008", "12.2.2008", r"row 2: '12\.2\.2008' is no date such as 8/28/2007"),
        ("fault type", "type", "row 1: fault type '' is none of"),
        ("\n", " ", "no faults in it"),
    ],
)
def test_a_damaged_table_of_faults_is_named_with_what_is_wrong(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "MZVAV-2-2-faults.csv"
    path.write_text("\n".join(faults("MZVAV-2-2")).replace(old, new))
    with pytest.raises(DataError, match=rf"MZVAV-2-2-faults\.csv.*{message}"):
        read_faults(path)


def test_the_fingerprint_follows_both_kinds_of_tables(root: Path) -> None:
    prints = [LbnlAhu().fingerprint(root)]
    (root / "lbnl_ahu/SZCAV-faults.csv").write_text("\n".join(faults("SZCAV")).replace("Cooling", "Heating"))
    prints.append(LbnlAhu().fingerprint(root))
    (root / "lbnl_ahu/SZCAV.csv").write_text("\n".join(records("SZCAV")[:-1]))
    prints.append(LbnlAhu().fingerprint(root))
    assert len(set(prints)) == 3


def read_both(path: Path) -> object:
    table = {iso(date): fault for date, (fault, _) in DAYS["SZCAV"].items() if fault}
    return read_faults(path) if "faults" in path.name else read_days(path, "SZCAV", table)


@given(
    name=st.sampled_from(["SZCAV.csv", "SZCAV-faults.csv"]),
    at=st.floats(0, 1),
    new=st.binary(max_size=6),
    cut=st.integers(0, 6),
    packer=st.sampled_from(PACKERS),
)
def test_a_changed_table_is_read_or_gives_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, name: str, at: float, new: bytes, cut: int, packer: Packer
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    content = packer((GOOD if name == "SZCAV.csv" else "\n".join(faults("SZCAV"))).encode())
    place = int(at * len(content))
    path.write_bytes(content[:place] + new + content[place + cut :])
    try:
        found = read_both(path)
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert found


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(official: Path, check: SourceCheck) -> None:
    check(LbnlAhu(), official)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lbnl_ahu")


def test_real_days_give_the_known_windows(real_data: Path, cache: Path) -> None:
    found = build(LbnlAhu(), real_data, cache).windows
    assert Counter(found.labels.tolist()) == {0: 330, 1: 99, 2: 99, 3: 99, 4: 55, 5: 33, 6: 22}
    normals = found[found.labels == 0]
    systems = Counter(name.partition("/")[0] for name in normals.ids.tolist())
    assert systems == {"MZVAV-2-2": 143, "MZVAV-2-1": 132, "SZVAV": 44, "SZCAV": 11}
    assert sum(not name.startswith("MZVAV-2-2") for name in found.ids[found.labels > 0].tolist()) == 264
    assert found.context is not None
    assert (~found.context.has_before).sum() == 11  # the one normal day of SZCAV


def test_each_real_fault_of_the_twin_has_a_day_in_the_same_weather(real_data: Path, cache: Path) -> None:
    found = build(LbnlAhu(), real_data, cache).windows
    faulty = [i for i in np.flatnonzero(found.labels > 0).tolist() if found.ids[i].startswith("MZVAV-2-2")]
    assert len(faulty) == 143
    for i in faulty:
        before = found[i].before
        assert before is not None
        np.testing.assert_array_equal(before[OUTDOOR], found.values(i)[OUTDOOR])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_real_task_has_queries_of_all_faults(real_data: Path, cache: Path, seed: int) -> None:
    task = compose_task(build(LbnlAhu(), real_data, cache), seed=seed, settings=Composition())
    assert find_leaks(task).sound
    assert set(task.queries.labels) == set(range(1, 7))
    assert not task.notes


def test_a_real_split_by_assets_keeps_unit_and_twin_together(real_data: Path, cache: Path) -> None:
    task = compose_task(build(LbnlAhu(), real_data, cache), seed=0, settings=Composition(split_by="asset"))
    assert find_leaks(task).sound
    assert set(task.queries.labels) == set(range(1, 6))


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(LbnlAhu(), real_data)
