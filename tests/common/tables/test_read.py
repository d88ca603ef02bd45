"""Tables from CSV, Parquet and NPZ: what is read, what is refused, and that nothing else can happen."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from readbench.common.tables import Limits, Table, read_table
from readbench.errors import DataError, ReadbenchError, UnknownNameError

CSV = b"time,speed,fault\n0,1.5,leak\n1,,\n2,3,normal\n"


def parquet(columns: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def npz(**arrays: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


COLUMNS = {"time": [0, 1, 2], "speed": [1.5, None, 3.0], "fault": ["leak", None, "normal"]}
ARRAYS = npz(time=np.arange(3), speed=np.array([1.5, np.nan, 3.0]), fault=np.array(["leak", "", "normal"]))
FILES = {
    "a.csv": CSV,
    "a.tsv": CSV.replace(b",", b"\t"),
    "semicolons.csv": CSV.replace(b",", b";"),
    "marked.csv": b"\xef\xbb\xbf" + CSV.replace(b"\n", b"\r\n"),
    "a.csv.gz": gzip.compress(CSV),
    "a.parquet": parquet(COLUMNS),
    "a.npz": ARRAYS,
}


def check_same(table: Table) -> None:
    assert table.columns == ("time", "speed", "fault")
    np.testing.assert_array_equal(table.numbers("speed"), [1.5, np.nan, 3.0])
    codes, names = table.codes("fault")
    assert codes.tolist() == [0, -1, 1]
    assert names == ("leak", "normal")


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_table(name: str, tmp_path: Path) -> None:
    check_same(read_table((name, FILES[name])))
    path = tmp_path / name
    path.write_bytes(FILES[name])
    check_same(read_table(path))


def test_dates_become_seconds() -> None:
    table = read_table(("a.csv", b"at,x\n2020-01-01 00:00:00,1\n2020-01-01 00:00:01.5,2\n"))
    assert np.diff(table.seconds("at")).tolist() == [1.5]
    assert read_table(("a.csv", b"at,x\n5,1\n")).seconds("at", 1e-3).tolist() == [0.005]


def test_whole_numbers_are_one_text_however_they_are_written() -> None:
    assert read_table(("a.parquet", parquet({"k": [1.0, 2.0, float("nan")]}))).codes("k")[1] == ("1", "2")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.exe", b"", "are read from .csv"),
        ("a.xlsx", b"", "no workbook that can be read"),
        ("a.csv", b"", "no header"),
        ("a.csv", b"a,b\n", "no rows"),
        ("a.csv", b"a,a\n1,2\n", "two columns have the name 'a'"),
        ("a.csv", b"a,b\n1,2\n3\n4,5\n", "line 3"),
        ("a.csv", b"\xff\xfea,b", "UTF-8"),
        ("a.csv.gz", gzip.compress(CSV)[:20], "cannot be unpacked"),
        ("a.parquet", parquet(COLUMNS)[:-8], "no Parquet that can be read"),
        ("a.npz", ARRAYS[:-10], "no NPZ that can be read"),
        ("a.npz", npz(a=np.zeros(2), b=np.zeros(3)), "all of one length"),
        ("a.npz", npz(a=np.zeros((2, 2))), "one array (rows,) per column"),
    ],
)
def test_what_is_wrong_is_said(name: str, content: bytes, message: str) -> None:
    with pytest.raises(DataError) as error:
        read_table((name, content))
    assert message in str(error.value)


def test_a_text_among_numbers_is_named_with_its_row() -> None:
    with pytest.raises(DataError, match=r"row 2: 'fast' in column 'x' is no number"):
        read_table(("a.csv", b"x\n1\nfast\n")).numbers("x")
    with pytest.raises(UnknownNameError, match="Did you mean 'speed'"):
        read_table(("a.csv", CSV)).numbers("sped")


def test_a_missing_file_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be opened"):
        read_table(tmp_path / "none.csv")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("limits", [Limits(max_rows=2), Limits(max_columns=2), Limits(max_bytes=30)])
def test_limits_hold_in_every_format(name: str, limits: Limits) -> None:
    with pytest.raises(DataError, match="more than the"):
        read_table((name, FILES[name]), limits)


def test_a_bomb_is_not_unpacked() -> None:
    """A few kB that claim or unpack to a gigabyte are refused by what they say, or after the limit."""
    zeros = gzip.compress(b"a\n" + b"0\n" * 5_000_000, compresslevel=1)
    with pytest.raises(DataError, match="more than the 1,000,000"):
        read_table(("bomb.csv.gz", zeros), Limits(max_bytes=1_000_000))
    with pytest.raises(DataError, match="more than the 1,000,000"):
        read_table(("bomb.npz", npz(a=np.zeros(10_000_000, np.int8))), Limits(max_bytes=1_000_000))


def test_a_long_text_that_is_repeated_is_kept_once() -> None:
    file = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(40_000, np.int32)), pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"a": column}), file, store_schema=False)
    table = read_table(("bomb.parquet", file.getvalue()))
    assert table.data.nbytes < 10_000_000  # of four gigabytes
    codes, names = table.codes("a")
    assert codes.shape == (40_000,)
    assert len(names) == 1


def test_a_header_that_lies_about_its_size_asks_for_no_memory() -> None:
    honest = io.BytesIO()
    np.lib.format.write_array_header_1_0(honest, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})  # type: ignore[no-untyped-call]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", honest.getvalue() + b"\0" * 80)
    with pytest.raises(DataError, match="shorter than its shape"):
        read_table(("a.npz", file.getvalue()))


def test_objects_are_never_unpickled() -> None:
    file = io.BytesIO()
    np.savez(file, a=np.array([{"x": 1}], dtype=object))
    with pytest.raises(DataError, match="Python objects, which are never read"):
        read_table(("a.npz", file.getvalue()))


@given(
    name=st.sampled_from(sorted(FILES)),
    place=st.floats(0, 1),
    change=st.binary(min_size=0, max_size=8),
    removed=st.integers(0, 30),
)
def test_damaged_files_are_refused_or_read_but_never_crash(
    name: str, place: float, change: bytes, removed: int
) -> None:
    content = FILES[name]
    at = int(place * len(content))
    try:
        table = read_table((name, content[:at] + change + content[at + removed :]), Limits(max_bytes=10**7))
        for column in table.columns:
            table.codes(column)
    except ReadbenchError as error:
        assert len(str(error)) > 20  # noqa: PT017 - either outcome is right


@given(name=st.sampled_from(sorted(FILES)), content=st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(name: str, content: bytes) -> None:
    try:
        assert read_table((name, content)).rows > 0
    except DataError as error:
        assert len(str(error)) > 20  # noqa: PT017 - either outcome is right
