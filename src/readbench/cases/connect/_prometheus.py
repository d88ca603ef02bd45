"""Prometheus and VictoriaMetrics, by the HTTP API that both have.

```
prometheus://127.0.0.1:9090/?asset=rig&match={job="plant"}      host; https as prometheus+https://
```

A channel is a metric: its name, and in braces the labels that tell it from others of the asset. Options:

* `match`: which series, in the language of Prometheus; by default all but the server's own.
* `asset`: label of the asset, by default `instance`.
* `channel`: label that names the channel, instead of the metric.
* `unit`: label of the unit; else the unit of the metadata.
* `drop`: further labels that are not part of a name, separated by commas.
* `days`: how far back channels are looked for, by default 7.

A range is read as it was scraped (`selector[18m]`), since a range query repeats the last reading over gaps of up to
five minutes; only where means suffice is it a range query, of `avg_over_time`, which is empty where nothing was.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import requests
from requests.auth import HTTPBasicAuth

from readbench.cases.connect._protocol import (
    LATE_S,
    ChannelKey,
    PollingFollower,
    SampledChannel,
    SourceAddress,
    SourceChannel,
    SourceFollower,
    SourceReadings,
)
from readbench.common.times import DAY_S
from readbench.errors import DataError, UsageError

PORTS = {"prometheus": 9090, "victoriametrics": 8428}
EVERYTHING = '{__name__=~".+"}'
OWN = re.compile(r"^(up|ALERTS.*|scrape_.*|prometheus_.*|go_.*|process_.*|promhttp_.*|net_conntrack_.*|vm_.*|flag)$")
"""Metrics that every server has of itself."""
NAMED = re.compile(r"\s*[A-Za-z_:]")
"""A selector that names its metric before the braces: it has no other."""
CHUNK_S = 3600.0
"""Longest range that is read in one request as it was scraped."""
MOST_POINTS = 10_000
"""Points of a series in one range query; the server refuses more than 11,000."""
NOT_NAMED = ("__name__", "job", "instance")


class PrometheusSource:
    """A server that speaks the HTTP API of Prometheus.

    Args:
        address: of the server.
    """

    keeps_history = True

    def __init__(self, address: SourceAddress) -> None:
        address.check_options(("match", "asset", "channel", "unit", "drop", "days"))
        self.address = address
        self._base = address.http(PORTS[address.family])
        self._match = address.option("match", EVERYTHING)
        self._asset = address.option("asset", "instance")
        self._channel = address.option("channel")
        self._unit = address.option("unit")
        dropped = {name.strip() for name in address.option("drop").split(",")}
        self._unnamed = {*NOT_NAMED, self._asset, self._channel, self._unit, *dropped}
        self._session = requests.Session()
        self._units: dict[str, str] | None = None

    @property
    def shown(self) -> str:
        """Its address."""
        return self.address.shown

    def channels(self) -> list[SourceChannel]:
        """Series of the last days."""
        found, now = {}, time.time()
        since = now - DAY_S * self.address.number("days", 7.0)
        for labels in self._ask("series", {"match[]": self._match, "start": f"{since:.0f}", "end": f"{now:.0f}"}):
            if key := self._key(labels):
                found[key] = SourceChannel(key[1], key[0], self._unit_of(labels))
        return [found[key] for key in sorted(found)]

    def read(self, start: float, end: float, *, asset: str | None = None, step: float | None = None) -> SourceReadings:
        """Readings of a range."""
        if not end >= start:
            raise UsageError("The range ends before it begins.")
        selector = self._select(asset)
        rows = self._read_raw(selector, start, end) if step is None else self._read_means(selector, start, end, step)
        return SourceReadings.join(self._parts(rows))

    def follow(self, since: float, *, late_s: float = LATE_S) -> SourceFollower:
        """What comes from a time on."""
        return PollingFollower(self, since, late_s)

    def close(self) -> None:
        """End its connections."""
        self._session.close()

    def _select(self, asset: str | None) -> str:
        """The selector, of one asset where one is named."""
        return self._match if asset is None else _narrow(self._match, self._asset, asset)

    def _read_raw(self, selector: str, start: float, end: float) -> Iterator[dict[str, Any]]:
        """Readings as they were scraped, an hour at a time."""
        first = start
        while True:
            last = min(first + CHUNK_S, end)
            width = 1 + round(1000 * (last - first))  # VictoriaMetrics leaves the first millisecond out
            yield from self._ask("query", {"query": f"{selector}[{width}ms]", "time": f"{last:.3f}"})["result"]
            if last >= end:
                return
            first = last

    def _read_means(self, selector: str, start: float, end: float, step: float) -> Iterator[dict[str, Any]]:
        """Means over steps, metric by metric: the function takes their names away, unless told otherwise."""
        metrics = {}
        for labels in self._ask("series", {"match[]": selector, "start": f"{start:.3f}", "end": f"{end:.3f}"}):
            if self._key(labels):
                metrics[labels["__name__"]] = True
        step = max(step, (end - start) / MOST_POINTS, 0.001)
        for metric in metrics:
            named = selector if NAMED.match(selector) else _narrow(selector, "__name__", metric)
            query = f"avg_over_time({named}[{max(1, round(1000 * step))}ms])"
            asked = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
            for row in self._ask("query_range", asked)["result"]:
                yield {**row, "metric": {"__name__": metric, **row["metric"]}}

    def _parts(self, rows: Iterator[dict[str, Any]]) -> Iterator[tuple[ChannelKey, SampledChannel]]:
        for row in rows:
            key = self._key(row["metric"])
            if key and row.get("values"):  # native histograms have none
                times, texts = zip(*row["values"], strict=True)
                yield key, SampledChannel.of(times, [float(text) for text in texts], self._unit_of(row["metric"]))

    def _key(self, labels: dict[str, str]) -> ChannelKey | None:
        """Asset and name of a series; None for one of the server's own, unless it was asked for."""
        metric = labels.get("__name__", "")
        if not metric or (self._match == EVERYTHING and OWN.match(metric)):
            return None
        name = labels.get(self._channel, metric) if self._channel else metric
        unnamed = self._unnamed
        rest = [f"{label}={value}" for label, value in sorted(labels.items()) if label not in unnamed]
        return labels.get(self._asset, ""), f"{name}{{{','.join(rest)}}}" if rest else name

    def _unit_of(self, labels: dict[str, str]) -> str:
        if self._unit:
            return labels.get(self._unit, "")
        if self._units is None:
            known = self._ask("metadata", {}, optional=True) or {}
            self._units = {metric: entries[0].get("unit", "") for metric, entries in known.items() if entries}
        return self._units.get(labels.get("__name__", ""), "")

    def _ask(self, what: str, parameters: dict[str, str], *, optional: bool = False) -> Any:  # noqa: ANN401 - JSON
        """What the API answers."""
        secret, auth = self.address.password(), None
        headers: dict[str, bytes] = {}
        if secret and self.address.user:
            auth = HTTPBasicAuth(self.address.user.encode(), secret.encode())
        elif secret:
            headers["Authorization"] = f"Bearer {secret}".encode()
        how: dict[str, Any] = {"headers": headers, "auth": auth, "timeout": self.address.timeout_s}
        url = f"{self._base}/api/v1/{what}"
        try:
            # By POST, since selectors are longer than some proxies let addresses be; metadata come by GET alone.
            if what == "metadata":
                answer = self._session.get(url, allow_redirects=False, **how)
            else:
                answer = self._session.post(url, data=parameters, allow_redirects=False, **how)
        except requests.RequestException as error:
            raise self.address.lost(error) from None
        if answer.status_code in {401, 403}:
            raise UsageError(
                f"{self.shown} refuses us ({answer.status_code}). Name the right secret: --secret env:NAME"
            )
        if optional and answer.status_code != 200:
            return None
        try:
            body = answer.json()
        except ValueError:
            raise self.address.lost(f"status {answer.status_code}, and no JSON") from None
        if answer.status_code >= 500 or answer.status_code == 429:
            raise self.address.lost(f"status {answer.status_code}: {body.get('error', '')}")
        if body.get("status") != "success":
            raise DataError(f"{self.shown} cannot answer: {str(body.get('error', ''))[:300]}")
        return body.get("data")


def _narrow(selector: str, label: str, value: str) -> str:
    """A selector of those series alone that have this label.

    >>> _narrow("pressure", "rig", "a"), _narrow('{job="plant"}', "__name__", "pressure")
    ('pressure{rig="a"}', '{job="plant",__name__="pressure"}')
    """
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    head, brace, rest = selector.rpartition("}")
    if not brace:
        return f'{selector}{{{label}="{escaped}"}}'
    comma = "" if head.rstrip().endswith(("{", ",")) else ","
    return f'{head}{comma}{label}="{escaped}"}}{rest}'
