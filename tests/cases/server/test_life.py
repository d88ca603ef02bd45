"""A real server: it answers many clients, ends in order, and stands up again after a kill."""

from __future__ import annotations

import json
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from readbench.cases import Library
from readbench.cases.server import AuditLog
from readbench.cases.server._audit import Event
from readbench.cases.server.load import Asker, measure
from readbench.cli import app
from readbench.errors import UsageError
from tests.cases.samples import CHANNELS, FAST, filled, window
from tests.cases.server.running import free_port, start


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("life") / "library"
    filled(folder)
    return folder


def whole_events(path: Path) -> list[dict[str, Any]]:
    """What the audit log tells: the kill may have cut a line, and the last may just be being written."""
    events = []
    for line in path.read_text().splitlines():
        with suppress(json.JSONDecodeError):
            events.append(json.loads(line))
    return events


def test_a_line_that_was_cut_by_a_kill_does_not_take_the_next_with_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text('{"time":1.0,"key":"lo')
    audit = AuditLog(path, None)
    for status in (200, 404):
        audit.record(Event(time=2.0, key="", method="GET", path="/", status=status, ms=1.0, received=0))
    assert [event["status"] for event in whole_events(path)] == [200, 404]
    assert path.read_text().count("\n") == 3


def test_killed_under_load_it_stands_up_again_with_every_answered_write(where: Path) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    process = start(where, port, "--method", FAST)
    acknowledged: list[str] = []

    def write() -> None:
        rng = np.random.default_rng(0)
        with Asker(address) as asker:
            while True:
                body = {"window": {"channels": CHANNELS, "values": window("leak", rng).tolist()}, "label": "leak"}
                status, content = asker.ask("POST", "/api/v1/cases", json.dumps(body).encode())
                if status != 201:
                    return
                acknowledged.append(json.loads(content)["id"])

    writer = threading.Thread(target=write)
    writer.start()
    load = measure(address, 4, 2.0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    writer.join(60)
    assert load.failures == 0
    assert load.answers > 4
    assert acknowledged
    process = start(where, port, "--method", FAST)
    try:
        known = {case.id for case in Library.open(where).cases()}
        assert known >= set(acknowledged)
        with Asker(address) as asker:
            status, content = asker.ask("POST", "/api/v1/search", json.dumps({"case": "w0"}).encode())
        assert (status, json.loads(content)["hits"][0]["case"]["label"]) == (200, "leak")
        events = whole_events(where / "audit.jsonl")
        writes = sum(event["path"] == "/api/v1/cases" and event["method"] == "POST" for event in events)
        assert writes >= len(acknowledged)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in {0, -signal.SIGTERM}


def test_the_command_line_makes_lists_and_ends_keys_and_refuses_to_bind_wider_without(where: Path) -> None:
    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["cases", *arguments])

    refused = run("serve", str(where), "--host", "0.0.0.0")  # noqa: S104 - must be refused
    assert isinstance(refused.exception, UsageError)
    assert "Make a key first" in str(refused.exception)
    assert run("key", str(where), "desk", "--role", "write").stdout.startswith("rb_")
    assert "desk" in run("key", str(where)).stdout
    assert run("key", str(where), "desk", "--remove").exit_code == 0
    assert "desk" not in run("key", str(where)).stdout
    assert isinstance(run("serve").exception, UsageError)
