"""Failures of the 5G core networks are cut alike, and what is wrongly labelled or does not show is left out."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.audit import find_leaks
from readbench.benchmark.protocol import Built, Composition, Recording, build, compose_task, windows_of
from readbench.benchmark.sources import Itu5gc
from readbench.benchmark.sources._itu_5gc import NAMES, RecordingFiles, read_rows
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck
from tests.damage import MANY, Damage, Outcomes, damaged, damages

FIRST_POLL = datetime(2021, 2, 4, 20, 44, 20, tzinfo=UTC)
ROWS, FIRST, EVERY, LASTING = 400, 60, 60, 5
"""Rows of a recording; its first failure, and how often and how long there is one. Their classes are 1 to 5 and 1."""
ONSETS = [FIRST + EVERY * number for number in range(6)]
UDM_DOWN, UDM_IN = NAMES.index("udm interface down"), NAMES.index("udm in-octets")


def rows_of() -> NDArray[np.float64]:
    """(T, 33) rows that tell their number; an interface is down in the failure of class 2."""
    rows = np.zeros((ROWS, len(NAMES)))
    rows[:, UDM_IN] = np.arange(ROWS)
    rows[0, UDM_IN] = 3e9
    rows[ONSETS[1] : ONSETS[1] + LASTING, UDM_DOWN] = 1
    rows[:, -1] = np.arange(ROWS) / ROWS
    return rows


def labels_of() -> list[int]:
    labels = [0] * ROWS
    for number, onset in enumerate(ONSETS):
        labels[onset : onset + LASTING] = [number % 5 + 1] * LASTING
    return labels


def polls(*, pause: int = ROWS) -> list[str]:
    """The time of each row, an event before each failure; an hour's pause before one row."""
    times = [FIRST_POLL + timedelta(seconds=10 * row, hours=row >= pause) for row in range(ROWS)]
    lines = [f"{time:%Y%m%d%H%M%S}.json" for time in times]
    for onset in ONSETS:
        lines[onset] = f"file:{times[onset]:%Y%m%d%H%M%S}.json,interface-down\n{lines[onset]}"
    return lines


def as_text(rows: NDArray[np.float64]) -> str:
    return "\n".join(" ".join(f"{value:g}" for value in row) for row in rows) + "\n"


def write(
    root: Path,
    name: str = "01_a_test",
    *,
    rows: NDArray[np.float64] | None = None,
    times: list[str] | None = None,
    inside: str = "ap_data",
    pack: Callable[[bytes], bytes] = bytes,
) -> RecordingFiles:
    folder, ending = root / "itu_5gc" / inside, "" if pack is bytes else ".gz"
    (folder / "relate_only_dataset").mkdir(parents=True, exist_ok=True)
    contents = {
        f"{name}_data.txt": as_text(rows_of() if rows is None else rows),
        f"{name}_label.txt": "\n".join(map(str, labels_of())) + "\n",
        f"relate_only_dataset/{name}.txt": "\n".join(times or polls()) + "\n",
    }
    for path, text in contents.items():
        (folder / f"{path}{ending}").write_bytes(pack(text.encode()))
    return RecordingFiles(name, name[3], *(folder / f"{path}{ending}" for path in contents))


def read(root: Path, source: Itu5gc | None = None) -> dict[str, Recording]:
    return {recording.id: recording for recording in (source or Itu5gc()).recordings(root)}


def failures(root: Path, source: Itu5gc | None = None) -> list[int]:
    """Classes of the failures that have a window, in order."""
    cuts = [recording.cuts for recording in read(root, source).values()]
    return [label for cut in cuts if cut is not None for label in cut.labels.tolist() if label > 0]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("01_a_test", "02_b_train", "01_c_test"):
        write(tmp_path, name)
    return tmp_path


def test_a_failure_is_one_window_with_five_rows_before_it(root: Path) -> None:
    source = Itu5gc()
    windows = windows_of(read(root)["02_b_train/0002"], source.info.protocol, source.info.classes)
    assert windows is not None
    first = int(np.flatnonzero(windows.labels == 3)[0])
    assert windows[first].values.shape == (33, 16)
    expected = np.arange(ONSETS[2] - 5, ONSETS[2] + 11)
    np.testing.assert_allclose(np.expm1(windows[first].values[UDM_IN]), expected, rtol=1e-5)
    assert windows.spans[first].tolist() == [5, 10]
    assert set(windows.assets) == {"b"}


def test_a_failure_is_a_group_with_the_normal_rows_ahead_of_it(root: Path) -> None:
    found = [recording for name, recording in read(root).items() if name.startswith("01_a_test")]
    assert [recording.id for recording in found] == [f"01_a_test/{number:04d}" for number in range(7)]
    assert sum(len(recording.labels) for recording in found) == ROWS - 1
    for recording in found:
        assert recording.group == recording.id
        assert len(set(recording.labels.tolist()) - {0, -1}) <= 1


