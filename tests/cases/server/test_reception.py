"""Limits come before work: nothing is read for a stranger, nobody is waited for long, and the end comes in time."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI, Response
from fastapi.testclient import TestClient

from readbench.cases import Library
from readbench.cases.server import KeyFile, Role, Settings, _reception
from readbench.cases.server._app import create_app
from readbench.common.deadlines import Deadline, set_deadline
from readbench.common.files import exclusive
from readbench.errors import OverdueError
from tests.cases.samples import CHANNELS, FAST, filled
from tests.cases.server.running import await_health, free_port, served
from tests.cases.server.test_api import csv, sent
from tests.cases.server.test_keys import bearer

SHORT_S = 0.6
"""How long the server of these tests waits for heads and bodies."""
SCRIPT = f"""
import sys, time
from pathlib import Path
from readbench.cases import Library
from readbench.cases.server import AuditLog, KeyFile, Place, Settings, _app, _reception, serve
_reception.HEAD_TIMEOUT_S = _reception.PAUSE_TIMEOUT_S = {SHORT_S}
_app.GRACE_S, _app.CLOSE_S = 3, 0.5
where, port, slow = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if slow:
    Library.search = lambda *given, **more: time.sleep(300)
settings = Settings(methods=({FAST!r},), max_connections=20)
place = Place("127.0.0.1", port, proxies="10.0.0.1")
serve(Library.open(where), place, settings, KeyFile(where / "keys.json"), AuditLog(None, None))
"""


class Running(NamedTuple):
    """A service of its own process, and a key that may read."""

    process: subprocess.Popen[bytes]
    port: int
    key: str


def begin(where: Path, slow: str = "") -> Running:
    port, keys = free_port(), KeyFile(where / "keys.json")
    key = keys.add(f"reader {port}", Role.READ)
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(where), str(port), slow], env=os.environ.copy())
    await_health(f"http://127.0.0.1:{port}", process)
    return Running(process, port, key)


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reception") / "library"
    filled(folder)
    return folder


@pytest.fixture(scope="module")
def running(where: Path) -> Iterator[Running]:
    own = begin(where)
    yield own
    own.process.kill()
    own.process.wait()


def post(port: int, path: str, content: bytes, **headers: str) -> tuple[int, bytes]:
    return ask(port, "POST", path, content, **headers)


def ask(port: int, method: str, path: str, content: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, content, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (BrokenPipeError, ConnectionResetError):
        return 0, b""  # closed while we still sent
    finally:
        connection.close()


def resident(running: Running) -> int:
    """Bytes of memory that a service has."""
    path = Path(f"/proc/{running.process.pid}/status")
    if not path.exists():
        pytest.skip("memory is read from /proc, which is not here")
    return 1024 * int(path.read_text().partition("VmRSS:")[2].split()[0])


def ask_health(port: int) -> float:
    """Seconds until `healthz` answers."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    connection.close()
    return time.monotonic() - began


def test_eight_large_posts_without_a_key_cost_nothing(running: Running) -> None:
    large = b'{"window": {"channels": ["a"], "values": [[' + b"1," * (31 * 2**19) + b"1]]}}"
    before, answers, slowest, most = resident(running), list[tuple[int, bytes]](), 0.0, 0
    senders = [
        threading.Thread(target=lambda: answers.append(post(running.port, "/api/v1/search", large))) for _ in range(8)
    ]
    for sender in senders:
        sender.start()
    while any(sender.is_alive() for sender in senders):
        slowest = max(slowest, ask_health(running.port))
        most = max(most, resident(running))
        time.sleep(0.02)
    assert len(answers) == 8
    assert {status for status, _ in answers} <= {401, 0}
    assert most - before < 100e6
    assert slowest < 0.5


def test_a_large_post_with_a_key_does_not_stop_the_others(running: Running) -> None:
    large = b'{"window": {"channels": ["flow"], "values": [[' + b"1.25," * 400_000 + b"1]]}}"
    answers: list[tuple[int, bytes]] = []
    key = {"Authorization": f"Bearer {running.key}"}
    senders = [
        threading.Thread(target=lambda: answers.append(post(running.port, "/api/v1/search", large, **key)))
        for _ in range(2)
    ]
    for sender in senders:
        sender.start()
    slowest = 0.0
    while any(sender.is_alive() for sender in senders):
        slowest = max(slowest, ask_health(running.port))
        time.sleep(0.02)
    assert [status for status, _ in answers] == [200, 200], answers[0][1][:300]
    assert slowest < 3.0  # of processors that others use as well; the parser holds the interpreter some 40 ms


