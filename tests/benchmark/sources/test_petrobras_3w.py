"""3W instances of both versions are read as published, and nothing damaged passes."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.protocol import Composition, Recording, build, compose_task, windows_of
from readbench.benchmark.sources import Petrobras3W
from readbench.benchmark.sources._petrobras_3w import NAMES, Sensors, Sentinels, drop_sentinels
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck

V1_COLUMNS = ["P-PDG", "P-TPT", "T-TPT", "P-MON-CKP", "T-JUS-CKP", "P-JUS-CKGL", "T-JUS-CKGL", "QGL"]
V2_COLUMNS = [
    "ABER-CKGL", "ABER-CKP", "ESTADO-DHSV", "ESTADO-M1", "ESTADO-M2", "ESTADO-PXO", "ESTADO-SDV-GL", "ESTADO-SDV-P",
    "ESTADO-W1", "ESTADO-W2", "ESTADO-XO", "P-ANULAR", "P-JUS-BS", "P-JUS-CKGL", "P-JUS-CKP", "P-MON-CKGL",
    "P-MON-CKP", "P-MON-SDV-P", "P-PDG", "PT-P", "P-TPT", "QBS", "QGL", "T-JUS-CKP", "T-MON-CKP", "T-PDG", "T-TPT",
]  # fmt: skip
PACKERS = [bytes, gzip.compress]
ROWS = 40
CODES: list[int | None] = [None] * 5 + [0] * 10 + [107] * 15 + [7] * 8 + [None] * 2
START = np.datetime64("2017-02-18T21:03:11")
WELL = "7/WELL-00001_20170218210311"


def reading(column: str, row: int) -> float:
    """A number that tells where it comes from; T-JUS-CKGL is never recorded."""
    return float("nan") if column == "T-JUS-CKGL" else 1000.0 * (V2_COLUMNS.index(column) + 1) + row


def times(rows: int = ROWS) -> NDArray[np.datetime64]:
    return START + np.arange(rows).astype("timedelta64[s]")


def v1_lines(codes: Sequence[int | None] = CODES) -> list[str]:
    """An instance as version 1 writes it."""
    lines = [",".join(["timestamp", *V1_COLUMNS, "class"])]
    for row, (time, code) in enumerate(zip(times(len(codes)), codes, strict=True)):
        numbers = [f"{reading(column, row):.6e}".replace("nan", "") for column in V1_COLUMNS]
        stamp = f"{str(time).replace('T', ' ')}.000000"
        lines.append(",".join([stamp, *numbers, "" if code is None else str(code)]))
    return lines


def v2_table(codes: Sequence[int | None] = CODES) -> pa.Table:
    """An instance as version 2 stores it: 27 variables, class and state, and the index as a column."""
    columns = {name: pa.array([reading(name, row) for row in range(len(codes))]) for name in V2_COLUMNS}
    columns["class"] = pa.array(codes, pa.int16())
    columns["state"] = pa.array([0] * len(codes), pa.int16())
    columns["timestamp"] = pa.array(times(len(codes)).astype("datetime64[ns]"))
    return pa.table(columns)


def parquet(table: pa.Table) -> bytes:
    file = BytesIO()
    pq.write_table(table, file, compression="brotli")
    return file.getvalue()


def put(root: Path, name: str, content: bytes | list[str]) -> Path:
    path = root / "petrobras_3w" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else "\n".join(content).encode())
    return path


def read(root: Path, sentinels: Sentinels = "c") -> dict[str, Recording]:
    return {recording.id: recording for recording in Petrobras3W(sentinels).recordings(root)}


FORMS = {
    "v2": (f"dataset/{WELL}.parquet", parquet(v2_table())),
    "v2 gzipped": (f"dataset/{WELL}.parquet.gz", gzip.compress(parquet(v2_table()))),
    "v1": (f"data/{WELL}.csv", "\n".join(v1_lines()).encode()),
    "v1 gzipped": (f"{WELL}.csv.gz", gzip.compress("\n".join(v1_lines()).encode())),
}


@pytest.mark.parametrize("form", FORMS)
def test_both_versions_give_the_same_seven_sensors_and_labels(tmp_path: Path, form: str) -> None:
    put(tmp_path, *FORMS[form])
    recording = read(tmp_path)[WELL]
    assert recording.channels == NAMES
    expected = [[reading(name, row) for row in range(5, 38)] for name in NAMES]
    np.testing.assert_array_equal(recording.values, expected)
    assert recording.labels.tolist() == [0] * 10 + [107] * 15 + [7] * 8


@pytest.mark.parametrize("form", FORMS)
def test_rows_without_class_are_no_part_of_the_recording(tmp_path: Path, form: str) -> None:
    put(tmp_path, *FORMS[form])
    recording = read(tmp_path)[WELL]
    assert len(recording.labels) == sum(code is not None for code in CODES)
    assert recording.start == START.astype(int) + 5


def test_the_transient_of_an_event_counts_as_the_event(tmp_path: Path) -> None:
    put(tmp_path, f"dataset/{WELL}.csv", v1_lines([0] * 100 + [107] * 156 + [7] * 256))
    found = windows_of(read(tmp_path)[WELL], Petrobras3W.info.protocol, Petrobras3W.info.classes)
    assert found is not None
    assert found.labels.tolist() == [7, 7]


@pytest.mark.parametrize(
    ("name", "asset"),
    [("3/WELL-00014_20170917140000", "WELL-00014"), ("9/SIMULATED_00003", "simulated"), ("1/DRAWN_00007", "drawn")],
)
def test_each_instance_is_a_group_and_each_well_an_asset(tmp_path: Path, name: str, asset: str) -> None:
    put(tmp_path, f"dataset/{name}.csv", v1_lines())
    recording = read(tmp_path)[name]
    assert recording.group == name
    assert recording.asset == asset


def test_a_file_with_another_kind_of_name_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "dataset/3/copy of WELL-00001.csv", v1_lines())
    with pytest.raises(DataError, match=r"copy of WELL-00001\.csv: instances are named"):
        read(tmp_path)


def test_an_instance_in_both_versions_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "dataset/3/SIMULATED_00001.csv", v1_lines())
    put(tmp_path, "dataset/3/SIMULATED_00001.parquet", parquet(v2_table()))
    with pytest.raises(DataError, match=r"SIMULATED_00001\.parquet: the same recording is in .*SIMULATED_00001\.csv"):
        read(tmp_path)


def test_no_files_at_all_says_where_to_get_them(tmp_path: Path) -> None:
    (tmp_path / "petrobras_3w/dataset").mkdir(parents=True)
    with pytest.raises(SourceMissingError, match=r"github\.com/petrobras/3W"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ("a", [5e6, 0.0, -6.89e6, 3e9]),
        ("b", [5e6, 0.0]),
        ("c", [5e6]),
    ],
)
def test_pressures_are_kept_by_the_rule_for_sentinels(rule: Sentinels, kept: list[float]) -> None:
    column = np.array([5e6, 0.0, -6.89e6, 3e9, -1.180116e42, np.nan])
    cleaned = drop_sentinels(np.tile(column, (7, 1)), rule)
    for name, readings in zip(NAMES, cleaned, strict=True):
        expected = kept if name.startswith("P-") else [5e6, 0.0, -6.89e6, 3e9]
        assert readings[~np.isnan(readings)].tolist() == expected, name


def test_a_sensor_frozen_at_zero_is_no_channel_and_a_gap_no_row(tmp_path: Path) -> None:
    lines = [line.split(",") for line in v1_lines([5] * 300)]
    for line in lines[1:]:
        line[1] = "0.000000e+00"
    lines[10][2] = ""
    put(tmp_path, "dataset/5/WELL-00001_20170218210311.csv", [",".join(line) for line in lines])
    recording = read(tmp_path)["5/WELL-00001_20170218210311"]
    found = windows_of(recording, Petrobras3W.info.protocol, Petrobras3W.info.classes)
    assert found is not None
    assert found[0].channels == NAMES[1:]
    assert found[0].values[0, :11].tolist() == [reading("P-TPT", row) for row in range(12) if row != 9]


def clock_goes_back(seconds: int) -> pa.Table:
    stamps = times()
    stamps[20:] -= np.timedelta64(seconds, "s")
    table = v2_table()
    return table.set_column(table.schema.get_field_index("timestamp"), "timestamp", pa.array(stamps))


def test_the_end_of_daylight_saving_time_keeps_the_order_of_the_rows(tmp_path: Path) -> None:
    put(tmp_path, f"dataset/{WELL}.parquet", parquet(clock_goes_back(3600)))
    values = read(tmp_path)[WELL].values
    assert values[0].tolist() == [reading("P-PDG", row) for row in range(5, 38)]


@pytest.mark.parametrize("seconds", [1, 30, 1800, 3601, 7200])
def test_any_other_step_back_in_time_is_refused(tmp_path: Path, seconds: int) -> None:
    put(tmp_path, f"dataset/{WELL}.parquet", parquet(clock_goes_back(seconds)))
    with pytest.raises(DataError, match=r"20170218210311\.parquet, row 21: the time is missing or not later"):
        read(tmp_path)


def with_column(name: str, values: pa.Array) -> bytes:
    table = v2_table()
    return parquet(table.set_column(table.schema.get_field_index(name), name, values))


def with_code(code: int) -> list[int | None]:
    return [*CODES[:10], code, *CODES[11:]]


DAMAGED_PARQUET = {
    "empty": (b"", "Parquet file size is 0 bytes"),
    "cut": (parquet(v2_table())[:-50], "Parquet magic bytes not found"),
    "text": ("\n".join(v1_lines()).encode(), "Parquet magic bytes not found"),
    "garbled name": (parquet(v2_table()).replace(b"P-ANULAR", b"P-\xff\xff\xff\xff\xff\xff"), "can't decode byte 0xff"),
    "no rows": (parquet(v2_table([])), "no rows"),
    "no sensor": (parquet(v2_table().drop_columns(["P-TPT", "QGL"])), "not one column P-TPT, QGL; it has ABER-CKGL"),
    "no class": (parquet(v2_table().drop_columns(["class"])), "not one column class"),
    "times as numbers": (with_column("timestamp", pa.array(range(ROWS))), "'timestamp' holds int64, not times"),
    "words": (with_column("QGL", pa.array(["closed"] * ROWS)), "closed"),
    "class 103": (parquet(v2_table(with_code(103))), "row 11: class 103 is none of 0, 1, 2"),
    "class 10": (parquet(v2_table(with_code(10))), "row 11: class 10 is none of 0, 1, 2"),
    "no label": (parquet(v2_table([None] * ROWS)), "no row has a class"),
}
DAMAGED_CSV = {
    "empty": (b"", "Empty CSV file"),
    "cut inside a row": ("\n".join(v1_lines()).encode()[:-40], "line 41: Expected 10 columns"),
    "cut gzip": (gzip.compress("\n".join(v1_lines()).encode())[:-9], "damaged or incomplete"),
    "latin header": ("\n".join(v1_lines()).replace("P-PDG", "P-PDÇ").encode("latin-1"), "'P-PDG' is not in the header"),
    "class 3.5": ("\n".join(v1_lines()).replace(",107\n", ",3.5\n").encode(), "row 16: class 3.5 is none of"),
    "word": ("\n".join(v1_lines()).replace(",107\n", ",event\n").encode(), "line 17: .*invalid value 'event'"),
}


@pytest.mark.parametrize("name", DAMAGED_PARQUET)
def test_a_damaged_parquet_file_is_named_with_what_is_wrong(tmp_path: Path, name: str) -> None:
    content, message = DAMAGED_PARQUET[name]
    put(tmp_path, f"dataset/{WELL}.parquet", content)
    with pytest.raises(DataError, match=rf"WELL-00001_20170218210311\.parquet.*{message}"):
        read(tmp_path)


@pytest.mark.parametrize("name", DAMAGED_CSV)
def test_a_damaged_csv_file_is_named_with_what_is_wrong(tmp_path: Path, name: str) -> None:
    content, message = DAMAGED_CSV[name]
    put(tmp_path, f"dataset/{WELL}.csv", content)
    with pytest.raises(DataError, match=rf"WELL-00001_20170218210311\.csv.*{message}"):
        read(tmp_path)


def test_the_fingerprint_follows_contents_places_and_rule(tmp_path: Path) -> None:
    path = put(tmp_path, "dataset/3/SIMULATED_00001.csv", v1_lines())
    prints = [Petrobras3W().fingerprint(tmp_path), Petrobras3W("a").fingerprint(tmp_path)]
    put(tmp_path, "dataset/3/SIMULATED_00001.csv", v1_lines([3] * ROWS))
    prints.append(Petrobras3W().fingerprint(tmp_path))
    (tmp_path / "petrobras_3w/dataset/4").mkdir()
    path.rename(tmp_path / "petrobras_3w/dataset/4/SIMULATED_00001.csv")
    prints.append(Petrobras3W().fingerprint(tmp_path))
    assert len(set(prints)) == 4


@pytest.mark.parametrize(
    ("ending", "valid"), [("csv", "\n".join(v1_lines()).encode()), ("parquet", parquet(v2_table()))]
)
@given(
    at=st.floats(0, 1), new=st.binary(max_size=6), cut=st.integers(0, 6), pack=st.sampled_from([bytes, gzip.compress])
)
def test_a_changed_file_gives_a_recording_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory,
    ending: str,
    valid: bytes,
    at: float,
    new: bytes,
    cut: int,
    pack: Callable[[bytes], bytes],
) -> None:
    content = pack(valid)
    place = int(at * len(content))
    changed = content[:place] + new + content[place + cut :]
    path = put(tmp_path_factory.getbasetemp(), f"7/SIMULATED_00001.{ending}", changed)
    try:
        recording = Petrobras3W()._recording(path)
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert recording.values.shape == (7, len(recording.labels))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("petrobras_3w")


def test_real_instances_give_the_known_windows(real_data: Path, cache: Path) -> None:
    found = build(Petrobras3W(), real_data, cache).windows
    assert Counter(found.labels.tolist()) == {
        0: 1629, 1: 318, 2: 398, 3: 633, 4: 82, 5: 745, 6: 72, 7: 1006, 8: 191, 9: 294,
    }  # fmt: skip
    assert len(set(found.groups)) == 78
    counts = {len(window.channels) for window in found if window.label}
    assert counts == set(range(2, 8))


def test_a_real_task_has_the_sizes_of_the_paper(real_data: Path, cache: Path) -> None:
    task = compose_task(build(Petrobras3W(), real_data, cache), seed=0, settings=Composition())
    assert {rho: len(positions) for rho, positions in task.levels.items()} == {0: 1000, 10: 1111, 20: 1250}
    assert len(task.queries) == 100
    assert set(task.queries.labels) == set(range(1, 10))
    assert len(task.normals) == 500
    assert not task.notes


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(Petrobras3W(), real_data)


@pytest.mark.parametrize(("sensors", "channels"), [("most", ("P-TPT", "T-TPT", "P-MON-CKP")), ("common", ("T-TPT",))])
def test_fewer_sensors_are_read_on_request(tmp_path: Path, sensors: Sensors, channels: tuple[str, ...]) -> None:
    put(tmp_path, *FORMS["v2"])
    whole, fewer = Petrobras3W(), Petrobras3W(sensors=sensors)
    assert whole.fingerprint(tmp_path) != fewer.fingerprint(tmp_path)
    for one, other in zip(whole.recordings(tmp_path), fewer.recordings(tmp_path), strict=True):
        assert other.channels == channels
        np.testing.assert_array_equal(other.values, one.values[[NAMES.index(name) for name in channels]])
