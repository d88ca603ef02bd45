"""Background loops: whatever a round raises, the loop goes on, and how it is can be seen."""

from __future__ import annotations

import ast
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import readbench
from readbench.common import supervised
from readbench.common.supervised import LoopState, SupervisedLoop

WAIT_S = 20.0


def wait_until(true: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


class PanicError(BaseException):
    """As compiled packages raise."""


@pytest.mark.parametrize("error", [RuntimeError("dictionary changed size"), MemoryError(), PanicError("rust")])
def test_what_a_round_raises_is_seen_and_the_loop_goes_on(error: BaseException) -> None:
    broken, rounds, heard = threading.Event(), [0], list[LoopState]()

    def work() -> None:
        rounds[0] += 1
        time.sleep(0.01)
        if broken.is_set():
            raise error

    loop = SupervisedLoop("reads", work, heard.append, pause_s=(0.01, 0.02)).start()
    wait_until(lambda: rounds[0] > 2)
    assert loop.state == LoopState("reads")
    broken.set()
    wait_until(lambda: loop.state.failures > 2)
    assert loop.state.error.startswith(type(error).__name__)
    broken.clear()
    wait_until(lambda: not loop.state.error)
    loop.stop()
    loop.join(WAIT_S)
    assert [bool(own.error) for own in heard] == [True, False], "once each, however often it failed"
    assert heard[0].since == heard[1].since > 0
    assert loop.state.failures >= 3


def test_pauses_double_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError

    loop, pauses = SupervisedLoop("fails", fail, pause_s=(0.5, 60.0)), list[float]()

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        if len(pauses) == 10:
            loop.stop()
        return False

    monkeypatch.setattr(loop.stopping, "wait", wait)
    loop.run()
    assert pauses == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_round_that_lasts_after_a_failure_counts_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "RECOVERED_AFTER_S", 0.2)
    rounds, ended = [0], threading.Event()

    def serve() -> None:
        rounds[0] += 1
        if rounds[0] == 1:
            raise OSError("the port is taken")
        ended.wait(WAIT_S)

    loop = SupervisedLoop("serves", serve, pause_s=(0.05, 0.05)).start()
    wait_until(lambda: loop.state.error)
    wait_until(lambda: not loop.state.error)
    assert loop.state.failures == 1
    loop.stop()
    ended.set()
    loop.join(WAIT_S)


def test_a_loop_whose_trouble_nobody_can_hear_goes_on() -> None:
    rounds = [0]

    def work() -> None:
        rounds[0] += 1
        raise RuntimeError

    def hear(_: LoopState) -> None:
        raise OSError("the disk is full")

    loop = SupervisedLoop("fails", work, hear, pause_s=(0.01, 0.01)).start()
    wait_until(lambda: rounds[0] > 3)
    loop.stop()


def test_no_thread_of_the_package_runs_without_a_supervisor() -> None:
    """But for the clients of a load test, which are waited for."""
    package = Path(readbench.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in {"Thread", "Timer", "loop_start"}:
                    found.add(path.relative_to(package).as_posix())
    assert found == {"common/supervised.py", "cases/server/load.py"}
