"""HAI's attacks are joined with their schedule, checked against it, and nothing damaged passes."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.protocol import Composition, Recording, build, compose_task
from readbench.benchmark.sources import Hai, _hai as source
from readbench.benchmark.sources._episodes import runs
from readbench.benchmark.sources._files import csv_parts, read_csv
from readbench.benchmark.sources._hai import LOOPS, SCHEDULE, TAGS
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck

HEADER = ["time", *TAGS, "attack", "attack_P1", "attack_P2", "attack_P3"]
MARGIN = 300
FILLER = ["0"] * (len(TAGS) - 2)


def stamp(seconds: float) -> str:
    return str(np.datetime64(int(seconds), "s")).replace("T", " ")


def rows_around(marks: list[tuple[float, int]]) -> list[list[str]]:
    """Rows around attacks (start, duration): only MARGIN seconds on either side, tag 1 counts rows, tag 2 attacks."""
    rows: list[list[str]] = []
    for number, (start, duration) in enumerate(marks, start=1):
        for second in range(-MARGIN, duration + MARGIN):
            on = 0 <= second < duration
            rows.append([stamp(start + second), str(len(rows)), str(number * on), *FILLER, str(int(on)), "0", "0", "0"])
    return rows


def attack_rows(name: str) -> list[list[str]]:
    return rows_around([(attack.start_seconds + 7, attack.duration) for attack in SCHEDULE[name]])


def training_rows(rows: int = 700) -> list[list[str]]:
    return [[stamp(1_594_000_000 + r), str(r), "0", *FILLER, "0", "0", "0", "0"] for r in range(rows)]


def text_of(rows: list[list[str]], delimiter: str = ",") -> bytes:
    return "\n".join([*(delimiter.join(row) for row in [HEADER, *rows]), ""]).encode()


CONTENT = {name: text_of(attack_rows(name)) for name in SCHEDULE} | {
    f"train{k}": text_of(training_rows()) for k in (1, 2, 3)
}


def write(root: Path, *, inside: str = "hai-21.03", ending: str = ".csv") -> Path:
    folder = root / "hai" / inside
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in CONTENT.items():
        (folder / f"{name}{ending}").write_bytes(gzip.compress(content, 1) if ending.endswith("gz") else content)
    return folder


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small files of all names, gzipped as published; only read."""
    root = tmp_path_factory.mktemp("hai")
    write(root, ending=".csv.gz")
    return root


def read(root: Path) -> dict[str, Recording]:
    return {recording.id: recording for recording in Hai().recordings(root)}


def test_each_attack_is_a_group_with_the_class_of_its_first_loop(official: Path) -> None:
    recordings = read(official)
    for name, attacks in SCHEDULE.items():
        for number, attack in enumerate(attacks, start=1):
            recording = recordings[f"{name}/{attack.name}"]
            label = list(LOOPS).index(attack.loops[0]) + 1
            assert recording.group == attack.name
            assert set(recording.labels.tolist()) == {0, label}
            assert (recording.labels > 0).sum() == attack.duration
            assert set(recording.values[1, recording.labels > 0].tolist()) == {number}


def test_the_parts_of_a_test_file_lose_no_row(official: Path) -> None:
    recordings = read(official)
    counted = np.concatenate([recordings[f"test1/{attack.name}"].values[0] for attack in SCHEDULE["test1"]])
    np.testing.assert_array_equal(counted, np.arange(len(counted)))
    assert len(counted) == len(attack_rows("test1"))


