"""A watch goes on whatever comes, says when it is blind, and sees again; what strangers send is bounded."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
import requests

from readbench.cases.connect import SampledChannel, SourceReadings, open_source
from readbench.cases.watch import (
    AlertListener,
    AssetTrack,
    Notice,
    Watcher,
    Webhook,
    _alerts,
    _tracks,
    _watcher,
    note_trouble,
)
from readbench.cli.cases_connect import _CleanLines, _say_with_time
from readbench.common.letters import clean
from tests.cases.connect.test_strange_answers import ODD, Liar, prometheus_says
from tests.cases.watch.conftest import LEARNED, SETTINGS, Watch, go
from tests.cases.watch.plant import T0, Plant


class Follower:
    """Follows a plant, or fails."""

    def __init__(self, plant: Plant) -> None:
        self.own, self.error = plant.follow(plant.now), None

    error: BaseException | None

    def poll(self, now: float) -> SourceReadings:
        if self.error is not None:
            raise self.error
        return self.own.poll(now)

    def close(self) -> None: ...


def seeing(watch: Watch, said: list[str] | None = None, **more: object) -> tuple[Plant, Watcher, Follower]:
    plant = Plant()
    plant.now = T0 + LEARNED
    watcher = watch(plant, said, **more)
    watcher._follower = Follower(plant)
    return plant, watcher, watcher._follower


def troubles(watcher: Watcher) -> list[Notice]:
    return [own for own in reversed(watcher.log.latest(99)) if own.kind in {"trouble", "recovered"}]


@pytest.mark.parametrize("error", [ValueError("could not convert string to float: 'NaN?'"), KeyError("metric")])
def test_a_source_that_raises_whatever_makes_the_watch_blind_and_it_sees_again(watch: Watch, error: Exception) -> None:
    said: list[str] = []
    plant, watcher, follower = seeing(watch, said)
    follower.error = error
    assert go(watcher, plant, 30) == []
    assert troubles(watcher) == []
    assert "the source is not read" in watcher.health.troubles[0]
    assert watcher.health.blind_s == 30.0
    go(watcher, plant, 60)
    follower.error = None
    plant.fail("pump 0", "leak", LEARNED + 110)
    told = go(watcher, plant, 200)
    blind, sees = troubles(watcher)
    assert (blind.kind, sees.kind, sees.follows) == ("trouble", "recovered", blind.key)
    assert [own.faults[0].label for own in told] == ["leak"]
    assert watcher.health.troubles == ()
    assert watcher.health.failures["reads the source"] == 18
    assert sum(type(error).__name__ in words for words in said) == 2, "when it began, and in the notice"


def test_a_watch_that_was_blind_says_so_once_also_after_a_restart(watch: Watch) -> None:
    plant, watcher, follower = seeing(watch)
    follower.error = ValueError("odd")
    go(watcher, plant, 90)
    watcher.close()
    again = watch(plant)
    again._follower = follower
    go(again, plant, 30)
    follower.error = None
    go(again, plant, 10)
    assert [own.kind for own in troubles(again)] == ["trouble", "recovered"]


@pytest.mark.parametrize("what", ODD)
def test_no_answer_of_prometheus_ends_a_watch(watch: Watch, what: str) -> None:
    plant, watcher, _ = seeing(watch)
    body = ODD[what]
    right = prometheus_says({"status": "success", "data": {"result": []}})
    broken = threading.Event()

    def answer(path: str) -> bytes:
        return body(path) if broken.is_set() else right(path)

    with Liar(answer) as server:
        watcher._follower = open_source(f"prometheus://127.0.0.1:{server.server_port}/").follow(plant.now)
        go(watcher, plant, 10)
        assert watcher.health.troubles == ()
        broken.set()
        go(watcher, plant, 70)
        assert watcher.health.troubles
        assert [own.kind for own in troubles(watcher)] == ["trouble"]
        broken.clear()
        go(watcher, plant, 10)
    assert watcher.health.troubles == ()


def test_one_asset_that_fails_leaves_the_others_watched(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, said = Plant(["pump 0", "pump 1"]), list[str]()
    plant.now = T0 + LEARNED
    plant.fail("pump 1", "leak", LEARNED + 20)
    watcher = watch(plant, said)
    advance = AssetTrack.advance

    def odd(self: AssetTrack, until: int) -> int:
        if self.asset == "pump 0":
            raise IndexError("a shape that nobody thought of")
        return advance(self, until)

    monkeypatch.setattr(AssetTrack, "advance", odd)
    told = go(watcher, plant, 200)
    assert [(own.asset, own.faults[0].label) for own in told] == [("pump 1", "leak")]
    assert any("pump 0: IndexError" in words for words in watcher.health.troubles)
    assert sum("pump 0 is left out of a round" in words for words in said) == 1
    monkeypatch.setattr(AssetTrack, "advance", advance)
    go(watcher, plant, 5)
    assert watcher.health.troubles == ()


def test_a_round_that_fails_is_told_and_the_loop_goes_on(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    _, watcher, _ = seeing(watch, settings=replace(SETTINGS, poll_s=0.01))
    watcher._loop._pause_s = (0.01, 0.02)
    stop, flush = threading.Event(), Watcher._flush
    thread = threading.Thread(target=watcher.run, args=(stop,))

    broken = threading.Event()

    def fail(self: Watcher, now: float) -> None:
        if broken.is_set():
            raise RuntimeError("dictionary changed size during iteration")
        flush(self, now)

    monkeypatch.setattr(Watcher, "_flush", fail)
    broken.set()
    monkeypatch.setattr(Watcher, "_tell", lambda self, notice: self.log.write(notice))
    thread.start()
    end = time.monotonic() + 20
    while len(troubles(watcher)) < 1 and time.monotonic() < end:
        time.sleep(0.01)
    assert any("a round of the watch: RuntimeError" in words for words in watcher.health.troubles)
    broken.clear()
    while len(troubles(watcher)) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    stop.set()
    thread.join(20)
    assert [own.kind for own in troubles(watcher)] == ["trouble", "recovered"]
    assert watcher.health.troubles == ()


def flood(number: int, now: float, count: int = 1000) -> SourceReadings:
    return SourceReadings(
        {(f"x{number}-{i}", "p"): SampledChannel.of([now - 2, now - 1], [1.0, 2.0]) for i in range(count)}
    )


def test_who_may_publish_does_not_make_the_watch_grow(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    plant, watcher, follower = seeing(watch, said, settings=replace(SETTINGS, most_assets=50))
    poll = follower.poll

    def flooded(now: float) -> SourceReadings:
        return SourceReadings({**poll(now).series, **flood(round(now), now).series})

    follower.poll = flooded  # type: ignore[method-assign]
    go(watcher, plant, 20)
    assert len(watcher.tracks) == 50
    held, lines = watcher.held_bytes, len(said)
    go(watcher, plant, 100)
    assert len(watcher.tracks) == 50
    assert watcher.held_bytes <= 1.5 * held
    assert len(said) - lines <= 51, "that each of those that are followed fell silent, and that there are more"
    assert [own.kind for own in troubles(watcher)] == ["trouble"]
    assert "more than 50" in troubles(watcher)[0].text
    assert "pump 0" in watcher.tracks, "who was there first stays"
    follower.poll = poll  # type: ignore[method-assign]
    monkeypatch.setattr(_watcher, "PASSING_S", 60.0)
    plant.values["pump 9"] = plant.values["pump 0"]
    go(watcher, plant, 120)
    assert "pump 9" in watcher.tracks, "what came and went makes room"


def test_channels_of_one_asset_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tracks, "MOST_TRACKED", 10)
    track, said = AssetTrack("a", 1.0, 40, None), list[str]()
    track.begin(round(T0))
    track.take({f"c{i}": SampledChannel.of([T0 + 1], [1.0]) for i in range(100)}, said.append)
    assert len(track.channels) == len(track.units) == 10
    assert set(said) == {"a: channels beyond the first 10 are left out."}


def test_nobody_forges_a_line_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    _say_with_time("rig\n2026 ERROR fake \x1b[31mline\x07 \x9b2J \u202eabc" + "x" * 5000)
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert not any(sign in shown for sign in "\x1b\x07\x9b\u202e")
    assert len(shown) < 2200
    assert clean("Füllstand 3 °C") == "Füllstand 3 °C"
    formatter = _CleanLines("%(levelname)s %(message)s")
    record = logging.LogRecord("n", 40, "p", 1, "a\n12:00:00 ERROR b\x1b", None, None)
    assert formatter.format(record) == "ERROR a\n    12:00:00 ERROR b\\x1b"


@pytest.fixture
def hears(watch: Watch) -> Any:  # noqa: ANN401 - a listener, and its watch
    plant, watcher, follower = seeing(watch)
    with AlertListener("127.0.0.1", 0, watcher.alert, health=lambda: watcher.health) as listener:
        yield plant, watcher, follower, f"http://127.0.0.1:{listener.port}"


ALERT = {"status": "firing", "labels": {"alertname": "Hot", "asset": "rig"}, "startsAt": "2023-11-14T22:13:20Z"}


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xff",
        b"[]",
        b"{}",
        b'{"alerts": 5}',
        b'{"alerts": [5]}',
        b'{"alerts": [{"status": "firing"}]}',
        json.dumps({"alerts": [ALERT | {"labels": [1]}]}).encode(),
        json.dumps({"alerts": [ALERT | {"labels": {"asset": {"a": 1}}}]}).encode(),
        json.dumps({"alerts": [ALERT | {"startsAt": 5}]}).encode(),
        json.dumps({"alerts": [ALERT | {"startsAt": "9999-12-31T23:59:59Z"}]}).encode(),
    ],
)
def test_an_odd_alert_is_refused_in_one_sentence(hears: Any, body: bytes) -> None:  # noqa: ANN401
    answer = requests.post(f"{hears[3]}/alerts", data=body, timeout=10)
    assert answer.status_code == 400
    assert "Alertmanager sends what cannot be read" in answer.json()["detail"] or "1900" in answer.json()["detail"]


def test_the_listener_says_whether_the_watch_sees(hears: Any) -> None:  # noqa: ANN401
    plant, watcher, follower, address = hears
    go(watcher, plant, 5)
    assert requests.get(f"{address}/readyz", timeout=5).json() == {"status": "ready", "assets": 1, "failing": []}
    follower.error = ValueError("odd")
    go(watcher, plant, 5)
    answer = requests.get(f"{address}/readyz", timeout=5)
    assert (answer.status_code, answer.json()["status"]) == (503, "failing")
    text = requests.get(f"{address}/metrics", timeout=5).text
    assert "readbench_watch_up 0" in text
    assert 'readbench_watch_failures{loop="reads the source"} 1' in text
    follower.error = None
    go(watcher, plant, 5)
    assert requests.get(f"{address}/readyz", timeout=5).status_code == 200
    assert requests.get(f"{address}/x", timeout=5).status_code == 404
    sent = requests.Request("POST", f"{address}/alerts", data=b"x").prepare()
    sent.headers["Content-Length"] = "9" * 5000
    assert requests.Session().send(sent, timeout=5).status_code == 413


def test_a_request_for_alerts_that_comes_drop_by_drop_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_alerts, "PATIENCE_S", 1.0)
    monkeypatch.setattr(_alerts, "MOST_CALLERS", 2)
    with AlertListener("127.0.0.1", 0, lambda *_: True) as listener:
        slow = [socket.create_connection(("127.0.0.1", listener.port), 5) for _ in range(2)]
        began, ended = time.monotonic(), 0.0
        slow[0].settimeout(0.01)
        while not ended and time.monotonic() - began < 10:
            try:
                for own in slow:
                    own.sendall(b"G")
                ended = 0.0 if slow[0].recv(1) else time.monotonic()
            except TimeoutError:
                time.sleep(0.1)
            except OSError:
                ended = time.monotonic()
        assert ended
        assert ended - began < 4.0
        assert requests.get(f"http://127.0.0.1:{listener.port}/readyz", timeout=5).status_code == 200
        for own in slow:
            own.close()


def test_what_is_told_of_troubles_resolves_an_incident() -> None:
    begun, over = (note_trouble("plant", "reading the source", words, T0, T0 + 90) for words in ("away", ""))
    hook = Webhook.parse("pagerduty=env:KEY")
    first, last = hook.body(begun, "k"), hook.body(over, "k")
    assert (first["event_action"], last["event_action"]) == ("trigger", "resolve")
    assert first["dedup_key"] == last["dedup_key"]
