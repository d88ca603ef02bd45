"""What sources answer is parsed at the door and bounded: bytes, seconds, readings; each fault is one sentence."""

from __future__ import annotations

import ast
import json
import socket
import socketserver
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import pytest

import readbench
from readbench.cases.connect import SampledChannel, SourceReadings, _answers, _protocol, open_source
from readbench.cases.connect._protocol import QueueFollower
from readbench.common.deadlines import within_seconds
from readbench.errors import AnswerError, LongAnswerError, OverdueError, ReadbenchError, UnreachableError, UsageError
from tests.serving import answering

LABELS = {"__name__": "level", "instance": "rig"}
NOW = 1_700_000_000.0
Body = Callable[[str], bytes]


class Liar(ThreadingHTTPServer):
    """Answers with whatever it is told to, on every path; or drop by drop."""

    def __init__(self, body: Body, drops: bytes = b"", pause_s: float = 0.2) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if drops:
                    self.drip()
                    return
                sent = body(self.path)
                self.send_response(200)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def do_POST(self) -> None:
                self.do_GET()

            def drip(self) -> None:
                try:
                    self.wfile.write(drops)
                    for _ in range(100):
                        self.wfile.write(b" ")
                        time.sleep(pause_s)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None: ...

        super().__init__(("127.0.0.1", 0), Handler)
        self._answering = answering(self)

    def __enter__(self) -> Self:
        self._answering.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._answering.__exit__(None, None, None)


def prometheus_says(query: object, series: object = None, metadata: object = None) -> Body:
    def body(path: str) -> bytes:
        said = series if "/series" in path else metadata if "/metadata" in path else query
        default: object = [LABELS] if "/series" in path else {} if "/metadata" in path else {"result": []}
        return json.dumps(said if said is not None else {"status": "success", "data": default}).encode()

    return body


def row(**more: object) -> dict[str, object]:
    return {"status": "success", "data": {"result": [{"metric": LABELS, "values": [[NOW, "1"]]} | more]}}


ODD: dict[str, Body] = {
    "a list": prometheus_says([1, 2]),
    "no data": prometheus_says({"status": "success", "data": None}),
    "a text for a number": prometheus_says(row(values=[[NOW, "NaN?"]])),
    "a pair of one": prometheus_says(row(values=[[NOW]])),
    "no metric": prometheus_says({"status": "success", "data": {"result": [{"values": [[NOW, "1"]]}]}}),
    "a text for a time": prometheus_says(row(values=[["x", "1"]])),
    "times that cannot be": prometheus_says(row(values=[[1e308, "1"], [-1e308, "2"]])),
    "numbers for labels": prometheus_says(row(metric={"__name__": 5, "instance": None})),
    "no result": prometheus_says({"status": "success", "data": {"result": None}}),
    "deeper than anybody reads": lambda _: b'{"data":' + b"[" * 100_000,
    "half of it": lambda _: b'{"status": "success", "data": {"result": [',
    "no JSON": lambda _: b"<html>login</html>",
    "nothing": lambda _: b"",
    "no UTF-8": lambda _: b'{"status": "\xff\xfe"}',
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_answer_of_prometheus_is_one_sentence(what: str) -> None:
    with Liar(ODD[what]) as server:
        source = open_source(f"prometheus://127.0.0.1:{server.server_port}/")
        with pytest.raises(ReadbenchError) as caught:
            source.read(NOW - 60, NOW)
        assert len(str(caught.value)) < 600
        source.close()


@pytest.mark.parametrize(
    ("series", "metadata"),
    [
        (["x"], None),
        ([{"__name__": ["a"]}], None),
        ("x", None),
        (None, ["x"]),
        (None, {"level": [{"unit": 5}]}),
        (None, {"level": 5}),
    ],
)
def test_odd_series_and_metadata_are_one_sentence(series: object, metadata: object) -> None:
    body = prometheus_says(
        None,
        None if series is None else {"status": "success", "data": series},
        None if metadata is None else {"status": "success", "data": metadata},
    )
    with Liar(body) as server, pytest.raises(AnswerError):
        open_source(f"prometheus://127.0.0.1:{server.server_port}/").channels()


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'{"results": 5}',
        b'{"results": [{"series": [{"name": "m", "columns": []}]}]}',
        b'{"results": [{"series": [{"name": "m", "columns": ["time", "f"], "values": [[1]]}]}]}',
        b'{"results": [{"series": [{"name": "m", "columns": ["time", "f"], "values": [["x", 1]]}]}]}',
        b'{"results": [{"series": [{"name": "m", "columns": ["time", "f"], "values": [[1e300, 1]]}]}]}',
        b'{"results": [{"series": [{"name": 5, "columns": ["time"]}]}]}',
        b'{"results":' + b"[" * 100_000,
    ],
)
def test_an_odd_answer_of_influxdb_is_one_sentence(body: bytes) -> None:
    with Liar(lambda _: body) as server, pytest.raises(ReadbenchError):
        open_source(f"influxdb://127.0.0.1:{server.server_port}/plant").read(NOW - 60, NOW)


@pytest.mark.parametrize(
    "body", [b",result,table\n,a,0\n", b",_time,_value,_field,_measurement\n,2023,1\n", b'a\n"' + b"x" * 200_000]
)
def test_an_odd_answer_of_influxdb_2_is_one_sentence(body: bytes) -> None:
    with Liar(lambda _: body) as server, pytest.raises(ReadbenchError):
        open_source(f"influxdb2://127.0.0.1:{server.server_port}/plant").read(NOW - 60, NOW)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("drops", [HEAD + b"\r\n", HEAD + b"X-Slow: "], ids=["body", "header"])
