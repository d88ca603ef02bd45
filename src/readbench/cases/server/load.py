"""Load test of a service: clients search without pause, optionally while cases are added.

```
python -m readbench.cases.server.load http://127.0.0.1:8000 --clients 1,16 --seconds 60
python -m readbench.cases.server.load http://127.0.0.1:8000 --clients 4 --writes 1
```

`--writes` adds that many copies of cases per second, which stay in the library.
"""

from __future__ import annotations

import argparse
import http.client
import json
import threading
import time
from dataclasses import asdict, dataclass, field
from itertools import cycle
from typing import Self
from urllib.parse import quote, urlsplit

import numpy as np

TIMEOUT_S = 120
QUERIES = 20
"""Number of windows that are searched for, in turn."""


@dataclass(frozen=True)
class Load:
    """Result of a load test.

    Args:
        clients: number of concurrent clients.
        answers: number of answered searches.
        failures: number of requests with another status than 200.
        per_second: answers per second.
        p50_ms: median time of a search.
        p95_ms: 95th percentile of the time of a search.
        written: number of added cases.
        health_ms: longest time of `/healthz` and `/readyz`, requested ten times a second.
    """

    clients: int
    answers: int
    failures: int
    per_second: float
    p50_ms: float
    p95_ms: float
    written: int
    health_ms: float


@dataclass(eq=False)
class _Tally:
    """Result of one client."""

    seconds: list[float] = field(default_factory=list)
    failures: int = 0


class Asker:
    """One connection to a service, to be closed after use.

    Args:
        address: `http://host:port`.
        key: token; "" for a service without keys.
    """

    def __init__(self, address: str, key: str = "") -> None:
        parts = urlsplit(address)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.netloc, timeout=TIMEOUT_S)
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and content of an answer; status 0 without one."""
        try:
            self._connection.request(method, path, body, self._headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0, b""


def measure(address: str, clients: int, seconds: float, key: str = "", writes: float = 0.0) -> Load:
    """Search for windows of the library, sent as new windows.

    Args:
        address: `http://host:port`.
        clients: number of concurrent clients.
        seconds: duration.
        key: token with the role read, or write with `writes`.
        writes: cases added per second.
    """
    with Asker(address, key) as first:
        bodies = _bodies(first)
        first.ask("POST", "/api/v1/search", bodies[0])  # fits the method before the measurement
    tallies, written, health = [_Tally() for _ in range(clients)], _Tally(), _Tally()
    end = time.perf_counter() + seconds
    threads = [
        threading.Thread(target=_client, args=(Asker(address, key), bodies[i % len(bodies) :] + bodies, end, tally))
        for i, tally in enumerate(tallies)
    ]
    threads.append(threading.Thread(target=_watch, args=(Asker(address, key), end, health)))
    if writes:
        threads.append(threading.Thread(target=_write, args=(Asker(address, key), bodies, end, writes, written)))
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = np.array([second for tally in tallies for second in tally.seconds])
    return Load(
        clients=clients,
        answers=len(spent),
        failures=sum(tally.failures for tally in (*tallies, written, health)),
        per_second=round(len(spent) / (time.perf_counter() - began), 2),
        p50_ms=round(1000 * float(np.quantile(spent, 0.5)), 1) if len(spent) else 0.0,
        p95_ms=round(1000 * float(np.quantile(spent, 0.95)), 1) if len(spent) else 0.0,
        written=len(written.seconds),
        health_ms=round(1000 * max(health.seconds, default=0.0), 1),
    )


def _bodies(asker: Asker) -> list[bytes]:
    """Request bodies with the windows of the first cases."""
    _, content = asker.ask("GET", f"/api/v1/cases?limit={QUERIES}")
    bodies = []
    for case in json.loads(content)["cases"]:
        _, stored = asker.ask("GET", f"/api/v1/windows/{quote(case['id'])}")
        found = json.loads(stored)
        bodies.append(json.dumps({"window": {"channels": found["channels"], "values": found["values"]}}).encode())
    return bodies


def _client(asker: Asker, bodies: list[bytes], end: float, tally: _Tally) -> None:
    with asker:
        for body in cycle(bodies):
            if time.perf_counter() >= end:
                return
            _time(asker, "POST", "/api/v1/search", body, tally)


def _watch(asker: Asker, end: float, tally: _Tally) -> None:
    with asker:
        for path in cycle(("/healthz", "/readyz")):
            if time.perf_counter() >= end:
                return
            _time(asker, "GET", path, None, tally)
            time.sleep(0.1)


def _write(asker: Asker, bodies: list[bytes], end: float, writes: float, tally: _Tally) -> None:
    with asker:
        for body in cycle(bodies):
            began = time.perf_counter()
            if began >= end:
                return
            _time(asker, "POST", "/api/v1/cases", body, tally)
            time.sleep(max(0.0, began + 1 / writes - time.perf_counter()))


def _time(asker: Asker, method: str, path: str, body: bytes | None, tally: _Tally) -> None:
    began = time.perf_counter()
    status, _ = asker.ask(method, path, body)
    if status in (200, 201):
        tally.seconds.append(time.perf_counter() - began)
    else:
        tally.failures += 1


def main() -> None:
    """Measure and print JSON lines."""
    parser = argparse.ArgumentParser(description="Load test of a service.")
    parser.add_argument("address", help="http://host:port")
    parser.add_argument("--clients", default="1,16", help="numbers of clients, separated by commas")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--key", default="", help="token with the role read, or write with --writes")
    parser.add_argument("--writes", type=float, default=0.0, help="cases added per second; they stay")
    given = parser.parse_args()
    for clients in given.clients.split(","):
        load = measure(given.address, int(clients), given.seconds, given.key, given.writes)
        print(json.dumps(asdict(load)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