def test_training_files_are_normal_groups(official: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PART", 256)
    recordings = read(official)
    parts = [recordings[f"train2/{number:02d}"] for number in range(3)]
    assert [len(part.labels) for part in parts] == [256, 256, 188]
    assert {part.group for part in parts} == {"train2"}
    assert not any(part.labels.any() for part in parts)
    assert parts[1].start == 1_594_000_256


def test_parts_of_a_file_are_the_file(tmp_path: Path) -> None:
    path = tmp_path / "train1.csv"
    path.write_bytes(text_of(training_rows(50)))
    whole = read_csv(path, TAGS[:2], time="time")
    for rows in (1, 7, 25, 49, 50, 51):
        parts = list(csv_parts(path, TAGS[:2], rows, time="time"))
        assert [len(part["time"]) for part in parts[:-1]] == [rows] * (len(parts) - 1)
        for column, values in whole.items():
            np.testing.assert_array_equal(np.concatenate([part[column] for part in parts]), values)


def test_windows_are_about_as_many_as_in_the_paper(official: Path, tmp_path: Path) -> None:
    """Every window of 256 steps at stride 64 that touches an attack: 333 in the paper."""
    built = build(Hai(), official, tmp_path)
    counts = Counter(built.windows.labels.tolist())
    assert sum(counts[label] for label in range(1, 7)) == pytest.approx(333, abs=20)
    task = compose_task(built, seed=0, settings=Composition())
    assert len(task.corpus_at(0)) == pytest.approx(305, abs=20)
    assert len(task.queries) == pytest.approx(28, abs=14)
    assert set(task.corpus_at(0).labels.tolist()) == set(range(1, 7))


@pytest.mark.parametrize(("inside", "delimiter"), [("", ","), ("hai-21.03", ";")])
def test_other_places_and_separators_give_the_same(tmp_path: Path, official: Path, inside: str, delimiter: str) -> None:
    folder = write(tmp_path, inside=inside)
    (folder / "test4.csv").write_bytes(text_of(attack_rows("test4"), delimiter))
    (folder / "train1.csv").write_bytes(text_of(training_rows(), delimiter))
    one, two = read(official), read(tmp_path)
    assert list(one) == list(two)
    assert all(np.array_equal(one[name].values, two[name].values) for name in one)


def test_missing_files_are_named_with_where_to_get_them(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "test3.csv").unlink()
    (folder / "train1.csv").unlink()
    with pytest.raises(SourceMissingError, match=r"no test3\.csv, train1\.csv in .*github\.com/icsdataset"):
        read(tmp_path)


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "hai/test2.csv").write_bytes(CONTENT["test2"])
    with pytest.raises(DataError, match=r"test2\.csv: the same recording is in .*test2\.csv"):
        read(tmp_path)


def shifted(rows: list[list[str]], seconds: int) -> list[list[str]]:
    times = np.array([row[0].replace(" ", "T") for row in rows], "datetime64[s]").astype(np.int64)
    return [[stamp(time + seconds), *row[1:]] for time, row in zip(times, rows, strict=True)]


def without_run(rows: list[list[str]], number: int) -> list[list[str]]:
    return [[*row[:80], "0", *row[81:]] if row[2] == str(number) else row for row in rows]


def prolonged(rows: list[list[str]], seconds: int) -> list[list[str]]:
    """The last attack lasts longer."""
    last = max(index for index, row in enumerate(rows) if row[80] == "1")
    return [[*row[:80], "1" if last < i <= last + seconds else row[80], *row[81:]] for i, row in enumerate(rows)]


@pytest.mark.parametrize(("change", "message"), [
    (lambda rows: without_run(rows, 2), "4 attacks are marked, but version 21.03 has 5 in test1.csv"),
    (lambda rows: shifted(rows, 600), r"an attack of 192 s begins \+607 s from the start of A101, which lasts 192 s"),
    (lambda rows: shifted(rows, -600), r"an attack of 192 s begins -593 s from the start of A101"),
    (lambda rows: prolonged(rows, 61), r"an attack of 150 s begins \+7 s from the start of A105, which lasts 89 s"),
])  # fmt: skip
def test_attacks_that_do_not_fit_the_schedule_are_refused(
    tmp_path: Path, change: Callable[[list[list[str]]], list[list[str]]], message: str
) -> None:
    path = write(tmp_path) / "test1.csv"
    path.write_bytes(text_of(change(attack_rows("test1"))))
    with pytest.raises(DataError, match=rf"test1\.csv.*{message}"):
        read(tmp_path)


def test_a_minute_of_difference_to_the_schedule_is_accepted(tmp_path: Path) -> None:
    path = write(tmp_path) / "test1.csv"
    path.write_bytes(text_of(prolonged(shifted(attack_rows("test1"), -60), 60)))
    assert runs(read(tmp_path)["test1/A105"].labels > 0)[0][1] > 0


