"""SKAB experiments are read as published, and nothing damaged passes."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.protocol import Built, Composition, Recording, build, compose_task
from readbench.benchmark.sources import Skab
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck

SENSORS = [channel.name for channel in Skab.info.channels]
ROWS = 70
EXPERIMENTS = {
    "valve1/0": 1, "valve1/12": 1, "valve2/3": 2, "other/1": 3, "other/4": 3, "other/5": 4, "other/9": 4,
    "other/10": 5, "other/11": 5, "other/12": 6, "other/13": 6, "other/14": 7,
}  # fmt: skip
PACKERS = [bytes, gzip.compress]


def lines(*, labelled: bool = True) -> list[str]:
    """An experiment of ROWS rows; readings tell row and column, steps 20 to 39 are anomalous."""
    header = ["datetime", *SENSORS, *(["anomaly", "changepoint"] if labelled else [])]
    table = [";".join(header)]
    for row in range(ROWS):
        readings = [f"{row + column / 10}" for column in range(8)]
        marks = [f"{float(20 <= row < 40)}", f"{float(row == 20)}"] if labelled else []
        table.append(";".join([f"2020-03-09 10:{14 + row // 60}:{row % 60:02d}", *readings, *marks]))
    return table


def write(root: Path, *, inside: str = "", ending: str = ".csv") -> None:
    """All experiments in the official layout."""
    for experiment in (*EXPERIMENTS, "anomaly-free/anomaly-free"):
        path = root / "skab" / inside / f"{experiment}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = "\n".join([*lines(labelled=experiment in EXPERIMENTS), ""]).encode()
        path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)


def read(root: Path) -> dict[str, Recording]:
    return {recording.id: recording for recording in Skab().recordings(root)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path)
    return tmp_path


def test_the_class_follows_from_the_place_of_the_file(root: Path) -> None:
    recordings = read(root)
    for experiment, fault in EXPERIMENTS.items():
        labels = recordings[experiment].labels
        assert labels[20:40].tolist() == [fault] * 20
        assert not labels[:20].any()
        assert not labels[40:].any()


def test_the_recording_without_anomaly_is_normal_throughout(root: Path) -> None:
    assert not read(root)["anomaly-free/anomaly-free"].labels.any()


def test_readings_and_times_are_those_of_the_file(root: Path) -> None:
    recording = read(root)["valve1/12"]
    assert recording.channels == tuple(SENSORS)
    assert recording.values.shape == (8, ROWS)
    np.testing.assert_array_equal(recording.values[3], np.arange(ROWS) + 0.3)
    assert recording.start == np.datetime64("2020-03-09T10:14:00").astype(int)
    assert recording.group == "valve1/12"
    assert recording.asset == "testbed"


@pytest.mark.parametrize(("inside", "ending"), [("", ".csv.gz"), ("data", ".csv"), ("data", ".csv.gz")])
def test_gzipped_files_and_the_official_folder_give_the_same(
    root: Path, tmp_path_factory: pytest.TempPathFactory, inside: str, ending: str
) -> None:
    other = tmp_path_factory.mktemp("other")
    write(other, inside=inside, ending=ending)
    one, two = read(root), read(other)
    assert list(one) == list(two)
    assert all(np.array_equal(one[name].values, two[name].values) for name in one)


@pytest.mark.parametrize("folder", ["valve1", "valve2", "other", "anomaly-free"])
def test_a_missing_folder_is_named_with_where_to_get_it(root: Path, folder: str) -> None:
    (root / "skab" / folder).rename(root / "elsewhere")
    with pytest.raises(SourceMissingError, match=rf"no {folder}/\*\.csv .*github\.com/waico/SKAB"):
        read(root)


def test_an_experiment_of_unknown_kind_is_refused(root: Path) -> None:
    (root / "skab/other/15.csv").write_text("\n".join(lines()))
    with pytest.raises(DataError, match=r"15\.csv: the kind of anomaly is known for other/1\.csv to"):
        read(root)


def test_an_experiment_that_is_there_twice_is_refused(root: Path) -> None:
    copy = root / "skab/data/valve1/0.csv"
    copy.parent.mkdir(parents=True)
    copy.write_text("\n".join(lines()))
    with pytest.raises(DataError, match=r"0\.csv: the same recording is in .*0\.csv"):
        read(root)


def with_line(number: int, change: Callable[[str], str]) -> bytes:
    table = lines()
    table[number] = change(table[number])
    return "\n".join(table).encode()


DAMAGED = {
    "empty": (b"", "Empty CSV file"),
    "header only": (f"{lines()[0]}\n".encode(), "no rows after the header"),
    "cut inside a row": ("\n".join(lines()).encode()[:-30], r"line 71: Expected 11 columns"),
    "cut gzip": (gzip.compress("\n".join(lines()).encode())[:-20], "damaged or incomplete"),
    "utf-16": ("\n".join(lines()).encode("utf-16"), "'Accelerometer1RMS' is not in the header"),
    "comma": ("\n".join(lines()).replace(";", ",").encode(), "'Accelerometer1RMS' is not in the header"),
    "no labels": ("\n".join(lines(labelled=False)).encode(), "Column 'anomaly' is not in the header"),
    "text": (with_line(5, lambda line: line.replace("4.2", "wet")), r"line 6: .*invalid value 'wet'"),
    "other label": (with_line(5, lambda line: line[:-7] + "2.0;0.0"), "row 5: 'anomaly' is 2, but only 0 and 1"),
    "no label": (with_line(5, lambda line: line[:-7] + ";0.0"), "row 5: 'anomaly' is nan"),
    "no time": (with_line(5, lambda line: line[19:]), "row 5: the time is missing"),
    "same time twice": (with_line(5, lambda line: line.replace("10:14:04", "10:14:03")), "row 5: .* not later than"),
    "time goes back": (with_line(5, lambda line: line.replace("10:14:04", "10:13:04")), "row 5: .* not later than"),
    "not a time": (with_line(5, lambda line: line.replace("10:14:04", "ten past")), r"line 6: .*timestamp"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    content, message = DAMAGED[name]
    (root / "skab/valve1/0.csv").write_bytes(content)
    with pytest.raises(DataError, match=rf"0\.csv.*{message}"):
        read(root)


def test_a_sensor_without_any_reading_is_refused_but_a_gap_is_not(root: Path) -> None:
    path = root / "skab/valve1/0.csv"
    table = [line.split(";") for line in lines()]
    table[7][3] = ""
    path.write_text("\n".join(";".join(row) for row in table))
    assert np.flatnonzero(np.isnan(read(root)["valve1/0"].values[2])).tolist() == [6]
    for row in table[1:]:
        row[3] = ""
    path.write_text("\n".join(";".join(row) for row in table))
    with pytest.raises(DataError, match=r"0\.csv: column 'Current' has no reading at all"):
        read(root)


def test_the_fingerprint_follows_contents_and_places(root: Path) -> None:
    prints = [Skab().fingerprint(root)]
    (root / "skab/valve2/9.csv").write_bytes((root / "skab/valve1/12.csv").read_bytes())
    prints.append(Skab().fingerprint(root))
    (root / "skab/valve2/9.csv").rename(root / "skab/valve1/9.csv")
    prints.append(Skab().fingerprint(root))
    (root / "skab/valve1/9.csv").write_text("\n".join(lines()).replace("4.2", "4.3"))
    prints.append(Skab().fingerprint(root))
    assert len(set(prints)) == 4


@given(at=st.integers(0, 2000), new=st.binary(max_size=6), cut=st.integers(0, 6), packer=st.sampled_from(PACKERS))
def test_a_changed_file_gives_a_recording_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes, cut: int, packer: Callable[[bytes], bytes]
) -> None:
    path = tmp_path_factory.getbasetemp() / "valve1" / "0.csv"
    path.parent.mkdir(exist_ok=True)
    content = packer("\n".join(lines()[:30]).encode())
    path.write_bytes(content[:at] + new + content[at + cut :])
    try:
        recording = Skab()._recording(path)
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert recording.values.shape == (8, len(recording.labels))
        assert set(recording.labels.tolist()) <= {0, 1}


@pytest.fixture(scope="module")
def built_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("skab")


def windows(real_data: Path, folder: Path) -> Built:
    return build(Skab(), real_data, folder)


def test_real_experiments_give_the_known_windows(real_data: Path, built_folder: Path) -> None:
    found = windows(real_data, built_folder).windows
    assert Counter(found.labels.tolist()) == {0: 932, 1: 233, 2: 54, 3: 48, 4: 73, 5: 37, 6: 22, 7: 11}
    assert len(set(found.groups)) == 35


def test_a_real_task_has_queries_of_all_kinds_but_the_one_with_a_single_experiment(
    real_data: Path, built_folder: Path
) -> None:
    task = compose_task(windows(real_data, built_folder), seed=0, settings=Composition())
    assert len(task.queries) == 100
    assert set(task.queries.labels) == {1, 2, 3, 4, 5, 6}
    assert set(task.corpus_at(0).labels) == {1, 2, 3, 4, 5, 6, 7}
    assert len(task.normals) == 500
    assert not task.notes


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(Skab(), real_data)
