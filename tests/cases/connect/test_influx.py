"""InfluxDB 1.x on a real server; 2.x by the recorded format of its answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
import requests

from readbench.cases.connect import SourceReadings, open_source
from readbench.cases.connect._influx import InfluxSource
from readbench.errors import DataError, UnreachableError, UsageError
from tests.cases.connect import servers
from tests.cases.connect.conftest import START, STEPS, readings

USER = ("reader", "s3cret-door")


@pytest.fixture(scope="module")
def influx() -> Iterator[str]:
    """A server with a database of two pumps; who comes in needs a password."""
    with servers.influxdb(USER) as address:
        if address is None:
            pytest.skip("no InfluxDB server: install it (Debian: apt install influxdb)")

        def send(path: str, **how: object) -> None:
            assert requests.post(f"http://{address}{path}", auth=USER, timeout=10, **how).ok  # type: ignore[arg-type]

        send("/query", data={"q": "CREATE DATABASE plant"})
        rows = [
            f'water,pump={pump},unit={"bar" if i < STEPS // 2 else "kPa"} p={value},state="on" {round(1e9 * when)}'
            for seed, pump in enumerate(("a\\ 1", "b"))
            for i, (when, value) in enumerate(readings(seed, gap=(50, 90) if pump == "b" else (0, 0)))
        ]
        send("/write?db=plant", data="\n".join(rows).encode())
        yield address


@pytest.fixture
def source(influx: str, monkeypatch: pytest.MonkeyPatch) -> InfluxSource:
    monkeypatch.setenv("PLANT_WORD", USER[1])
    own = open_source(f"influxdb://{USER[0]}@{influx}/plant?asset=pump&unit=unit", "env:PLANT_WORD")
    assert isinstance(own, InfluxSource)
    return own


def test_measurements_fields_and_tags_become_channels(source: InfluxSource) -> None:
    assert {(own.asset, own.name) for own in source.channels()} == {("a 1", "water.p"), ("b", "water.p")}
    only = open_source(f"{source.shown}&measurement=water", "env:PLANT_WORD")
    assert {own.name for own in only.channels()} == {"p"}


def test_a_range_its_gap_and_its_changed_unit(source: InfluxSource) -> None:
    own = source.read(START + 10, START + 19, asset="a 1").of_asset("a 1")["water.p"]
    np.testing.assert_allclose(own.values, [value for _, value in readings(0)[10:20]])
    np.testing.assert_allclose(own.times, START + np.arange(10, 20))
    found = source.read(START, START + STEPS, asset="b")
    assert np.diff(found.of_asset("b")["water.p"].times).max() == 41.0
    assert "changed from bar to kPa" in found.remarks[0]
    means = source.read(START, START + 99, asset="a 1", step=10.0).of_asset("a 1")["water.p"]
    assert 10 <= len(means.times) <= 11


def test_what_comes_is_followed(source: InfluxSource, influx: str) -> None:
    follower = source.follow(START + STEPS)
    follower.poll(START + STEPS)
    row = f"water,pump=b,unit=kPa p=7 {round(1e9 * (START + STEPS + 3))}"
    assert requests.post(f"http://{influx}/write?db=plant", data=row, auth=USER, timeout=5).ok
    assert follower.poll(START + STEPS + 4).series["b", "water.p"].values.tolist() == [7.0]


def test_what_is_wrong_is_named_without_the_secret(influx: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANT_WORD", "s3cret-wrong")
    with pytest.raises(UsageError, match="refuses us") as caught:
        open_source(f"influxdb://reader@{influx}/plant", "env:PLANT_WORD").channels()
    assert "s3cret" not in str(caught.value)
    monkeypatch.setenv("PLANT_WORD", USER[1])
    with pytest.raises(DataError, match="not found"):
        open_source(f"influxdb://reader@{influx}/nothere", "env:PLANT_WORD").channels()
    with pytest.raises(UsageError, match="database"):
        open_source(f"influxdb://{influx}")
    with servers.SlowServer() as slow, pytest.raises(UnreachableError):
        open_source(f"influxdb://{slow}/plant?timeout=0.2").channels()


def test_a_page_of_a_proxy_is_no_answer() -> None:
    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(UnreachableError, match="302, and no JSON"):
            open_source(f"influxdb://127.0.0.1:{server.server_port}/plant").channels()


RECORDED = (
    "#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string\r\n"
    "#group,false,false,true,true,false,false,true,true,true\r\n"
    "#default,_result,,,,,,,,\r\n"
    ",result,table,_start,_stop,_time,_value,_field,_measurement,pump\r\n"
    ",,0,2023-11-14T22:00:00Z,2023-11-14T23:00:00Z,2023-11-14T22:13:20Z,1.5,p,water,b\r\n"
    ",,0,2023-11-14T22:00:00Z,2023-11-14T23:00:00Z,2023-11-14T22:13:21.25Z,2.5,p,water,b\r\n"
    "\r\n"
    "#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,string,string,string,string\r\n"
    "#group,false,false,true,true,false,false,true,true,true\r\n"
    "#default,_result,,,,,,,,\r\n"
    ",result,table,_start,_stop,_time,_value,_field,_measurement,pump\r\n"
    ",,1,2023-11-14T22:00:00Z,2023-11-14T23:00:00Z,2023-11-14T22:13:20Z,on,state,water,b\r\n"
)


def test_the_recorded_answer_of_a_second_version_is_read() -> None:
    own = open_source("influxdb2://plant/bucket?org=site&asset=pump")
    assert isinstance(own, InfluxSource)
    found = SourceReadings.join(own.parse_flux(RECORDED)).series
    assert set(found) == {("b", "water.p")}
    assert found["b", "water.p"].times.tolist() == [1.7e9, 1.7e9 + 1.25]
    assert found["b", "water.p"].values.tolist() == [1.5, 2.5]
    error = "#datatype,string,string\r\n#group,true,true\r\n#default,,\r\n,error,reference\r\n,no bucket,897\r\n"
    with pytest.raises(DataError, match="no bucket"):
        list(own.parse_flux(error))
