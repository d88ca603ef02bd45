"""Voraus recordings come out of the long table whole, and nothing damaged passes."""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.protocol import Recording, build
from readbench.benchmark.sources import Voraus, _voraus as voraus
from readbench.benchmark.sources._voraus import LENGTH, NAMES, read_samples
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck

CATEGORIES = {0: 0, 1: 0, 7: 0, 20: 3, 21: 3, 22: 11, 23: 11, **dict.fromkeys(range(755, 795), 12)}
ROWS = 30
Columns = dict[str, NDArray[np.float64]]


def rows_of(number: int, category: int, rows: int = ROWS) -> Columns:
    """A recording; signal k of row r reads number + k + r / 100."""
    step = np.arange(rows)
    signals = {name: number + k + step / 100 for k, name in enumerate(NAMES)}
    meta = {"sample": number, "anomaly": category != 12, "category": category, "setting": 72, "action": 0, "active": 1}
    return {"time": step / 100, **{name: np.full(rows, value) for name, value in meta.items()}, **signals}


def parquet(recordings: list[Columns]) -> bytes:
    """The long table as the official file has it."""
    columns = {name: np.concatenate([recording[name] for recording in recordings]) for name in recordings[0]}
    types = {"sample": np.int64, "anomaly": bool, "category": np.int64, "setting": np.int64, "action": np.uint8}
    table = pa.table({name: values.astype(types.get(name, np.float64)) for name, values in columns.items()})
    buffer = BytesIO()
    pq.write_table(table, buffer, row_group_size=500)
    return buffer.getvalue()


def official() -> list[Columns]:
    return [rows_of(number, category, ROWS + number % 3) for number, category in CATEGORIES.items()]


GOOD = parquet(official())


def put(root: Path, content: bytes, name: str = "voraus-ad-dataset-100hz.parquet") -> Path:
    path = root / "voraus" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, GOOD)
    return tmp_path


def read(root: Path) -> dict[str, Recording]:
    return {recording.id: recording for recording in Voraus().recordings(root)}


def test_each_recording_has_the_class_of_its_category(root: Path) -> None:
    recordings = read(root)
    assert list(recordings) == [f"sample-{number:04d}" for number in CATEGORIES]
    for number, category in CATEGORIES.items():
        labels = recordings[f"sample-{number:04d}"].labels
        assert labels.tolist() == [0 if category == 12 else category + 1] * LENGTH
    assert len(Voraus.info.faults) == 12


def test_signals_keep_their_course_on_the_new_grid(root: Path) -> None:
    for number in CATEGORIES:
        recording = read(root)[f"sample-{number:04d}"]
        rows = ROWS + number % 3
        expected = number + np.arange(130)[:, None] + np.linspace(0, rows - 1, LENGTH) / 100
        np.testing.assert_allclose(recording.values, expected, rtol=1e-6)
        assert recording.step == pytest.approx((rows - 1) / 100 / (LENGTH - 1))
        if number > 30:
            break


@pytest.mark.parametrize("batch", [1, 7, 31, 64, 10_000])
def test_the_size_of_batches_changes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    path = root / "voraus/voraus-ad-dataset-100hz.parquet"
    path.write_bytes(parquet(official()[:8]))
    whole = pq.read_table(path).to_pydict()
    monkeypatch.setattr(voraus, "BATCH", batch)
    samples = list(read_samples(path))
    assert [sample.number for sample in samples] == list(CATEGORIES)[:8]
    for sample in samples:
        own = [row for row, number in enumerate(whole["sample"]) if number == sample.number]
        assert sample.first_row == own[0] + 1
        for name in ("time", "robot_voltage", "brake_voltage_6"):
            assert sample.table[name].tolist() == [whole[name][row] for row in own]


