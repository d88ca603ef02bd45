"""What is recorded of requests is bounded, and changes are made only where they can be recorded."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from readbench.cases import Library
from readbench.cases.server import AuditLog, KeyFile, Place, Settings, _audit, serve
from readbench.cases.server._app import create_app
from readbench.cases.server._audit import Event, LimitedLog
from readbench.errors import UsageError
from tests.cases.server.conftest import SETTINGS
from tests.cases.server.test_api import csv
from tests.cases.server.test_keys import bearer


def request(key: str = "", path: str = "/x") -> Event:
    return Event(time=1.0, key=key, method="GET", path=path, status=401, ms=1.0, received=7)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_thousands_of_requests_without_a_key_are_one_line(guarded: TestClient, tmp_path: Path) -> None:
    for _ in range(500):
        guarded.get("/" + "x" * 30_000)
    app = guarded.app
    app.state.service.audit.close()  # type: ignore[attr-defined]
    found = lines(tmp_path / "audit.jsonl")
    assert len(found) == _audit.STRANGERS_LINES + 1
    assert found[-1] | {"time": 0, "received": 0} == {
        "time": 0,
        "key": "",
        "method": "*",
        "path": "*",
        "status": 0,
        "ms": 0.0,
        "received": 0,
        "changes": [],
        "count": 500 - _audit.STRANGERS_LINES,
    }
    assert (tmp_path / "audit.jsonl").stat().st_size < 20_000


def test_the_terminal_gets_so_many_lines_a_minute(tmp_path: Path) -> None:
    with (tmp_path / "terminal").open("w") as terminal:
        audit = AuditLog(None, terminal)
        for _ in range(_audit.ECHOED_LINES + 500):
            audit.record(request("reader"))
    assert len(lines(tmp_path / "terminal")) == _audit.ECHOED_LINES


def test_the_log_of_the_process_gets_so_many_messages_a_minute() -> None:
    limited = LimitedLog(2)
    records = [logging.makeLogRecord({"msg": "number %d", "args": (i,)}) for i in range(5)]
    assert [limited.filter(record) for record in records] == [True, True, False, False, False]


def test_the_record_rotates_within_a_bounded_size(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "audit.jsonl", None, largest=1000)
    for number in range(500):
        audit.record(request("reader", f"/{number}"))
    files = sorted(tmp_path.iterdir())
    assert len(files) == _audit.KEPT_FILES + 1
    assert max(file.stat().st_size for file in files) <= 1000
    assert [event["path"] for event in lines(tmp_path / "audit.jsonl")][-1] == "/499"
    newest = [event["path"] for event in (*lines(tmp_path / "audit.jsonl.1"), *lines(tmp_path / "audit.jsonl"))]
    assert newest == [f"/{number}" for number in range(500 - len(newest), 500)]


def test_a_new_record_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    AuditLog(tmp_path / "audit.jsonl", None).record(request())
    assert stat.S_IMODE((tmp_path / "audit.jsonl").stat().st_mode) == 0o600


def test_secret_names_of_files_are_in_no_record(guarded: TestClient, keys: dict[str, str], tmp_path: Path) -> None:
    reader = bearer(keys["read"])
    sent = guarded.post("/look", files={"file": ("a.csv", csv("leak"))}, headers=reader, follow_redirects=False)
    place = sent.headers["location"]
    assert guarded.get(place, headers=reader).status_code == 200
    assert guarded.get(f"{place}/more", headers=reader).status_code == 404
    token = place.rpartition("/")[2]
    assert token not in (tmp_path / "audit.jsonl").read_text()
    assert "/looked/..." in (tmp_path / "audit.jsonl").read_text()


def test_methods_are_counted_by_a_few_names(guarded: TestClient, keys: dict[str, str]) -> None:
    reader = bearer(keys["read"])
    guarded.get("/metrics", headers=reader)
    for number in range(50):
        guarded.request(f"M{number}" + "A" * 60, "/healthz")
    text = guarded.get("/metrics", headers=reader).text
    assert "AAAA" not in text
    assert 'method="other"' in text


@pytest.mark.parametrize("path", ["plain/x", "/dev/full", "missing/audit.jsonl"])
def test_a_record_that_cannot_be_kept_is_refused_at_the_start(library: Library, tmp_path: Path, path: str) -> None:
    (tmp_path / "plain").write_text("x")
    where = tmp_path / path
    with pytest.raises(UsageError, match=r"audit log .* cannot be written"):
        serve(library, Place(), Settings(), None, AuditLog(where, None))


def test_on_a_full_disk_reads_are_answered_and_changes_refused(
    guarded: TestClient, library: Library, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path) -> object:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(_audit, "_open", full)
    writer = bearer(keys["write"])
    for address in ("/api/v1/stats", "/api/v1/cases/w0", "/cases/w0", "/login", "/healthz", "/metrics"):
        assert guarded.get(address, headers=writer).status_code == 200, address
    assert guarded.post("/login", data={"key": keys["read"]}, follow_redirects=False).status_code == 303
    refused = guarded.patch("/api/v1/cases/w0", json={"notes": "x"}, headers=writer | {"If-Match": "*"})
    assert (refused.status_code, "nothing is changed" in refused.json()["detail"]) == (503, True)
    assert library.case("w0").notes == ""


def test_a_change_whose_line_is_lost_is_not_reported_as_done(
    library: Library, keys: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = AuditLog(tmp_path / "audit.jsonl", None)
    monkeypatch.setattr(audit, "_append", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    app = create_app(library, SETTINGS, KeyFile(tmp_path / "keys.json"), audit)
    with TestClient(app, base_url="https://cases.example") as client:
        headers = bearer(keys["write"]) | {"If-Match": "*"}
        answer = client.patch("/api/v1/cases/w0", json={"notes": "x"}, headers=headers)
    assert answer.status_code == 503
    assert "The change was made (3: edit of w0), but the audit log could not be written" in answer.json()["detail"]
