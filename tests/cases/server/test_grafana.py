"""Grafana's requests, as its plug-ins write them, are answered in its format."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from readbench.cases import Library
from tests.cases.samples import CHANNELS, window

MAY = datetime(2024, 5, 1, tzinfo=UTC).timestamp()
DAY = 86400.0


@pytest.fixture
def dated(client: TestClient, library: Library) -> TestClient:
    """The service of a library whose first three cases lie on the first days of May, and one open case on the third."""
    for number in range(3):
        begins = MAY + number * DAY
        library.edit(
            f"w{number}", time=begins, end=begins + 600, tags=("shift-a",) if number else (), notes="a <b> & c"
        )
    values = window("leak", np.random.default_rng(8))
    library.add_one(values, CHANNELS, id="new one", asset="pump 1", time=MAY + 2 * DAY + 60, end=MAY + 2 * DAY + 120)
    return client


def panel(days: float, *targets: dict[str, Any], first: float = 0.0, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A request as the plug-in `simpod-json-datasource` sends it, for the first days of May."""
    begin, end = (
        datetime.fromtimestamp(MAY + day * DAY, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for day in (first, days)
    )
    return {
        "app": "dashboard",
        "requestId": "Q101",
        "timezone": "browser",
        "panelId": 2,
        "range": {"from": begin, "to": end, "raw": {"from": "now-3d", "to": "now"}},
        "interval": "30s",
        "intervalMs": 30000,
        "maxDataPoints": 550,
        "targets": [{"refId": "A", "datasource": {"type": "simpod-json-datasource"}, **target} for target in targets],
        "scopedVars": {},
        **more,
    }


def test_the_connection_is_confirmed_and_metrics_are_listed(dated: TestClient) -> None:
    assert dated.get("/grafana").status_code == 200
    assert dated.get("/grafana/").json() == {"status": "ok"}
    listed = dated.post("/grafana/metrics", json={}).json()
    assert [metric["value"] for metric in listed] == ["cases", "annotations", "similar", "belief"]
    assert {payload["type"] for metric in listed for payload in metric["payloads"]} == {"select", "input"}
    assert dated.post("/grafana/search", json={"target": ""}).json() == [metric["value"] for metric in listed]


def test_cases_of_the_range_are_a_table(dated: TestClient) -> None:
    (table,) = dated.post("/grafana/query", json=panel(1.5, {"target": "cases"})).json()
    names = [column["text"] for column in table["columns"]]
    assert (table["type"], names[:3]) == ("table", ["Time", "End", "Case"])
    assert [row[2] for row in table["rows"]] == ["w0", "w1"]
    assert table["rows"][0][:2] == [1000 * MAY, 1000 * (MAY + 600)]
    assert table["rows"][0][-1] == "http://localhost/cases/w0"


def test_options_and_filters_of_a_dashboard_choose(dated: TestClient) -> None:
    target = {"target": "cases", "payload": {"asset": "pump 1", "label": []}}
    (table,) = dated.post("/grafana/query", json=panel(4, target)).json()
    assert [row[2] for row in table["rows"]] == ["w1", "new one"]
    tagged = {"key": "tag", "operator": "=", "value": "shift-a"}
    (table,) = dated.post("/grafana/query", json=panel(4, target, adhocFilters=[tagged])).json()
    assert [row[2] for row in table["rows"]] == ["w1"]
    refused = dated.post("/grafana/query", json=panel(4, target, adhocFilters=[tagged | {"operator": "!="}]))
    assert refused.status_code == 400
    assert "asset, label, tag" in refused.json()["detail"]
    assert dated.post("/grafana/query", json=panel(4, {"target": "cases", "hide": True})).json() == []


def test_similar_cases_are_those_of_the_open_case_in_the_range(dated: TestClient) -> None:
    targets = {"target": "similar", "payload": {"k": "3"}}, {"target": "belief", "payload": ""}
    similar, belief = dated.post("/grafana/query", json=panel(4, *targets)).json()
    rows = [dict(zip((column["text"] for column in similar["columns"]), row, strict=True)) for row in similar["rows"]]
    assert [(row["Place"], row["Fault"], row["Asked"]) for row in rows] == [(at, "leak", "new one") for at in (1, 2, 3)]
    assert rows[0]["Link"] == f"http://localhost/cases/new%20one#like={rows[0]['Case']}"
    assert belief["rows"][0][0] == "leak"
    assert sum(row[1] for row in belief["rows"]) == pytest.approx(1)


def test_an_empty_range_is_an_empty_table(dated: TestClient) -> None:
    tables = dated.post("/grafana/query", json=panel(20, {"target": "similar"}, {"target": "cases"}, first=10)).json()
    assert [table["rows"] for table in tables] == [[], []]


def test_annotations_of_both_kinds_of_versions(dated: TestClient) -> None:
    (table,) = dated.post("/grafana/query", json=panel(0.5, {"target": "annotations"})).json()
    assert [column["text"] for column in table["columns"]] == ["time", "timeEnd", "title", "text", "tags"]
    asked = {"name": "incidents", "datasource": "cases", "enable": True, "iconColor": "red", "query": "pump 0"}
    (mark,) = dated.post("/grafana/annotations", json=panel(0.5) | {"annotation": asked}).json()
    assert (mark["annotation"], mark["time"], mark["timeEnd"]) == (asked, 1000 * MAY, 1000 * (MAY + 600))
    assert mark["title"] == "leak"
    assert "a &lt;b&gt; &amp; c" in mark["text"]
    assert mark["tags"] == ["leak", "pump 0"]


def test_values_of_options_variables_and_filters(dated: TestClient) -> None:
    pumps = ["pump 0", "pump 1"]
    options = dated.post("/grafana/metric-payload-options", json={"metric": "cases", "payload": {}, "name": "asset"})
    assert [option["value"] for option in options.json()] == pumps
    variable = dated.post("/grafana/variable", json={"payload": {"target": "asset"}, "range": panel(1)["range"]})
    assert [option["__value"] for option in variable.json()] == pumps
    assert dated.post("/grafana/tag-keys", json={}).json()[0] == {"type": "string", "text": "asset"}
    assert dated.post("/grafana/tag-values", json={"key": "tag"}).json() == [{"text": "shift-a"}]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("query", panel(1, {"target": "weather"}), 404),
        ("query", panel(1, {"target": "similar", "payload": {"k": "many"}}), 400),
        ("query", {"targets": []}, 422),
        ("variable", {"payload": {"target": "colour"}}, 404),
        ("annotations", {"range": {"from": "yesterday", "to": "today"}}, 422),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    dated: TestClient, path: str, body: dict[str, Any], status: int
) -> None:
    answer = dated.post(f"/grafana/{path}", json=body)
    assert answer.status_code == status
    assert answer.json()["detail"]


