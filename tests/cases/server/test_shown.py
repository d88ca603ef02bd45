"""Pages show whatever the service takes, and whatever an older version stored."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings

from readbench.cases import Case, Library
from tests.cases.accepted import BROUGHT, CHANNELS, KNOWN, READINGS
from tests.cases.test_accepted import store_as_before

OF_ALL = (
    "/",
    "/cases",
    "/overview",
    "/api/v1/cases?limit=1000",
    "/api/v1/stats",
    "/api/v1/history",
    "/api/v1/overview",
)
FAILED = 500


def look_at_all(client: TestClient, case: str) -> None:
    name = quote(case, safe="")
    for path in (*OF_ALL, f"/cases/{name}", f"/api/v1/cases/{name}", f"/api/v1/windows/{name}"):
        assert client.get(path, headers={"Accept": "text/html"}).status_code < FAILED, path
    assert client.post("/api/v1/search", json={"case": case, "k": 3}).status_code < FAILED


@pytest.mark.filterwarnings("ignore:Single precision cannot resolve", "ignore:Glyph")
@settings(
    max_examples=settings().max_examples // 6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(known=KNOWN, brought=BROUGHT, channels=CHANNELS, values=READINGS)
def test_what_is_taken_is_shown(
    client: TestClient,
    known: dict[str, Any],
    brought: dict[str, Any],
    channels: list[str],
    values: list[list[float]],
) -> None:
    own = dict(known)
    window = {"channels": channels, "values": values, "asset": own.pop("asset", ""), **brought}
    sent = json.dumps({**own, "window": window})  # with NaN and Infinity, as some clients write them
    answered = client.post("/api/v1/cases", content=sent, headers={"Content-Type": "application/json"})
    assert answered.status_code < FAILED
    if answered.status_code == 201:
        look_at_all(client, answered.json()["id"])


@pytest.mark.parametrize("time", [1e18, 1e306, -1e306, 1.7e9])
def test_what_an_older_version_stored_is_shown(client: TestClient, library: Library, time: float) -> None:
    old = Case(id="old", label="$a$^^$", time=time, end=time + 1, zone="+99:99", tags=tuple(str(i) for i in range(300)))
    store_as_before(library, old, np.tile(np.array([3e38, -3e38], np.float32), (3, 20)), rate=1e-300)
    look_at_all(client, "old")
