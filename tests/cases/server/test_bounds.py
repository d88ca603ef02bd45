"""Whatever a request says has a longest length, and more is refused at once, within little memory, beside others."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from readbench.cases import Library
from readbench.cases.server import Settings, _reception
from readbench.cases.server._api import ListQuery, list_cases
from readbench.cases.server._app import ROUTERS, create_app
from readbench.cases.server._fields import MAX_FORM_BYTES
from readbench.cases.server._questions import build_routes
from tests.cases.samples import FAST
from tests.cases.server.running import served
from tests.cases.server.test_api import sent
from tests.cases.server.test_grafana import panel

Schema = dict[str, Any]
SOON_S = 2.0
FORM = "application/x-www-form-urlencoded"
FREE_FORM = {"payload.{any}", "targets[*].payload.{any}", "annotation.{any}"}
"""What plug-ins of Grafana send beside what is used here: of a bounded number of bytes."""


@pytest.fixture(scope="module")
def described() -> Schema:
    """The description of all routes, those of pages and plug-ins included."""
    app = FastAPI()
    patch = pytest.MonkeyPatch()
    for router in (build_routes(), *ROUTERS):
        patch.setattr(router, "include_in_schema", True)
        for route in router.routes:
            patch.setattr(route, "include_in_schema", True)
        app.include_router(router)
    try:
        return app.openapi()
    finally:
        patch.undo()


def fields(description: Schema) -> Iterator[tuple[str, str, str, Schema]]:
    """Method, path, name and schema of whatever a request may say."""
    for path, methods in description["paths"].items():
        for method, about in methods.items():
            for own in about.get("parameters", ()):
                yield method, path, own["name"], own["schema"]
            for content in about.get("requestBody", {}).get("content", {}).values():
                yield method, path, "", content["schema"]


def find_unbounded(schema: Schema, models: Schema, where: str) -> Iterator[str]:
    """Places in a schema where a text, list or object has no longest length."""
    if "$ref" in schema:
        yield from find_unbounded(models[schema["$ref"].rpartition("/")[2]], models, where)
    bounds = {name: schema[name] for name in ("maxLength", "maxItems", "maxProperties") if name in schema}
    for option in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
        yield from find_unbounded(option | bounds, models, where)
    kind = schema.get("type")
    if kind == "string" and not {"maxLength", "enum", "const", "format", "contentMediaType"} & set(schema):
        yield where
    if kind == "array":
        yield from () if "maxItems" in schema else (f"{where}[]",)
        yield from find_unbounded(schema["items"], models, f"{where}[*]")
    if kind == "object":
        for name, own in schema.get("properties", {}).items():
            yield from find_unbounded(own, models, f"{where}.{name}".lstrip("."))
        yield from find_unbounded_names(schema, models, where)


def find_unbounded_names(schema: Schema, models: Schema, where: str) -> Iterator[str]:
    others = schema.get("additionalProperties", False)
    if others is False:
        return
    if "maxProperties" not in schema or "maxLength" not in schema.get("propertyNames", {}):
        yield f"{where}.{{names}}"
    if others is True:
        yield f"{where}.{{any}}"
    else:
        yield from find_unbounded(others, models, f"{where}.{{values}}")


def test_every_field_of_every_request_has_a_bound(described: Schema) -> None:
    models = described["components"]["schemas"]
    found = [
        f"{method} {path}: {place}"
        for method, path, name, schema in fields(described)
        for place in find_unbounded(schema, models, name)
        if place not in FREE_FORM
    ]
    assert sum(1 for _ in fields(described)) > 100
    assert not found, "\n".join(found)


def texts(count: int, length: int = 3) -> list[str]:
    return [f"{number:0{length}d}" for number in range(count)]


LIMITED: list[tuple[str, str, str, Any, int]] = [
    # route, body around the field as a key path, name of what is repeated, its form, and how many are right
    ("search", "case", "text", None, 200),
    ("search", "method", "text", None, 1000),
    ("search", "where.label", "text", None, 200),
    ("search", "where.tag", "text", None, 200),
    ("search", "where.asset", "text", None, 200),
    ("search", "window.asset", "text", None, 200),
    ("search", "window.facts", "numbers", None, 100),
    ("search", "window.units", "list", "bar", 10_000),
    ("search", "window.channels", "list", "c", 10_000),
    ("search", "window.values", "list", [1.0], 10_000),
    ("search", "window.before", "list", [1.0], 10_000),
    ("cases", "id", "text", None, 200),
    ("cases", "label", "text", None, 200),
    ("cases", "group", "text", None, 200),
    ("cases", "zone", "text", None, 200),
    ("cases", "notes", "text", None, 100_000),
    ("cases", "tags", "list", "t", 100),
    ("cases", "links", "list", "https://a.example", 100),
    ("label", "case", "text", None, 200),
    ("label", "label", "text", None, 200),
    ("confirm", "case", "text", None, 200),
    ("confirm", "like", "text", None, 200),
    ("explain", "like", "text", None, 1000),
]
BODIES: dict[str, Schema] = {
    "search": {"window": sent("leak")},
    "cases": {"window": sent("leak")},
    "label": {"case": "w0", "label": "x"},
    "confirm": {"case": "w0", "like": "w1"},
    "explain": {"case": "w0", "like": "w1"},
}


def fill(kind: str, form: Any, count: int) -> Any:  # noqa: ANN401 - JSON
    if kind == "text":
        return "x" * count
    if kind == "numbers":
        return {f"f{number}": 1.0 for number in range(count)}
    return [form] * count


def put(route: str, place: str, value: Any) -> bytes:  # noqa: ANN401 - JSON
    body = json.loads(json.dumps(BODIES[route]))
    *above, last = place.split(".")
    if place == "case" and route == "search":
        del body["window"]
    inner = body
    for name in above:
        inner = inner.setdefault(name, {})
    inner[last] = value
    return json.dumps(body).encode()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from tests.cases.samples import filled  # noqa: PLC0415

    library = filled(tmp_path_factory.mktemp("bounds") / "library")
    with served(create_app(library, Settings(methods=(FAST,)))) as own:
        yield own


def post(address: str, route: str, content: bytes) -> tuple[int, str, float]:
    """Status, answer, and how long it took while others asked for their health."""
    began = time.monotonic()
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    connection.request("POST", f"/api/v1/{route}", content, {"Content-Type": "application/json"})
    watched = time.monotonic()
    other = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    other.request("GET", "/healthz")
    assert other.getresponse().status == 200
    assert time.monotonic() - watched < SOON_S
    other.close()
    answer = connection.getresponse()
    said = answer.read().decode()
    connection.close()
    return answer.status, said, time.monotonic() - began


def resident() -> int:
    with open("/proc/self/status") as file:  # noqa: PTH123 - no file of ours
        return 1024 * int(file.read().partition("VmRSS:")[2].split()[0])


@pytest.mark.parametrize(("route", "place", "kind", "form", "most"), LIMITED)
def test_a_field_beyond_its_bound_is_refused_at_once(
    address: str,
    route: str,
    place: str,
    kind: str,
    form: Any,  # noqa: ANN401 - JSON
    most: int,
) -> None:
    status, said, _ = post(address, route, put(route, place, fill(kind, form, most)))
    assert status not in {413, 422}, said[:300]
    content = [put(route, place, fill(kind, form, count)) for count in (most + 1, most * 1000)]
    before = resident()
    for body in content:
        status, said, seconds = post(address, route, body[: 31 * 2**20] if len(body) > 31 * 2**20 else body)
        assert status in {413, 422}, said[:300]
        assert len(said) < 1000
        assert seconds < SOON_S, (len(body), seconds)
    assert resident() - before < 400e6


WRONG = {
    "readings": b'{"window":{"channels":["a"],"values":[[' + b'"a",' * 2_000_000 + b"1]]}}",
    "rows": b'{"window":{"channels":["a"],"values":[' + b'"a",' * 2_000_000 + b"1]}}",
    "channels": b'{"window":{"channels":[' + b"1," * 2_000_000 + b"1]}}",
    "fields": b"{" + b",".join(b'"k%d":1' % i for i in range(900_000)) + b"}",
    "more fields": b"{" + b",".join(b'"%d":1' % i for i in range(2_000_000)) + b"}",
}


@pytest.mark.parametrize("what", WRONG)
def test_a_request_of_wrong_values_is_refused_as_fast_as_a_right_one(address: str, what: str) -> None:
    before = resident()
    status, said, seconds = post(address, "search", WRONG[what])
    assert status in {413, 422}, said[:300]
    assert len(said) < 1000
    assert seconds < SOON_S
    assert resident() - before < 250e6


def test_agents_that_send_wrong_values_get_a_short_answer(address: str) -> None:
    head = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find_similar_cases","arguments":'
    content = head + b'{"values":{"a":[' + b'"a",' * 900_000 + b"1]}}}}"
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    began = time.monotonic()
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)) as connection:
        connection.request("POST", "/mcp", content, kinds)
        said = connection.getresponse().read()
    assert b"valid number" in said
    assert len(said) < 5000
    assert time.monotonic() - began < SOON_S


def refused(address: str, path: str, kind: str, content: bytes) -> int:
    """Status of what is refused before it was sent whole; 0 where the connection ended meanwhile."""
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)) as connection:
        try:
            connection.request("POST", path, content, {"Content-Type": kind})
            return connection.getresponse().status
        except (BrokenPipeError, ConnectionResetError):
            return 0


def test_forms_and_panels_are_small(address: str) -> None:
    before, began = resident(), time.monotonic()
    assert refused(address, "/label", FORM, b"case=" + b"x" * (30 * 2**20)) in {413, 0}
    for path, kind in (("/facts", FORM), ("/grafana/query", "application/json")):
        assert refused(address, path, kind, b"a&" * (MAX_FORM_BYTES // 2 + 10)) in {413, 0}, path
    assert time.monotonic() - began < 3 * SOON_S
    assert resident() - before < 100e6


def test_panels_answer_with_few_rows_and_short_notes(client: TestClient, library: Library) -> None:
    for number in range(12):
        library.edit(f"w{number}", time=1714521600.0 + number, notes="n" * 100_000, tags=texts(100))
    for target in ("cases", "annotations"):
        answer = client.post("/grafana/query", json=panel(3, *[{"target": target}] * 26))
        assert answer.status_code == 200
        assert len(answer.content) < 26 * 12 * 2000
    assert client.post("/grafana/query", json=panel(3, *[{"target": "cases"}] * 27)).status_code == 422
    large = panel(3) | {"annotation": {"query": "x" * 5000}}
    assert client.post("/grafana/annotations", json=large).status_code == 422


def test_a_page_of_cases_has_so_many_characters(client: TestClient, library: Library) -> None:
    for number in range(12):
        library.edit(f"w{number}", notes="n" * 100_000)
    service = client.app.state.service  # type: ignore[attr-defined]
    assert len(list_cases(service, ListQuery(offset=0, limit=100)).cases) == 12
    patch = pytest.MonkeyPatch()
    patch.setattr("readbench.cases.server._api.MAX_PAGE_TEXT", 350_000)
    page = list_cases(service, ListQuery(offset=2, limit=100))
    patch.undo()
    assert (page.total, [own.id for own in page.cases]) == (12, ["w2", "w3", "w4"])


def test_an_answer_has_so_many_bytes(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reception, "MAX_ANSWER_BYTES", 500)
    for answer in (
        client.get("/api/v1/cases"),
        client.post("/api/v1/search-many", json={"windows": [sent("leak")] * 3}),
        client.post("/api/v1/search", json={"case": "w0"}),
    ):
        assert (answer.status_code, "Ask for less" in answer.json()["detail"]) == (400, True)
    assert client.get("/api/v1/cases/w0").status_code == 200
