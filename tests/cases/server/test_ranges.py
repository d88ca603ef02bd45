"""Ranges of connected sources on the page, and what the watch told; by requests and in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from readbench.cases import Library
from readbench.cases.connect import NamedSource, SourceAddress, sources_beside
from readbench.cases.server import Settings
from readbench.cases.server._app import create_app
from readbench.cases.watch import Notice, NoticeCase, NoticeFault, NoticeLog
from tests.cases import samples
from tests.cases.samples import CHANNELS, FAST, window
from tests.cases.server.running import served

START = 1_700_000_000
ONSET = 200
STEPS = 240


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Cases at a reading a second, and a connected folder of two pumps: one of them leaks at the end."""
    folder = tmp_path_factory.mktemp("ranges")
    library = Library.create(folder / "library")
    library.add_normals(samples.normals(10), rate=1.0)
    rng = np.random.default_rng(0)
    for i in range(12):
        fault = samples.FAULTS[i % 3]
        library.add_one(window(fault, rng), CHANNELS, rate=1.0, label=fault, id=f"w{i}")
    (folder / "signals").mkdir()
    for pump, fault in (("pump 1", ""), ("pump 2", "leak")):
        values = np.concatenate([rng.normal(size=(3, ONSET)), window(fault, rng, STEPS - ONSET)], axis=1)
        rows = [f"{START + i}," + ",".join(f"{v:.4f}" for v in row) for i, row in enumerate(values.T)]
        (folder / "signals" / f"{pump}.csv").write_text("\n".join([f"time,{','.join(CHANNELS)}", *rows, ""]))
    address = SourceAddress.parse(f"folder://{folder}/signals?by=file")
    sources_beside(library.store.where).put(NamedSource("line", address))
    notice = Notice(
        key="k1",
        kind="fault",
        asset="pump 2",
        source=address.shown,
        onset=START + ONSET,
        seen=START + ONSET + 10.0,
        told=START + ONSET + 30.0,
        faults=(NoticeFault(label="leak", probability=0.9),),
        cases=(NoticeCase(id="w0", label="leak", asset="", notes="<b>Seal.</b>"),),
        link=f"/ranges?source=line&asset=pump+2&start={START}&end={START + STEPS - 1}&onset={START + ONSET}",
        remarks=("70% of its readings are missing.",),
        text="pump 2: leak (90%), 30 s after it began.",
    )
    NoticeLog(Path(library.store.where) / "notices.jsonl").write(notice)
    return library


@pytest.fixture
def client(library: Library) -> Iterator[TestClient]:
    with TestClient(create_app(library, Settings(methods=(FAST,))), base_url="http://localhost") as client:
        yield client


SPAN = {"source": "line", "start": str(START), "end": str(START + STEPS - 1)}


def test_an_overview_shows_the_asset_and_proposes_when_it_began(client: TestClient) -> None:
    assert client.get("/ranges/assets", params={"source": "line"}).json() == ["pump 1", "pump 2"]
    found = client.get("/ranges/signals", params=SPAN | {"asset": "pump 2"}).json()
    assert (found["start"], found["end"]) == (START, START + STEPS - 1)
    assert {own["name"] for own in found["recording"]["signals"]["channels"]} == set(CHANNELS)
    assert abs(found["recording"]["onset"] * STEPS - ONSET) < 25


def test_an_overview_has_the_units_of_the_source(client: TestClient, library: Library, tmp_path: Path) -> None:
    rows = [f"{START + i},{i % 7}.5" for i in range(100)]
    (tmp_path / "a.csv").write_text("\n".join(["time,torque [Nm]", *rows, ""]))
    sources = sources_beside(library.store.where)
    sources.put(NamedSource("bench", SourceAddress.parse(f"folder://{tmp_path}")))
    found = client.get("/ranges/signals", params=SPAN | {"source": "bench"}).json()
    sources.remove("bench")
    assert [(own["name"], own["unit"]) for own in found["recording"]["signals"]["channels"]] == [("torque", "Nm")]


def test_a_range_is_searched_with_its_onset(client: TestClient) -> None:
    asked = SPAN | {"asset": "pump 2", "onset": str(START + ONSET)}
    page = client.post("/ranges", data=asked)
    assert page.status_code == 200
    assert page.url.path.startswith("/looked/")
    assert "40 steps" in page.text
    assert page.text.index("leak") < page.text.index("stuck valve")


