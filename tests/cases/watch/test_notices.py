"""Notices reach who waits for them, in their shape, once; alerts of a real Alertmanager come in."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from readbench.cases.watch import (
    AlertListener,
    Notice,
    NoticeCase,
    NoticeEvidence,
    NoticeFault,
    NoticeLog,
    WatchSettings,
    Webhook,
)
from readbench.errors import UnreachableError, UsageError
from tests.cases.connect import servers
from tests.cases.samples import FAST
from tests.cases.watch.conftest import LEARNED, Watch, go
from tests.cases.watch.plant import T0, Plant
from tests.serving import answering

NOTICE = Notice(
    key="k1",
    kind="fault",
    asset="pump <2>",
    source="prometheus://plant/",
    onset=T0,
    seen=T0 + 20,
    told=T0 + 30,
    faults=(NoticeFault(label="leak", probability=0.9),),
    cases=(NoticeCase(id="w1", label="leak", asset="pump 1", notes="Seal & gasket.", link="http://desk/cases/w1"),),
    evidence=(NoticeEvidence(channel="flow", window=5.0, case=4.0, same_way=True),),
    remarks=("70% of its <readings> are missing.",),
    link="http://desk/range?source=plant",
    text="pump <2>: leak (90%), 30 s after it began.",
)


class Desk:
    """Receives webhooks; it refuses the first so many."""

    def __init__(self, refuse: int = 0) -> None:
        self.received: list[tuple[dict[str, Any], str]] = []
        self.paths: list[str] = []
        self.refuse = refuse
        desk = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                desk.refuse -= 1
                if desk.refuse < 0:
                    desk.paths.append(self.path)
                    desk.received.append((body, self.headers.get("Idempotency-Key", "")))
                self.send_response(200 if desk.refuse < 0 else 503)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...  # noqa: ANN401

        self._stack = ExitStack()
        self.address = self._stack.enter_context(answering(ThreadingHTTPServer(("127.0.0.1", 0), Handler)))

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def desk() -> Iterator[Callable[..., Desk]]:
    made: list[Desk] = []

    def make(refuse: int = 0) -> Desk:
        made.append(Desk(refuse))
        return made[-1]

    yield make
    for own in made:
        own.close()


def test_each_receiver_gets_its_shape(desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch) -> None:
    own = desk()
    monkeypatch.setenv("SLACK_URL", f"{own.address}/services/s3cret")
    monkeypatch.setenv("PAGER_KEY", "s3cret-routing")
    hooks = [f"json={own.address}/in", "slack=env:SLACK_URL", f"pagerduty=env:PAGER_KEY@{own.address}/v2/enqueue"]
    for text in hooks:
        hook = Webhook.parse(text)
        assert "s3cret" not in hook.shown
        hook.send(NOTICE)
    (plain, key), (slack, _), (pager, _) = own.received
    assert key == "k1"
    assert Notice.model_validate(plain) == NOTICE
    assert slack["text"] == "pump &lt;2&gt;: leak (90%), 30 s after it began."
    assert "<http://desk/cases/w1|w1>: leak. Seal &amp; gasket." in slack["blocks"][0]["text"]["text"]
    assert slack["blocks"][0]["text"]["text"].endswith("\n70% of its &lt;readings&gt; are missing.")
    assert (pager["routing_key"], pager["event_action"], pager["dedup_key"]) == ("s3cret-routing", "trigger", "k1")
    assert set(pager["payload"]) == {"summary", "source", "severity", "timestamp", "custom_details"}
    assert pager["payload"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert pager["links"][0]["href"] == NOTICE.link


def test_slack_gets_whole_lines_within_its_limit() -> None:
    cases = [NOTICE.cases[0].model_copy(update={"notes": "&" * 500, "link": "http://desk/cases/a?b&c"})] * 3
    body = Webhook.parse("slack=env:SLACK_URL").body(NOTICE.model_copy(update={"cases": cases}))
    lines = body["blocks"][0]["text"]["text"].split("\n")
    assert len("\n".join(lines)) <= 3000
    assert lines[1] == f"<{NOTICE.link}|Open the range>"
    assert lines[2] == f"• <http://desk/cases/a?b&amp;c|w1>: leak. {'&amp;' * 500}"
    assert len(lines) == 3


def test_an_address_that_fails_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_URL", f"http://127.0.0.1:{servers.free_port()}/s3cret")
    with pytest.raises(UnreachableError) as caught:
        Webhook.parse("slack=env:SLACK_URL").send(NOTICE)
    assert "s3cret" not in str(caught.value)
    for wrong in (
        "teams=http://x",
        "slack=",
        "pagerduty=s3cret",
        "slack=https://hooks.slack.com/services/s3cret",
        "json=https://desk:s3cret@example.com/in",
    ):
        with pytest.raises(UsageError) as refused:
            Webhook.parse(wrong)
        assert "s3cret" not in str(refused.value)


def test_a_log_has_each_notice_once_and_survives_a_torn_line(tmp_path: Path) -> None:
    log = NoticeLog(tmp_path / "notices.jsonl")
    assert log.latest(3) == []
    assert log.write(NOTICE)
    assert not log.write(NOTICE)
    with log.path.open("ab") as file:
        file.write(b'{"key": "torn')
    other = NOTICE.model_copy(update={"key": "k2"})
    assert log.write(other)
    assert log.latest(3) == [other, NOTICE]


def test_a_receiver_that_was_away_gets_the_notice_later_and_once(watch: Watch, desk: Callable[..., Desk]) -> None:
    own, plant = desk(refuse=2), Plant()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED + 20)
    hooks = [Webhook.parse(f"json={own.address}/in")]
    first = watch(plant, hooks=hooks)
    assert len(go(first, plant, 70)) == 1
    again = watch(plant, hooks=hooks)  # killed and started again
    go(again, plant, 200)
    assert [body["faults"][0]["label"] for body, _ in own.received] == ["leak"]


def test_receivers_at_one_host_get_a_notice_each(watch: Watch, desk: Callable[..., Desk]) -> None:
    own, plant = desk(), Plant()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED + 10)
    hooks = [Webhook.parse(f"json={own.address}/{path}") for path in ("first", "second")]
    go(watch(plant, hooks=hooks), plant, 200)
    assert sorted(own.paths) == ["/first", "/second"]


def test_who_does_not_answer_is_waited_for_once_in_a_round(watch: Watch) -> None:
    tries: list[str] = []

    class Silent:
        shown = key = "desk"

        def send(self, notice: Notice) -> None:
            tries.append(notice.key)
            raise UnreachableError("desk does not answer.")

    plant = Plant()
    plant.now = T0 + LEARNED
    watcher = watch(plant, hooks=[Silent()])
    for key in ("k1", "k2", "k3"):
        watcher._send_later(NOTICE.model_copy(update={"key": key}))
    watcher._flush(plant.now)
    assert tries == ["k1"]
    assert [own["left"] for own in watcher._outbox] == [["desk"]] * 3


def test_what_is_no_alert_is_refused() -> None:
    heard: list[Any] = []

    def hear(*own: Any) -> bool:  # noqa: ANN401
        heard.append(own)
        return True

    with AlertListener("127.0.0.1", 0, hear, token="s3cret") as listener:  # noqa: S106
        address = f"http://127.0.0.1:{listener.port}/alerts"
        assert requests.post(address, json={}, timeout=5).status_code == 401
        head = {"Authorization": "Bearer s3cret"}
        assert requests.post(address, json={"no": 1}, headers=head, timeout=5).status_code == 400
        assert requests.post(address, json=[1], headers=head, timeout=5).status_code == 400
        assert requests.post(f"{address}/x", json={}, headers=head, timeout=5).status_code == 404
        assert requests.post(address, data=b"x" * (5 * 2**20), headers=head, timeout=5).status_code == 413
        resolved: Any = {"alerts": [{"status": "resolved", "labels": {}, "startsAt": "2023-11-14T22:13:20Z"}]}
        assert requests.post(address, json=resolved, headers=head, timeout=5).json() == {"detail": "0 new alerts"}
    assert heard == []


def test_an_alert_of_a_real_alertmanager_leads_to_a_notice(watch: Watch) -> None:
    if shutil.which("prometheus-alertmanager") is None:
        pytest.skip("no Alertmanager: install it (Debian: apt install prometheus-alertmanager)")
    plant = Plant()
    plant.now = T0 + LEARNED
    plant.fail("pump 0", "leak", LEARNED - 40, 41)
    watcher = watch(plant, settings=WatchSettings(method=FAST, normals="none", firm=0.6))
    with AlertListener("127.0.0.1", 0, watcher.alert) as listener, servers.temporary_folder() as folder:
        port = servers.free_port()
        hook = f"http://127.0.0.1:{listener.port}/alerts"
        (folder / "am.yml").write_text(
            "route:\n  receiver: cases\n  group_wait: 0s\n  group_interval: 1s\n"
            f"receivers:\n- name: cases\n  webhook_configs:\n  - url: {hook}\n"
        )
        command = [
            "prometheus-alertmanager",
            "--config.file=am.yml",
            "--storage.path=data",
            "--cluster.listen-address=",
        ]
        address = f"http://127.0.0.1:{port}"
        command += [f"--web.listen-address=127.0.0.1:{port}"]
        with servers.running(command, lambda: requests.get(f"{address}/-/ready", timeout=1).ok, folder):
            labels = {"alertname": "PressureLow", "asset": "pump 0"}
            for _ in range(2):
                sent = requests.post(f"{address}/api/v2/alerts", json=[{"labels": labels}], timeout=5)
                assert sent.ok
            end = time.monotonic() + 20
            while not watcher._alerts and time.monotonic() < end:
                time.sleep(0.05)
    told = go(watcher, plant, 50)
    assert [(own.trigger, own.faults[0].label) for own in told] == [("PressureLow", "leak")]
