from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from readbench.common.deadlines import hold_lock, within_seconds
from readbench.common.files import exclusive
from readbench.errors import OverdueError

HOLD = """
import sys, time
from pathlib import Path
from readbench.common.files import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_waits_until_the_first_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "work.lock"
    got_it = threading.Event()

    def wait_for_the_lock() -> None:
        with exclusive(path):
            got_it.set()

    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        waiter = threading.Thread(target=wait_for_the_lock, daemon=True)
        waiter.start()
        assert not got_it.wait(0.3)
        holder.kill()
    assert got_it.wait(30)
    waiter.join()


def test_a_second_thread_waits_too(tmp_path: Path) -> None:
    inside: list[str] = []

    def enter_and_leave() -> None:
        for _ in range(20):
            with exclusive(tmp_path / "work.lock"):
                inside.append("in")
                time.sleep(0.001)  # long enough for another thread to come in, if it could
                assert len(inside) == 1
                inside.pop()

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(enter_and_leave) for _ in range(4)]:
            done.result()


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


def test_a_lock_that_cannot_be_made_is_an_error_at_once() -> None:
    began = time.monotonic()
    with pytest.raises(OSError, match="/proc"), exclusive(Path("/proc/work.lock")):
        pass
    assert time.monotonic() - began < 5


def test_waiting_for_a_lock_ends(tmp_path: Path) -> None:
    with (
        exclusive(tmp_path / "work.lock"),
        ThreadPoolExecutor(1) as other,
        pytest.raises(TimeoutError, match=r"for more than 0\.2 s"),
    ):
        other.submit(_enter, tmp_path / "work.lock").result(30)


def test_waiting_for_a_lock_ends_with_the_time_of_the_work(tmp_path: Path) -> None:
    lock, began = threading.Lock(), time.monotonic()
    with exclusive(tmp_path / "work.lock"), lock:
        with pytest.raises(OverdueError), within_seconds(0.2), exclusive(tmp_path / "work.lock"):
            pass
        with pytest.raises(OverdueError), within_seconds(0.2), hold_lock(lock):
            pass
    assert time.monotonic() - began < 5


def _enter(path: Path) -> None:
    with exclusive(path, 0.2):
        pass
