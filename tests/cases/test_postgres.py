"""A library in PostgreSQL: what only a server can do wrong, and what an address with a password must not tell."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from readbench.cases import Library, _postgres as store_module, export_library, import_library
from readbench.cases._bulk import EncodingPart, FittedEncoder
from readbench.cases._postgres import PostgresStore
from readbench.cli import app
from readbench.engine.encoders import Raw
from readbench.errors import StoreError, UsageError
from tests.cases.postgres import PASSWORD, PostgresServer
from tests.cases.samples import CHANNELS, FAST, filled, windows

WRITER = """
import sys, time
from readbench.cases import Library
from readbench.errors import StoreError
from tests.cases.samples import CHANNELS, windows
own, me = Library.open(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(40):
    name = f"{me}-{number}"
    try:
        own.add_one(windows(1, seed=number).values(0), CHANNELS, id=name)
        print("added", name, flush=True)
    except StoreError as error:
        print("lost", name, error, flush=True)
        time.sleep(0.3)
"""


@pytest.fixture
def address(postgres: PostgresServer) -> str:
    """Where no library is yet."""
    return postgres.new()


@pytest.fixture
def guarded(postgres: PostgresServer, address: str) -> str:
    """The same by TCP, with the password."""
    schema = address.rpartition("=")[2]
    return f"postgresql://tester:{quote(PASSWORD)}@127.0.0.1:{postgres.port}/postgres?schema={schema}"


@pytest.fixture
def stopped(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """The server, killed; it runs again for the next test."""
    postgres.stop("immediate")
    yield postgres
    postgres.start()


def test_three_writers_and_a_killed_server_lose_nothing_answered(postgres: PostgresServer, address: str) -> None:
    library, pipe = filled(address), subprocess.PIPE
    commands = [[sys.executable, "-c", WRITER, address, f"writer {i}"] for i in range(3)]
    writers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for command in commands]
    try:
        for writer in writers:
            assert writer.stdout
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin
            writer.stdin.write("go\n")
            writer.stdin.flush()
        while len(library) < 12 + 15:
            time.sleep(0.02)
        postgres.stop("immediate")
        postgres.start()
        said = [line for writer in writers for line in writer.communicate(timeout=60)[0].splitlines()]
    finally:
        for writer in writers:
            writer.kill()
    answered = {line.removeprefix("added ") for line in said if line.startswith("added")}
    refused = [line for line in said if line.startswith("lost")]
    assert refused, "the server was away for a while"
    assert all(address.partition("?")[0] in line for line in refused)
    assert len(answered) + len(refused) == 120
    found = {case.id for case in library.cases()}
    assert answered <= found
    assert len(found) - 12 - len(answered) <= len(writers), "at most the change in flight may be there unanswered"
    rows = library.store.journal()
    assert rows["step"].to_pylist() == list(range(len(rows)))
    changes = [change.number for change in library.history()]
    assert changes == list(range(1, len(changes) + 1))
    assert library.store.revision() == len(changes), "each change counts once"


def test_a_lost_connection_is_replaced(postgres: PostgresServer, address: str) -> None:
    library = filled(address)
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'readbench'"
    postgres.ask(end)
    assert len(library) == 12, "a question is asked again"
    postgres.ask(end)
    library.label("w0", "other")
    with library.store.writing():
        rows = library.store.journal()
        postgres.ask(end)  # with the connection, the lock: nothing may be written now
        with pytest.raises(StoreError, match=r"was lost\. Ask again"):
            library.store.append(rows)
    assert library.case("w0").label == "other"
    library.label("w0", "leak")
    assert library.case("w0").label == "leak"


def test_a_server_that_is_away_is_one_sentence(address: str, stopped: PostgresServer) -> None:
    with pytest.raises(StoreError, match=r"cannot be reached: connection .* failed") as told:
        Library.open(address)
    assert "\n" not in str(told.value)
    assert str(stopped.port) in str(told.value)


def test_a_password_is_shown_nowhere(guarded: str, capfd: pytest.CaptureFixture[str]) -> None:
    secrets = (PASSWORD, quote(PASSWORD))
    shown = [CliRunner().invoke(app, ["cases", "init", guarded]).output]
    library = Library.open(guarded)
    library.add(windows(2))
    fitted = FittedEncoder("raw", Raw())
    shown += [repr(library), library.store.where, repr(EncodingPart(library.store.address, fitted, (), ()))]
    for bad in (
        guarded.replace("tester", "nobody"),
        guarded.replace("postgres?", "nowhere?"),
        guarded.replace("127.0.0.1", "127.0.0.1:x"),
        guarded.replace("schema=", "schema=no-"),
        guarded + "x",
        guarded + "&nothing=1",
        guarded.replace("@", "%zz@"),
    ):
        with pytest.raises((StoreError, UsageError)) as told:
            Library.open(bad)
        shown += [str(told.value), repr(told.value), repr(told.value.__cause__)]
    shown += [*capfd.readouterr()]
    assert not [text for text in shown if any(secret in text for secret in secrets)]
    assert "***" in library.store.where
    assert len(Library.open(library.store.address)) == 2


def test_libpq_finds_the_password_itself(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = guarded.replace(f":{quote(PASSWORD)}", "")
    with pytest.raises(StoreError, match="password"):
        Library.create(bare)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert Library.create(bare).store.where == bare


def test_a_folder_moves_into_a_database_and_answers_the_same(tmp_path: Path, address: str) -> None:
    first = filled(tmp_path / "folder")
    first.name_channel("pressure", "bar", ["PT-101 [kPa]"])
    first.edit("w1", notes="Seal\treplaced.\n'Quoted' — ünïcode", tags=("pump",), rejected=("noise",), zone="+01:00")
    first.add_one(
        windows(1, seed=7).values(0), CHANNELS, before=windows(1, seed=8).values(0), rate=2.0, facts={"speed": 29.5}
    )
    export_library(first, tmp_path / "cases.parquet")
    moved = Library.create(address)
    import_library(moved, tmp_path / "cases.parquet")
    assert [c.model_dump(exclude={"changed"}) for c in moved.cases()] == [
        c.model_dump(exclude={"changed"}) for c in first.cases()
    ]
    asked = windows(1, seed=5)
    for method in (FAST, "raw|dtw-i"):
        ours, theirs = (own.search(asked, method=method) for own in (first, moved))
        assert ours.faults == theirs.faults
        assert [(hit.case.id, hit.score) for hit in ours.hits] == [(hit.case.id, hit.score) for hit in theirs.hits]
    again = Library.open(address)
    again.warm("raw|dtw-i")
    assert again._engine.vectors.encoded == 0, "vectors are kept in the database"
    export_library(again, tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "cases.parquet").read_bytes()


def test_libraries_of_one_database_are_apart(postgres: PostgresServer) -> None:
    one, other = (Library.create(postgres.new()) for _ in range(2))
    one.add(windows(3))
    assert (len(one), len(other)) == (3, 0)
    with pytest.raises(UsageError, match="no name of a schema"):
        Library.open(f"{postgres.new()}; DROP SCHEMA s1")


def test_a_writer_that_waits_too_long_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library.create(address)
    other = Library.open(address)
    monkeypatch.setattr(store_module, "WRITER_S", 0.2)
    with library.store.writing(), pytest.raises(StoreError, match="Another process has been writing"):
        other.add(windows(1))
    other.add(windows(1))
    assert len(library) == 1


def test_reads_do_not_wait_for_a_writer(address: str) -> None:
    library = filled(address)
    with library.store.writing():
        found: list[int] = []
        reader = threading.Thread(target=lambda: found.append(library.store.revision()))
        reader.start()
        reader.join(20)
    assert found == [2]


def test_the_journal_refuses_steps_that_somebody_wrote(address: str) -> None:
    library = filled(address)
    before = library.store.revision()
    with library.store.writing(), pytest.raises(StoreError, match="Somebody else has written"):
        library.store.append(library.store.journal())
    assert library.store.revision() == before
    assert len(Library.open(address)) == 12


def test_a_journal_without_later_columns_gets_them(postgres: PostgresServer, address: str) -> None:
    filled(address)
    schema = address.rpartition("=")[2]
    postgres.ask(f"ALTER TABLE {schema}.journal DROP COLUMN author, DROP COLUMN {chr(34)}end{chr(34)}")
    library = Library.open(address)
    assert library.case("w3").end is None
    library.edit("w3", end=5.0)
    assert (library.case("w3").end, library.case("w4").end) == (5.0, None)


def test_connections_end_with_their_library(postgres: PostgresServer, address: str) -> None:
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ended'"
    store = PostgresStore(f"{address}&application_name=ended", create=True)
    with store.writing():
        store.revision()
    assert postgres.ask(count) == "1\n"
    store.close()
    assert store.revision() == 0
    del store
    for _ in range(50):
        if postgres.ask(count) == "0\n":
            return
        time.sleep(0.1)
    pytest.fail("a connection was left open")


def test_a_text_that_no_database_can_keep_is_refused_at_the_door(address: str) -> None:
    library = filled(address)
    with pytest.raises(UsageError, match="no file can hold"):
        library.edit("w0", notes="nul \x00")
    assert library.find("nul \x00") == []
    assert len(library.history()) == 2
