"""What a source of signals is: it lists channels, reads a range, and follows what comes; addresses and secrets.

An address says where a source is and how it is to be read, `family://user@host:port/path?option=value`. It never holds
a secret: that comes from the environment or a file, named beside it (`env:PLANT_TOKEN`, `file:/run/secrets/plant`), is
read when a connection is made, and is shown and kept nowhere.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Protocol, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.cases._channels import conversion
from readbench.errors import DataError, LongAnswerError, ReadbenchError, UnknownNameError, UnreachableError, UsageError

Floats = NDArray[np.float64]
ChannelKey = tuple[str, str]
"""Asset and name of a channel."""
AHEAD_S = 60.0
"""A reading so far in the future is of a clock that is wrong, and is left out."""
LATE_S = 10.0
"""Readings that come so late are still taken by who follows."""
MOST_CATCH_UP_S = 24 * 3600.0
"""Longest time that a follower reads again after a pause."""
TIMEOUT_S = 10.0
"""Longest wait for an answer, unless the option `timeout` says otherwise."""
MOST_READINGS = 20_000_000
"""Readings of one range, of all channels together."""
MOST_CHANNELS = 100_000
"""Channels of one range, of all assets together."""
MOST_NAME = 500
"""Letters of the name of an asset or of a channel."""
MOST_HELD = 500_000
"""Readings that a source sent by itself and that wait to be asked for."""
_SECRETS = frozenset({"password", "token", "secret", "key", "apikey", "api_key", "u", "p"})


@dataclass(frozen=True)
class SourceChannel:
    """A channel of a source: its name, the asset that it is of ("" where unknown), and its unit ("" where unknown)."""

    name: str
    asset: str = ""
    unit: str = ""


@dataclass(frozen=True, eq=False)
class SampledChannel:
    """Readings of one channel as they were taken.

    Args:
        times: (n,) seconds since 1970, rising.
        values: (n,) finite readings.
        unit: "" where unknown.
    """

    times: Floats
    values: Floats
    unit: str = ""

    @classmethod
    def of(cls, times: ArrayLike, values: ArrayLike, unit: str = "") -> Self:
        """Readings in the order of their times: of two at one time the later one given counts; no NaN, no infinity."""
        when, what = np.asarray(times, np.float64), np.asarray(values, np.float64)
        usable = np.isfinite(when) & np.isfinite(what)
        when, what = when[usable], what[usable]
        if len(when) > 1 and not (np.diff(when) > 0).all():
            order = np.argsort(when, kind="stable")
            when, what = when[order], what[order]
            last = np.append(np.diff(when) > 0, [True])
            when, what = when[last], what[last]
        return cls(when, what, unit)

    def after(self, time: float, until: float = np.inf) -> SampledChannel:
        """The readings later than a time, and not later than another."""
        first, last = np.searchsorted(self.times, [time, until], side="right")
        return SampledChannel(self.times[first:last], self.values[first:last], self.unit)


@dataclass(frozen=True, eq=False)
class SourceReadings:
    """What a source gave: readings by asset and channel, and remarks, in sentences."""

    series: Mapping[ChannelKey, SampledChannel] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @classmethod
    def join(cls, parts: Iterable[tuple[ChannelKey, SampledChannel]], remarks: Iterable[str] = ()) -> Self:
        """Parts of channels, laid together; one whose unit changed is brought to the last unit.

        >>> parts = [(("", "p"), SampledChannel.of([0, 1], [1.0, 1.1], "bar")),
        ...          (("", "p"), SampledChannel.of([2], [120.0], "kPa"))]
        >>> joined = SourceReadings.join(parts)
        >>> joined.series["", "p"].values.tolist(), joined.remarks
        ([100.0, 110.00000000000001, 120.0], ('The unit of p changed from bar to kPa: its readings are in kPa.',))
        """
        found: dict[ChannelKey, SampledChannel] = {}
        said, count = list(remarks), 0
        for key, part in parts:
            if max(map(len, key)) > MOST_NAME:
                said.append(f"A channel was left out: its name, or its asset's, is longer than {MOST_NAME} letters.")
                continue
            count += len(part.times)
            if count > MOST_READINGS or len(found) > MOST_CHANNELS:
                raise LongAnswerError(
                    f"More than {MOST_READINGS:,} readings or {MOST_CHANNELS:,} channels lie in that range. Give a"
                    " shorter one, or one asset."
                )
            if key in found and len(found[key].times):
                found[key] = _lay_together(found[key], part, key[1], said)
            elif key not in found or len(part.times):
                found[key] = part
        return cls(found, tuple(dict.fromkeys(said)))

    @property
    def assets(self) -> tuple[str, ...]:
        """Assets, in order of their names."""
        return tuple(sorted({asset for asset, _ in self.series}))

    def of_asset(self, asset: str) -> dict[str, SampledChannel]:
        """Readings of an asset by channel."""
        return {name: own for (whose, name), own in self.series.items() if whose == asset}

    def __len__(self) -> int:
        return sum(len(own.times) for own in self.series.values())


def _lay_together(first: SampledChannel, second: SampledChannel, name: str, said: list[str]) -> SampledChannel:
    if not len(second.times):
        return first
    early, late = (first, second) if first.times[-1] <= second.times[-1] else (second, first)
    values = early.values
    if early.unit and late.unit and early.unit != late.unit:
        try:
            factor, offset = conversion(early.unit, late.unit, name)
        except DataError:
            said.append(
                f"The unit of {name} changed from {early.unit} to {late.unit}, and no conversion is known: only"
                " readings since then are used."
            )
            return late
        values = values * factor + offset
        said.append(f"The unit of {name} changed from {early.unit} to {late.unit}: its readings are in {late.unit}.")
    return SampledChannel.of(
        np.concatenate([early.times, late.times]), np.concatenate([values, late.values]), late.unit or early.unit
    )


class SourceFollower(Protocol):
    """Follows a source."""

    def poll(self, now: float | None = None) -> SourceReadings:
        """What came since the last call; `UnreachableError` where the source does not answer, and nothing is lost."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class SignalSource(Protocol):
    """Where signals live.

    Attributes:
        keeps_history: a range of the past can be read.
    """

    keeps_history: bool

    @property
    def shown(self) -> str:
        """Its address, as it may be shown."""
        ...

    def channels(self) -> list[SourceChannel]:
        """What there is, by asset and name."""
        ...

    def read(self, start: float, end: float, *, asset: str | None = None, step: float | None = None) -> SourceReadings:
        """Readings of a range, in seconds since 1970.

        Args:
            start: of the range; belongs to it.
            end: of the range; belongs to it.
            asset: only of this asset.
            step: about so many seconds between readings suffice: the source may send means instead of all readings.
        """
        ...

    def follow(self, since: float, *, late_s: float = LATE_S) -> SourceFollower:
        """What comes from a time on; readings that come so late after their time are still given."""
        ...

    def close(self) -> None:
        """End all connections."""
        ...


