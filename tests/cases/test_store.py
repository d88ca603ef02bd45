"""What a store promises: ragged windows come back as they were, appends are whole, nobody loses anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from readbench.cases import Library, sign_changes
from readbench.cases._store import Store, open_store
from readbench.engine.vectors import window_digests
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, UnknownNameError, UsageError
from tests.cases.samples import CHANNELS, FAST, filled, windows
from tests.engine.windows.strategies import window_sets


@pytest.fixture
def store(where: str) -> Store:
    return open_store(where, create=True)


@pytest.fixture
def library(where: str) -> Library:
    """As everywhere, in each of the back ends."""
    return filled(where)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ragged=window_sets())
def test_windows_come_back_as_they_were(store: Store, ragged: WindowSet) -> None:
    digests = store.file_windows(ragged)
    assert digests == window_digests(ragged)
    back = store.windows(digests[::-1])
    assert len(back) == len(ragged)
    for i, window in enumerate(back):
        own = ragged[len(ragged) - 1 - i]
        assert window.channels == own.channels
        np.testing.assert_array_equal(window.values, own.values)


def test_equal_windows_are_kept_once(store: Store) -> None:
    store.file_windows(windows(5))
    size = store.size()
    twice = store.file_windows(windows(5)) + store.file_windows(windows(3))
    assert store.size() == size
    assert len(set(twice)) == 5


def test_a_window_that_is_lost_is_reported(store: Store) -> None:
    with pytest.raises(DataError, match="missing"):
        store.windows(["00" * 16])


def test_vectors_are_kept_by_encoder(store: Store) -> None:
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    store.file_vectors("it's one", ["a", "b", "c"], vectors)
    store.file_vectors("other", ["a"], np.zeros((1, 5), np.float32))
    found = store.vectors("it's one", ["c", "a", "nobody"])
    assert {name: vector.tolist() for name, vector in found.items()} == {"a": [0, 1], "c": [4, 5]}
    assert store.vectors("unknown", ["a"]) == {}


def test_a_library_is_made_once_and_opened_where_it_is(where: str) -> None:
    with pytest.raises(UsageError, match="There is no case library"):
        Library.open(where)
    Library.create(where)
    with pytest.raises(UsageError, match="already holds"):
        Library.create(where)


def test_a_folder_that_is_no_library_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no case library"):
        Library.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(UsageError, match="is no case library"):
        Library.open(tmp_path)


def test_a_library_on_qdrant_is_told_how_to_move() -> None:
    with pytest.raises(UsageError, match=r"cases export qdrant://host:6333/plant cases\.parquet"):
        Library.open("qdrant://host:6333/plant")


def test_readers_see_what_a_writer_wrote(library: Library, where: str) -> None:
    reader = Library.open(where)
    assert len(reader) == 12
    library.add(windows(2, seed=1, prefix="x"))
    library.label("w0", "worn bearing")
    assert len(reader) == 14
    assert reader.case("w0").label == "worn bearing"
    reader.delete(["x0"])
    assert len(library) == 13


def test_threads_search_and_write_together(library: Library) -> None:
    asked = windows(1, seed=8)

    def work(number: int) -> int:
        library.add(windows(1, seed=number, prefix=f"thread {number} "))
        return len(library.search(asked, k=100, method=FAST).hits)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(8)))
    assert len(library) == 20
    assert max(found) == 20
    assert [change.number for change in library.history()] == list(range(1, 11))


def test_bad_input_changes_nothing(library: Library) -> None:
    before = library.history()
    bad = windows(3, seed=1, prefix="x")
    named_twice = WindowSet.from_arrays([np.ones((1, 3))] * 2, channels=("flow",), ids=["a", "a"])
    empty = WindowSet.from_arrays([np.full((1, 3), np.nan)], channels=("flow",), ids=["gap"])
    for wrong in (
        lambda: library.add(windows(2)),
        lambda: library.add(named_twice),
        lambda: library.add(empty),
        lambda: library.add(bad, library.cases()[:1]),
        lambda: library.add_one(np.ones((1, 3)), ["flow"], label="unlike anything here"),
        lambda: library.add_one(np.ones((1, 3)), ["flow"], label=" "),
        lambda: library.add_one(np.ones((1, 3)), ["flow"], links=("javascript:alert(1)",)),
        lambda: library.add_one(np.ones((1, 3)), ["flow"], notes="x" * 200_000),
        lambda: library.add_one(np.ones((1, 3)), ["flow"], asset="line\nbreak"),
        lambda: library.edit("w0", id="other"),
        lambda: library.confirm("w0", like="nobody"),
        lambda: library.name_channel("flow", "furlong"),
    ):
        with pytest.raises((UsageError, DataError)):
            wrong()
    with pytest.raises(UnknownNameError, match="Did you mean 'w11'"):
        library.label("w111", "leak")
    assert library.history() == before
    assert library.naming().aliases == {}


def test_undo_and_time_travel(library: Library, where: str) -> None:
    library.label("w0", "other")
    library.delete(["w1"])
    assert library.undo().what == "delete"
    assert library.undo().what == "edit"
    assert (library.case("w0").label, len(library)) == ("leak", 12)
    past = Library.open(where, as_of=4)
    assert (past.case("w0").label, len(past)) == ("other", 11)
    with pytest.raises(UsageError, match="not changed"):
        past.label("w0", "leak")
    assert library.undo().what == "add"
    assert library.undo().what == "normals"
    with pytest.raises(UsageError, match="no change to revert"):
        library.undo()
    assert len(library) == 0
    library.add(windows(2))
    assert len(library) == 2, "names of cases that were taken back are free again"


def test_notes_are_found_by_their_words(library: Library) -> None:
    library.edit("w0", notes="Replaced the bearing of the pump.")
    library.edit("w1", notes="Bearings were fine, the valve was stuck.")
    assert {case.id for case in library.find("bearing")} == {"w0", "w1"}
    library.edit("w1", notes="The valve was stuck.")
    library.edit("w2", notes="bearing noise, came after the index was made")
    assert {case.id for case in library.find("bearing")} == {"w0", "w2"}
    library.delete(["w0"])
    assert [case.id for case in library.find("bearing")] == ["w2"]
    library.undo()
    assert {case.id for case in library.find("bearing")} == {"w0", "w2"}
    assert library.find("' OR 1=1 --") == []
    assert [case.id for case in library.find("W1 ")] == ["w1", "w10", "w11"], "by its name, too"


def test_many_small_changes_are_merged_and_nothing_is_lost(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readbench.cases._lance.OPTIMISE_EVERY", 5)
    library = Library.create(where)
    for i in range(12):
        library.add_one(windows(1, seed=i).values(0), CHANNELS, id=f"c{i}")
    assert [case.id for case in Library.open(where).cases()] == [f"c{i}" for i in range(12)]
    library.store.optimise()
    assert library.window("c3").values(0).tolist() == windows(1, seed=3).values(0).tolist()


INGEST = """
import sys
import numpy as np
from readbench.cases import Library, _library as library
from readbench.engine.context import Context
from tests.cases.samples import windows
library.ADD_BATCH = 20
own = Library.open(sys.argv[1])
start = len(own)
print("ready", flush=True)
for round in range(100):
    befores = [np.full((3, 8), start + i, np.float32) for i in range(100)]
    context = Context.of(100, befores=befores, facts=[{"number": i} for i in range(100)])
    own.add(windows(100, seed=start + round, prefix=f"{start}-{round}-").with_context(context))
    print(round, flush=True)
