"""Processes that search for a library: the same answers, from the state of now, whatever happens to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lancedb", reason="libraries need the extra `cases`: pip install 'readbench[dev,cases]'")

from readbench.cases import Library, SearchPool, _learning, _processes
from readbench.cases._processes import PREFIX, read_lent, remove_left_behind, write_lent
from readbench.common.deadlines import Deadline, set_deadline
from readbench.errors import OverdueError
from tests.cases.samples import CHANNELS, FAST, filled, window, windows

WAIT_S = 120.0
QUESTIONS = windows(3, seed=5, labelled=False, prefix="q")


def test_what_is_lent_comes_back_with_its_arrays_mapped(tmp_path: Path) -> None:
    store = filled(tmp_path / "library", 6).store
    lent = {"numbers": np.arange(1000.0), "store": store, "text": "a"}
    write_lent(tmp_path / "1.lent", lent, store)
    found = read_lent(tmp_path / "1.lent", store)
    assert found["store"] is store
    assert found["text"] == "a"
    np.testing.assert_array_equal(found["numbers"], lent["numbers"])
    assert not found["numbers"].flags.owndata
    found["numbers"][0] = 7.0  # a copy of its own
    assert read_lent(tmp_path / "1.lent", store)["numbers"][0] == 0.0
    assert [path.name for path in tmp_path.glob("1.*")] == ["1.lent"]


class _Parent:
    """Has something that it computes when it is first asked for, and a part that is written before it is through."""

    def __init__(self) -> None:
        self.part = _Part(self)
        self.shared = {"a": 1.0}
        self.again = self.shared

    @cached_property
    def late(self) -> int:
        return 7


class _Part:
    def __init__(self, parent: _Parent) -> None:
        self.parent = parent

    def __getstate__(self) -> dict[str, object]:
        _ = self.parent.late  # as a search does in another thread meanwhile
        self.parent.shared["b"] = 2.0
        return {"parent": self.parent}


def test_what_others_change_meanwhile_is_lent_as_it_stood(tmp_path: Path) -> None:
    store = filled(tmp_path / "library", 6).store
    write_lent(tmp_path / "1.lent", _Parent(), store)
    found = read_lent(tmp_path / "1.lent", store)
    assert found.part.parent is found
    assert found.shared is found.again
    assert found.late == 7


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.slow
@pytest.mark.usefixtures("hasty")
def test_what_is_learned_is_lent_while_searches_use_it(tmp_path: Path) -> None:
    filled(tmp_path / "library", 200)
    for start in range(5):
        library, over = Library.open(tmp_path / "library", background=True), threading.Event()
        library.warm(FAST)

        def read(library: Library = library, over: threading.Event = over) -> None:
            while not over.is_set():
                library.search(QUESTIONS[:1], method=FAST)
                library.doubtful(method=FAST)
                library.explain(QUESTIONS[:1], "w0")

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for again in range(4):
                for i, learned in enumerate(library.learned().values()):
                    path = tmp_path / f"{start}-{again}-{i}.lent"
                    write_lent(path, learned, library.store)
                    assert read_lent(path, library.store).snapshot.entries
        finally:
            over.set()
            for thread in threads:
                thread.join(WAIT_S)


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Library, SearchPool]]:
    """A library that a process searches, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_learning, "QUICK_S", -1.0)  # nothing is learned in a search
        where = tmp_path_factory.mktemp("pooled") / "library"
        filled(where, 24)
        library = Library.open(where, background=True)
        library.warm(FAST)
        for kept in (library._profile, library._normal, *library._engine._kept.values()):
            assert kept.known is not None
            kept.known = replace(kept.known, seconds=9.0)  # as of a library that takes long to learn
        pool = SearchPool(library, 1)
        try:
            assert pool.settle(WAIT_S)
            yield library, pool
        finally:
            pool.close()


def ask(pool: SearchPool, number: int = 0) -> bytes | None:
    return pool.search(QUESTIONS[number : number + 1], method=FAST)


@pytest.mark.slow
def test_a_process_answers_as_the_library_does(pooled: tuple[Library, SearchPool]) -> None:
    library, pool = pooled
    for i in range(3):
        assert ask(pool, i) == library.search(QUESTIONS[i : i + 1], method=FAST).model_dump_json().encode()
    assert pool.search("no such case", method=FAST) is None  # the library says why


@pytest.mark.slow
def test_a_change_is_in_the_next_answer_and_is_learned_from_for_the_process(pooled: tuple[Library, SearchPool]) -> None:
    library, pool = pooled
    new = library.add_one(QUESTIONS.values(1), CHANNELS, label="leak")
    answer = json.loads(ask(pool, 1) or b"{}")
    assert answer["total"] == len(library)
    assert new.id in [hit["case"]["id"] for hit in answer["hits"]]
    end = time.monotonic() + WAIT_S
    while any(remark.startswith("Learning") for remark in answer["remarks"]) and time.monotonic() < end:
        library.settle(WAIT_S)
        assert pool.settle(WAIT_S)
        answer = json.loads(ask(pool, 1) or b"{}")
    assert (
        ask(pool, 1) == Library.open(library.store.where).search(QUESTIONS[1:2], method=FAST).model_dump_json().encode()
    )