@pytest.mark.parametrize("address", ["prometheus://127.0.0.1:{}/?timeout=1", "influxdb://127.0.0.1:{}/plant?timeout=1"])
def test_an_answer_that_comes_drop_by_drop_ends_in_time(address: str, drops: bytes) -> None:
    """A timeout between bytes would never come."""
    with Liar(lambda _: b"", drops=drops) as server:
        source, began = open_source(address.format(server.server_port)), time.monotonic()
        with pytest.raises(UnreachableError, match="no whole answer within 1 s"):
            source.read(NOW - 60, NOW)
        assert time.monotonic() - began < 3.0


def test_the_deadline_of_who_asks_ends_it_earlier() -> None:
    with Liar(lambda _: b"", drops=HEAD + b"\r\n") as server:
        source, began = open_source(f"prometheus://127.0.0.1:{server.server_port}/?timeout=60"), time.monotonic()
        with within_seconds(0.5), pytest.raises(OverdueError):
            source.read(NOW - 60, NOW)
        assert time.monotonic() - began < 2.0


BOMB = """
import resource, sys, time
from readbench.cases.connect import open_source
from readbench.errors import LongAnswerError
source = open_source(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    source.read(1.7e9, 1.7e9 + 1)
except LongAnswerError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_an_answer_without_end_takes_no_memory_without_end() -> None:
    """300 MB of readings took 4.7 GB."""
    part = b'[1,"1"],' * 2**17
    whole = b'{"status":"success","data":{"result":[{"metric":{"__name__":"a"},"values":[' + part * 300
    with Liar(lambda _: whole) as server:
        command = [sys.executable, "-c", BOMB, f"prometheus://127.0.0.1:{server.server_port}/"]
        found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    sentence, more = found.stdout.splitlines()
    assert "answers with more than 32 MiB" in sentence
    assert int(more) < 200


def test_a_long_range_is_read_in_halves_where_its_answer_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_answers, "MOST_BYTES", 2000)

    def body(query: str) -> bytes:
        width = int(query.split("[")[1].split("ms", maxsplit=1)[0]) // 1000
        end = float(query.split("time=")[1].split("&", maxsplit=1)[0])
        values = [[end - i, str(i)] for i in range(width)]
        return json.dumps({"status": "success", "data": {"result": [{"metric": LABELS, "values": values}]}}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            from urllib.parse import unquote_plus  # noqa: PLC0415 - of this server

            sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
            out = body(unquote_plus(sent)) if "/query" in self.path else b'{"status":"success","data":[]}'
            self.answer(out)

        def do_GET(self) -> None:
            self.answer(b'{"status":"success","data":{}}')

        def answer(self, out: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

        def log_message(self, *_: object) -> None: ...

    with answering(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as address:
        found = open_source(f"prometheus://{address.removeprefix('http://')}/").read(NOW - 600, NOW)
    assert len(found.series["rig", "level"].times) >= 600


def test_readings_channels_and_names_of_a_range_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_protocol, "MOST_READINGS", 10)
    own = SampledChannel.of([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(LongAnswerError, match="shorter"):
        SourceReadings.join((("a", f"c{i}"), own) for i in range(4))
    found = SourceReadings.join([(("a" * 501, "c"), own), (("a", "c"), own)])
    assert list(found.series) == [("a", "c")]
    assert "longer than 500 letters" in found.remarks[0]
    monkeypatch.setattr(_protocol, "MOST_CHANNELS", 10)
    follower = QueueFollower()
    for i in range(40):
        follower.take((f"asset {i}", "c"), NOW + i, 1.0)
    with pytest.raises(LongAnswerError):
        follower.poll(NOW + 60)


@contextmanager
def broker() -> Iterator[int]:
    """Lets everybody in, and sends nothing."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            own: socket.socket = self.request
            while got := own.recv(4096):
                kind = got[0] >> 4
                answers = {1: b"\x20\x02\x00\x00", 8: b"\x90\x03" + got[2:4] + b"\x00", 12: b"\xd0\x00"}
                own.sendall(answers.get(kind, b""))

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with answering(server):
        yield int(server.server_address[1])


def test_a_broker_holds_no_worker_until_a_far_end() -> None:
    pytest.importorskip("paho.mqtt.client", reason="needs paho-mqtt: pip install 'readbench[mqtt]'")
    with broker() as port:
        source, began = open_source(f"mqtt://127.0.0.1:{port}/plant/#"), time.monotonic()
        year = time.time() + 300 * 86400
        with within_seconds(60.0), pytest.raises(UsageError, match="listened to for 3 s at most"):
            source.read(time.time(), year)
        with pytest.raises(UsageError, match="listened to for 86400 s at most"):
            source.read(time.time(), year)
        with within_seconds(0.5), pytest.raises(OverdueError):
            source.read(time.time(), time.time() + 2.5)
        assert time.monotonic() - began < 3.0


def test_nothing_waits_or_asks_past_the_deadline() -> None:
    """In what talks to the outside, waits go through `pause`, and HTTP through `BoundedSession`."""
    package, wrong = Path(readbench.__file__).parent / "cases", []
    for path in sorted((*(package / "connect").glob("*.py"), *(package / "watch").glob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "sleep":
                wrong.append(f"{path.name}:{node.lineno}: sleep; use readbench.common.deadlines.pause")
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "requests":
                allowed = path.name == "_answers.py" or node.attr == "auth"
                wrong += [] if allowed else [f"{path.name}:{node.lineno}: requests.{node.attr}; use BoundedSession"]
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [own.name for own in node.names] + [getattr(node, "module", "") or ""]
                if {"subprocess", "urllib.request", "http.client"} & set(names) and path.name != "_answers.py":
                    wrong.append(f"{path.name}:{node.lineno}: imports {names}")
    assert not wrong, "\n".join(wrong)