def test_normal_windows_stay_away_from_failures(root: Path) -> None:
    source = Itu5gc()
    for recording in read(root).values():
        windows = windows_of(recording, source.info.protocol, source.info.classes)
        assert windows is not None
        for window, label in zip(windows, windows.labels, strict=True):
            numbers = np.rint(np.expm1(window.values[UDM_IN]))
            apart = [np.abs(numbers - row).min() for onset in ONSETS for row in (onset, onset + LASTING - 1)]
            assert label or min(apart) > 6


def test_the_time_before_are_normal_rows_just_before_the_window(root: Path) -> None:
    source = Itu5gc()
    windows = windows_of(read(root)["01_a_test/0001"], source.info.protocol, source.info.classes)
    assert windows is not None
    before = windows[int(np.flatnonzero(windows.labels == 2)[0])].before
    assert before is not None
    rows = np.rint(np.expm1(before[UDM_IN])).tolist()
    assert rows == list(range(ONSETS[1] - 5 - 32, ONSETS[1] - 5))


def test_the_row_after_a_pause_and_the_first_one_are_left_out(tmp_path: Path) -> None:
    files = write(tmp_path, times=polls(pause=200))
    values, labels, times = read_rows(files)
    assert np.rint(np.expm1(values[UDM_IN])).tolist() == [row for row in range(1, ROWS) if row != 200]
    assert len(labels) == len(times) == ROWS - 2


def test_normal_rows_with_an_interface_down_are_not_normal_and_failures_among_them_not_used(tmp_path: Path) -> None:
    rows = rows_of()
    rows[200:250, UDM_DOWN] = 1
    write(tmp_path, rows=rows)
    labels = read(tmp_path)["01_a_test/0003"].labels
    assert set(labels[200 - ONSETS[2] - 11 : ONSETS[3] - ONSETS[2] - 11].tolist()) == {-1}
    assert failures(tmp_path) == [1, 2, 3, 5, 1]
    assert failures(tmp_path, Itu5gc(doubtful=True)) == [1, 2, 3, 4, 5, 1]


def test_an_interface_down_failure_that_does_not_show_is_not_used(tmp_path: Path) -> None:
    rows = rows_of()
    rows[:, UDM_DOWN] = 0
    write(tmp_path, rows=rows)
    assert failures(tmp_path) == [1, 3, 4, 5, 1]
    assert failures(tmp_path, Itu5gc(doubtful=True)) == [1, 2, 3, 4, 5, 1]


@pytest.mark.parametrize(("inside", "pack"), [("", bytes), ("a/copy", gzip.compress), ("ap_data", gzip.compress)])
def test_other_folders_and_gzipped_files_give_the_same(
    root: Path, tmp_path_factory: pytest.TempPathFactory, inside: str, pack: Callable[[bytes], bytes]
) -> None:
    other = tmp_path_factory.mktemp("other")
    for name in ("01_a_test", "02_b_train", "01_c_test"):
        write(other, name, inside=inside, pack=pack)
    one, two = read(root), read(other)
    assert list(one) == list(two)
    assert all(np.array_equal(one[name].values, two[name].values) for name in one)


@pytest.mark.parametrize("name", ["01_a_test_label.txt", "relate_only_dataset/01_a_test.txt"])
def test_a_missing_file_is_named_with_where_to_get_it(root: Path, name: str) -> None:
    (root / "itu_5gc/ap_data" / name).unlink()
    with pytest.raises(SourceMissingError, match=rf"no {name} beside it.*github\.com/ITU-AI-ML"):
        read(root)


def test_labels_without_data_are_passed_over(root: Path) -> None:
    (root / "itu_5gc/ap_data/01_a_test_data.txt").unlink()
    assert {name[:9] for name in read(root)} == {"01_c_test", "02_b_trai"}
    (root / "itu_5gc/ap_data/02_b_train_data.txt").unlink()
    (root / "itu_5gc/ap_data/01_c_test_data.txt").unlink()
    with pytest.raises(SourceMissingError, match=r"no .*_data\.txt in"):
        read(root)


def test_a_recording_that_is_there_twice_is_refused(root: Path) -> None:
    write(root, inside="other")
    with pytest.raises(DataError, match=r"01_a_test_data\.txt: the same recording is in"):
        read(root)


def test_a_file_of_another_name_is_refused(root: Path) -> None:
    (root / "itu_5gc/ap_data/01_a_old_data.txt").write_text("0")
    with pytest.raises(DataError, match=r"01_a_old_data\.txt: the name is not that of a recording"):
        read(root)


