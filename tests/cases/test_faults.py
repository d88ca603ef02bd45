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
