"""Data frames are found in R workspaces as R writes them, and nothing damaged passes."""

from __future__ import annotations

import gzip
import lzma
import tempfile
from io import FileIO
from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.sources._tennessee_eastman import frame_blocks
from readbench.errors import DataError
from tests.benchmark.sources.tennessee_eastman_workspace import Workspace, integers, long_reals, reals, texts


def put(folder: Path, content: bytes) -> Path:
    path = folder / "x.RData"
    path.write_bytes(content)
    return path


def blocks(path: Path, columns: tuple[str, ...] = ("a", "b"), rows: int = 2) -> list[list[list[float]]]:
    return [block.tolist() for block in frame_blocks(path, columns, rows)]


def test_the_data_frame_is_found_by_its_columns_whatever_else_is_saved(tmp_path: Path) -> None:
    workspace = Workspace(3)
    workspace.save("threshold", lambda _: reals([0.5]))
    workspace.save("other", lambda ws: ws.frame({"a": reals([9.0]), "c": texts(["x"])}, 1))
    workspace.save(
        "any name", lambda ws: ws.frame({"b": long_reals([1.5, 2.5, 3.5]), "a": integers([7, 8, -(2**31)])}, 3)
    )
    path = put(tmp_path, workspace.content())
    first, second = blocks(path)
    assert first == [[7.0, 1.5], [8.0, 2.5]]
    np.testing.assert_array_equal(second, [[np.nan, 3.5]])


def test_wrapped_vectors_and_data_tables_are_understood(tmp_path: Path) -> None:
    workspace = Workspace(3)
    workspace.save(
        "dt", lambda ws: ws.frame({"a": ws.wrapped(reals([1.0])), "b": integers([2]), "self": ws.pointer()}, 1)
    )
    assert blocks(put(tmp_path, workspace.content())) == [[[1.0, 2.0]]]


def frame_of(**columns: bytes) -> bytes:
    return Workspace().save("x", lambda ws: ws.frame(columns, 1)).content()


DAMAGED_WORKSPACES = {
    "empty": (b"", "ends too early"),
    "text": (b"RDA2\nA\n2\n", "not a binary R workspace"),
    "single object": (b"X\n\0\0\0\2\0\0\0\2\0\0\0\2", "not a binary R workspace"),
    "version 4": (Workspace(3).content().replace(b"\0\0\0\3", b"\0\0\0\4", 1), "version 4 of the format is not known"),
    "cut": (frame_of(a=reals([1.0]), b=reals([2.0]))[:60], "ends too early"),
    "cut gzip": (gzip.compress(frame_of(a=reals([1.0]), b=reals([2.0])))[:-12], "damaged or incomplete"),
    "cut xz": (lzma.compress(frame_of(a=reals([1.0]), b=reals([2.0])))[:-40], "damaged or incomplete"),
    "broken xz": (lzma.compress(bytes(500))[:20] + bytes(30), "cannot be unpacked"),
    "nothing saved": (Workspace().content(), "no data frame with the columns a, b"),
    "other columns": (frame_of(a=reals([1.0])), "no data frame with the columns a, b"),
    "words": (frame_of(a=reals([1.0]), b=texts(["high"])), "not all numbers of one length"),
    "computed": (
        Workspace()
        .save("x", lambda ws: ws.frame({"a": ws.wrapped(reals([3, 1, 1]), "compact_intseq"), "b": reals([1])}, 1))
        .content(),
        "not all numbers of one length",
    ),
    "unequal": (frame_of(a=reals([1.0]), b=reals([2.0, 3.0])), "not all numbers of one length"),
    "function": (Workspace().save("f", lambda _: b"\0\0\0\3").content(), "holds an R object of type 3"),
    "negative length": (frame_of(a=reals([1.0]), b=b"\0\0\0\x0e\xff\xff\xff\xfe"), "a vector of length -2"),
    "unknown symbol": (Workspace().save("x", lambda _: b"\0\0\x09\xff").content(), "refers to symbol 9 of 1"),
    "endless nesting": (Workspace().save("x", lambda _: b"\0\0\0\x13\0\0\0\1" * 5000).content(), "nested too deeply"),
}


@pytest.mark.parametrize("name", DAMAGED_WORKSPACES)
def test_a_damaged_workspace_is_named_with_what_is_wrong(tmp_path: Path, name: str) -> None:
    content, message = DAMAGED_WORKSPACES[name]
    path = put(tmp_path, content)
    with pytest.raises(DataError, match=rf"x\.RData: .*{message}"):
        blocks(path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_not_taken_for_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, frame_of(a=reals([1.0]), b=reals([2.0])))
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: FileIO("/dev/full", "w"))
    with pytest.raises(DataError, match=r"x\.RData: no room for its numbers in .* Set TMPDIR"):
        blocks(path)


def test_files_written_by_r_are_read_as_the_rdata_package_reads_them() -> None:
    rdata = pytest.importorskip("rdata", reason="the oracle for R's format is not installed")
    paths = sorted(Path(str(rdata.TESTDATA_PATH)).glob("**/test_dataframe*rownames__xdr__version_*.rda"))
    assert len(paths) == 6
    for path in paths:
        ((_, frame),) = rdata.read_rda(path).items()
        numeric = tuple(name for name in frame.columns if frame[name].dtype.kind in "if")
        assert numeric
        (block,) = frame_blocks(path, numeric)
        np.testing.assert_array_equal(block, frame[list(numeric)].to_numpy(np.float32))
