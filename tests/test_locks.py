from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from readbench.locks import exclusive

HOLD = """
import sys, time
from pathlib import Path
from readbench.locks import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_waits_until_the_first_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "work.lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    waited: list[float] = []

    def kill_the_holder_after_two_tries(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            holder.kill()
            holder.wait()

    monkeypatch.setattr("readbench.locks.time.sleep", kill_the_holder_after_two_tries)
    with exclusive(path):
        assert len(waited) == 2
    holder.stdout.close()


@pytest.mark.parametrize("left_behind", [b"", b"123456"])
def test_a_file_left_behind_is_no_lock(tmp_path: Path, left_behind: bytes) -> None:
    path = tmp_path / "work.lock"
    path.write_bytes(left_behind)
    with exclusive(path):
        assert path.exists()  # reached without waiting for a holder that is not there


def test_an_error_releases_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "work.lock"
    with pytest.raises(KeyError), exclusive(path):
        raise KeyError
    with exclusive(path):
        pass