class PollingFollower:
    """Asks a source again and again for what is new: ranges overlap, and what was given already is left out.

    A reading from the future, by a clock that jumped, is left out, and so is one that is older than the last of its
    channel: a clock that was set back is silent until it has caught up.

    Args:
        source: that is asked.
        since: first time.
        late_s: by how much ranges overlap.
        clock: seconds since 1970.
    """

    def __init__(
        self, source: SignalSource, since: float, late_s: float = LATE_S, clock: Callable[[], float] = time.time
    ) -> None:
        self._source = source
        self._since = since
        self._late_s = late_s
        self._clock = clock
        self._last: dict[ChannelKey, float] = {}

    def poll(self, now: float | None = None) -> SourceReadings:
        """What came since the last call."""
        now = self._clock() if now is None else now
        first = max(self._since - self._late_s, now - MOST_CATCH_UP_S)
        found = self._source.read(first, now + AHEAD_S)
        fresh: dict[ChannelKey, SampledChannel] = {}
        said = list(found.remarks)
        for key, own in found.series.items():
            new = own.after(self._last.get(key, first), now + AHEAD_S)
            if len(new.times):
                fresh[key] = new
                self._last[key] = float(new.times[-1])
        self._since = now
        horizon = now - MOST_CATCH_UP_S
        self._last = _keep_latest({key: last for key, last in self._last.items() if last >= horizon})
        return SourceReadings(fresh, tuple(said))

    def close(self) -> None:
        """Nothing is open."""


