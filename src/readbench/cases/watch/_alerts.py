"""Alertmanager's webhook as input: an alert that fires leads to a search.

```yaml
receivers:
- name: cases
  webhook_configs:
  - url: http://127.0.0.1:9095/alerts
```

An alert names its asset in a label (`asset`, `instance`, or the one that is told); its `startsAt` is the onset. Each
alert leads to one search, however often Alertmanager repeats it. Beside `/alerts`, `/readyz` says whether the watch
sees, and `/metrics` counts, without a token.
"""

from __future__ import annotations

import hmac
import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, TypeAdapter

from readbench.cases.connect import TimedSocket, check_times, parse_answer
from readbench.common.deadlines import within_seconds
from readbench.common.files import digest
from readbench.common.supervised import SupervisedLoop
from readbench.common.times import parse_date
from readbench.errors import AnswerError

log = logging.getLogger("readbench.watch")
MOST_BYTES = 4 * 2**20
PATIENCE_S = 10.0
END_SEEN_S = 0.05
"""How often the loop looks whether it should end."""
MOST_CALLERS = 16
"""Requests at the same time."""
MOST_AT_ONCE = 200
"""Alerts of one request."""


@dataclass(frozen=True)
class WatchHealth:
    """How a watch is.

    Args:
        assets: that it follows.
        troubles: what does not work, in sentences.
        failures: how often it failed so far, by what failed.
        blind_s: seconds since the source was last read.
    """

    assets: int = 0
    troubles: tuple[str, ...] = ()
    failures: Mapping[str, int] = field(default_factory=dict)
    blind_s: float = 0.0

    def to_json(self) -> str:
        """For `/readyz`."""
        status = "failing" if self.troubles else "ready"
        return json.dumps({"status": status, "assets": self.assets, "failing": self.troubles})

    def to_metrics(self) -> str:
        """For Prometheus.

        >>> print(WatchHealth(3, failures={"reads": 1}).to_metrics().splitlines()[-1])
        readbench_watch_failures{loop="reads"} 1
        """
        failed = [f'readbench_watch_failures{{loop="{name}"}} {count}' for name, count in self.failures.items()]
        return "\n".join(
            (
                f"readbench_watch_up {int(not self.troubles)}",
                f"readbench_watch_assets {self.assets}",
                f"readbench_watch_blind_seconds {self.blind_s:.0f}",
                *failed,
                "",
            )
        )


class AlertListener:
    """A small server for alerts.

    Args:
        host: to listen on.
        port: 0 for one that is free.
        alert: told asset, start, name and key of each alert that fires.
        label: that names the asset; "" tries `asset` and `instance`.
        token: that alerts must bear; "" for none.
        health: how the watch is.
    """

    def __init__(
        self,
        host: str,
        port: int,
        alert: Callable[[str, float, str, str], bool],
        label: str = "",
        token: str = "",
        health: Callable[[], WatchHealth] = lambda: WatchHealth(),  # noqa: PLW0108 - made when it is asked for
    ) -> None:
        self.alert, self.label, self.health = alert, label, health
        self.wanted = f"Bearer {token}".encode() if token else b""
        self._server = _BoundedServer((host, port), partial(_AlertHandler, self))
        self.loop = SupervisedLoop("hears alerts", partial(self._server.serve_forever, poll_interval=END_SEEN_S))

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self.loop.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.stop()
        self._server.shutdown()
        self._server.server_close()
        self.loop.join(PATIENCE_S)


class _AlertHandler(BaseHTTPRequestHandler):
    """One request; it comes whole within `PATIENCE_S`, however slowly its bytes come."""

    timeout = PATIENCE_S

    def __init__(self, ear: AlertListener, *given: Any) -> None:  # noqa: ANN401 - of the standard library
        self._ear = ear
        super().__init__(*given)

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = TimedSocket(self.connection).makefile()

    def handle(self) -> None:
        with within_seconds(PATIENCE_S), suppress(TimeoutError, ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        own = self._ear.health()
        if self.path == "/readyz":
            self._send(503 if own.troubles else 200, own.to_json().encode(), "application/json")
        elif self.path == "/metrics":
            self._send(200, own.to_metrics().encode(), "text/plain; version=0.0.4; charset=utf-8")
        else:
            self._answer(404, "There are /readyz and /metrics, and /alerts for alerts.")

    def do_POST(self) -> None:
        wanted = self._ear.wanted
        if wanted and not hmac.compare_digest(self.headers.get("Authorization", "").encode(), wanted):
            self._answer(401, "Send the token: Authorization: Bearer ...")
            return
        length = self.headers.get("Content-Length", "")
        known = length.isdecimal() and len(length) < 10
        if self.path != "/alerts" or not known or int(length) > MOST_BYTES:
            self._answer(404 if self.path != "/alerts" else 413, "Send alerts to /alerts, 4 MiB at most.")
            return
        try:
            alerts = read_alerts(self.rfile.read(int(length)), self._ear.label)
        except AnswerError as error:
            self._answer(400, str(error))
            return
        new = sum(self._ear.alert(*own) for own in alerts)
        self._answer(200, f"{new} new alerts")

    def _answer(self, status: int, words: str) -> None:
        self._send(status, json.dumps({"detail": words}).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 - said by the watch, where there is something to say
        """Nothing."""


class _BoundedServer(ThreadingHTTPServer):
    """Answers so many at a time; who comes then is sent away."""

    daemon_threads = True

    def __init__(self, *given: Any, **more: Any) -> None:  # noqa: ANN401 - of the standard library
        self._places = threading.BoundedSemaphore(MOST_CALLERS)
        super().__init__(*given, **more)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002
        log.error("a request for alerts failed", exc_info=True)  # noqa: LOG014 - called where it is handled


Text = Annotated[str, Field(max_length=10_000)]


class _Alert(BaseModel):
    """One alert, as Alertmanager's webhook has it."""

    status: Text
    labels: Annotated[dict[Text, Text], Field(max_length=1000)] = {}
    started: Text = Field(alias="startsAt")
    fingerprint: Text = ""


class _Message(BaseModel):
    """A message of Alertmanager."""

    alerts: list[_Alert]


MESSAGE = TypeAdapter(_Message)


def read_alerts(message: bytes | str, label: str = "") -> list[tuple[str, float, str, str]]:
    """Asset, start, name and key of the alerts of a message that fire; `AnswerError` where it is none.

    >>> labels = {"alertname": "Hot", "asset": "pump 2"}
    >>> one = {"status": "firing", "labels": labels, "startsAt": "2023-11-14T22:13:20.000Z", "fingerprint": "ab"}
    >>> read_alerts(json.dumps({"version": "4", "alerts": [one]}))[0][:3]
    ('pump 2', 1700000000.0, 'Hot')
    """
    found = []
    for own in parse_answer(MESSAGE, message, "Alertmanager").alerts[:MOST_AT_ONCE]:
        if own.status != "firing":
            continue
        started = parse_date(own.started)
        if started is None:
            raise AnswerError("Alertmanager sends what cannot be read: startsAt is no date.")
        check_times([started], "Alertmanager")
        names = (label,) if label else ("asset", "instance")
        asset = next((own.labels[name] for name in names if name in own.labels), "")
        name = own.labels.get("alertname", "alert")[:200]
        key = digest(own.fingerprint or sorted(own.labels.items()), own.started)
        found.append((asset[:200], started, name, key))
    return found
