from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from readbench.common.files import write_json
from readbench.engine import window_files as disk
from readbench.engine.testing import sample_windows
from readbench.engine.testing._samples import CLASSES
from readbench.engine.window_files import WindowWriter, load_windows, save_windows
from readbench.engine.windows import WindowSet, concatenate
from readbench.errors import DataError
from tests.engine.windows import strategies
from tests.engine.windows.strategies import assert_same_windows, window_sets

MEGABYTE = 2**20


@given(st.lists(window_sets(max_size=4), max_size=4), st.sampled_from([1, 40, 2**20]))
def test_what_is_written_is_read_again(pieces: list[WindowSet], part_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as parent, pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "PART_BYTES", part_bytes)
        folder = Path(parent, "set")
        with WindowWriter(folder, strategies.CLASSES) as writer:
            for number, piece in enumerate(pieces, start=1):
                writer.append(piece)
                writer.checkpoint(number)
        back = load_windows(folder)
        empty = WindowSet.from_arrays([], classes=strategies.CLASSES)
        written = concatenate([empty, *pieces])
        assert_same_windows(back, written)
        assert back.fingerprint() == written.fingerprint()
        assert writer.count == len(written)


def test_the_types_of_all_columns_survive(tmp_path: Path) -> None:
    windows = sample_windows(4, ragged=True)
    save_windows(windows, tmp_path / "set")
    back = load_windows(tmp_path / "set")
    for name in ("chunk", "offset", "lengths", "channel_set", "labels", "ids", "groups", "assets", "times", "spans"):
        assert getattr(back, name).dtype == getattr(windows, name).dtype, name
    assert back.chunks[0].dtype == np.float32


def test_selections_of_a_larger_set_are_written_alone(tmp_path: Path) -> None:
    windows = sample_windows(9, ragged=True)
    save_windows(windows[[7, 2]], tmp_path / "set")
    assert_same_windows(load_windows(tmp_path / "set"), windows[[7, 2]])


@pytest.mark.parametrize("block", [1, 7, 20])
def test_a_large_set_has_several_parts_and_reads_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(disk, "PART_BYTES", 1000)
    windows = sample_windows(20, ragged=True)
    write_in_blocks(tmp_path / "set", windows, block)
    back = load_windows(tmp_path / "set")
    assert len(back.chunks) > 3
    assert all(chunk.nbytes < 1000 + 3 * 32 * 4 for chunk in back.chunks), "a part ends with the window that fills it"
    assert_same_windows(back, windows)
    assert_same_windows(back[::-3].compact(), windows[::-3])


def write_in_blocks(folder: Path, windows: WindowSet, size: int, *, stop_after: int | None = None) -> None:
    """Write with a checkpoint after each block, going on where an interrupted writer stopped."""
    with WindowWriter(folder, windows.classes) as writer:
        for number, block in enumerate(windows.blocks(size), start=1):
            if number <= writer.mark:
                continue
            writer.append(block)
            writer.checkpoint(number)
            if number == stop_after:
                raise KeyboardInterrupt


def test_an_empty_set_can_be_kept(tmp_path: Path) -> None:
    save_windows(sample_windows(3)[:0], tmp_path / "set")
    back = load_windows(tmp_path / "set")
    assert len(back) == 0
    assert back.classes == CLASSES


def test_values_are_used_in_place_from_the_mapped_file(tmp_path: Path) -> None:
    marker = np.float32(1234.5678)
    save_windows(WindowSet.from_arrays([np.full((1, 8), marker)]), tmp_path / "set")
    windows = load_windows(tmp_path / "set")
    view = windows[0].values
    assert np.shares_memory(view, windows.chunks[0])
    assert not view.flags.writeable
    path = tmp_path / "set" / disk.part_name(0)
    position = path.read_bytes().index(marker.tobytes())
    with path.open("r+b") as file:
        file.seek(position)
        file.write(np.float32(-1).tobytes())
    assert view[0, 0] == -1, "a change of the file is seen through the view: nothing was copied"


