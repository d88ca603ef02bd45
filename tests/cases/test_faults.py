"""What a library answered stays, whatever happens: kills, a full disk, other writers, a clock that is set back."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from shutil import which

import numpy as np
import pytest

pytest.importorskip("lancedb", reason="libraries need the extra `cases`: pip install 'readbench[dev,cases]'")

from readbench.cases import Library, check_library, export_library, import_library
from readbench.cases._ledger import HEADS, LEDGER
from readbench.errors import ConflictError, StoreError
from research.speed.kills import kill_rounds
from tests.cases.samples import FAST, filled, windows

ROOM = 12 * 2**20
"""Bytes of the small disk."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_nothing_answered_is_lost_by_kills_while_it_searches_and_learns(tmp_path: Path) -> None:
    assert len(list(kill_rounds(tmp_path, 2, seed=1))) == 2


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_nothing_answered_is_lost_by_a_hundred_kills(tmp_path: Path) -> None:
    assert len(list(kill_rounds(tmp_path, 100, seed=2))) == 100


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of `ROOM` bytes."""
    where = tmp_path / "disk"
    where.mkdir()
    mount, umount = which("mount"), which("umount")
    made = [mount or "", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(where)]
    if not mount or not umount or subprocess.run(made, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small file system")
    yield where
    subprocess.run([umount, "-l", str(where)], check=True)


def test_a_disk_that_is_full_at_random_writes_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    rng, where = np.random.default_rng(0), small_disk / "library"
    library, given = filled(where), Library.create(tmp_path / "given")
    given.add(windows(6, seed=8, prefix="imported"))
    export_library(given, tmp_path / "backup.parquet")
    expected = {case.id: case.label for case in library.cases()}
    refused = list[str]()
    for number in range(24):
        fill_up(small_disk / "filler", leave=int(rng.choice([0, 4096, 12_288, 40_960, 200_000])))
        name, label = str(rng.choice(sorted(expected))), f"fault {number}"
        calls: list[tuple[Callable[[], object], dict[str, str | None]]] = [
            (
                partial(library.add, windows(3, seed=number, prefix=f"x{number}-")),
                {f"x{number}-{i}": fault for i, fault in enumerate(("leak", "stuck valve", "noise"))},
            ),
            (partial(library.label, name, label), {name: label}),
            (lambda: optimise(library), {}),
            (lambda: import_library(library, tmp_path / "backup.parquet"), {}),
        ]
        call, change = calls[number % len(calls)]
        if number % len(calls) == 3:
            change = {case.id: case.label for case in given.cases()} if "imported0" not in expected else {}
        try:
            if number % len(calls) != 3 or change:
                call()
            expected |= change
        except StoreError as error:
            refused.append(str(error))
        (small_disk / "filler").unlink(missing_ok=True)
        assert {case.id: case.label for case in Library.open(where).cases()} == expected, number
    assert len(refused) > 3
    assert all("cannot be written: the disk is full" in said for said in refused), refused
    assert len(expected) > 15
    assert check_library(where).findings == ()
    assert library.search(windows(1, seed=4), method=FAST).hits


def fill_up(path: Path, leave: int) -> None:
    """Take all room of a file system but some bytes."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    os.truncate(path, max(0, path.stat().st_size - leave))


def optimise(library: Library) -> None:
    with library.store.writing():
        library.store.optimise()


WRITE = """
import sys
from readbench.cases import Library
from tests.cases.samples import windows
own = Library.open(sys.argv[1])
for number in range(3):
    own.add(windows(2, seed=number, prefix=f"{sys.argv[2]}{number}-"))
    own.label(f"{sys.argv[2]}{number}-0", f"fault of {sys.argv[2]}")
"""


@pytest.mark.slow
def test_two_processes_write_while_another_searches(tmp_path: Path) -> None:
    where = tmp_path / "library"
    library = filled(where)
    writers = [subprocess.Popen([sys.executable, "-c", WRITE, str(where), name]) for name in ("a", "b")]
    seen = [0]
    while any(writer.poll() is None for writer in writers):
        answer = library.search(windows(1, seed=4), method=FAST)
        assert answer.total >= seen[-1]
        seen.append(answer.total)
        time.sleep(0.05)
    assert [writer.wait() for writer in writers] == [0, 0]
    known = {case.id: case.label for case in library.cases()}
    assert len(known) == 12 + 2 * 6
    for name in ("a", "b"):
        assert {known[f"{name}{number}-0"] for number in range(3)} == {f"fault of {name}"}
    rows = library.store.journal().sort_by("step").to_pydict()
    assert rows["step"] == list(range(len(rows["step"])))
    assert rows["stamp"] == sorted(rows["stamp"])