DAMAGED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no header"),
    "header only": (text_of([]), "no rows after the header"),
    "cut inside a row": (CONTENT["test1"][:-20], r"Expected 84 columns"),
    "cut gzip": (gzip.compress(CONTENT["test1"], 1)[:-200], "damaged or incomplete"),
    "version 22.04": (CONTENT["test1"].replace(b",attack,", b",Attack,"), "'attack' is not in the header"),
    "other tags": (CONTENT["test1"].replace(b"P3_LIT01", b"P3_LIT99"), "'P3_LIT01' is not in the header"),
    "no reading": (text_of([[*r[:3], "", *r[4:]] for r in attack_rows("test1")]), "column 'P1_B3004' has no reading"),
    "repeated time": (text_of([attack_rows("test1")[0], *attack_rows("test1")]), "row 2: .* not later than"),
    "other mark": (text_of([[*r[:80], "2", *r[81:]] for r in attack_rows("test1")]), "row 1: 'attack' is 2, but only"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_test_file_is_named_with_what_is_wrong(tmp_path: Path, name: str) -> None:
    content, message = DAMAGED[name]
    path = write(tmp_path) / "test1.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"test1\.csv.*{message}"):
        read(tmp_path)


def with_value(row: int, column: int, value: str) -> bytes:
    rows = training_rows()
    rows[row][column] = value
    return text_of(rows)


DAMAGED_TRAINING = {
    "attack": (with_value(600, 80, "1"), "row 601: an attack, but training files have none"),
    "mark": (with_value(600, 80, ""), "row 601: 'attack' is nan"),
    "time": (with_value(600, 0, stamp(1_594_000_599)), "row 601: .* not later than"),
    "time at the edge of a part": (with_value(512, 0, stamp(1_594_000_511)), "row 513: .* not later than"),
    "empty": (text_of([]), "no rows after the header"),
}


@pytest.mark.parametrize("name", DAMAGED_TRAINING)
def test_a_damaged_training_file_is_named_with_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(source, "PART", 256)
    content, message = DAMAGED_TRAINING[name]
    path = write(tmp_path) / "train3.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"train3\.csv.*{message}"):
        read(tmp_path)


def test_the_fingerprint_follows_the_contents(tmp_path: Path) -> None:
    path = write(tmp_path) / "train3.csv"
    before = Hai().fingerprint(tmp_path)
    path.write_bytes(with_value(600, 1, "12"))
    assert Hai().fingerprint(tmp_path) != before


@given(at=st.integers(0, 4000), new=st.binary(max_size=6), cut=st.integers(0, 6))
def test_a_changed_file_gives_recordings_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes, cut: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "train1.csv"
    content = text_of(training_rows(20))
    path.write_bytes(content[:at] + new + content[at + cut :])
    try:
        found = list(source._training_recordings("train1", path, Hai.info.protocol))
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert all(recording.values.shape == (79, len(recording.labels)) for recording in found)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(official: Path, check: SourceCheck) -> None:
    check(Hai(), official)


def test_the_facts_are_those_of_the_transcribed_manual(real_data: Path) -> None:
    folder = real_data / "hai"
    assert tuple((folder / "tags_hai-21.03.txt").read_text().split()) == TAGS
    with (folder / "attack_schedule_hai-21.03.csv").open() as file:
        rows = list(csv.DictReader(file))
    expected = [
        (r["test_file"], r["id"], r["controllers"], r["start"].replace(" ", "T"), int(r["duration_s"])) for r in rows
    ]
    own = [
        (f"{name}.csv", attack.name, "+".join(attack.loops), attack.start, attack.duration)
        for name, attacks in SCHEDULE.items()
        for attack in attacks
    ]
    assert own == expected


def test_parts_of_a_training_file_bring_what_was_before_them(official: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PART", 256)
    parts = [part for part in Hai(before_steps=100).recordings(official) if part.group == "train2"]
    befores = [part.before[0].tolist() for part in parts if part.before is not None]
    assert befores == [[], list(range(156, 256)), list(range(412, 512))]


def test_an_attack_has_normal_rows_before_it(official: Path, tmp_path: Path) -> None:
    windows = build(Hai(), official, tmp_path).windows
    assert windows.context is not None
    attacked = windows[windows.labels > 0]
    assert attacked.context is not None
    assert attacked.context.has_before.mean() > 0.8  # these files have five minutes, the official ones far more
    assert set(windows.context.rates.tolist()) == {1.0}
