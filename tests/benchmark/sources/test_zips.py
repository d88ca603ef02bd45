"""Archives in parts are read like whole ones, and incomplete ones are named."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.sources._files import open_binary
from readbench.errors import DataError

CONTENT = np.random.default_rng(0).bytes(5000)


def whole_zip(content: bytes = CONTENT, names: tuple[str, ...] = ("trace.csv",)) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    return buffer.getvalue()


def zip_parts(archive: bytes, cuts: list[int]) -> list[bytes]:
    """A one-file archive in parts as Info-ZIP writes them: a mark in front, places counted from each part's begin."""
    data = bytearray(b"PK\x07\x08" + archive)
    directory, end = data.rfind(b"PK\x01\x02"), data.rfind(b"PK\x05\x06")
    begins = [0, *cuts]

    def place(position: int) -> tuple[int, int]:
        part = max(k for k, begin in enumerate(begins) if begin <= position)
        return part, position - begins[part]

    struct.pack_into("<H", data, directory + 34, place(4)[0])
    struct.pack_into("<L", data, directory + 42, place(4)[1])
    struct.pack_into("<HH", data, end + 4, len(cuts), place(directory)[0])
    struct.pack_into("<L", data, end + 16, place(directory)[1])
    return [bytes(data[start:stop]) for start, stop in zip(begins, [*cuts, len(data)], strict=True)]


def write_parts(path: Path, parts: list[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts[:-1], start=1):
        path.with_suffix(f".z{number:02d}").write_bytes(part)
    path.write_bytes(parts[-1])
    return path


def read(path: Path) -> bytes:
    with open_binary(path) as file:
        return file.read()


END = len(whole_zip()) + 4 - 22


@pytest.mark.parametrize("cuts", [[], [2000], [100, 3000], [1000, 2000, 3000, 4000], [1000, END]])
def test_parts_are_read_like_the_whole(tmp_path: Path, cuts: list[int]) -> None:
    parts = zip_parts(whole_zip(), cuts) if cuts else [whole_zip()]
    assert read(write_parts(tmp_path / "trace.zip", parts)) == CONTENT


def test_parts_that_info_zip_writes_are_read(tmp_path: Path) -> None:
    command = shutil.which("zip")
    if command is None:
        pytest.skip("the command zip is not installed")
    content = np.random.default_rng(1).bytes(200_000)
    (tmp_path / "trace.csv").write_bytes(content)
    subprocess.run([command, "-q", "-s", "64k", "trace.zip", "trace.csv"], cwd=tmp_path, check=True)
    assert (tmp_path / "trace.z03").is_file()
    assert read(tmp_path / "trace.zip") == content


@pytest.mark.parametrize(
    ("missing", "message"),
    [(".z01", "its part trace.z01 is missing"), (".z02", "3 parts make the archive, 2 are there")],
)
def test_a_missing_part_is_named(tmp_path: Path, missing: str, message: str) -> None:
    path = write_parts(tmp_path / "trace.zip", zip_parts(whole_zip(), [2000, 3000]))
    path.with_suffix(missing).unlink()
    with pytest.raises(DataError, match=rf"trace\.zip: {message}"):
        read(path)


def test_all_parts_but_the_last_missing_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "trace.zip"
    path.write_bytes(zip_parts(whole_zip(), [2000])[1])
    with pytest.raises(DataError, match=r"trace\.zip: cannot be read"):
        read(path)


def test_a_changed_byte_is_found(tmp_path: Path) -> None:
    content = bytearray(whole_zip())
    content[1000] ^= 1
    path = tmp_path / "trace.zip"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"trace\.zip: cannot be read"):
        read(path)


def test_an_archive_of_several_files_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.zip"
    path.write_bytes(whole_zip(names=("a.csv", "b.csv")))
    with pytest.raises(DataError, match=r"trace\.zip: 2 files inside, expected one"):
        read(path)


@given(at=st.floats(0, 1), new=st.binary(max_size=4), cut=st.integers(0, 4))
def test_changed_parts_give_the_content_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, at: float, new: bytes, cut: int
) -> None:
    parts = zip_parts(whole_zip(CONTENT[:300]), [100])
    place = int(at * len(parts[1]))
    parts[1] = parts[1][:place] + new + parts[1][place + cut :]
    path = write_parts(tmp_path_factory.getbasetemp() / "changed/trace.zip", parts)
    try:
        content = read(path)
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert content == CONTENT[:300]
