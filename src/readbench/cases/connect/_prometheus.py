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
from typing import Any, Generic, TypeVar, cast

import numpy as np
from pydantic import BaseModel, TypeAdapter
from requests.auth import HTTPBasicAuth

from readbench.cases.connect._answers import BoundedSession, check_times, parse_answer, read_in_parts
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
from readbench.errors import AnswerError, DataError, UsageError

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
T = TypeVar("T")
Labels = dict[str, str]


class _Row(BaseModel):
    """A series of an answer; a native histogram has no values."""

    metric: Labels
    values: list[tuple[float, float]] = []


class _Matrix(BaseModel):
    result: list[_Row]


class _Meaning(BaseModel):
    unit: str = ""


class _Answer(BaseModel, Generic[T]):
    """What every answer of the API is."""

    status: str = ""
    error: str = ""
    data: T | None = None


SERIES = TypeAdapter(_Answer[list[Labels]])
MATRIX = TypeAdapter(_Answer[_Matrix])
MEANINGS = TypeAdapter(_Answer[dict[str, list[_Meaning]]])


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
        self._session = BoundedSession(address.shown, address.timeout_s, address.lost)
        self._units: dict[str, str] | None = None

    @property
    def shown(self) -> str:
        """Its address."""
        return self.address.shown

    def channels(self) -> list[SourceChannel]:
        """Series of the last days."""
        found, now = {}, time.time()
        since = now - DAY_S * self.address.number("days", 7.0)
        asked = {"match[]": self._match, "start": f"{since:.0f}", "end": f"{now:.0f}"}
        for labels in self._ask(SERIES, "series", asked):
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

    def _read_raw(self, selector: str, start: float, end: float) -> Iterator[_Row]:
        """Readings as they were scraped, an hour at a time."""

        def read(first: float, last: float) -> list[_Row]:
            width = 1 + round(1000 * (last - first))  # VictoriaMetrics leaves the first millisecond out
            return self._ask(MATRIX, "query", {"query": f"{selector}[{width}ms]", "time": f"{last:.3f}"}).result

        return read_in_parts(read, start, end, CHUNK_S)

    def _read_means(self, selector: str, start: float, end: float, step: float) -> Iterator[_Row]:
        """Means over steps, metric by metric: the function takes their names away, unless told otherwise."""
        metrics = {}
        asked = {"match[]": selector, "start": f"{start:.3f}", "end": f"{end:.3f}"}
        for labels in self._ask(SERIES, "series", asked):
            if self._key(labels):
                metrics[labels["__name__"]] = True
        step = max(step, (end - start) / MOST_POINTS, 0.001)
        for metric in metrics:
            named = selector if NAMED.match(selector) else _narrow(selector, "__name__", metric)
            query = f"avg_over_time({named}[{max(1, round(1000 * step))}ms])"
            asked = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
            for row in self._ask(MATRIX, "query_range", asked).result:
                yield _Row.model_construct(metric={"__name__": metric, **row.metric}, values=row.values)

    def _parts(self, rows: Iterator[_Row]) -> Iterator[tuple[ChannelKey, SampledChannel]]:
        for row in rows:
            key = self._key(row.metric)
            if key and row.values:
                pairs = np.array(row.values)
                times = check_times(pairs[:, 0], self.shown)
                yield key, SampledChannel.of(times, pairs[:, 1], self._unit_of(row.metric))

    def _key(self, labels: Labels) -> ChannelKey | None:
        """Asset and name of a series; None for one of the server's own, unless it was asked for."""
        metric = labels.get("__name__", "")
        if not metric or (self._match == EVERYTHING and OWN.match(metric)):
            return None
        name = labels.get(self._channel, metric) if self._channel else metric
        unnamed = self._unnamed
        rest = [f"{label}={value}" for label, value in sorted(labels.items()) if label not in unnamed]
        return labels.get(self._asset, ""), f"{name}{{{','.join(rest)}}}" if rest else name

    def _unit_of(self, labels: Labels) -> str:
        if self._unit:
            return labels.get(self._unit, "")
        if self._units is None:
            known = self._ask(MEANINGS, "metadata", {}, optional=True) or {}
            self._units = {metric: entries[0].unit for metric, entries in known.items() if entries}
        return self._units.get(labels.get("__name__", ""), "")

    def _ask(self, model: TypeAdapter[_Answer[T]], what: str, asked: Labels, *, optional: bool = False) -> T:
        """What the API answers; nothing of what is optional where the server does not have it."""
        secret, auth = self.address.password(), None
        headers: dict[str, bytes] = {}
        if secret and self.address.user:
            auth = HTTPBasicAuth(self.address.user.encode(), secret.encode())
        elif secret:
            headers["Authorization"] = f"Bearer {secret}".encode()
        # By POST, since selectors are longer than some proxies let addresses be; metadata come by GET alone.
        how: dict[str, Any] = {} if what == "metadata" else {"data": asked}
        method = "GET" if what == "metadata" else "POST"
        answer = self._session.ask(method, f"{self._base}/api/v1/{what}", headers=headers, auth=auth, **how)
        if answer.status in {401, 403}:
            raise UsageError(f"{self.shown} refuses us ({answer.status}). Name the right secret: --secret env:NAME")
        if optional and answer.status != 200:
            return cast("T", None)
        if not answer.body.lstrip().startswith(b"{"):
            raise self.address.lost(f"status {answer.status}, and no JSON")
        body = parse_answer(model, answer.body, self.shown)
        if answer.status >= 500 or answer.status == 429:
            raise self.address.lost(f"status {answer.status}: {body.error}")
        if body.status != "success":
            raise DataError(f"{self.shown} cannot answer: {body.error[:300]}")
        if body.data is None and not optional:
            raise AnswerError(f"{self.shown} says that all is well, and sends no data. Is it a Prometheus server?")
        return cast("T", body.data)


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
