"""Files are written whole or not at all, by any number of writers."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from readbench.common.files import digest, open_atomic, write_atomically, write_bytes, write_json, write_text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_takes_its_place_when_it_is_whole(tmp_path: Path, durable: bool) -> None:  # noqa: FBT001
    path = tmp_path / "new folder" / "a.bin"
    write_bytes(path, b"old", durable=durable)
    with open_atomic(path, durable=durable) as file:
        file.write(b"ne")
        file.flush()
        assert path.read_bytes() == b"old"
        file.write(b"w")
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["a.bin"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failed_writer_leaves_what_was_there(tmp_path: Path, failure: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fail() -> None:
        with write_atomically(path) as partial:
            partial.write_text("half")
            raise failure

    with pytest.raises(failure):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_killed_writer_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, ["old"])
    code = f"""
import os, signal
from pathlib import Path
from readbench.common.files import open_atomic
with open_atomic(Path({str(path)!r})) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert path.read_text() == '[\n "old"\n]'
    assert len(list(tmp_path.glob("a.json.*.partial"))) == 1


def test_of_many_writers_one_wins_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    texts = [letter * 100_000 for letter in "abcdefgh"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: write_text(path, text), texts))
    assert path.read_text() in texts
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.name != "posix", reason="rights of files are those of POSIX")
def test_a_secret_is_never_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    with write_atomically(path, mode=0o600) as partial:
        assert stat.S_IMODE(partial.stat().st_mode) == 0o600
        partial.write_text("secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_digest_follows_every_part_and_its_type() -> None:
    others = [digest("a", 1), digest("a", "1"), digest("a", 1.0), digest("a"), digest("a", 1, None), digest(("a", 1))]
    assert len(set(others)) == len(others)
    assert digest("a", 1) == others[0]
