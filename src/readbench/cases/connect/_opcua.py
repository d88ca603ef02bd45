"""OPC UA: variables under a node, their history where the server keeps it, and a subscription.

```
opc.tcp://127.0.0.1:4840/plant?root=2:Plant         variables under Objects/2:Plant; the object they lie in is the asset
opc.tcp://user@plc:4840/?root=ns%3D2;s%3DPlant      a node by its id
```

Options: `root` (a path of browse names from Objects, or a node id; by default all objects of the site), `interval`
(milliseconds between values of a subscription, by default 500). Units come from the property `EngineeringUnits`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from readbench.cases.connect._answers import EARLIEST_S, LATEST_S, check_times
from readbench.cases.connect._protocol import (
    LATE_S,
    MOST_READINGS,
    ChannelKey,
    QueueFollower,
    SampledChannel,
    SourceAddress,
    SourceChannel,
    SourceFollower,
    SourceReadings,
)
from readbench.common.deadlines import check_deadline
from readbench.errors import DataError, ReadbenchError

PORT = 4840
MOST_VARIABLES = 20_000
DEEPEST = 8
T = TypeVar("T")


class OpcuaSource:
    """Variables of an OPC UA server.

    Args:
        address: of the server.
    """

    keeps_history = True

    def __init__(self, address: SourceAddress) -> None:
        address.check_options(("root", "interval"))
        self.address = address
        host = f"[{address.host}]" if ":" in address.host else address.host
        self._url = f"opc.tcp://{host}:{address.port or PORT}/{address.path}"
        self._client: Any = None
        self._nodes: dict[ChannelKey, tuple[Any, str]] = {}

    @property
    def shown(self) -> str:
        """Its address."""
        return self.address.shown

    def channels(self) -> list[SourceChannel]:
        """Variables that hold numbers."""
        found = self._do(self._find_nodes)
        return [
            SourceChannel(name, asset, unit)
            for (asset, name), (_, unit) in sorted(found.items(), key=lambda own: own[0])
        ]

    def read(self, start: float, end: float, *, asset: str | None = None, step: float | None = None) -> SourceReadings:  # noqa: ARG002 - the server keeps values as they came
        """History of a range; a variable without one is left out, and told."""
        return self._do(lambda: self._read(start, end, asset))

    def follow(self, since: float, *, late_s: float = LATE_S) -> SourceFollower:  # noqa: ARG002 - what comes is given, however late
        """What changes from now on, and once the history since then where the server has one."""
        return self._do(lambda: self._subscribe(since))

    def close(self) -> None:
        """End its connection."""
        client, self._client, self._nodes = self._client, None, {}
        if client is not None:
            with suppress(Exception):  # whatever a lost connection raises: it has ended
                client.disconnect()

    def _do(self, call: Callable[[], T]) -> T:
        """Do something on the connection; one that was lost is made again once."""
        from asyncua.ua.uaerrors import UaError  # noqa: PLC0415 - optional

        for again in (False, True):
            try:
                self._connect()
                return call()
            except ReadbenchError:
                raise
            except (OSError, TimeoutError, ConnectionError, UaError, RuntimeError) as error:
                self.close()
                if again:
                    raise self.address.lost(error) from None
        raise AssertionError  # the loop returns or raises

    def _connect(self) -> None:
        from asyncua.sync import Client  # noqa: PLC0415 - optional

        if self._client is not None:
            return
        client = Client(self._url, timeout=self.address.timeout_s)
        if self.address.user:
            client.set_user(self.address.user)
            client.set_password(self.address.password())
        try:
            client.connect()
        except BaseException:
            client.tloop.stop()
            raise
        self._client = client

    def _find_nodes(self) -> dict[ChannelKey, tuple[Any, str]]:
        if not self._nodes:
            self._walk(self._root(), "", 0)
        return self._nodes

    def _root(self) -> Any:  # noqa: ANN401 - of the optional package
        text = self.address.option("root")
        if not text:
            return self._client.nodes.objects
        if text.startswith(("ns=", "i=", "s=")):
            return self._client.get_node(text)
        return self._client.nodes.objects.get_child(text.split("/"))

    def _walk(self, node: Any, asset: str, depth: int) -> None:  # noqa: ANN401 - of the optional package
        """Variables below a node; the object in which they lie names the asset."""
        from asyncua import ua  # noqa: PLC0415 - optional

        if depth > DEEPEST or len(self._nodes) > MOST_VARIABLES:
            return
        for child in node.get_children():
            check_deadline()
            kind, name = child.read_node_class(), child.read_browse_name()
            if name.NamespaceIndex == 0:
                continue  # the server's own
            if kind == ua.NodeClass.Variable:
                value = child.read_value()
                if isinstance(value, int | float) and not isinstance(value, bool):
                    self._nodes[asset, name.Name] = child, _unit_of(child)
            elif kind == ua.NodeClass.Object:
                self._walk(child, name.Name, depth + 1)

    def _read(self, start: float, end: float, asset: str | None) -> SourceReadings:
        from asyncua import ua  # noqa: PLC0415 - optional
        from asyncua.ua.uaerrors import UaStatusCodeError  # noqa: PLC0415 - optional

        first, last = (datetime.fromtimestamp(own, UTC) for own in (start, end))
        parts, without, count = [], [], 0
        for key, (node, unit) in self._find_nodes().items():
            if asset not in {None, key[0]}:
                continue
            check_deadline()
            try:
                # One more than may be: `join` says so.
                values = node.read_raw_history(first, last, numvalues=MOST_READINGS - count + 1)
            except UaStatusCodeError:
                without.append(key[1])
                continue
            if not len(values) and not node.read_attribute(ua.AttributeIds.Historizing).Value.Value:
                without.append(key[1])
                continue
            rows = [_reading(own) for own in values]
            times, numbers = [own[0] for own in rows if own], [own[1] for own in rows if own]
            count += len(values)
            parts.append((key, SampledChannel.of(check_times(times, self.shown), numbers, unit)))
        if without and not parts:
            raise DataError(f"{self.shown} keeps no history of {', '.join(without[:5])}: watch it instead.")
        return SourceReadings.join(parts, [f"No history of {name} is kept." for name in without])

    def _subscribe(self, since: float) -> SourceFollower:
        nodes = self._find_nodes()
        keys = {node.nodeid: (key, unit) for key, (node, unit) in nodes.items()}
        client = self._client

        def close() -> None:
            with suppress(Exception):  # whatever a lost connection raises: it has ended
                subscription.delete()

        def check() -> None:
            client.check_connection()

        follower = _OpcuaFollower(self, close, check, since)

        class Handler:
            def datachange_notification(self, node: Any, _value: Any, data: Any) -> None:  # noqa: ANN401
                reading = _reading(data.monitored_item.Value)
                key, unit = keys[node.nodeid]
                if reading is not None:
                    follower.queue.take(key, *reading, unit)

            def status_change_notification(self, _status: Any) -> None:  # noqa: ANN401
                """The next poll sees that the connection was lost."""

        subscription = client.create_subscription(self.address.number("interval", 500.0), Handler())
        if nodes:
            subscription.subscribe_data_change([node for node, _ in nodes.values()])
        return follower


class _OpcuaFollower:
    """A subscription that is made again after the connection was lost; what the server kept meanwhile is read."""

    def __init__(self, source: OpcuaSource, close: Any, check: Any, since: float) -> None:  # noqa: ANN401
        self.queue = QueueFollower(close=close)
        self._source = source
        self._check = check
        self._since = since

    def poll(self, now: float | None = None) -> SourceReadings:
        """What came since the last call."""
        try:
            self._check()
        except Exception:  # noqa: BLE001 - whatever a lost connection raises
            self._source.close()
            fresh = self._source.follow(self._since)
            kept = self._source.read(self._since, time.time()).series if self._keeps() else {}
            for key, own in kept.items():
                for when, value in zip(own.times.tolist(), own.values.tolist(), strict=True):
                    self.queue.take(key, when, value, own.unit)
            if isinstance(fresh, _OpcuaFollower):
                fresh.queue, self.queue._close = self.queue, fresh.queue._close  # noqa: SLF001 - of this module
                self._check = fresh._check  # noqa: SLF001
        found = self.queue.poll(now)
        latest = [float(own.times[-1]) for own in found.series.values() if len(own.times)]
        self._since = max([self._since, *latest])
        return found

    def _keeps(self) -> bool:
        try:
            self._source.read(self._since, self._since + 1)
        except DataError:
            return False
        return True

    def close(self) -> None:
        """End it."""
        self.queue.close()


def _reading(data: Any) -> tuple[float, float] | None:  # noqa: ANN401 - of the optional package
    """Time and value of a data value that is good; None of any other."""
    value = None if data.Value is None else data.Value.Value
    when = data.SourceTimestamp or data.ServerTimestamp
    if when is None or not isinstance(value, int | float) or not data.StatusCode.is_good():
        return None
    seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    return (seconds, float(value)) if EARLIEST_S <= seconds < LATEST_S else None


def _unit_of(node: Any) -> str:  # noqa: ANN401 - of the optional package
    for own in node.get_properties():
        if own.read_browse_name().Name == "EngineeringUnits":
            return str(getattr(getattr(own.read_value(), "DisplayName", None), "Text", "") or "")
    return ""