@pytest.mark.slow
def test_a_killed_process_is_replaced_and_the_library_answers_meanwhile(pooled: tuple[Library, SearchPool]) -> None:
    library, pool = pooled
    process = pool._idle.queue[0]._process
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert ask(pool) is None
    assert library.search(QUESTIONS[:1], method=FAST).hits
    assert pool.settle(WAIT_S)
    assert ask(pool) is not None


@pytest.mark.slow
def test_a_process_that_takes_too_long_is_ended(pooled: tuple[Library, SearchPool]) -> None:
    _, pool = pooled
    assert pool.settle(WAIT_S)
    process = pool._idle.queue[0]._process
    os.kill(process.pid, signal.SIGSTOP)  # a comparison that does not end
    began = time.monotonic()
    with set_deadline(Deadline(began + 0.5)), pytest.raises(OverdueError):
        ask(pool)
    assert time.monotonic() - began < 20.0
    process.join(WAIT_S)
    assert process.exitcode == -signal.SIGKILL
    assert pool.settle(WAIT_S)
    assert ask(pool) is not None


@pytest.mark.slow
def test_a_loop_that_fails_is_seen_and_comes_back(
    pooled: tuple[Library, SearchPool], monkeypatch: pytest.MonkeyPatch
) -> None:
    library, pool = pooled
    assert pool.settle(WAIT_S)

    def fail(*_: object) -> None:
        raise RuntimeError("dictionary changed size during iteration")

    with monkeypatch.context() as patch:
        patch.setattr(_processes, "write_lent", fail)
        library.add_one(QUESTIONS.values(2), CHANNELS, label="leak")
        end = time.monotonic() + WAIT_S
        while not any(own.error for own in pool.loops) and time.monotonic() < end:
            ask(pool)
            library.settle(1.0)
        assert [own.name for own in pool.loops if own.error] == [_processes.LENDING]
    assert pool.settle(WAIT_S)
    wait_until(lambda: not any(own.error for own in pool.loops))


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, *(pytest.param(start, marks=pytest.mark.long) for start in range(1, 5))])
def test_a_new_fault_becomes_an_option_in_every_process_under_load(start: int, tmp_path: Path) -> None:
    """With readers in the library's own process and a writer; one start of five after each change."""
    filled(tmp_path / "library", 24)
    library = Library.open(tmp_path / "library", background=True)
    pool, over = SearchPool(library, 2), threading.Event()
    rng = np.random.default_rng(start)

    def read(seed: int) -> None:
        numbers = np.random.default_rng(seed)
        while not over.is_set():
            i = int(numbers.integers(3))
            if numbers.random() < 0.5 or ask(pool, i) is None:
                library.search(QUESTIONS[i : i + 1], method=FAST)
            library.doubtful(method=FAST)
            library.stats()

    def write() -> None:
        while not over.is_set():
            library.add_one(window("leak", rng), CHANNELS, label="leak")
            over.wait(0.3)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)] + [threading.Thread(target=write)]
    try:
        for thread in threads:
            thread.start()
        over.wait(6.0)
        over.set()
        for thread in threads:
            thread.join(WAIT_S)
        assert not any(own.error for own in pool.loops), pool.loops
        for i in range(4):
            library.add_one(window("noise", rng) + 9.0, CHANNELS, label="new fault", id=f"new{i}")
        asked = windows(1, seed=9, labelled=False, prefix="z")

        def known() -> bool:
            assert library.settle(WAIT_S)
            assert pool.settle(WAIT_S)
            answers = [json.loads(pool.search(asked, method=FAST) or b"{}") for _ in range(4)]
            return all("new fault" in [own["label"] for own in answer.get("faults", ())] for answer in answers)

        wait_until(known)
        assert sum(own.failures for own in pool.loops) == 0
    finally:
        over.set()
        pool.close()


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_what_killed_processes_lent_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for name in (f"{PREFIX}{ended.pid}-abc", f"{PREFIX}{os.getpid()}-abc", f"{PREFIX}other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.lent").write_bytes(b"lent")
    remove_left_behind()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{PREFIX}{os.getpid()}-abc", f"{PREFIX}other"]


def test_a_follower_says_where_nobody_told_it(tmp_path: Path) -> None:
    filled(tmp_path / "library", 12)
    library = Library(Library.open(tmp_path / "library").store, follower=True)
    with pytest.raises(_learning.UntaughtError):
        library.search(window("leak", np.random.default_rng(0)), channels=CHANNELS, method=FAST)