class QueueFollower:
    """Holds what a source sends by itself until somebody asks; of more than `most` readings, the oldest go.

    Args:
        most: readings that are held.
        close: ends the subscription.
        check: raises where the connection is lost.
    """

    def __init__(
        self, most: int = MOST_HELD, close: Callable[[], None] = lambda: None, check: Callable[[], None] = lambda: None
    ) -> None:
        self._held: deque[tuple[ChannelKey, float, float, str]] = deque(maxlen=most)
        self._lock = Lock()
        self._close = close
        self._check = check
        self._last: dict[ChannelKey, float] = {}
        self._lost = 0

    def take(self, key: ChannelKey, when: float, value: float, unit: str = "") -> None:
        """A reading that came; from any thread."""
        if max(map(len, key)) > MOST_NAME:
            return
        with self._lock:
            self._lost += len(self._held) == self._held.maxlen
            self._held.append((key, when, value, unit))

    def poll(self, now: float | None = None) -> SourceReadings:
        """What came since the last call."""
        with self._lock:
            held, lost = list(self._held), self._lost
            self._held.clear()
            self._lost = 0
        if not held:
            self._check()
        now = time.time() if now is None else now
        rows: dict[tuple[ChannelKey, str], tuple[list[float], list[float]]] = {}
        for key, when, value, unit in held:
            if self._last.get(key, -np.inf) < when <= now + AHEAD_S:
                times, values = rows.setdefault((key, unit), ([], []))
                times.append(when)
                values.append(value)
        parts = [(key, SampledChannel.of(*columns, unit)) for (key, unit), columns in rows.items()]
        joined = SourceReadings.join(parts, [f"{lost:,} readings came faster than they were read."] if lost else [])
        self._last |= {key: float(own.times[-1]) for key, own in joined.series.items() if len(own.times)}
        self._last = _keep_latest(self._last)
        return joined

    def close(self) -> None:
        """End it."""
        self._close()