"""


def test_a_killed_writer_loses_at_most_the_batch_in_flight(where: str) -> None:
    filled(where)
    for moment in (0.1, 0.35, 0.7) if Path(where).is_dir() else (0.35,):
        known = len(Library.open(where))
        command = [sys.executable, "-c", INGEST, where]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(moment)
            os.kill(writer.pid, signal.SIGKILL)
            finished = len(writer.stdout.read().splitlines())
        library = Library.open(where)
        assert len(library) >= known + 100 * finished, "what was reported as added is there"
        assert (len(library) - 12) % 20 == 0, "batches are there whole or not at all"
        everything = library.snapshot().windows(range(len(library)))
        everything.require_finite()
        assert everything.ids.tolist() == [case.id for case in library.cases()]
        for own in everything:
            first, _, number = own.id.partition("-")
            if number:  # of the killed writers
                assert own.before is not None
                assert own.facts["number"] == int(number.partition("-")[2])
                assert own.before[0, 0] == int(first) + own.facts["number"]
        library.add(windows(20, prefix=f"after {len(library)} "))
    assert library.search(windows(1, seed=4), method="euclidean").hits


def test_what_a_case_is_and_is_not_never_contradict_each_other(library: Library) -> None:
    library.label("w3", None)
    library.reject("w3", like="w0")
    assert library.confirm("w3", like="w0").rejected == ()
    rejected = library.reject("w3", like="w0")
    assert (rejected.label, rejected.rejected) == (None, ("leak",))
    assert library.label("w3", "leak").rejected == ()
    assert library.edit("w3", rejected=("leak", "noise")).label is None
    assert library.label("w3", "stuck valve").rejected == ("leak", "noise")
    with pytest.raises(UsageError, match="known not to be"):
        library.edit("w3", label="noise", rejected=("noise",))


def test_one_change_is_taken_back_and_made_again_while_later_ones_stay(library: Library) -> None:
    with sign_changes("shift desk"):
        library.reject("w3", like="w0")
    number = library.history()[-1].number
    library.edit("w3", notes="Seal replaced.")
    assert library.undo(number).author == "shift desk"
    own = library.case("w3")
    assert (own.rejected, own.notes, own.label) == ((), "Seal replaced.", "leak")
    assert library.history()[-1].takes_back == number
    assert library.redo().number == number
    assert (library.case("w3").rejected, library.case("w3").notes) == (("leak",), "Seal replaced.")
    with pytest.raises(UsageError, match="taken back"):
        library.redo(number)
    with pytest.raises(UsageError, match="no change 999 to revert"):
        library.undo(999)
