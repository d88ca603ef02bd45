"""Processes that search for a library: the same answers, from the state of now, whatever happens to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lancedb", reason="libraries need the extra `cases`: pip install 'readbench[dev,cases]'")

from readbench.cases import Library, SearchPool, _learning
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