def pieces(count: int) -> Iterator[WindowSet]:
    """One window of 4 MB at a time."""
    for i in range(count):
        yield WindowSet.from_arrays([np.full((4, MEGABYTE // 4), i, np.float32)], ids=[str(i)])


def stream(folder: Path) -> None:
    with WindowWriter(folder, ()) as writer:
        for number, piece in enumerate(pieces(50), start=1):
            writer.append(piece)
            writer.checkpoint(number)


def gather_then_write(folder: Path) -> None:
    save_windows(concatenate(list(pieces(50))), folder)


def assert_stays_in_budget(work: Callable[[], object]) -> None:
    """What NumPy and Arrow allocate during `work` stays below two parts and a few windows."""
    arrow = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        work()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * disk.PART_BYTES + 16 * MEGABYTE
    assert pa.total_allocated_bytes() - arrow < 10 * MEGABYTE


@pytest.fixture(scope="module")
def large_set(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """200 MB on disk, removed after the tests."""
    folder = tmp_path_factory.mktemp("large")
    assert_stays_in_budget(lambda: stream(folder / "set"))
    yield folder / "set"
    shutil.rmtree(folder)


def test_200_megabytes_are_written_and_read_in_bounded_memory(large_set: Path) -> None:
    assert sum(part.stat().st_size for part in large_set.glob("*.arrow")) > 199 * MEGABYTE

    def read() -> None:
        windows = load_windows(large_set)
        assert len(windows.chunks) > 1
        assert [float(w.values[0, 0]) for w in windows] == list(range(50))

    assert_stays_in_budget(read)


def test_one_set_larger_than_the_budget_is_written_in_parts(large_set: Path, tmp_path: Path) -> None:
    windows = load_windows(large_set)
    assert_stays_in_budget(lambda: save_windows(windows, tmp_path / "copy"))
    copy = load_windows(tmp_path / "copy")
    assert [float(w.values[-1, -1]) for w in copy] == list(range(50))
    shutil.rmtree(tmp_path / "copy")


def test_the_memory_check_notices_a_writer_that_gathers_everything(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        assert_stays_in_budget(lambda: gather_then_write(tmp_path / "set"))
    shutil.rmtree(tmp_path / "set")


def fail_after(folder: Path, windows: WindowSet) -> None:
    with WindowWriter(folder, windows.classes) as writer:
        writer.append(windows)
        writer.checkpoint(1)
        writer.attach("notes.json", "never seen")
        raise RuntimeError("sensor unplugged")


@pytest.mark.parametrize("part_bytes", [1, 2**20], ids=["after a part was written", "before any was"])
def test_an_error_while_writing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_bytes: int
) -> None:
    monkeypatch.setattr(disk, "PART_BYTES", part_bytes)
    with pytest.raises(RuntimeError, match="sensor unplugged"):
        fail_after(tmp_path / "set", sample_windows(3))
    assert list(tmp_path.iterdir()) == []


def test_an_error_while_closing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(WindowWriter, "_batch", full)
    with pytest.raises(OSError, match="No space left"):
        save_windows(sample_windows(3), tmp_path / "set")
    assert list(tmp_path.iterdir()) == []


def test_an_error_while_writing_keeps_the_previous_set(tmp_path: Path) -> None:
    save_windows(sample_windows(5), tmp_path / "set")
    with pytest.raises(RuntimeError):
        fail_after(tmp_path / "set", sample_windows(3))
    assert_same_windows(load_windows(tmp_path / "set"), sample_windows(5))
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_nothing_is_at_the_final_name_until_the_writer_closes(tmp_path: Path) -> None:
    with WindowWriter(tmp_path / "deep" / "set", CLASSES) as writer:
        writer.append(sample_windows(3))
        assert not (tmp_path / "deep" / "set").exists()
    assert len(load_windows(tmp_path / "deep" / "set")) == 3
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["set"]


def test_a_set_replaces_the_one_before_even_while_that_is_in_use(tmp_path: Path) -> None:
    save_windows(sample_windows(6, ragged=True), tmp_path / "set")
    old = load_windows(tmp_path / "set")
    save_windows(old[:2], tmp_path / "set")
    assert_same_windows(old, sample_windows(6, ragged=True))
    assert_same_windows(load_windows(tmp_path / "set"), old[:2])


def test_attached_facts_appear_with_the_windows(tmp_path: Path) -> None:
    with WindowWriter(tmp_path / "set", CLASSES) as writer:
        writer.attach("source.json", {"seed": 1})
    assert json.loads((tmp_path / "set" / "source.json").read_text()) == {"seed": 1}


def test_windows_of_other_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"do not belong"), WindowWriter(tmp_path / "set", ("normal", "x")) as writer:
        writer.append(sample_windows(2))
    assert list(tmp_path.iterdir()) == []


DYING_WRITER = """
import os, sys
from pathlib import Path
from readbench.engine.testing import sample_windows
from readbench.engine.window_files import WindowWriter
from readbench.engine import window_files as disk
disk.PART_BYTES = int(sys.argv[2])
windows = sample_windows(9, ragged=True)
writer = WindowWriter(Path(sys.argv[1]), windows.classes).__enter__()
for number in (1, 2, 3):
    writer.append(windows[number - 1 : number])
    writer.checkpoint(number)
os._exit(9)
"""


def kill_a_writer(folder: Path, part_bytes: int) -> None:
    done = subprocess.run([sys.executable, "-c", DYING_WRITER, str(folder), str(part_bytes)], check=False)
    assert done.returncode == 9


@pytest.mark.parametrize("part_bytes", [1, 600, 2**20], ids=["every window kept", "some kept", "nothing kept"])
def test_a_killed_writer_is_continued_as_if_nothing_had_happened(tmp_path: Path, part_bytes: int) -> None:
    kill_a_writer(tmp_path / "set", part_bytes)
    for path in tmp_path.iterdir():
        with pytest.raises(DataError, match="not a complete set"):
            load_windows(path)
    with pytest.raises(DataError, match="not a complete set"):
        load_windows(tmp_path / "set")
    windows = sample_windows(9, ragged=True)
    write_in_blocks(tmp_path / "set", windows, 1)
    assert_same_windows(load_windows(tmp_path / "set"), windows)
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


@pytest.mark.parametrize("stop", [1, 4, 9])
def test_an_interrupted_writer_is_continued_from_its_last_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    monkeypatch.setattr(disk, "PART_BYTES", 1)
    windows = sample_windows(9, ragged=True)
    with pytest.raises(KeyboardInterrupt):
        write_in_blocks(tmp_path / "set", windows, 1, stop_after=stop)
    assert not (tmp_path / "set").exists()
    with WindowWriter(tmp_path / "set", windows.classes) as writer:
        assert (writer.mark, writer.count) == (stop, stop)
        writer.append(windows[stop:])
    assert_same_windows(load_windows(tmp_path / "set"), windows)


def test_a_writer_of_other_classes_starts_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "PART_BYTES", 1)
    with pytest.raises(KeyboardInterrupt):
        write_in_blocks(tmp_path / "set", sample_windows(4), 1, stop_after=2)
    with WindowWriter(tmp_path / "set", ("normal",)) as writer:
        assert (writer.mark, writer.count) == (0, 0)
    assert len(load_windows(tmp_path / "set")) == 0
    assert not list((tmp_path / "set").glob("*.arrow"))


def test_saving_again_after_an_interrupted_save_keeps_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def interrupted(path: Path, content: object) -> None:
        if path.name == "windows.json":
            raise KeyboardInterrupt
        write_json(path, content)

    monkeypatch.setattr(disk, "write_json", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_windows(sample_windows(5), tmp_path / "set")
    monkeypatch.undo()
    save_windows(sample_windows(2), tmp_path / "set")
    assert_same_windows(load_windows(tmp_path / "set"), sample_windows(2))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(disk, "PART_BYTES", 600)
    save_windows(sample_windows(6, ragged=True), tmp_path / "set")
    assert sorted(path.name for path in (tmp_path / "set").iterdir())[:2] == FILES[:2]
    return tmp_path / "set"


FILES = ["part-00000.arrow", "part-00001.arrow", "windows.json"]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_refused(folder: Path, name: str, share: float) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(len(content) * share)])
    with pytest.raises(DataError, match=r"set is not a complete set of windows.*Build it again"):
        load_windows(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(DataError, match=r"not a complete set of windows.*Build it again"):
        load_windows(folder)


@pytest.mark.parametrize("content", ["{}", "[]", "null", '{"format": 1}'])
def test_a_description_without_its_fields_is_refused(folder: Path, content: str) -> None:
    (folder / "windows.json").write_text(content)
    with pytest.raises(DataError, match=r"Build it again"):
        load_windows(folder)


def _rewrite(folder: Path, **changes: object) -> None:
    path = folder / "windows.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_another_number_of_windows_than_promised_is_refused(folder: Path) -> None:
    _rewrite(folder, windows=7)
    with pytest.raises(DataError, match=r"6 windows.*7.*Build it again"):
        load_windows(folder)


def test_another_format_is_refused(folder: Path) -> None:
    _rewrite(folder, format=disk.FORMAT + 1)
    with pytest.raises(DataError, match=rf"format {disk.FORMAT + 1}, this version reads"):
        load_windows(folder)
