"""Fresh processes, what they tell, how they end, and what they take."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from readbench.common.processes import MemoryWatch, in_fresh_process, own_memory
from readbench.common.progress import SILENT
from readbench.errors import ReadbenchError, UsageError
from tests.fresh_work import double


def test_work_in_a_fresh_process_tells_and_returns() -> None:
    told: list[tuple[str, int, int | None]] = []
    assert in_fresh_process(double, 4, lambda *far: told.append(far)) == 8
    assert told == [("doubling", 4, 10)]
    with pytest.raises(UsageError, match="negative"):
        in_fresh_process(double, -1, SILENT)
    with pytest.raises(ReadbenchError, match="exit code -9"):
        in_fresh_process(double, 0, SILENT)


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


def test_memory_that_the_system_does_not_tell_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readbench.common.processes.resource", None)
    monkeypatch.setattr(Path, "exists", lambda _path: False)
    assert math.isnan(own_memory())
    with MemoryWatch() as memory:
        pass
    assert math.isnan(memory.peak)


@pytest.mark.skipif(find_spec("resource") is None, reason="needs a system that tells the memory of a process")
def test_without_proc_the_resident_memory_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", lambda _path: False)
    assert own_memory() > 2**20


POSIX = ("resource", "fcntl", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog", "crypt", "spwd", "readline")
ELSEWHERE = """
import builtins, importlib, os, pkgutil, signal, sys
import filelock, platformdirs  # they choose their own way by the platform
plain = builtins.__import__
def refuse(name, globals=None, locals=None, fromlist=(), level=0):
    asking = (globals or {}).get("__name__", "")
    if name.split(".")[0] in %r and asking.split(".")[0] == "readbench":
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return plain(name, globals, locals, fromlist, level)
builtins.__import__ = refuse
hidden = {os: ("sched_getaffinity", "getuid", "geteuid"), signal: ("SIGKILL", "SIGHUP")}
for owner, names in hidden.items():
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)
import readbench
count = 0
for module in pkgutil.walk_packages(readbench.__path__, "readbench."):
    if module.name == "readbench.__main__":
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name.split(".")[0] in %r:
            raise
        print(module.name, "needs", error.name)  # an optional package
    count += 1
assert count > 100, count
"""


def test_every_module_can_be_imported_where_there_is_no_posix() -> None:
    """Hidden from this package alone: what others import is theirs to guard."""
    code = ELSEWHERE % (POSIX, (*POSIX, "readbench"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