def test_half_a_head_and_a_dripping_body_end_after_a_stated_time(running: Running) -> None:
    def last_words(first: bytes, drip: bytes) -> tuple[float, bytes]:
        with socket.create_connection(("127.0.0.1", running.port), timeout=30) as own:
            own.sendall(first)
            own.settimeout(0.2)
            began, said = time.monotonic(), b""
            while time.monotonic() - began < 30:
                try:
                    part = own.recv(4096)
                except TimeoutError:
                    part = None
                if part == b"" or b"}" in (said := said + (part or b"")):
                    break
                try:
                    own.sendall(drip)
                except OSError:
                    break
            return time.monotonic() - began, said

    head = b"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    key = f"Authorization: Bearer {running.key}\r\n".encode()
    whole = head + key + b"Content-Length: 5000\r\n\r\n"
    for first, drip, status in (
        (b"GET /healthz HTTP/1.1\r\nHo", b"", b"408"),
        (b"GET /healthz HTTP/1.1\r\nX-Drip: ", b"x", b"408"),
        (whole, b" ", b"408"),
        (whole, b"", b"408"),
        (head + b"Content-Length: 5000\r\n\r\n", b" ", b"401"),
    ):
        seconds, said = last_words(first, drip)
        assert seconds < 4 * SHORT_S, (first, seconds)
        assert said.split(b" ")[1] == status, said


def test_one_address_has_so_many_connections(running: Running) -> None:
    opened = [socket.create_connection(("127.0.0.1", running.port), timeout=10) for _ in range(22)]
    try:
        said = opened[-1].recv(4096)
        assert b"503" in said
        assert b"Too many connections" in said
    finally:
        for own in opened:
            own.close()
    time.sleep(0.2)
    assert ask_health(running.port) < 5


LARGE = 32 * 2**20


@pytest.fixture
def large() -> Iterator[str]:
    """The address of a service whose answers are large."""
    app = FastAPI()

    app.add_api_route("/readyz", lambda: "ready")
    app.add_api_route("/large", lambda: Response(bytes(LARGE)))
    with served(app, http=_reception.limit_connections(64, "")) as address:
        yield address


def ask_slowly(address: str) -> socket.socket:
    """A connection that asked for a large answer, and has taken its first bytes."""
    own = socket.socket()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    own.settimeout(30)
    own.connect(("127.0.0.1", int(address.rpartition(":")[2])))
    own.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert own.recv(8) == b"HTTP/1.1"
    return own


def take(own: socket.socket) -> int:
    """How much of an answer comes until the connection ends or the answer does."""
    size = 0
    with own:
        while size < LARGE:
            try:
                part = own.recv(2**20)
            except ConnectionResetError:
                return size
            if not part:
                return size
            size += len(part)
    return size