def test_a_panel_of_grafana_asks_about_the_readings_of_a_source(client: TestClient) -> None:
    """No case lies in its range: the range is read from the source."""
    begin, end = START + ONSET, START + STEPS - 1
    options = {"source": "line", "asset": "pump 2"}
    moments = {
        "from": f"{datetime.fromtimestamp(begin, UTC):%FT%TZ}",
        "to": f"{datetime.fromtimestamp(end, UTC):%FT%TZ}",
    }
    targets = [{"target": own, "payload": options} for own in ("similar", "belief")]
    similar, belief = client.post("/grafana/query", json={"range": moments, "targets": targets}).json()
    assert similar["rows"][0][2] == belief["rows"][0][0] == "leak"
    assert similar["rows"][0][-2:] == [f"http://localhost/cases/{similar['rows'][0][1]}", "line: pump 2"]
    page = belief["rows"][0][-1]
    assert page.startswith("http://localhost/ranges?source=line&asset=pump+2&start=")
    assert client.get(page).status_code == 200
    rows = client.get("/grafana/similar.json", params=options | {"from": 1000 * begin, "to": 1000 * end, "k": 2}).json()
    assert [own["Fault"] for own in rows] == [own[2] for own in similar["rows"][:2]]
    named = client.post("/grafana/metric-payload-options", json={"metric": "similar", "name": "source"}).json()
    assert named == [{"label": "line", "value": "line"}]
    wrong = client.get("/grafana/similar.json", params=options | {"source": "nothere", "from": 0, "to": 1})
    assert (wrong.status_code, wrong.json()["detail"][:14]) == (404, "Unknown source")


def test_wrong_ranges_get_a_sentence(client: TestClient) -> None:
    assert (
        client.get("/ranges/signals", params=SPAN | {"source": "nothere"}).json()["detail"].startswith("Unknown source")
    )
    assert client.get("/ranges/signals", params=SPAN | {"source": "folder:///etc"}).status_code == 404
    assert "no reading" in client.get("/ranges/signals", params=SPAN | {"asset": "pump 9"}).json()["detail"]
    assert client.get("/ranges/signals", params=SPAN | {"end": str(START - 9)}).status_code == 400
    assert client.get("/ranges/signals", params=SPAN | {"start": "soon"}).status_code == 400


def test_notices_are_listed_with_their_cases(client: TestClient) -> None:
    page = client.get("/notices").text
    assert "pump 2: leak (90%)" in page
    assert 'href="/cases/w0"' in page
    assert "&lt;b&gt;Seal.&lt;/b&gt;" in page
    assert "70% of its readings are missing." in page


@pytest.mark.slow
def test_a_later_notice_is_put_on_top_and_who_reads_keeps_the_place(browser: Any, library: Library) -> None:  # noqa: ANN401
    log = NoticeLog(Path(library.store.where) / "notices.jsonl")
    before = log.path.read_bytes()
    with served(create_app(library, Settings(methods=(FAST,)))) as address:
        context = browser.new_context(base_url=address)
        page = context.new_page()
        page.clock.install()
        page.goto("/notices")
        page.get_by_text("Open the range").focus()
        log.write(log.latest(1)[0].model_copy(update={"key": "k2", "text": "pump 1: stuck valve"}))
        page.clock.fast_forward(16_000)
        page.locator(".notice").nth(1).wait_for()
        assert page.locator(".notice h2").first.inner_text() == "pump 1: stuck valve"
        assert page.evaluate("document.activeElement.closest('.notice').dataset.key") == "k1"
        context.close()
    log.path.write_bytes(before)


@pytest.mark.slow
def test_a_notice_leads_to_its_range_which_is_zoomed_marked_and_searched(browser: Any, library: Library) -> None:  # noqa: ANN401
    with served(create_app(library, Settings(methods=(FAST,)))) as address:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=address)
        page, complaints = context.new_page(), list[str]()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto("/notices")
        page.get_by_text("Open the range").click()
        page.wait_for_selector("#mark[data-drawn]")
        drawn = page.get_attribute("#mark", "data-drawn")
        line = page.locator(".onset")
        assert abs(int(line.get_attribute("aria-valuenow")) / 1023 * (STEPS - 1) - ONSET) < 2
        box = page.locator("#whole canvas").first.bounding_box()
        page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 30)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.99 * box["width"], box["y"] + 30, steps=5)
        page.mouse.up()
        page.wait_for_selector(f"#mark[data-drawn]:not([data-drawn='{drawn}'])")
        first, last = map(float, page.get_attribute("#mark", "data-drawn").split("-"))
        assert START + 80 < first < START + 110
        assert abs(int(line.get_attribute("aria-valuenow")) / 1023 * (last - first) + first - (START + ONSET)) < 2
        before = page.input_value("[name=onset]")
        line.focus()
        page.keyboard.press("ArrowRight")
        assert page.input_value("[name=onset]") != before
        page.keyboard.press("ArrowLeft")
        handle = line.bounding_box()
        page.mouse.move(handle["x"] + 1, handle["y"] + handle["height"] / 2)
        page.mouse.down()
        page.mouse.move(handle["x"] - 60, handle["y"] + handle["height"] / 2, steps=4)
        page.mouse.up()
        assert page.input_value("[name=onset]") < before
        page.fill("[name=onset]", str(START + ONSET))
        with page.expect_navigation():
            page.get_by_role("button", name="Find cases").click()
        page.wait_for_selector("#plots[data-chosen]")
        assert page.locator(".faults li").first.inner_text().startswith("leak")
        context.close()
        assert complaints == []