def test_a_gap_is_filled_before_interpolation(root: Path) -> None:
    recording = rows_of(3, 5)
    recording["motor_iq_2"][:] = [1.0] * 10 + [np.nan] * 10 + [3.0] * 10
    put(root, parquet([recording]))
    values = read(root)["sample-0003"].values[NAMES.index("motor_iq_2")]
    assert set(np.round(values[: LENGTH * 19 // 30], 6).tolist()) == {1.0}
    assert values[-1] == 3.0


def test_missing_files_are_named_with_where_to_get_them(tmp_path: Path) -> None:
    (tmp_path / "voraus").mkdir()
    with pytest.raises(SourceMissingError, match=r"no \*\.parquet in .*github\.com/vorausrobotik"):
        read(tmp_path)


def test_a_second_file_is_refused(root: Path) -> None:
    put(root, GOOD, "copy.parquet")
    with pytest.raises(DataError, match=r"voraus-ad-dataset-100hz\.parquet: the same recordings are in .*copy"):
        read(root)


def changed(name: str, values: list[float]) -> bytes:
    recording = rows_of(3, 5, len(values))
    recording[name] = np.array(values)
    return parquet([rows_of(1, 12), recording])


def without(*names: str) -> bytes:
    buffer = BytesIO()
    pq.write_table(pq.read_table(BytesIO(GOOD)).drop_columns(list(names)), buffer)
    return buffer.getvalue()


DAMAGED = {
    "empty": (b"", "Parquet file size is 0 bytes"),
    "cut": (GOOD[:-50], "Parquet magic bytes not found"),
    "text": (b"time,sample\n0,1\n", "Parquet magic bytes not found"),
    "no rows": (parquet([rows_of(1, 12, 0)]), "no rows"),
    "no signal": (without("motor_iq_2", "joint_position_1"), r"not one column joint_position_1, motor_iq_2\."),
    "no category": (without("category"), "not one column category"),
    "repeated rows": (changed("time", [0.0, 0.01, 0.01, 0.02]), "row 33: .* not later than"),
    "two categories": (changed("category", [5, 5, 6]), r"sample 3 \(from row 31\): expected one category .*found 5, 6"),
    "category 13": (changed("category", [13, 13]), "expected one category from 0 to 12, found 13"),
    "normal anomaly": (changed("anomaly", [1, 0, 1]), "sample 3 .*'anomaly' contradicts category 5"),
    "one row": (parquet([rows_of(4, 12, 1)]), "sample 4 .*fewer than two rows"),
    "no reading": (
        parquet([{n: v * np.nan if n in NAMES else v for n, v in rows_of(4, 12).items()}]),
        "sample 4 .*no reading at all",
    ),
    "scattered": (parquet([rows_of(1, 12), rows_of(2, 12), rows_of(1, 12)]), "row 61: more rows of sample 1 after"),
    "negative sample": (parquet([rows_of(-1, 12)]), "row 1: sample -1 is no number of a recording"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    content, message = DAMAGED[name]
    put(root, content)
    with pytest.raises(DataError, match=rf"100hz\.parquet.*{message}"):
        read(root)


def test_the_fingerprint_follows_the_contents(root: Path) -> None:
    before = Voraus().fingerprint(root)
    put(root, parquet(official()[:-1]))
    assert Voraus().fingerprint(root) != before


@given(at=st.floats(0, 1), new=st.binary(max_size=6), cut=st.integers(0, 6))
def test_a_changed_file_gives_recordings_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, at: float, new: bytes, cut: int
) -> None:
    content = parquet(official()[:2])
    place = int(at * len(content))
    root = tmp_path_factory.getbasetemp()
    path = put(root, content[:place] + new + content[place + cut :])
    try:
        found = list(Voraus().recordings(root))
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert all(recording.values.shape == (130, LENGTH) for recording in found)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(root: Path, check: SourceCheck) -> None:
    check(Voraus(), root)


def test_the_real_file_gives_its_four_recordings(real_data: Path, tmp_path: Path) -> None:
    found = build(Voraus(), real_data, tmp_path).windows
    assert found.groups.tolist() == ["sample-0012", "sample-0755", "sample-1702", "sample-1703"]
    assert Counter(found.labels.tolist()) == {0: 3, 1: 1}
    assert {window.values.shape for window in found} == {(130, LENGTH)}