def test_infinity_reads_plain_lists_by_grafanas_clock(dated: TestClient) -> None:
    asked = {"from": 1000 * MAY, "to": 1000 * (MAY + 4 * DAY), "asset": "pump 1"}
    assert [row["Case"] for row in dated.get("/grafana/cases.json", params=asked).json()] == ["w1", "new one"]
    similar = dated.get("/grafana/similar.json", params=asked | {"k": 2}).json()
    assert [row["Place"] for row in similar] == [1, 2]
    assert similar[0]["Asked"] == "new one"


def test_a_range_is_a_link(dated: TestClient) -> None:
    asked = {"from": 1000 * MAY, "to": 1000 * (MAY + 1.5 * DAY), "asset": "pump 1"}
    page = dated.get("/range", params=asked, headers={"accept": "text/html"})
    assert page.status_code == 200
    assert "w1" in page.text
    assert "w0" not in page.text


def test_grafana_needs_a_key_where_others_do(guarded: TestClient, keys: dict[str, str]) -> None:
    assert guarded.get("/grafana").status_code == 401
    assert guarded.post("/grafana/query", json=panel(1, {"target": "cases"})).status_code == 401
    header = {"Authorization": f"Bearer {keys['read']}"}
    assert guarded.get("/grafana", headers=header).status_code == 200
    assert guarded.post("/grafana/query", json=panel(1, {"target": "cases"}), headers=header).status_code == 200


def test_prometheus_is_told_of_answers_and_cases(dated: TestClient) -> None:
    dated.post("/api/v1/search", json={"case": "new one"})
    dated.post("/grafana/query", json=panel(4, {"target": "belief"}))
    text = dated.get("/metrics").text
    assert 'readbench_searches_total{said="fault"} 2.0' in text
    assert "readbench_search_seconds_count 2.0" in text
    assert 'readbench_belief_bucket{le="+Inf"} 2.0' in text
    assert 'readbench_cases_by_label{label="leak"} 4.0' in text
    assert 'readbench_cases_by_label{label=""} 1.0' in text
    assert "readbench_normals 10.0" in text
    assert "readbench_change " in text
