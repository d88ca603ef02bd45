"""InfluxDB 1.x by InfluxQL; 2.x by Flux and its annotated CSV.

```
influxdb://reader@127.0.0.1:8086/plant?asset=pump          database plant; the tag pump names the asset
influxdb2://127.0.0.1:8086/bucket?org=site&asset=pump      the secret is the token
```

A channel is a measurement and a field, `measurement.field`; further tags stand in braces. Options: `measurement` (only
this one, and then a channel is the field alone), `asset` (by default `asset`), `unit` (a tag), `drop` (further tags
that are no part of a name), `org` of 2.x. The reader of 2.x follows the recorded format of its answers and was not seen
on a server.
"""

from __future__ import annotations

import csv
import io
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, Field, TypeAdapter, model_validator
from requests.auth import HTTPBasicAuth

from readbench.cases.connect._answers import (
    BoundedSession,
    HttpAnswer,
    check_times,
    parse_answer,
    parse_row,
    read_in_parts,
)
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
from readbench.common.times import DAY_S, parse_date
from readbench.errors import AnswerError, DataError, UsageError

PORT = 8086
RECENT_S = 7 * DAY_S
Cell = float | str | bool | None
META = ("result", "table", "_start", "_stop", "_time", "_value", "_field", "_measurement", "")


class _Series(BaseModel):
    """Rows of one measurement and its tags; the first column is the time, in nanoseconds since 1970."""

    name: str
    tags: dict[str, str] = {}
    columns: Annotated[list[str], Field(min_length=1)]
    values: list[list[Cell]] = []

    @model_validator(mode="after")
    def _check_rows(self) -> Self:
        wide = len(self.columns)
        if any(len(row) != wide or not isinstance(row[0], float) for row in self.values):
            raise ValueError(f"each row has a time and {wide - 1} values")
        return self


class _Result(BaseModel):
    error: str = ""
    series: list[_Series] = []


class _Answer(BaseModel):
    """What InfluxQL answers with."""

    error: str = ""
    results: list[_Result] = []


ANSWER = TypeAdapter(_Answer)


class _FluxRow(BaseModel):
    """A row of annotated CSV; further columns are tags."""

    time: str = Field(alias="_time")
    value: str = Field(alias="_value")
    field: str = Field(alias="_field")
    measurement: str = Field(alias="_measurement")


FLUX_ROW = TypeAdapter(_FluxRow)


