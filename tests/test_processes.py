"""Fresh processes, what they tell, how they end, and what they take."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from readbench.errors import ReadbenchError, UsageError
from readbench.processes import MemoryWatch, in_fresh_process
from tests.fresh_work import double


def untold(what: str, done: int, total: int) -> None:
    """Nobody asked."""


def test_work_in_a_fresh_process_tells_and_returns() -> None:
    told: list[tuple[str, int, int]] = []
    assert in_fresh_process(double, 4, lambda *far: told.append(far)) == 8
    assert told == [("doubling", 4, 10)]
    with pytest.raises(UsageError, match="negative"):
        in_fresh_process(double, -1, untold)
    with pytest.raises(ReadbenchError, match="exit code -9"):
        in_fresh_process(double, 0, untold)


def lives(process: int) -> bool:
    """Whether there is such a process that has not ended."""
    status = Path(f"/proc/{process}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc to look at processes")
def test_a_process_does_not_outlive_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-m", "tests.fresh_work"], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(1)
    assert lives(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 30
    while lives(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc to look at processes")
def test_memory_of_processes_below_counts() -> None:
    code = "taken = bytearray(b'x') * 2**27; print('taken', flush=True); input()"
    with MemoryWatch() as alone:
        pass
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with MemoryWatch() as both:
            pass
        child.communicate("\n")
    assert both.peak - alone.peak > 2**27