def test_a_clock_that_is_set_back_changes_no_order_and_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = filled(tmp_path / "library")
    before, truly = library.case("w0"), time.time
    monkeypatch.setattr(time, "time", lambda: truly() - 86400.0)
    monkeypatch.setattr(time, "time_ns", lambda: int((truly() - 86400.0) * 1e9))
    first = library.label("w0", "worn")
    second = Library.open(tmp_path / "library").label("w0", "worn again")
    assert before.changed < first.changed < second.changed
    with pytest.raises(ConflictError):
        library.label("w0", "leak", seen=first.changed)
    assert library.label("w0", "leak", seen=second.changed).label == "leak"
    library.undo()
    monkeypatch.undo()
    library.add(windows(1, seed=3, prefix="later"))
    history = library.history()
    assert [change.number for change in history] == list(range(1, len(history) + 1))
    assert [change.time for change in history] == sorted({change.time for change in history})
    anew = Library.open(tmp_path / "library")
    assert anew.case("w0").label == library.case("w0").label == "worn again"
    assert check_library(tmp_path / "library").findings == ()


def test_a_full_disk_can_be_searched(small_disk: Path) -> None:
    where = small_disk / "library"
    filled(where)
    fill_up(small_disk / "filler", leave=0)
    ask_everything(where)
    with pytest.raises(StoreError, match="cannot be written"):
        Library.open(where).label("w0", "another fault")


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A library on a file system that nothing can be written to."""
    where = tmp_path / "library"
    filled(where)
    mount, umount = which("mount"), which("umount")
    bind = [mount or "", "--bind", str(where), str(where)]
    locked = [mount or "", "-o", "remount,bind,ro", str(where)]
    if (
        not mount
        or not umount
        or any(subprocess.run(own, capture_output=True, check=False).returncode for own in (bind, locked))
    ):
        pytest.skip("needs the right to mount")
    yield where
    subprocess.run([umount, "-l", str(where)], check=True)


def test_a_library_that_may_only_be_read_can_be_searched(read_only: Path) -> None:
    ask_everything(read_only)
    began = time.monotonic()
    with pytest.raises(StoreError, match="cannot be written: it is read-only"):
        Library.open(read_only).label("w0", "another fault")
    assert time.monotonic() - began < 20


def ask_everything(where: Path) -> None:
    """All questions that are no changes; vectors and the index of notes are not there yet."""
    library = Library.open(where)
    assert library.search(windows(1, seed=4), method="rocket(features=504)").hits
    assert library.search("w0", method=FAST).hits
    assert library.find("w1")
    assert library.cases()
    assert library.overview().points
    assert library.doubtful(method=FAST) is not None
    assert check_library(where).findings == ()


def test_a_change_is_on_the_disk_before_it_is_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, synced = filled(tmp_path / "library"), list[str]()

    def note(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    sync = os.fsync
    monkeypatch.setattr(os, "fsync", note)
    library.label("w0", "another fault")
    journal = tmp_path / "library" / "journal.lance"
    newest = min((journal / "_versions").glob("*.manifest"))  # they count down
    needed = [newest, newest.parent, journal / "data", tmp_path / "library" / LEDGER, tmp_path / "library"]
    places = [synced.index(str(path)) for path in needed]
    assert places[0] < places[3]  # what the ledger says is there is there
    assert any(HEADS in path for path in synced)


def test_a_newest_version_that_is_lost_with_its_entry_is_missed_and_let_go(tmp_path: Path) -> None:
    where = tmp_path / "library"
    filled(where).label("w0", "another fault")
    newest = min((where / "journal.lance" / "_versions").glob("*.manifest"))
    newest.unlink()
    lines = (where / LEDGER).read_bytes().splitlines(keepends=True)
    (where / LEDGER).write_bytes(b"".join(line for line in lines if newest.name.encode() not in line))
    with pytest.raises(StoreError, match=f"{newest.name} is missing"):
        Library.open(where).case("w0")
    assert newest.name in check_library(where).findings[0].what
    assert all(own.done for own in check_library(where, repair=True).findings)
    assert check_library(where).findings == ()
    assert Library.open(where).label("w0", "a third fault").label == "a third fault"


def test_the_ledger_is_its_owners_alone(tmp_path: Path) -> None:
    filled(tmp_path / "library").store.optimise()
    for name in (LEDGER, HEADS):
        assert (tmp_path / "library" / name).stat().st_mode & 0o777 == 0o600