def test_an_answer_that_nobody_takes_is_dropped_after_a_stated_time(
    large: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = ask_slowly(large)
    time.sleep(1.0)
    assert take(patient) >= LARGE
    monkeypatch.setattr(_reception, "PAUSE_TIMEOUT_S", 0.1)
    monkeypatch.setattr(_reception, "MIN_RATE", 2**28)
    slow = ask_slowly(large)
    time.sleep(1.0)
    assert take(slow) < LARGE


def test_answers_that_nobody_takes_have_a_limit_together(large: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reception, "MAX_UNSENT_BYTES", 3 * LARGE)
    opened = [ask_slowly(large) for _ in range(5)]
    time.sleep(1.0)
    assert [take(own) >= LARGE for own in opened] == [False, False, True, True, True]


def test_changes_that_wait_for_another_writer_leave_room_for_readers(tmp_path: Path) -> None:
    library = filled(tmp_path / "library")
    held = Settings(methods=(FAST,), workers=2, timeout_s=20)
    statuses: list[int] = []

    def label(address: str) -> None:
        content = json.dumps({"case": "w0", "label": "noise"}).encode()
        statuses.append(post(int(address.rpartition(":")[2]), "/api/v1/label", content, **{"If-Match": "*"})[0])

    with served(create_app(library, held)) as address:
        writers = [threading.Thread(target=label, args=(address,)) for _ in range(6)]
        with exclusive(tmp_path / "library" / "writer.lock"):
            for own in writers:
                own.start()
            time.sleep(1.0)
            began = time.monotonic()
            for path in ("/api/v1/cases/w1", "/api/v1/find?text=seal"):
                assert ask(int(address.rpartition(":")[2]), "GET", path)[0] == 200
            assert time.monotonic() - began < 10
        for own in writers:
            own.join(60)
    assert statuses == [200] * 6


def test_the_end_comes_in_the_time_of_grace_whatever_runs(where: Path) -> None:
    own = begin(where, slow="slow")
    body, key = json.dumps({"case": "w0"}).encode(), {"Authorization": f"Bearer {own.key}"}
    asking = threading.Thread(target=lambda: post(own.port, "/api/v1/search", body, **key))
    asking.start()
    time.sleep(0.5)
    began = time.monotonic()
    own.process.send_signal(signal.SIGTERM)
    own.process.wait(30)
    assert time.monotonic() - began < 7
    asking.join(10)


def test_the_key_is_looked_at_before_the_body_is_received(guarded: TestClient, keys: dict[str, str]) -> None:
    received, said = list[str](), list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        received.append("a part")
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    for path, token, status in (
        ("/api/v1/search", "", 401),
        ("/api/v1/search", "rb_guess", 401),
        ("/api/v1/label", keys["read"], 403),
        ("/api/v1/files", keys["read"], 403),
        ("/facts", "", 401),
        ("/look", "", 401),
        ("/nowhere", "", 404),
    ):
        kind = "application/json" if path.startswith("/api") else "application/x-www-form-urlencoded"
        headers = {"Host": "cases.example", "Content-Type": kind} | (bearer(token) if token else {})
        scope = {
            "type": "http",
            "method": "POST",
            "scheme": "https",
            "path": path,
            "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
        asyncio.run(guarded.app(scope, receive, send))
        assert said.pop(0)["status"] == status, path
        said.clear()
    assert received == []
    assert guarded.post("/login", data={"key": "x" * 100_000}).status_code == 413


def test_all_bodies_together_have_a_limit(library: Library) -> None:
    app = create_app(library, Settings(methods=(FAST,), max_total_bytes=5000))
    with TestClient(app, base_url="http://localhost") as client:
        held = app.state.service.inflow
        held.held = 4000
        refused = client.post("/api/v1/search", json={"window": sent("leak")})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        held.held = 0
        assert client.post("/api/v1/search", json={"window": sent("leak")}).status_code == 200
        assert held.held == 0


def test_a_tiny_file_of_very_many_steps_is_no_legal_search(client: TestClient, library: Library) -> None:
    content = io.BytesIO()
    pq.write_table(pa.table({name: np.zeros(6_000) for name in CHANNELS}), content)
    tight = Settings(methods=(FAST,), max_comparisons=1e6)
    with TestClient(create_app(library, tight), base_url="http://localhost") as careful:
        for path in ("/api/v1/search-file", "/api/v1/files", "/look"):
            answer = careful.post(path, files={"file": ("a.parquet", content.getvalue())})
            assert (answer.status_code, "around the incident" in answer.text) == (400, True), path
        assert careful.post("/api/v1/search-file", files={"file": ("a.csv", csv("leak"))}).status_code == 200
    assert client.post("/api/v1/search-file", files={"file": ("a.parquet", content.getvalue())}).status_code == 200


def test_a_search_whose_time_is_over_is_not_computed(library: Library) -> None:
    with set_deadline(Deadline(time.monotonic() - 1.0)), pytest.raises(OverdueError, match="Ask for less"):
        library.search("w0", method=FAST)
    app = create_app(library, Settings(methods=(FAST,), timeout_s=0.0))
    with TestClient(app, base_url="http://localhost") as client:
        answer = client.post("/api/v1/search", json={"case": "w0"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