DATA, LABELS, TIMES = as_text(rows_of()), "\n".join(map(str, labels_of())), "\n".join(polls())
DAMAGED = {
    "no rows": ("01_a_test_data.txt", "", "Empty CSV file"),
    "fewer rows": ("01_a_test_data.txt", DATA[: DATA.rindex("\n", 0, -1)], "399 rows, but 400 labels in .* 400 times"),
    "cut inside a row": ("01_a_test_data.txt", DATA[:-20], "line 400: Expected 33 columns"),
    "text": ("01_a_test_data.txt", DATA.replace(" 0 ", " up ", 1), "invalid value 'up'"),
    "commas": ("01_a_test_data.txt", DATA.replace(" ", ","), "line 1: Expected 33 columns"),
    "fewer labels": ("01_a_test_label.txt", LABELS[:-2], "400 rows, but 399 labels"),
    "other label": ("01_a_test_label.txt", LABELS.replace("3", "7", 1), "row 181: the label is 7, but only 0 to 5"),
    "no poll": (
        "relate_only_dataset/01_a_test.txt",
        TIMES.replace(".json\n", "\n", 1),
        "line 1: '20210204204420' is no",
    ),
    "no time": ("relate_only_dataset/01_a_test.txt", TIMES.replace("20210204", "20211304", 1), "no possible time"),
    "time goes back": ("relate_only_dataset/01_a_test.txt", TIMES.replace("204430", "204410", 1), "row 2: .*not later"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    path, text, message = DAMAGED[name]
    (root / "itu_5gc/ap_data" / path).write_text(text)
    with pytest.raises(DataError, match=rf"01_a_test.*{message}"):
        read(root)


def test_the_fingerprint_follows_all_three_files_and_the_choice(root: Path) -> None:
    prints = [Itu5gc().fingerprint(root), Itu5gc(doubtful=True).fingerprint(root)]
    for path, text in (("01_a_test_label.txt", LABELS), ("relate_only_dataset/01_a_test.txt", TIMES + "\n\n")):
        (root / "itu_5gc/ap_data" / path).write_text(text)
        prints.append(Itu5gc().fingerprint(root))
    assert len(set(prints)) == 4


@pytest.mark.parametrize("file", ["data", "labels", "times"])
def test_a_changed_file_gives_rows_or_a_data_error(tmp_path: Path, file: str) -> None:
    files, outcomes = write(tmp_path), Outcomes()
    path: Path = getattr(files, file)
    whole = path.read_bytes()

    @settings(max_examples=MANY)
    @given(damage=damages(len(whole), st.sampled_from(b"0123456789 .,\n-x")))
    def try_damage(damage: Damage) -> None:
        path.write_bytes(damaged(whole, damage))
        outcomes.note(lambda: [np.nan_to_num(read_rows(files)[0])])

    try_damage()
    outcomes.check_both()


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(root: Path, check: SourceCheck) -> None:
    check(Itu5gc(), root)


@pytest.fixture(scope="module")
def built_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("itu_5gc")


def windows(real_data: Path, folder: Path, *, doubtful: bool = False) -> Built:
    return build(Itu5gc(doubtful=doubtful), real_data, folder)


def test_real_recordings_give_the_known_windows(real_data: Path, built_folder: Path) -> None:
    found = windows(real_data, built_folder).windows
    assert Counter(found.labels.tolist()) == {0: 3484, 1: 210, 2: 177, 3: 209, 4: 209, 5: 208}
    assert Counter(np.asarray(found.assets)[found.labels > 0].tolist()) == {"a": 294, "b": 420, "c": 299}
    assert all(window.before is not None for window, label in zip(found, found.labels, strict=True) if label > 0)


def test_of_all_real_failures_36_are_doubtful(real_data: Path, built_folder: Path) -> None:
    found = windows(real_data, built_folder, doubtful=True).windows
    assert Counter(found.labels[found.labels > 0].tolist()) == {1: 210, 2: 209, 3: 210, 4: 210, 5: 210}
    assert Counter(np.asarray(found.assets)[found.labels > 0].tolist()) == {"a": 300, "b": 450, "c": 299}


@pytest.mark.parametrize("unit", ["group", "asset"])
def test_a_real_task_has_queries_of_all_classes(real_data: Path, built_folder: Path, unit: str) -> None:
    task = compose_task(
        windows(real_data, built_folder),
        seed=0,
        settings=Composition(split_by=unit),  # type: ignore[arg-type]
    )
    assert find_leaks(task).sound
    assert set(task.queries.labels) == {1, 2, 3, 4, 5}
    assert len(task.queries) == 100


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(Itu5gc(), real_data)
