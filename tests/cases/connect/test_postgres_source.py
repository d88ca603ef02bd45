"""Readings in a PostgreSQL database: tables wide and long, queries, passwords, slow answers, a server that restarts."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from readbench.cases.connect import SignalSource, _postgres, open_source
from readbench.errors import DataError, LongAnswerError, UnreachableError, UsageError
from tests.cases.connect.conftest import START
from tests.cases.postgres import PASSWORD, PostgresServer

LONG = f"""
CREATE SCHEMA IF NOT EXISTS plant;
CREATE TABLE IF NOT EXISTS plant.long (ts timestamptz, pump text, tag text, reading numeric, unit text);
TRUNCATE plant.long;
INSERT INTO plant.long SELECT to_timestamp({START} + i), 'pump ' || k, 'pressure', i + k, 'bar'
  FROM generate_series(0, 99) i, generate_series(1, 2) k;
CREATE TABLE IF NOT EXISTS plant.wide (ts double precision, flow real, speed integer);
TRUNCATE plant.wide;
INSERT INTO plant.wide SELECT {START} + i, i / 2.0, i FROM generate_series(0, 99) i;
"""  # noqa: S608 - our own numbers


@pytest.fixture(scope="module")
def database(postgres: PostgresServer) -> PostgresServer:
    postgres.ask(LONG)
    return postgres


At = Callable[..., SignalSource]


@pytest.fixture
def at(database: PostgresServer) -> Iterator[At]:
    """Opens sources, and closes them after the test."""
    opened = []

    def open_one(options: str, secret: str = "") -> SignalSource:
        where = f"tester@127.0.0.1:{database.port}" if secret else f"tester@:{database.port}"
        host = "" if secret else f"&host={database.folder}"
        opened.append(open_source(f"postgresql://{where}/postgres?{options}{host}", secret))
        return opened[-1]

    yield open_one
    for own in opened:
        own.close()


def test_a_long_table_has_assets_channels_and_units(database: PostgresServer, at: At) -> None:
    source = at("table=plant.long&time=ts&asset=pump&channel=tag&value=reading&unit=unit")
    assert [(own.asset, own.name, own.unit) for own in source.channels()] == [
        ("pump 1", "pressure", "bar"),
        ("pump 2", "pressure", "bar"),
    ]
    own = source.read(START + 10, START + 19, asset="pump 2").of_asset("pump 2")["pressure"]
    assert own.values.tolist() == [float(i + 2) for i in range(10, 20)]
    assert own.times.tolist() == [START + i for i in range(10, 20)]
    follower = source.follow(START + 90)
    assert len(follower.poll(START + 100)) == 2 * 19  # from ten seconds before, for what comes late
    row = f"(to_timestamp({START} + 100), 'pump 1', 'pressure', 7, 'bar')"
    database.ask("INSERT INTO plant.long VALUES " + row)  # noqa: S608 - our own numbers
    assert follower.poll(START + 101).series["pump 1", "pressure"].values.tolist() == [7.0]


def test_a_wide_table_and_a_query_give_the_same(at: At) -> None:
    table = at("table=plant.wide&time=ts").read(START, START + 9)
    query = at("time=ts&query=SELECT ts, flow, speed FROM plant.wide WHERE speed % 1 = 0")
    assert [own.name for own in query.channels()] == ["flow", "speed"]
    found = query.read(START, START + 9)
    for name in ("flow", "speed"):
        assert found.of_asset("")[name].values.tolist() == table.of_asset("")[name].values.tolist()


@pytest.mark.parametrize(("zone", "late_h"), [("", 0), ("&zone=Asia/Tokyo", -9)])
def test_times_that_name_no_zone_are_utc_or_of_the_one_that_is_told(
    database: PostgresServer, at: At, zone: str, late_h: int
) -> None:
    """Whatever the zone of the server is: it would compare them with the range in its own."""
    database.ask("ALTER DATABASE postgres SET timezone TO 'America/New_York'")
    moments = "(to_timestamp(ts) AT TIME ZONE 'UTC')"
    try:
        source = at(f"time=ts&query=SELECT {moments} AS ts, flow FROM plant.wide{zone}")  # noqa: S608 - our own
        shift = 3600.0 * late_h
        own = source.read(START + shift + 10, START + shift + 19).of_asset("")["flow"]
        assert own.times.tolist() == [START + shift + i for i in range(10, 20)]
        assert [own.name for own in source.channels()] == ["flow"]
    finally:
        database.ask("ALTER DATABASE postgres RESET timezone")


def test_a_table_without_rows_is_followed_from_its_first_row(database: PostgresServer, at: At) -> None:
    database.ask("CREATE TABLE plant.young (ts timestamptz, flow real)")
    source = at("table=plant.young&time=ts")
    assert source.channels() == []
    follower = source.follow(START)
    assert len(follower.poll(START + 1)) == 0
    database.ask(f"INSERT INTO plant.young VALUES (to_timestamp({START} + 2), 1.5)")  # noqa: S608 - our own numbers
    assert follower.poll(START + 3).series["", "flow"].values.tolist() == [1.5]


def test_a_query_that_writes_is_refused_by_the_server(database: PostgresServer, at: At) -> None:
    for text in ("DELETE FROM plant.wide RETURNING ts", "SELECT ts FROM plant.wide) AS x; DELETE FROM plant.wide; --"):
        with pytest.raises(DataError):
            at(f"time=ts&query={text}").read(START, START + 9)
    assert database.ask("SELECT count(*) FROM plant.wide").strip() == "100"


def test_a_password_comes_from_the_environment_and_is_never_told(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANT_WORD", PASSWORD)
    assert len(at("table=plant.wide&time=ts", "env:PLANT_WORD").read(START, START + 9)) == 20
    monkeypatch.setenv("PLANT_WORD", "s3cret-wrong")
    with pytest.raises(UnreachableError) as caught:
        at("table=plant.wide&time=ts", "env:PLANT_WORD").read(START, START + 9)
    assert "s3cret" not in str(caught.value)


def test_a_slow_answer_is_left_in_time(at: At) -> None:
    slow = "SELECT ts, flow FROM plant.wide, pg_sleep(5)"
    with pytest.raises(UnreachableError, match="timeout"):
        at(f"time=ts&query={slow}&timeout=0.3").read(START, START + 9)


def test_a_lost_connection_is_made_again(database: PostgresServer, at: At) -> None:
    source = at("table=plant.wide&time=ts")
    assert len(source.read(START, START + 9)) == 20
    database.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'readbench'")
    assert len(source.read(START, START + 9)) == 20


def test_what_is_wrong_is_named(at: At) -> None:
    with pytest.raises(UsageError, match="table or the query"):
        at("time=ts")
    with pytest.raises(DataError, match="nothere"):
        at("table=plant.nothere&time=ts").read(START, START + 9)


def test_a_database_that_falls_silent_is_left_in_time(database: PostgresServer, at: At) -> None:
    """The server's own limit does not help where the server itself stands still."""
    source = at("table=plant.wide&time=ts&timeout=1")
    assert len(source.read(START, START + 9))
    process = int(database.ask("SELECT pid FROM pg_stat_activity WHERE application_name = 'readbench' LIMIT 1"))
    os.kill(process, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(UnreachableError, match="no whole answer within 1 s"):
            source.read(START, START + 9)
        assert time.monotonic() - began < 4.0
    finally:
        os.kill(process, signal.SIGCONT)
    assert len(source.read(START, START + 9))


def test_an_answer_that_is_too_long_is_not_held(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_postgres, "MOST_CELLS", 100)
    monkeypatch.setattr(_postgres, "ROWS_AT_ONCE", 10)
    source = at("table=plant.wide&time=ts")
    with pytest.raises(LongAnswerError, match="more than 100 values"):
        source.read(START, START + 99)
    assert len(source.read(START, START + 9))


def test_rows_that_cannot_be_read_are_one_sentence(database: PostgresServer, at: At) -> None:
    database.ask("CREATE TABLE plant.odd (ts text, flow text)")
    database.ask("INSERT INTO plant.odd VALUES ('x', 'y')")
    with pytest.raises(DataError):
        at("query=SELECT 1.5 AS ts, ARRAY[1,2] AS flow&time=ts").read(0.0, 9.0)
    with pytest.raises(DataError):
        at("table=plant.odd&time=ts").read(0.0, 9.0)
