"""No update is lost: who writes says what was seen, and what others wrote since is not replaced unseen."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from readbench.cases import UNSEEN, Library, sign_changes
from readbench.cases.server import AuditLog
from readbench.cases.server._app import create_app
from readbench.errors import ConflictError
from tests.cases.server.test_api import csv, sent
from tests.cases.server.test_keys import bearer


def test_a_library_refuses_what_was_not_seen(library: Library) -> None:
    seen = library.case("w0").changed
    assert library.label("w0", "noise", seen=seen).label == "noise"
    with pytest.raises(ConflictError, match="label is 'noise', and would become empty") as told:
        library.edit("w0", label=None, seen=seen)
    assert (told.value.name, told.value.seen) == ("w0", True)
    with pytest.raises(ConflictError, match="says something already"):
        library.label("w0", "leak", seen=UNSEEN)
    with pytest.raises(ConflictError, match="would be taken out"):
        library.delete(["w0"], seen=seen)
    assert library.edit("w0", tags=("a",), notes="first", seen=UNSEEN).label == "noise"
    assert library.edit("w0", tags=("a", "b"), seen=UNSEEN).tags == ("a", "b")
    with pytest.raises(ConflictError, match="notes is 'first'"):
        library.edit("w0", notes="", seen=UNSEEN)
    assert library.label("w0", "noise", seen=seen).notes == "first", "what changes nothing is no conflict"
    assert library.label("w0", "leak").label == "leak", "who says nothing of versions replaces what is there"


def test_of_two_writers_that_saw_the_same_one_is_told(library: Library) -> None:
    seen, refused = library.case("w0").changed, list[str]()

    def write(label: str) -> None:
        try:
            library.label("w0", label, seen=seen)
        except ConflictError:
            refused.append(label)

    writers = [threading.Thread(target=write, args=(f"fault {i}",)) for i in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(refused) == 5
    assert library.case("w0").label not in refused


def test_programs_send_the_version_that_they_saw(guarded: TestClient, keys: dict[str, str]) -> None:
    write, admin = bearer(keys["write"]), bearer(keys["admin"])
    seen = guarded.get("/api/v1/cases/w0", headers=write)
    version = seen.headers["etag"]
    assert version == f'"{seen.json()["changed"]!r}"'
    first = guarded.patch("/api/v1/cases/w0", json={"label": "noise"}, headers=admin | {"If-Match": version})
    assert (first.status_code, first.headers["etag"] != version) == (200, True)
    stale = guarded.patch("/api/v1/cases/w0", json={"label": None}, headers=write | {"If-Match": version})
    assert stale.status_code == 412
    assert "'noise'" in stale.json()["detail"]
    assert "Last changed by admin." in stale.json()["detail"]
    body = {"case": "w0", "label": "leak"}
    told = guarded.post("/api/v1/label", json=body | {"seen": seen.json()["changed"]}, headers=write)
    assert told.status_code == 409
    assert guarded.post("/api/v1/label", json=body, headers=write).status_code == 428
    assert guarded.post("/api/v1/label", json=body, headers=write | {"If-Match": '"x"'}).status_code == 412
    assert guarded.delete("/api/v1/cases/w0", headers=admin).status_code == 428
    current = {"seen": first.json()["changed"]}
    assert guarded.post("/api/v1/label", json=body | current, headers=write).json()["label"] == "leak"
    pair = {"case": "w0", "like": "w1"}
    for route in ("confirm", "reject"):
        assert guarded.post(f"/api/v1/{route}", json=pair | current, headers=write).status_code == 409, route


def hidden(page: str, action: str) -> dict[str, str]:
    """Fields of the form of a page."""
    form = page.split(f'action="{action}"', 1)[1].split("</form>", 1)[0]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


def test_a_stale_form_erases_nothing_and_its_sender_chooses(guarded: TestClient, keys: dict[str, str]) -> None:
    library: Library = guarded.app.state.service.library  # type: ignore[attr-defined]
    library.label("w0", None)
    guarded.post("/login", data={"key": keys["write"]})
    old = hidden(guarded.get("/cases/w0").text, "/facts")
    with sign_changes("anna"):
        library.edit("w0", label="noise", notes="bearing exchanged")
    page = guarded.post("/facts", data=old | {"label": "", "notes": "", "asset": "pump 0"})
    assert page.status_code == 409
    assert library.case("w0").label == "noise"
    assert "by anna" in page.text
    rows = re.findall(r'<th scope="row">(\w+)</th><td>([^<]*)</td><td>([^<]*)</td>', page.text)
    assert rows == [("label", "noise", "empty"), ("notes", "bearing exchanged", "empty")]
    assert 'href="/cases/w0"' in page.text
    guarded.post("/facts", data=hidden(page.text, "/facts"))
    assert (library.case("w0").label, library.case("w0").notes) == (None, "")


def test_every_form_that_changes_a_case_says_what_was_seen(client: TestClient, library: Library) -> None:
    library.label("w0", None)
    case, overview = client.get("/cases/w0").text, client.get("/overview").text
    for page, action in ((case, "/facts"), (case, "/feedback"), (case, "/delete"), (overview, "/label")):
        assert float(hidden(page, action)["seen"]) == library.case("w0").changed
    fields = {"feedback": {"like": "w1", "same": "true"}, "label": {"label": "leak"}, "delete": {}, "facts": {}}
    library.label("w0", "noise")
    for route, given in fields.items():
        for seen in ({}, {"seen": "1.0"}, {"seen": "x"}):
            answer = client.post(f"/{route}", data={"case": "w0", **given, **seen}, follow_redirects=False)
            stays = route == "feedback" and library.case("w1").label == "noise"
            assert answer.status_code == (303 if stays else 409), (route, seen)
    assert library.case("w0").label == "noise"


def test_the_same_file_is_the_same_case(client: TestClient, library: Library) -> None:
    files = {"file": ("a.csv", csv("leak"))}
    first = client.post("/api/v1/files", files=files, data={"asset": "pump 7"}).json()
    change = library.stats().change
    second = client.post("/api/v1/files", files=files, data={"asset": "pump 7"})
    assert (second.status_code, second.json()["id"]) == (201, first["id"])
    assert second.json()["remarks"][-1].startswith(f"The library already has this window as case '{first['id']}'")
    page = client.post("/look", files=files, data={"asset": "pump 7", "keep": "1"}, follow_redirects=False)
    assert first["id"] in page.headers["location"]
    assert library.stats().change == change
    other = client.post("/api/v1/files", files=files, data={"asset": "pump 8"}).json()
    assert other["id"] != first["id"], "another machine may show the same"
    body: dict[str, Any] = {"window": sent("leak"), "id": "named"}
    assert client.post("/api/v1/cases", json=body).json()["remarks"] == []
    assert client.post("/api/v1/cases", json=body).json()["id"] == "named"
    assert client.post("/api/v1/cases", json=body | {"window": sent("noise")}).status_code == 409
    assert client.post("/api/v1/cases", json=body | {"id": "another"}).json()["id"] == "another"


def test_nothing_is_done_that_cannot_be_recorded(library: Library, tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").mkdir()
    app = create_app(library, audit=AuditLog(tmp_path / "audit.jsonl", None))
    with TestClient(app, base_url="http://localhost") as client:
        refused = client.patch("/api/v1/cases/w0", json={"tags": ["a"]})
        assert (refused.status_code, "audit log cannot be written" in refused.json()["detail"]) == (503, True)
        assert client.get("/healthz").status_code == 200
    assert library.case("w0").tags == ()


def test_the_record_says_what_was_changed(guarded: TestClient, keys: dict[str, str], tmp_path: Path) -> None:
    write, admin = bearer(keys["write"]), bearer(keys["admin"])
    seen = guarded.get("/api/v1/cases/w0", headers=write).json()["changed"]
    guarded.post("/facts", data={"case": "w0", "notes": "secret", "seen": str(seen)}, headers=write)
    guarded.post("/facts", data={"case": "w0", "notes": "", "seen": str(seen)}, headers=write)
    guarded.post("/api/v1/undo", headers=admin)
    events = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    told = [(event["key"], event["status"], event["changes"]) for event in events if event["path"] == "/facts"]
    assert told == [("write", 303, ["3: edit of w0"]), ("write", 409, [])]
    assert [event["changes"] for event in events if event["path"] == "/api/v1/undo"] == [["4: undo"]]
    library: Library = guarded.app.state.service.library  # type: ignore[attr-defined]
    assert [change.author for change in library.history()[-2:]] == ["write", "admin"]