def _keep_latest(last: dict[ChannelKey, float]) -> dict[ChannelKey, float]:
    """Times of the last readings, of as many channels as are followed: those that were read last."""
    if len(last) <= MOST_CHANNELS:
        return last
    return dict(sorted(last.items(), key=lambda own: own[1])[-MOST_CHANNELS // 2 :])


@dataclass(frozen=True)
class SourceAddress:
    """Where a source is, without its secret.

    Args:
        family: such as `prometheus`.
        host: "" for a folder.
        port: None for the family's usual one.
        path: after the host, without its first slash; of a folder, its path.
        user: "" where none is needed.
        options: how it is to be read.
        tls: `family+https` or `family+tls`.
        secret: where the password or token is: `env:NAME`, `file:PATH`, or "".

    >>> SourceAddress.parse("prometheus+https://reader@plant:9090/?asset=rig", "env:PLANT").shown
    'prometheus+https://reader@plant:9090/?asset=rig'
    """

    family: str
    host: str = ""
    port: int | None = None
    path: str = ""
    user: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    tls: bool = False
    secret: str = ""

    @classmethod
    def parse(cls, address: str, secret: str = "", options: Mapping[str, str] | None = None) -> Self:
        """Read an address.

        Args:
            address: without a secret; one that holds a password is refused.
            secret: `env:NAME` or `file:PATH`.
            options: further ones, beside those in the address.
        """
        try:
            parts = urlsplit(address.replace("#", "%23"))  # of topics: no part of a page
            port = parts.port
        except ValueError as error:
            raise UsageError(f"The address of a source cannot be read: {error}.") from error
        scheme, _, layer = parts.scheme.partition("+")
        if not scheme or (scheme == "folder" and parts.netloc):
            example = "folder:///data/plant" if scheme == "folder" else "prometheus://127.0.0.1:9090"
            raise UsageError(f"Give the address of a source, such as {example}.")
        given = dict(parse_qsl(parts.query, keep_blank_values=True)) | dict(options or {})
        if parts.password is not None or _SECRETS & {name.casefold() for name in given}:
            raise UsageError(
                "The address holds a password or token. Put it into the environment or a file, and name that:"
                " --secret env:PLANT_TOKEN or --secret file:/run/secrets/plant"
            )
        if secret:
            check_secret(secret)
        return cls(
            family=scheme,
            host=parts.hostname or "",
            port=port,
            path=unquote(parts.path) if scheme == "folder" else unquote(parts.path).lstrip("/"),
            user=unquote(parts.username or ""),
            options=given,
            tls=layer in {"https", "tls", "ssl"},
            secret=secret,
        )

    @property
    def shown(self) -> str:
        """The address again."""
        family = f"{self.family}+https" if self.tls else self.family
        host = f"[{self.host}]" if ":" in self.host else self.host
        where = f"{quote(self.user)}@{host}" if self.user else host
        port = "" if self.port is None else f":{self.port}"
        path = quote(self.path, safe="/=;,+")
        path = path if path.startswith("/") or not (path or self.host) else f"/{path}"
        options = urlencode(dict(self.options), safe="/:;,={}*()")
        return f"{family}://{where}{port}{path}{f'?{options}' if options else ''}"

    def http(self, port: int) -> str:
        """The address of its HTTP interface, without a slash at its end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port or port}/{self.path}".rstrip("/")

    def option(self, name: str, default: str = "") -> str:
        """An option as a text."""
        return self.options.get(name, default)

    def number(self, name: str, default: float) -> float:
        """An option as a positive number."""
        text = self.options.get(name, "")
        try:
            number = float(text) if text else default
        except ValueError:
            number = -1.0
        if not 0 < number < np.inf:
            raise UsageError(f"The option {name!r} of {self.family} is a positive number. Got {text[:40]!r}.")
        return number

    def check_options(self, known: Iterable[str]) -> None:
        """Refuse options that nobody reads."""
        known = [*known, "timeout"]
        if unknown := next((name for name in self.options if name not in known), None):
            raise UnknownNameError(f"option of {self.family}", unknown, known)

    @property
    def timeout_s(self) -> float:
        """Longest wait for an answer."""
        return self.number("timeout", TIMEOUT_S)

    def password(self) -> str:
        """The secret, from where it is; "" where none is named."""
        return read_secret(self.secret, self.shown) if self.secret else ""

    def lost(self, error: Exception | str) -> UnreachableError:
        """The error that says that it does not answer; the secret is in no word of it."""
        words = str(error) if isinstance(error, str) else f"{type(error).__name__}: {error}".removesuffix(": ")
        secret = ""
        with suppress(ReadbenchError):
            secret = self.password()
        words = words.replace(secret, "***") if secret else words
        return UnreachableError(f"{self.shown} does not answer: {' '.join(words.split())[:300]}. Is it running there?")


def check_secret(named: str) -> None:
    """Refuse a secret that is given instead of named, without repeating it."""
    if not named.startswith(("env:", "file:")):
        raise UsageError("A secret is named, not given: --secret env:NAME or --secret file:PATH.")


def read_secret(named: str, whose: str) -> str:
    """A secret from where it is, without blanks around it: a line ends where an editor or `echo` ended it.

    Args:
        named: `env:NAME` or `file:PATH`.
        whose: shown in errors, which never repeat the secret.
    """
    check_secret(named)
    kind, _, name = named.partition(":")
    if kind == "env" and name not in os.environ:
        raise UsageError(f"The environment has no variable {name}, which holds the secret of {whose}.")
    try:
        secret = os.environ[name] if kind == "env" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The secret of {whose} cannot be read: {name}: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise UsageError(f"The secret of {whose} cannot be read: {name} is no text in UTF-8.") from None
    secret = secret.strip()
    if not secret or not secret.isprintable():
        raise UsageError(f"The secret of {whose} is empty, or more than one line, or no text: see {named}.")
    return secret


FAMILIES: dict[str, tuple[str, str, str, str]] = {
    "prometheus": ("_prometheus", "PrometheusSource", "requests", ""),
    "victoriametrics": ("_prometheus", "PrometheusSource", "requests", ""),
    "influxdb": ("_influx", "InfluxSource", "requests", ""),
    "influxdb2": ("_influx", "InfluxSource", "requests", ""),
    "postgresql": ("_postgres", "PostgresSource", "psycopg", "postgres"),
    "mqtt": ("_mqtt", "MqttSource", "paho", "mqtt"),
    "opc.tcp": ("_opcua", "OpcuaSource", "asyncua", "opcua"),
    "folder": ("_folder", "FolderSource", "pyarrow", ""),
}
"""Module, class, package and extra of each family."""


def open_source(
    address: str | SourceAddress, secret: str = "", options: Mapping[str, str] | None = None
) -> SignalSource:
    """The source at an address; nothing is asked of it yet.

    Args:
        address: such as `prometheus://127.0.0.1:9090/?asset=rig`.
        secret: where its password or token is: `env:NAME` or `file:PATH`.
        options: further options.
    """
    own = SourceAddress.parse(address, secret, options) if isinstance(address, str) else address
    if own.family not in FAMILIES:
        raise UnknownNameError("family of sources", own.family, FAMILIES)
    module, name, package, extra = FAMILIES[own.family]
    if find_spec(package) is None:
        raise UsageError(f"{own.family} needs an optional package. Install it: pip install 'readbench[{extra}]'")
    made: SignalSource = getattr(import_module(f"readbench.cases.connect.{module}"), name)(own)
    return made
