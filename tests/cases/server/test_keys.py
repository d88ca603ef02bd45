"""Who may do what: keys, roles, the record of it, and where a service may listen."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from readbench.cases import Library
from readbench.cases.server import AuditLog, KeyFile, Place, Role, Settings, check_place, serve
from readbench.cli import app
from readbench.errors import DataError, UnknownNameError, UsageError
from tests.cases.server.test_api import csv, sent

Routes = list[tuple[str, str, dict[str, Any] | None]]
READS: Routes = [
    ("GET", "/api/v1/stats", None),
    ("GET", "/api/v1/cases", None),
    ("GET", "/api/v1/cases/w0", None),
    ("GET", "/api/v1/windows/w0", None),
    ("GET", "/api/v1/history", None),
    ("POST", "/api/v1/search", {"case": "w0"}),
    ("POST", "/api/v1/search-many", {"windows": [sent("leak")]}),
    ("POST", "/api/v1/explain", {"case": "w0", "like": "w3"}),
    ("GET", "/metrics", None),
]
WRITES: Routes = [
    ("POST", "/api/v1/cases", {"window": sent("leak")}),
    ("PATCH", "/api/v1/cases/w0", {"notes": "x"}),
    ("POST", "/api/v1/label", {"case": "w0", "label": "x"}),
    ("POST", "/api/v1/confirm", {"case": "w0", "like": "w1"}),
    ("POST", "/api/v1/reject", {"case": "w0", "like": "w1"}),
]
ADMINISTERS: Routes = [
    ("DELETE", "/api/v1/cases/w0", None),
    ("GET", "/api/v1/export", None),
    ("POST", "/api/v1/undo?change=1", None),
]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_each_role_may_do_its_part_and_no_more(guarded: TestClient, keys: dict[str, str]) -> None:
    levels = {"read": 1, "write": 2, "admin": 3}
    for needed, routes in enumerate((READS, WRITES, ADMINISTERS), start=1):
        for method, path, body in routes:
            for role, level in levels.items():
                headers = bearer(keys[role]) | {"If-Match": "*"}
                status = guarded.request(method, path, json=body, headers=headers).status_code
                assert (status < 300) == (level >= needed), (role, method, path, status)
                assert status < 300 or status == 403
            for headers in ({}, bearer("rb_guess"), bearer(""), {"Authorization": "Basic eDp5"}):
                assert guarded.request(method, path, json=body, headers=headers).status_code == 401, path


def test_every_route_of_the_api_needs_a_key(guarded: TestClient) -> None:
    routes = guarded.get("/openapi.json").json()["paths"]
    for path, methods in routes.items():
        for method in methods:
            status = guarded.request(method.upper(), path.replace("{case}", "w0"), json={}).status_code
            assert status == (200 if path in {"/healthz", "/readyz"} else 401), (method, path)


def test_refused_writes_leave_no_trace(guarded: TestClient, library: Library, keys: dict[str, str]) -> None:
    for method, path, body in WRITES:
        guarded.request(method, path, json=body)
        guarded.request(method, path, json=body, headers=bearer(keys["read"]))
    guarded.post("/api/v1/files", files={"file": ("a.csv", csv("leak"))}, headers=bearer(keys["read"]))
    guarded.post("/facts", data={"case": "w0", "label": "x"}, headers=bearer(keys["read"]))
    assert library.stats().change == 2


def test_a_key_is_kept_as_a_hash_in_a_file_of_its_owner(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    token = file.add("desk", Role.WRITE)
    assert token not in file.path.read_text()
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert KeyFile(file.path).caller(token) == ("desk", Role.WRITE)
    assert file.add("other", Role.READ) != token
    with pytest.raises(UsageError, match="already"):
        file.add("desk", Role.READ)
    with pytest.raises(UnknownNameError, match=r"key 'dask'.*'desk'"):
        file.revoke("dask")


def test_a_revoked_key_ends_at_once(guarded: TestClient, keys: dict[str, str], tmp_path: Path) -> None:
    assert guarded.get("/api/v1/stats", headers=bearer(keys["read"])).status_code == 200
    KeyFile(tmp_path / "keys.json").revoke("read")
    assert guarded.get("/api/v1/stats", headers=bearer(keys["read"])).status_code == 401


def test_a_damaged_file_of_keys_lets_nobody_in(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text('{"name": "x"}')
    with pytest.raises(DataError, match="not a key file"):
        KeyFile(tmp_path / "keys.json").caller("rb_x")


def test_the_record_names_the_key_and_holds_no_payload(
    guarded: TestClient, keys: dict[str, str], tmp_path: Path
) -> None:
    body = {"case": "w0", "notes": "secret words", "label": None}
    guarded.patch("/api/v1/cases/w0", json={"notes": "secret words"}, headers=bearer(keys["write"]))
    guarded.get("/api/v1/cases", params={"text": "secret words"}, headers=bearer(keys["read"]))
    guarded.post("/api/v1/label", json=body)
    guarded.get("/healthz")
    text = (tmp_path / "audit.jsonl").read_text()
    events = [json.loads(line) for line in text.splitlines()]
    assert [(e["key"], e["method"], e["path"], e["status"]) for e in events] == [
        ("write", "PATCH", "/api/v1/cases/w0", 200),
        ("read", "GET", "/api/v1/cases", 200),
        ("", "POST", "/api/v1/label", 401),
    ]
    assert "secret" not in text
    assert not any(token in text for token in keys.values())


def test_people_sign_in_with_a_key(guarded: TestClient, keys: dict[str, str]) -> None:
    page = guarded.get("/cases", headers={"Accept": "text/html"}, follow_redirects=False)
    assert (page.status_code, page.headers["location"]) == (303, "/login?next=%2Fcases")
    wrong = guarded.post("/login", data={"key": "rb_x"})
    assert (wrong.status_code, "not known here" in wrong.text) == (401, True)
    right = guarded.post("/login", data={"key": keys["read"], "next": "//evil.example"}, follow_redirects=False)
    assert right.headers["location"] == "/"
    cookie = right.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "secure"))
    assert "Sign out" in guarded.get("/cases").text
    assert "Same fault" not in guarded.get("/cases/w0").text
    guarded.post("/logout")
    assert guarded.get("/api/v1/stats").status_code == 401


def test_another_sites_page_cannot_write(guarded: TestClient, keys: dict[str, str]) -> None:
    guarded.post("/login", data={"key": keys["admin"]})
    body = {"case": "w0", "label": "x"}
    elsewhere = {"Origin": "https://evil.example"}
    assert guarded.post("/api/v1/label", json=body, headers=elsewhere).status_code == 403
    assert guarded.post("/api/v1/label", json=body, headers={"Origin": "null"}).status_code == 403
    here = {"Origin": "https://cases.example", "If-Match": "*"}
    assert guarded.post("/api/v1/label", json=body, headers=here).status_code == 200


def test_without_keys_only_this_machine_is_served(client: TestClient, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    keys.add("desk", Role.READ)
    assert client.get("/healthz", headers={"Host": "evil.example"}).status_code == 403
    assert client.get("/healthz", headers={"Host": "[::1]:8000"}).status_code == 200
    for host in ("0.0.0.0", "192.168.1.4", "::", "cases.example"):  # noqa: S104 - must be refused
        with pytest.raises(UsageError, match="Make a key first"):
            check_place(Place(host), None)
        check_place(Place(host), keys)
    check_place(Place("127.0.0.1"), None)
    with pytest.raises(UsageError, match="both the certificate"):
        check_place(Place(certificate=Path("a.pem")), keys)


@pytest.mark.parametrize("content", [None, "", "[]", "{}"])
def test_a_named_file_of_keys_without_a_key_refuses_to_serve(library: Library, tmp_path: Path, content: str) -> None:
    file = tmp_path / "typo.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises((UsageError, DataError), match=r"typo\.json"):
        serve(library, Place(), Settings(), KeyFile(file), AuditLog(None, None))
    for options in (["--keys", str(file)], ["--keys", str(file), "--demo"], []):
        where = [] if "--demo" in options else [str(tmp_path / "library")]
        result = CliRunner().invoke(app, ["cases", "serve", *where, *options])
        assert isinstance(result.exception, UsageError | DataError), options
        assert "\n" not in str(result.exception)


def test_keys_and_open_contradict_each_other(library: Library, keys: dict[str, str], tmp_path: Path) -> None:
    assert library
    assert keys
    (tmp_path / "library" / "keys.json").write_bytes((tmp_path / "keys.json").read_bytes())
    for options in ([], ["--keys", str(tmp_path / "keys.json")]):
        result = CliRunner().invoke(app, ["cases", "serve", str(tmp_path / "library"), "--open", *options])
        assert "leave --open out" in str(result.exception)


def test_a_file_of_keys_that_is_emptied_lets_nobody_in(guarded: TestClient, tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("[]")
    assert guarded.post("/api/v1/undo", headers={"Host": "localhost"}).status_code == 401
    (tmp_path / "keys.json").unlink()
    assert guarded.post("/api/v1/undo", headers={"Host": "localhost"}).status_code == 401


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "X-Forwarded-Host"])
def test_without_keys_nothing_that_was_forwarded_is_answered(
    client: TestClient, guarded: TestClient, keys: dict[str, str], header: str
) -> None:
    refused = client.get("/api/v1/stats", headers={header: "127.0.0.1"})
    assert (refused.status_code, "was forwarded" in refused.json()["detail"]) == (403, True)
    allowed = guarded.get("/api/v1/stats", headers={header: "127.0.0.1"} | bearer(keys["read"]))
    assert allowed.status_code == 200


@pytest.mark.parametrize("headers", [{"Origin": "http://[bad"}, {"Host": "[::1"}, {"Host": "[::1", "Origin": "x"}])
def test_malformed_addresses_of_a_sender_are_refused(
    client: TestClient, guarded: TestClient, headers: dict[str, str]
) -> None:
    for own in (client, guarded):
        assert own.post("/api/v1/label", content=b"x", headers=headers).status_code == 400


def test_the_proxy_tells_the_service_its_own_name_alone() -> None:
    text = (Path(__file__).parents[3] / "deploy" / "nginx.conf").read_text()
    blocks = text.split("server {")[1:]
    for port in ("443 ssl", "80"):
        default = next(block for block in blocks if f"listen {port} default_server;" in block)
        assert "proxy_pass" not in default
        assert "ssl_reject_handshake on" in default or "return 444" in default
    passing = [block for block in blocks if "proxy_pass" in block]
    assert len(passing) == 1
    assert passing[0].count("proxy_set_header Host ") == passing[0].count("proxy_set_header Host $server_name;") == 1
    assert "$host != $server_name" in passing[0]
    assert "X-Forwarded-For" in passing[0]


@pytest.mark.parametrize(
    "wrong",
    [
        *("", "{", "null", "[1]", "[" * 100_000),
        *({"role": "owner"}, {"role": "none"}, {"digest": "\u00e9" * 64}, {"digest": ""}, {"made": 1e300}),
    ],
)
def test_a_file_of_keys_that_cannot_be_read_lets_nobody_in_and_says_so(
    guarded: TestClient, keys: dict[str, str], tmp_path: Path, wrong: str | dict[str, object]
) -> None:
    file = tmp_path / "keys.json"
    entries = json.loads(file.read_text())
    file.write_text(wrong if isinstance(wrong, str) else json.dumps([*entries, entries[0] | wrong]))
    for path in ("/api/v1/stats", "/cases", "/nowhere"):
        for kind in ("application/json", "text/html"):
            answer = guarded.get(path, headers={**bearer(keys["admin"]), "Accept": kind})
            assert answer.status_code in {400, 404}, (path, kind)
            assert path == "/nowhere" or "not a key file" in answer.text
    assert guarded.get("/healthz").status_code == 200