class InfluxSource:
    """A database or bucket of an InfluxDB server.

    Args:
        address: of the server and the database.
    """

    keeps_history = True

    def __init__(self, address: SourceAddress) -> None:
        address.check_options(("measurement", "asset", "unit", "drop", "org"))
        if not address.path:
            raise UsageError(f"Name the database: {address.family}://HOST:8086/DATABASE")
        self.address = address
        host = f"[{address.host}]" if ":" in address.host else address.host
        self._base = f"{'https' if address.tls else 'http'}://{host}:{address.port or PORT}"
        self._asset = address.option("asset", "asset")
        self._unit = address.option("unit")
        self._dropped = {self._asset, self._unit, *(own.strip() for own in address.option("drop").split(","))}
        self._session = BoundedSession(address.shown, address.timeout_s, address.lost)

    @property
    def shown(self) -> str:
        """Its address."""
        return self.address.shown

    def channels(self) -> list[SourceChannel]:
        """Fields that have a reading in the last days."""
        now = time.time()
        parts = self._flux(now - RECENT_S, now, None, "|> last()") if self._two else self._last(now - RECENT_S)
        found = SourceReadings.join(parts).series
        return [SourceChannel(name, asset, found[asset, name].unit) for asset, name in sorted(found)]

    def read(self, start: float, end: float, *, asset: str | None = None, step: float | None = None) -> SourceReadings:
        """Readings of a range."""
        read = partial(self._read_two if self._two else self._read_one, asset=asset, step=step)
        return SourceReadings.join(read_in_parts(lambda first, last: list(read(first, last)), start, end, np.inf))

    def _read_two(
        self, start: float, end: float, *, asset: str | None, step: float | None
    ) -> Iterator[tuple[ChannelKey, SampledChannel]]:
        mean = "" if step is None else f"|> aggregateWindow(every: {round(1e3 * step)}ms, fn: mean, createEmpty: false)"
        return self._flux(start, end, asset, mean)

    def _read_one(
        self, start: float, end: float, *, asset: str | None, step: float | None
    ) -> Iterator[tuple[ChannelKey, SampledChannel]]:
        where = f"time >= {_nanoseconds(start)} AND time <= {_nanoseconds(end)}"
        if asset is not None:
            where += f" AND {_identifier(self._asset)} = {_text(asset)}"
        if step is None:
            return self._select("*::field", where, "GROUP BY *")
        grouped = f"GROUP BY time({max(1, round(1e9 * step))}ns), * fill(none)"
        return self._select("mean(*::field)", where, grouped, "mean_")

    def follow(self, since: float, *, late_s: float = LATE_S) -> SourceFollower:
        """What comes from a time on."""
        return PollingFollower(self, since, late_s)

    def close(self) -> None:
        """End its connections."""
        self._session.close()

    @property
    def _two(self) -> bool:
        return self.address.family == "influxdb2"

    # 1.x

    def _last(self, since: float) -> Iterator[tuple[ChannelKey, SampledChannel]]:
        return self._select("last(*::field)", f"time >= {_nanoseconds(since)}", "GROUP BY *", "last_")

    def _select(
        self, what: str, where: str, grouped: str, prefix: str = ""
    ) -> Iterator[tuple[ChannelKey, SampledChannel]]:
        measurement = self.address.option("measurement")
        rows = _identifier(measurement) if measurement else "/.*/"
        text = f"SELECT {what} FROM {rows} WHERE {where} {grouped}"  # noqa: S608 - quoted above, and reads only
        asked = {"db": self.address.path, "q": text, "epoch": "ns"}
        answer = self._ask("GET", "/query", params=asked)
        if not answer.body.lstrip().startswith(b"{"):
            raise self.address.lost(f"status {answer.status}, and no JSON")
        body = parse_answer(ANSWER, answer.body, self.shown)
        result = body.results[0] if body.results else _Result()
        if error := result.error or body.error:
            raise DataError(f"{self.shown} cannot answer: {error[:300]}")
        for series in result.series:
            columns = list(zip(*series.values, strict=True))
            times = check_times(np.array(columns[0], np.float64) / 1e9, self.shown) if columns else np.empty(0)
            for name, values in zip(series.columns[1:], columns[1:], strict=False):
                numbers = [own if isinstance(own, float) else np.nan for own in values]
                own = SampledChannel.of(times, numbers, series.tags.get(self._unit, ""))
                if len(own.times):
                    yield self._key(series.name, name.removeprefix(prefix), series.tags), own

    # 2.x

    def _flux(
        self, start: float, end: float, asset: str | None, then: str
    ) -> Iterator[tuple[ChannelKey, SampledChannel]]:
        filters = []
        if measurement := self.address.option("measurement"):
            filters.append(f"r._measurement == {_flux_text(measurement)}")
        if asset is not None:
            filters.append(f"r[{_flux_text(self._asset)}] == {_flux_text(asset)}")
        chosen = f" |> filter(fn: (r) => {' and '.join(filters)})" if filters else ""
        bounds = f"start: time(v: {_nanoseconds(start)}), stop: time(v: {_nanoseconds(end) + 1})"
        text = f"from(bucket: {_flux_text(self.address.path)}) |> range({bounds}){chosen} {then}"
        answer = self._ask(
            "POST",
            "/api/v2/query",
            params={"org": self.address.option("org")},
            json={"query": text, "dialect": {"header": True, "annotations": ["datatype", "group", "default"]}},
            headers={"Accept": "application/csv"},
        )
        yield from self.parse_flux(answer.text)

    def parse_flux(self, text: str) -> Iterator[tuple[ChannelKey, SampledChannel]]:
        """Readings of an answer in annotated CSV."""
        found: dict[tuple[ChannelKey, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
        header: list[str] = []
        for row in _split_rows(text, self.shown):
            if not row or row[0].startswith("#"):
                header = []
            elif not header:
                header = row
            else:
                cells = dict(zip(header, row, strict=False))
                if "error" in cells:
                    raise DataError(f"{self.shown} cannot answer: {cells['error'][:300]}")
                own = parse_row(FLUX_ROW, cells, self.shown)
                when = parse_date(own.time[:26].rstrip("Z") + "Z")
                tags = {name: value for name, value in cells.items() if name not in META and value}
                try:
                    value = float(own.value)
                except ValueError:
                    continue
                if when is not None:
                    times, values = found[self._key(own.measurement, own.field, tags), tags.get(self._unit, "")]
                    times.append(when)
                    values.append(value)
        for (key, unit), columns in found.items():
            yield key, SampledChannel.of(check_times(columns[0], self.shown), columns[1], unit)

    def _key(self, measurement: str, field: str, tags: dict[str, str]) -> ChannelKey:
        name = field if self.address.option("measurement") else f"{measurement}.{field}"
        rest = [f"{tag}={value}" for tag, value in sorted(tags.items()) if tag not in self._dropped and value]
        return tags.get(self._asset, ""), f"{name}{{{','.join(rest)}}}" if rest else name

    def _ask(self, method: str, path: str, **how: Any) -> HttpAnswer:  # noqa: ANN401 - of requests
        secret, auth, headers = self.address.password(), None, dict(how.pop("headers", {}))
        if secret and self._two:
            headers["Authorization"] = f"Token {secret}".encode()
        elif secret:
            auth = HTTPBasicAuth(self.address.user.encode(), secret.encode())
        answer = self._session.ask(method, f"{self._base}{path}", auth=auth, headers=headers, **how)
        if answer.status in {401, 403}:
            raise UsageError(f"{self.shown} refuses us ({answer.status}). Name the right secret: --secret env:NAME")
        if answer.status >= 500 or answer.status == 429:
            raise self.address.lost(f"status {answer.status}")
        if 300 <= answer.status < 400:
            raise self.address.lost(f"status {answer.status}, and no JSON")
        if answer.status >= 400:
            raise DataError(f"{self.shown} cannot answer: {answer.text[:300]}")
        return answer


def _split_rows(text: str, shown: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(io.StringIO(text))
    except csv.Error as error:
        raise AnswerError(f"{shown} sends no CSV that can be read: {error}.") from None


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e3) * 1_000_000


def _identifier(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _flux_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${") + '"'
