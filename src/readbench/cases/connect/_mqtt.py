"""MQTT: readings that a broker passes on; it keeps no history, so ranges begin now.

```
mqtt://127.0.0.1:1883/plant/+/+?asset=1        topics plant/PUMP/CHANNEL; level 1, counted from 0, is the asset
mqtt+tls://user@broker/plant/#                 the channel is the rest of the topic
```

A payload is a number, or JSON: `{"value": 3.1, "time": 1700000000.5, "unit": "bar"}`, or several channels at once,
`{"pressure": 3.1, "flow": 7}`. Times are seconds, milliseconds or dates; without one a reading is of when it came.
Option `listen`: seconds that `channels` listens, by default 3, and that a service listens for a range, at most.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from readbench.cases.connect._answers import EARLIEST_S, LATEST_S
from readbench.cases.connect._protocol import (
    LATE_S,
    ChannelKey,
    QueueFollower,
    SourceAddress,
    SourceChannel,
    SourceFollower,
    SourceReadings,
)
from readbench.common.deadlines import pause, seconds_left, within_seconds
from readbench.common.supervised import SupervisedLoop
from readbench.common.times import parse_date
from readbench.errors import OverdueError, UsageError

PORT, TLS_PORT = 1883, 8883
MOST_BYTES = 2**20
MILLISECONDS = 1e11
"""From here on a time is in milliseconds."""
MOST_UNIT = 40
LONGEST_S = 24 * 3600.0
"""Longest that a command listens."""
PAYLOAD = TypeAdapter(float | bool | Annotated[dict[str, JsonValue], Field(max_length=1000)])
"""What a message holds: a number, or an object of numbers and what belongs to them."""
VALUES, TIMES, UNITS = ("value", "v", "val"), ("time", "t", "ts", "timestamp"), ("unit", "units", "u")


class MqttSource:
    """Topics of a broker.

    Args:
        address: of the broker; its path is the topic.
    """

    keeps_history = False

    def __init__(self, address: SourceAddress) -> None:
        address.check_options(("asset", "listen"))
        level = address.option("asset")
        if level and not level.isdecimal():
            raise UsageError(f"The option 'asset' of mqtt is a level of the topic, from 0. Got {level[:40]!r}.")
        self.address = address
        self._listen_s = address.number("listen", 3.0)
        self._topic = address.path or "#"
        self._level = int(level) if level else None
        fixed = self._topic.split("/")
        self._fixed = next((i for i, own in enumerate(fixed) if own in {"+", "#"}), len(fixed) - 1)

    @property
    def shown(self) -> str:
        """Its address."""
        return self.address.shown

    def channels(self) -> list[SourceChannel]:
        """What is sent while it listens."""
        now = time.time()
        found = self.read(now, now + self._listen_s).series
        return [SourceChannel(name, asset, found[asset, name].unit) for asset, name in sorted(found)]

    def read(self, start: float, end: float, *, asset: str | None = None, step: float | None = None) -> SourceReadings:  # noqa: ARG002 - nothing is averaged
        """What comes until the end of a range that has not passed yet."""
        wait = end - time.time()
        if wait <= 0:
            raise UsageError(f"{self.shown} keeps no history: give an --end that is yet to come (+30s), or watch it.")
        # Who has a deadline holds one of a few workers meanwhile.
        longest = LONGEST_S if seconds_left() == math.inf else self._listen_s
        if wait > longest:
            raise UsageError(
                f"{self.shown} keeps no history, and the range ends in {wait:.0f} s: here it is listened to for"
                f" {longest:g} s at most. Give an earlier end, more seconds in the option listen, or watch it."
            )
        follower = self.follow(start)
        try:
            pause(end - time.time())
            found = follower.poll()
        finally:
            follower.close()
        return SourceReadings({key: own for key, own in found.series.items() if asset in {None, key[0]}}, found.remarks)

    def follow(  # noqa: C901 - callbacks of the client
        self,
        since: float,  # noqa: ARG002 - it keeps no history
        *,
        late_s: float = LATE_S,  # noqa: ARG002 - what comes is given, however late
    ) -> SourceFollower:
        """What comes from now on; a broker that went away is asked again by itself."""
        from paho.mqtt import client as paho  # noqa: PLC0415 - optional

        client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        secret = self.address.password()
        if self.address.user:
            client.username_pw_set(self.address.user, secret or None)
        if self.address.tls:
            client.tls_set()
        lost: list[str] = []

        def check() -> None:
            if lost:
                raise self.address.lost(lost[0])

        loop = SupervisedLoop(f"hears {self.shown}", lambda: _hear(client, loop))

        def close() -> None:
            loop.stop()
            client.disconnect()

        follower = QueueFollower(close=close, check=check)

        def connected(own: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:  # noqa: ANN401
            lost[:] = [str(reason)] if reason.is_failure else []
            if not reason.is_failure:
                own.subscribe(self._topic, qos=1)

        def disconnected(_own: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:  # noqa: ANN401
            if not lost:  # the reason of a refusal says more
                lost.append(f"the connection was lost ({reason})")

        def came(_own: Any, _data: Any, message: Any) -> None:  # noqa: ANN401
            if len(message.payload) <= MOST_BYTES:
                for key, when, value, unit in self.parse(message.topic, message.payload, time.time()):
                    follower.take(key, when, value, unit)

        client.on_connect, client.on_disconnect, client.on_message = connected, disconnected, came
        client.connect_timeout = self.address.timeout_s
        client.reconnect_delay_set(1, 30)
        try:
            port = self.address.port or (TLS_PORT if self.address.tls else PORT)
            client.connect(self.address.host, port, keepalive=30)
        except (OSError, ValueError) as error:
            raise self.address.lost(error) from None
        loop.start()
        self._await(client, lost, close)
        return follower

    def _await(self, client: Any, lost: list[str], close: Any) -> None:  # noqa: ANN401 - of the optional package
        """Until the broker has let us in, or said why not."""
        with suppress(OverdueError), within_seconds(self.address.timeout_s):
            while not client.is_connected() and not lost:
                pause(0.01)
        if not client.is_connected():
            reason = lost[0] if lost else "no answer in time"
            close()
            raise self.address.lost(reason)

    def close(self) -> None:
        """Followers end their connections themselves."""

    def parse(self, topic: str, payload: bytes, now: float) -> list[tuple[ChannelKey, float, float, str]]:
        """The readings of a message; nothing where it holds none."""
        levels = topic.split("/")
        asset = levels[self._level] if self._level is not None and self._level < len(levels) else ""
        name = "/".join(own for i, own in enumerate(levels) if i >= self._fixed and i != self._level)
        try:
            body = PAYLOAD.validate_json(payload)
        except ValidationError:
            return []
        if not isinstance(body, dict):
            number = _number(body)
            return [] if number is None else [((asset, name or levels[-1]), now, number, "")]
        when = _time(next((body[own] for own in TIMES if own in body), None), now)
        unit = next((str(body[own])[:MOST_UNIT] for own in UNITS if own in body), "")
        single = next((body[own] for own in VALUES if own in body), None)
        if single is not None:
            number = _number(single)
            return [] if number is None else [((asset, name or levels[-1]), when, number, unit)]
        numbers = {own: _number(value) for own, value in body.items() if own not in {*TIMES, *UNITS}}
        # Several channels in one message: the topic names the asset, unless a level of it was chosen.
        whose = asset or (name if self._level is None else "")
        return [((whose, own), when, value, "") for own, value in numbers.items() if value is not None]


def _hear(client: Any, loop: SupervisedLoop) -> bool:  # noqa: ANN401 - of the optional package
    """Take what comes, and connect again where the connection was lost, until the follower ends."""
    client.loop_forever(retry_first_connection=True)
    return loop.stopping.is_set()


def _number(value: object) -> float | None:
    with suppress(OverflowError):  # of integers beyond every float
        if isinstance(value, bool | int | float) and math.isfinite(value):
            return float(value)
    return None


def _time(value: object, now: float) -> float:
    """Seconds since 1970; those of when it came where none are told that can be."""
    number = _number(value)
    if number is not None:
        found: float | None = number / 1e3 if number > MILLISECONDS else number
    else:
        found = parse_date(value) if isinstance(value, str) else None
    return found if found is not None and EARLIEST_S <= found < LATEST_S else now
