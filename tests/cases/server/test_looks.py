"""What the pages are made of: spans, the map, twins, lists to work through, the life of a case, bounded work."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from readbench.cases import UNLIKE, Answer, Fault, Library, ReadRecording, attach_context
from readbench.cases._overview import project_vectors
from readbench.cases.server._pages import _options
from readbench.cases.server._service import BusyError, HeldFile, HeldFiles, WorkerPool
from readbench.cases.server._views import MAX_POINTS, draw_part, draw_signals, list_events
from readbench.engine.windows import Window, WindowSet
from tests.cases.samples import CHANNELS, window


def a_window(values: np.ndarray, asset: str = "") -> Window:
    return Window(values.astype(np.float32), CHANNELS, -1, "", asset, float("nan"), "x")


def test_the_span_is_where_channels_depart(library: Library) -> None:
    signals = draw_signals(library.snapshot(), a_window(window("stuck valve", np.random.default_rng(3))))
    assert signals.channels[0].name == "flow"
    assert signals.span is not None
    assert signals.span[0] == pytest.approx(0.5, abs=0.05)
    assert signals.span[1] == pytest.approx(1.0, abs=0.05)
    quiet = draw_signals(library.snapshot(), a_window(0.5 * window("", np.random.default_rng(4))))
    assert quiet.span is None


def test_long_windows_are_drawn_with_few_points_and_their_own_assets_normal(library: Library) -> None:
    signals = draw_signals(library.snapshot(), a_window(np.zeros((3, 5000)), "pump 1"))
    assert all(MAX_POINTS / 2 < len(channel.values) <= MAX_POINTS for channel in signals.channels)
    assert (signals.steps, signals.reference) == (5000, "5 normal windows of pump 1")


def test_the_page_of_a_long_case_is_sent_every_spike_of_one_step(client: TestClient, library: Library) -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(len(CHANNELS), 4096))
    places = np.arange(20, 4096, 37)
    heights = np.where(np.arange(len(places)) % 2, 1, -1) * (50 + np.arange(len(places)))
    values[:, places] = heights
    library.add_one(values.astype(np.float32), CHANNELS, id="spiky")
    page = client.get("/cases/spiky").text
    sent = json.loads(page.split('id="signals">')[1].split("</script>")[0])["channels"]
    assert [len(channel["values"]) <= MAX_POINTS for channel in sent] == [True] * len(CHANNELS)
    assert [set(heights.tolist()) - set(channel["values"]) for channel in sent] == [set()] * len(CHANNELS)


def test_a_window_that_is_not_kept_is_explained_as_if_it_were(library: Library) -> None:
    values = window("leak", np.random.default_rng(6), 960)
    kept = library.add_one(values.astype(np.float32), CHANNELS, id="kept")
    sent = draw_signals(library.snapshot(), a_window(values), kept=False).channels
    again = WindowSet.from_arrays(np.array([[c.asked for c in sent]]), channels=[c.name for c in sent])
    ours, theirs = library.explain(again, "w0"), library.explain(kept.id, "w0")
    assert ours.distance == pytest.approx(theirs.distance, rel=1e-4)
    assert [c.name for c in ours.channels] == [c.name for c in theirs.channels]
    assert draw_signals(library.snapshot(), a_window(values)).channels[0].asked == ()


def test_the_overview_finds_twins(library: Library) -> None:
    before = library.overview()
    assert (len(before.points), before.twins) == (12, ())
    values = library.window("w0").values(0)
    library.add_one(values * 1.001, CHANNELS, id="twin")
    after = library.overview()
    assert [(pair.first.id, pair.second.id) for pair in after.twins] == [("w0", "twin")]
    assert all(0 <= point.x <= 1 and 0 <= point.y <= 1 for point in after.points)


def test_the_overview_lists_doubtful_labels_and_cases_to_label(guarded: TestClient, keys: dict[str, str]) -> None:
    library: Library = guarded.app.state.service.library  # type: ignore[attr-defined]
    library.label("w4", "noise")
    library.label("w3", None)
    pages = {role: guarded.get("/overview", headers={"Authorization": f"Bearer {key}"}) for role, key in keys.items()}
    for role, page in pages.items():
        assert page.status_code == 200
        doubtful = page.text.split('aria-label="Doubtful labels"')[1].split("</section>")[0]
        assert "/cases/w4" in doubtful
        assert "stuck valve" in doubtful
        following = page.text.split('aria-label="Label these next"')[1].split("</section>")[0]
        assert "/cases/w3" in following
        assert ('action="/label"' in following) == (role != "read")


def test_a_case_is_labelled_on_the_overview(guarded: TestClient, keys: dict[str, str]) -> None:
    library: Library = guarded.app.state.service.library  # type: ignore[attr-defined]
    library.label("w3", None)
    for role, status in (("read", 403), ("write", 303)):
        own = {"Authorization": f"Bearer {keys[role]}"}
        answer = guarded.post("/label", data={"case": "w3", "label": " leak "}, headers=own, follow_redirects=False)
        assert answer.status_code == status
    assert answer.headers["location"] == "/overview#next"
    assert library.case("w3").label == "leak"
    assert "Label these next" not in guarded.get("/overview", headers=own).text


def test_the_map_tells_faults_apart_where_vectors_do() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3, dtype=np.int32), 30)
    vectors = rng.normal(size=(90, 40))
    vectors[np.arange(90), labels] += 6
    places = project_vectors(vectors, labels)
    centres = np.array([places[labels == label].mean(axis=0) for label in range(3)])
    nearest = ((places[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.95


def test_an_empty_library_has_an_empty_overview(tmp_path_factory: pytest.TempPathFactory) -> None:
    library = Library.create(tmp_path_factory.mktemp("empty") / "library")
    assert library.overview().points == ()


def test_how_likely_something_new_is_always_shown() -> None:
    labels = [*(f"fault {number}" for number in range(8)), UNLIKE]
    faults = tuple(Fault(label=label, probability=1 / 9, possible=True) for label in labels)
    answer = Answer(
        hits=(), faults=faults, novelty=None, novel=False, votes=(), method="euclidean", change=1, compared=1, total=1
    )
    assert [fault.label for fault in _options(answer)] == [*labels[:5], UNLIKE]
    assert _options(None) == []


def test_the_life_of_a_case_is_told_in_words(library: Library) -> None:
    library.label("w0", "noise")
    library.undo()
    library.reject("w0", like="w0")
    library.edit("w0", notes="Wet floor.")
    events = list_events(library, "w0")
    assert [event.words for event in events] == [
        "notes: Wet floor.",
        "not resolved any more; known not to be leak",
        "resolved as noise",
        "added as leak",
    ]
    assert [event.undone for event in events] == [False, False, True, False]


def test_work_beyond_the_waiting_room_is_refused_and_slow_work_is_given_up() -> None:
    async def run() -> None:
        release = threading.Event()
        work = WorkerPool(workers=1, waiting=1, timeout_s=60)
        running = [asyncio.create_task(work.do(release.wait)) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(BusyError, match="2 requests are being worked on"):
            await work.do(release.wait)
        release.set()
        assert await asyncio.gather(*running) == [True, True]
        assert work.running == 0
        assert await work.do(lambda: 7) == 7
        hurried = WorkerPool(workers=1, waiting=1, timeout_s=0.05)
        blocked = threading.Event()
        with pytest.raises(BusyError, match="No answer within"):
            await hurried.do(blocked.wait)
        blocked.set()
        await hurried.close(5.0)
        await work.close(5.0)
        assert hurried.running == 0 or await asyncio.sleep(0.05, result=True)

    asyncio.run(run())


HOLED = "time,pressure,flow,speed\n,bar,l/min,rpm\n" + "\n".join(
    f"2024-05-01 14:{minute:02d}:00+02:00,{minute},{'' if 10 <= minute < 15 else minute % 7},{minute % 5}"
    for minute in range(40)
)


def sent_signals(text: str) -> dict[str, Any]:
    found = re.search(r'id="signals">(.*?)</script>', text, re.DOTALL)
    assert found
    return dict(json.loads(found[1], parse_constant=lambda word: pytest.fail(f"{word} is no JSON")))


def test_a_file_with_gaps_is_drawn_with_them_has_a_link_and_is_kept_later(client: TestClient, library: Library) -> None:
    before = len(library)
    page = client.post("/look", files={"file": ("holes.csv", HOLED)})
    assert "/looked/" in str(page.url)
    again = client.get(str(page.url))
    assert len(library) == before
    signals = sent_signals(again.text)
    flow = next(channel for channel in signals["channels"] if channel["name"] == "flow")
    assert [i for i, value in enumerate(flow["values"]) if value is None] == list(range(10, 15))
    assert None not in flow["asked"]
    assert flow["unit"] == "l/min"
    clock = signals["clock"]
    assert (clock["zone"], clock["shift"], clock["rate"]) == ("+02:00", 7200.0, pytest.approx(1 / 60))
    assert "2024-05-01 14:00 to 14:39 +02:00" in again.text
    token = str(page.url).rsplit("/", 1)[1]
    part = client.get("/signals", params={"file": token, "first": 8, "last": 12}).json()
    assert part["values"]["flow"] == [8 % 7, 9 % 7, None, None]
    kept = client.post("/keep", data={"token": token})
    assert len(library) == before + 1
    assert "What was read of the file" in kept.text
    assert "flow" in kept.text.split("What was read of the file")[2].split("</section>")[0]
    assert client.get("/looked/nothing").status_code == 404


def test_files_are_held_a_while_and_not_too_many(library: Library) -> None:
    own = HeldFile("a", "", ReadRecording(library.window("w0"), np.array([np.nan])))
    files = HeldFiles(most=2)
    names = [files.hold(own) for _ in range(3)]
    assert [files.get(name) is not None for name in names] == [False, True, True]
    small = HeldFiles(most_readings=own.size)
    names = [small.hold(own) for _ in range(2)]
    assert [small.get(name) is not None for name in names] == [False, True]
    before = attach_context(library.window("w0"), before=np.zeros((len(own.read.windows.channels(0)), 10_000)))
    assert HeldFile("b", "", ReadRecording(before, np.array([np.nan]))).size >= own.size + 10_000
    late = HeldFiles(seconds=-1.0)
    assert late.get(late.hold(own)) is None


def test_who_may_edit_takes_edits_back_and_the_page_says_who_made_them(
    guarded: TestClient, keys: dict[str, str]
) -> None:
    library: Library = guarded.app.state.service.library  # type: ignore[attr-defined]
    own = {"Authorization": f"Bearer {keys['write']}"}
    seen = str(library.case("w3").changed)
    page = guarded.post("/feedback", data={"case": "w3", "like": "w0", "same": "false", "seen": seen}, headers=own)
    assert library.case("w3").rejected == ("leak",)
    assert "by write" in page.text
    number = library.history()[-1].number
    assert f"done={number}" in str(page.url)
    for again, expected in ((False, ()), (True, ("leak",))):
        guarded.post("/revert", data={"case": "w3", "change": number, "again": again}, headers=own)
        assert library.case("w3").rejected == expected
    first = library.history()[0].number
    assert guarded.post("/revert", data={"case": "w3", "change": first}, headers=own).status_code == 403
    reader = {"Authorization": f"Bearer {keys['read']}"}
    assert guarded.post("/revert", data={"case": "w3", "change": number}, headers=reader).status_code == 403
    assert "Take back" not in guarded.get("/cases/w3", headers=reader).text


def test_a_long_window_without_readings_for_a_while_has_a_gap_where_it_is_thinned(library: Library) -> None:
    own = a_window(np.random.default_rng(0).normal(size=(3, 5000)))
    gaps = np.zeros((3, 5000), np.bool_)
    gaps[0, 2000:3000] = True
    drawn = {c.name: c.values for c in draw_signals(library.snapshot(), own, gaps=gaps).channels}
    share = sum(value is None for value in drawn["pressure"]) / len(drawn["pressure"])
    assert share == pytest.approx(0.2, abs=0.02)
    assert None not in drawn["flow"]
    part = draw_part(own, 1990, 2010, gaps)
    assert [value is None for value in part.values["pressure"]] == [False] * 10 + [True] * 10
