"""Programs get from the service what the library says."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from readbench.cases import Library
from readbench.cases.server._app import create_app
from readbench.engine.windows import WindowSet
from tests.cases.samples import CHANNELS, FAST, window
from tests.cases.server.conftest import SETTINGS


def sent(fault: str, seed: int = 5) -> dict[str, Any]:
    """A window as JSON."""
    return {"channels": CHANNELS, "values": window(fault, np.random.default_rng(seed)).tolist(), "asset": "pump 0"}


def csv(fault: str, seed: int = 5) -> bytes:
    values = window(fault, np.random.default_rng(seed))
    rows = [",".join([str(step), *map(str, row)]) for step, row in enumerate(values.T)]
    return "\n".join([",".join(("t", *CHANNELS)), *rows]).encode()


def test_a_search_is_that_of_the_library(client: TestClient, library: Library) -> None:
    body = sent("leak")
    answer = client.post("/api/v1/search", json={"window": body, "k": 5})
    assert answer.status_code == 200
    expected = library.search(WindowSet.from_arrays([body["values"]], channels=CHANNELS), k=5, method=FAST)
    assert answer.json() == expected.model_dump(mode="json")
    assert answer.json()["hits"][0]["case"]["label"] == "leak"


def test_a_file_is_searched_and_not_kept(client: TestClient, library: Library) -> None:
    answer = client.post("/api/v1/search-file", files={"file": ("a.csv", csv("noise"))}, data={"first": 4, "k": 2})
    assert [hit["case"]["label"] for hit in answer.json()["hits"]] == ["noise", "noise"]
    assert len(library) == 12
    kept = client.post("/api/v1/files", files={"file": ("a.csv", csv("noise"))}).json()
    assert kept["time"] is None, "seconds since the recording began are no date"


def test_dates_without_a_zone_are_by_the_clock_that_is_told(client: TestClient, library: Library) -> None:
    header, *rows = csv("leak").decode().split("\n")
    dated = [f"2025-06-01 12:{int(step):02}:00,{rest}" for step, rest in (row.split(",", 1) for row in rows)]
    files = {"file": ("a.csv", "\n".join([header, *dated]).encode())}
    told = {"zone": "Europe/Berlin", "first": "2025-06-01 12:05", "onset": "12:20"}
    case = client.post("/api/v1/files", files=files, data=told).json()
    noon = datetime(2025, 6, 1, 10, 20, tzinfo=UTC).timestamp()  # two hours ahead in summer
    assert (case["time"], case["zone"]) == (noon, "Europe/Berlin")
    before = library.window(case["id"])[0].before
    assert before is not None
    assert before.shape == (3, 15)
    looked = client.post("/look", files=files, data={"zone": "Europe/Berlin"})
    assert "12:00 to 12:39" in looked.text
    for path in ("api/v1/search-file", "look", "preview"):
        wrong = client.post(f"/{path}", files=files, data={"zone": "Atlantis"})
        assert "&#39;Atlantis&#39; is no time zone" in wrong.text or "'Atlantis' is no time zone" in wrong.text


def test_several_windows_at_once(client: TestClient) -> None:
    body = {"windows": [sent("leak"), sent("noise")], "k": 1}
    answers = client.post("/api/v1/search-many", json=body).json()
    assert [answer["hits"][0]["case"]["label"] for answer in answers] == ["leak", "noise"]


def test_a_filter_limits_what_is_listed(client: TestClient) -> None:
    body = {"case": "w0", "where": {"asset": "pump 1", "label": "leak"}}
    hits = client.post("/api/v1/search", json=body).json()["hits"]
    assert {hit["case"]["asset"] for hit in hits} == {"pump 1"}
    assert {hit["case"]["label"] for hit in hits} == {"leak"}


def test_the_evidence_of_a_match(client: TestClient) -> None:
    evidence = client.post("/api/v1/explain", json={"window": sent("leak"), "like": "w0"}).json()
    assert {channel["name"] for channel in evidence["channels"] if channel["same_way"]} == {"pressure", "flow"}
    assert evidence["case"]["id"] == "w0"


def test_a_case_is_added_labelled_confirmed_rejected_edited_deleted_and_brought_back(
    client: TestClient, library: Library
) -> None:
    added = client.post("/api/v1/cases", json={"window": sent("leak"), "id": "new/one", "notes": "wet floor"})
    assert added.status_code == 201
    assert library.case("new/one").asset == "pump 0"
    assert client.post("/api/v1/label", json={"case": "new/one", "label": "noise"}).json()["label"] == "noise"
    any_version = {"If-Match": "*"}
    sure = client.post("/api/v1/confirm", json={"case": "new/one", "like": "w0"}, headers=any_version)
    assert sure.json()["label"] == "leak"
    rejected = client.post("/api/v1/reject", json={"case": "new/one", "like": "w0"}, headers=any_version).json()
    assert (rejected["label"], rejected["rejected"]) == (None, ["leak"])
    assert client.patch("/api/v1/cases/new/one", json={"tags": ["a"]}).json()["notes"] == "wet floor"
    assert client.get("/api/v1/cases", params={"text": "floor"}).json()["total"] == 1
    assert client.get("/api/v1/windows/new/one").json()["channels"] == list(CHANNELS)
    assert client.delete("/api/v1/cases/new/one", headers=any_version).status_code == 204
    assert client.get("/api/v1/cases/new/one").status_code == 404
    assert client.post("/api/v1/undo").json()["what"] == "delete"
    assert client.get("/api/v1/cases/new/one").json()["tags"] == ["a"]
    assert client.get("/api/v1/history").json()[0]["what"] == "undo"


def test_a_file_becomes_a_case_with_its_time(client: TestClient, library: Library) -> None:
    content = csv("leak").replace(b"\n0,", b"\n2024-05-01T00:00:00,", 1)
    content = b"\n".join(
        line if not i or i == 1 else b"2024-05-01T00:00:%02d,%b" % (i - 1, line.split(b",", 1)[1])
        for i, line in enumerate(content.split(b"\n"))
    )
    case = client.post("/api/v1/files", files={"file": ("a.csv", content)}, data={"label": "leak"}).json()
    assert case["time"] == 1714521600.0
    assert library.window(case["id"]).values(0).shape == (3, 40)


def test_what_to_label_and_what_to_check_are_those_of_the_library(client: TestClient, library: Library) -> None:
    for case in ("w0", "w1", "w2"):
        library.label(case, None)
    library.label("w4", "noise")
    for route, expected in (("next", library.next_to_label(2, FAST)), ("doubtful", library.doubtful(2, FAST))):
        answer = client.get(f"/api/v1/{route}", params={"k": 2})
        assert answer.json() == [own.model_dump(mode="json") for own in expected]
        assert answer.json()
        assert client.get(f"/api/v1/{route}", params={"k": 0}).status_code == 422


def test_lists_come_in_parts(client: TestClient) -> None:
    part = client.get("/api/v1/cases", params={"label": "leak", "offset": 1, "limit": 2}).json()
    assert (part["total"], [case["id"] for case in part["cases"]]) == (4, ["w3", "w6"])
    assert client.get("/api/v1/stats").json()["labels"] == {"leak": 4, "noise": 4, "stuck valve": 4}


def test_the_whole_library_can_be_copied(client: TestClient, library: Library) -> None:
    copied = client.get("/api/v1/export")
    assert copied.content[:4] == b"PAR1"
    other = Library.create(f"{library.store.where}-copy")  # type: ignore[attr-defined]
    from readbench.cases import import_library  # noqa: PLC0415

    import_library(other, ("cases.parquet", copied.content))
    assert [case.id for case in other.cases()] == [case.id for case in library.cases()]


def test_watching(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "cases": None}
    assert client.get("/readyz").json() == {"status": "ready", "cases": 12, "failing": []}
    client.post("/api/v1/search", json={"case": "w0"})
    text = client.get("/metrics").text
    assert 'readbench_requests_total{method="POST",route="/api/v1/search",status="200"} 1.0' in text
    assert "readbench_cases 12.0" in text


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("search", {"case": "w00"}, 404, "Did you mean"),
        ("search", {}, 400, "either a window or the name"),
        ("search", {"case": "w0", "k": 0}, 422, "body.k"),
        ("search", {"case": "w0", "k": 1000}, 400, "At most 100 hits"),
        ("search", {"case": "w0", "method": "llm(claude)"}, 400, "does not run the method"),
        ("search", {"window": {"channels": ["a"], "values": [[1], [2]]}}, 400, "1 channel names, but 2 rows"),
        ("search", {"window": {"channels": ["a", "a"], "values": [[1], [2]]}}, 400, "the same name"),
        ("search", {"window": {"channels": ["a", "b"], "values": [[1], [2, 3]]}}, 400, "same number of readings"),
        ("search", {"window": {"channels": ["x"], "values": [[1, 2, 3]]}}, 400, "No channel of the window is known"),
        ("search", {"window": {"channels": ["flow"], "values": [[None, None]]}}, 400, "no reading at all"),
        ("search", {"window": {"channels": ["flow"], "values": [[0] * 20_001]}}, 400, "more than 20,000"),
        ("search", {"window": {"channels": list(map(str, range(61))), "values": [[0]] * 61}}, 400, "61 channels"),
        ("search", {"window": {"channels": ["x" * 501], "values": [[0, 1]]}}, 422, "500 characters"),
        ("explain", {"case": "w0", "like": "nobody"}, 404, "Unknown case"),
        ("label", {"case": "w0", "label": "unlike anything here"}, 400, "is no name of a fault"),
        ("cases", {"window": {"channels": ["flow"], "values": [[1, 2]]}, "id": "w0"}, 409, "already"),
        ("cases", {"window": {"channels": ["flow"], "values": [[1, 2]]}, "links": ["javascript:x"]}, 400, "must begin"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    client: TestClient, library: Library, path: str, body: dict[str, object], status: int, words: str
) -> None:
    answer = client.post(f"/api/v1/{path}", json=body)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text
    assert library.stats().change == 2


def test_a_window_brings_its_context(client: TestClient) -> None:
    body = sent("leak")
    told = {"rate": 10.0, "units": ["bar", "", "rpm"], "facts": {"speed": 29.5}}
    whole = window("", np.random.default_rng(1), 100)
    long = {"channels": CHANNELS, "values": np.concatenate([whole, body["values"]], axis=1).tolist(), "onset": 100}
    apart = body | {"before": whole.tolist()}
    for name, sent_window in (("cut", long | told), ("apart", apart | told)):
        assert client.post("/api/v1/cases", json={"window": sent_window, "id": name}).status_code == 201
        stored = client.get(f"/api/v1/windows/{name}").json()
        np.testing.assert_allclose(stored["before"], whole, rtol=1e-5)
        np.testing.assert_allclose(stored["values"], body["values"], rtol=1e-5)
        assert {key: stored[key] for key in told} == told
        assert client.get("/api/v1/show", params={"case": name}).json()["before"] == 100
    assert client.get("/api/v1/windows/w0").json()["before"] is None
    evidence = client.post("/api/v1/explain", json={"window": apart, "like": "w0"}).json()
    assert evidence["reference"].startswith("the 100 steps before it")
    bare = client.post("/api/v1/search", json={"window": body}).json()["hits"]
    assert client.post("/api/v1/search", json={"window": apart | told}).json()["hits"] == bare


def test_a_file_brings_its_context(client: TestClient, library: Library) -> None:
    files = {"file": ("a.csv", csv("leak"))}
    kept = client.post("/api/v1/files", files=files, data={"onset": "12", "rate": 5, "fact": ["speed=2", "load=.5"]})
    own = library.window(kept.json()["id"])[0]
    assert own.before is not None
    assert (own.before.shape, own.values.shape, own.rate) == ((3, 12), (3, 28), 5.0)
    assert own.facts == {"speed": 2.0, "load": 0.5}
    earlier = b"t,pressure,flow,speed\n-2,1,2,3\n-1,1,2,4\n"
    answer = client.post("/api/v1/search-file", files=files | {"before": ("b.csv", earlier)}, data={"k": 1})
    assert "In the time before, pressure, flow never moved" in " ".join(answer.json()["remarks"])


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"before": [[1.0], [2.0]]}, "3 channel names, but 2 rows"),
        ({"before": [[], [], []]}, "The time before has no readings"),
        ({"before": [[1.0]] * 3, "onset": 5}, "not both"),
        ({"onset": 40}, "not within the 40 steps"),
        ({"onset": 0}, "greater than or equal to 1"),
        ({"rate": -1}, "greater than 0"),
        ({"units": ["bar"]}, "units of 1"),
        ({"facts": {"": 1.0}}, "no name"),
        ({"before": [[0.0] * 7000] * 3}, "The context before a window has 21,000 readings"),
    ],
)
def test_a_context_that_does_not_fit_is_refused(client: TestClient, more: dict[str, Any], says: str) -> None:
    for path in ("search", "cases"):
        answer = client.post(f"/api/v1/{path}", json={"window": sent("leak") | more})
        assert answer.status_code in {400, 422}
        assert says in answer.text


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"onset": "99"}, "the onset 99 is not within 0 s to 39 s"),
        ({"onset": "14:02"}, "has no dates"),
        ({"fact": "speed"}, "NAME=NUMBER"),
        ({"onset_column": "none"}, "none"),
    ],
)
def test_what_is_told_of_a_file_is_checked(client: TestClient, more: dict[str, str], says: str) -> None:
    answer = client.post("/api/v1/search-file", files={"file": ("a.csv", csv("leak"))}, data=more)
    assert answer.status_code in {400, 404, 422}
    assert says in answer.text


def test_a_background_loop_that_fails_shows_in_readiness_metrics_and_notices_and_comes_back(library: Library) -> None:
    own = Library.open(library.store.where, background=True)

    def fail() -> None:
        raise RuntimeError("dictionary changed size during iteration")

    with TestClient(create_app(own, SETTINGS), base_url="http://localhost") as client:
        assert client.get("/readyz").status_code == 200
        own._learner.submit("odd", fail)  # type: ignore[union-attr]
        seen, end = set[int](), time.monotonic() + 20
        while seen != {200, 503} or client.get("/readyz").status_code != 200:
            assert time.monotonic() < end
            answer = client.get("/readyz")
            seen.add(answer.status_code)
            if answer.status_code == 503:
                assert answer.json()["failing"] == ["learns from what changed"]
        assert 'readbench_loop_failures{loop="learns from what changed"} 1.0' in client.get("/metrics").text
        assert 'readbench_loop_up{loop="learns from what changed"} 1.0' in client.get("/metrics").text
        page = client.get("/notices", headers={"Accept": "text/html"}).text
        assert "learns from what changed works again" in page
        assert client.get("/healthz").status_code == 200
