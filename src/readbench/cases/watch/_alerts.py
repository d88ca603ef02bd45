"""Alertmanager's webhook as input: an alert that fires leads to a search.

```yaml
receivers:
- name: cases
  webhook_configs:
  - url: http://127.0.0.1:9095/alerts
```

An alert names its asset in a label (`asset`, `instance`, or the one that is told); its `startsAt` is the onset. Each
alert leads to one search, however often Alertmanager repeats it.
"""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from readbench.common.files import digest
from readbench.common.times import parse_date

MOST_BYTES = 4 * 2**20
PATIENCE_S = 10.0
MOST_AT_ONCE = 200
"""Alerts of one request."""


class AlertListener:
    """A small server for alerts.

    Args:
        host: to listen on.
        port: 0 for one that is free.
        alert: told asset, start, name and key of each alert that fires.
        label: that names the asset; "" tries `asset` and `instance`.
        token: that requests must bear; "" for none.
    """

    def __init__(
        self, host: str, port: int, alert: Callable[[str, float, str, str], bool], label: str = "", token: str = ""
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = PATIENCE_S

            def do_POST(self) -> None:
                wanted = f"Bearer {token}"
                if token and not hmac.compare_digest(self.headers.get("Authorization", "").encode(), wanted.encode()):
                    self._answer(401, "Send the token: Authorization: Bearer ...")
                    return
                length = self.headers.get("Content-Length", "")
                if self.path != "/alerts" or not length.isdecimal() or int(length) > MOST_BYTES:
                    self._answer(404 if self.path != "/alerts" else 413, "Send alerts to /alerts, 4 MiB at most.")
                    return
                try:
                    alerts = read_alerts(json.loads(self.rfile.read(int(length))), label)
                except (ValueError, TypeError, AttributeError, KeyError) as error:
                    self._answer(400, f"This is no message of Alertmanager: {error}")
                    return
                new = sum(alert(*own) for own in alerts)
                self._answer(200, f"{new} new alerts")

            def _answer(self, status: int, words: str) -> None:
                body = json.dumps({"detail": words}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:  # noqa: ANN401 - said by the watch, where there is something to say
                """Nothing."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="alerts")

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE_S)


def read_alerts(message: dict[str, Any], label: str = "") -> list[tuple[str, float, str, str]]:
    """Asset, start, name and key of the alerts of a message that fire.

    >>> labels = {"alertname": "Hot", "asset": "pump 2"}
    >>> one = {"status": "firing", "labels": labels, "startsAt": "2023-11-14T22:13:20.000Z", "fingerprint": "ab"}
    >>> read_alerts({"version": "4", "alerts": [one]})[0][:3]
    ('pump 2', 1700000000.0, 'Hot')
    """
    found = []
    for own in message["alerts"][:MOST_AT_ONCE]:
        if own["status"] != "firing":
            continue
        labels = own["labels"]
        started = parse_date(str(own["startsAt"]))
        if started is None:
            raise ValueError("startsAt is no date")
        names = (label,) if label else ("asset", "instance")
        asset = next((str(labels[name]) for name in names if name in labels), "")
        name = str(labels.get("alertname", "alert"))[:200]
        key = digest(own.get("fingerprint", "") or sorted(labels.items()), own["startsAt"])
        found.append((asset[:200], started, name, key))
    return found
