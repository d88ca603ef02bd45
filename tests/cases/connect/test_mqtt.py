"""MQTT through a real broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from readbench.cases.connect import SourceFollower, SourceReadings, open_source
from readbench.cases.connect._mqtt import MqttSource
from readbench.errors import UnreachableError, UsageError
from tests.cases.connect import servers

pytest.importorskip("paho.mqtt.client", reason="needs paho-mqtt: pip install 'readbench[mqtt]'")


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with servers.mosquitto() as address:
        if address is None:
            pytest.skip("no MQTT broker: install one (Debian: apt install mosquitto)")
        yield address


Send = Callable[[str, str], None]


@pytest.fixture
def send(broker: str) -> Iterator[Send]:
    from paho.mqtt import client as paho  # noqa: PLC0415 - optional

    own: Any = paho.Client(paho.CallbackAPIVersion.VERSION2)
    host, port = broker.split(":")
    own.connect(host, int(port))
    own.loop_start()
    yield lambda topic, payload: own.publish(topic, payload, qos=1).wait_for_publish(5)
    own.disconnect()
    own.loop_stop()


def poll_until(follower: SourceFollower, count: int) -> SourceReadings:
    """What comes, once so many channels have."""
    found: dict[Any, Any] = {}
    end = time.monotonic() + 10
    while len(found) < count and time.monotonic() < end:
        found |= follower.poll().series
        time.sleep(0.02)
    return SourceReadings(found)


def test_topics_become_assets_and_channels(broker: str, send: Send) -> None:
    follower = open_source(f"mqtt://{broker}/plant/#?asset=1").follow(0.0)
    time.sleep(0.3)
    now = time.time()
    send("plant/pump 1/pressure", "3.5")
    send("plant/pump 1/bearing/heat", f'{{"value": 60, "time": {round(1000 * (now - 5))}, "unit": "degC"}}')
    send("plant/pump 2", '{"flow": 7, "speed": 29.5, "state": "on", "ts": "2023-11-14T22:13:20Z"}')
    send("plant/pump 2/x", "no number")
    found = poll_until(follower, 4)
    follower.close()
    values = {key: (own.values.tolist(), own.unit) for key, own in found.series.items()}
    assert values == {
        ("pump 1", "pressure"): ([3.5], ""),
        ("pump 1", "bearing/heat"): ([60.0], "degC"),
        ("pump 2", "flow"): ([7.0], ""),
        ("pump 2", "speed"): ([29.5], ""),
    }
    assert found.series["pump 2", "flow"].times.tolist() == [1.7e9]
    assert abs(found.series["pump 1", "bearing/heat"].times[0] - now + 5) < 0.01
    assert abs(found.series["pump 1", "pressure"].times[0] - now) < 5


def test_it_keeps_no_history_and_says_so(broker: str) -> None:
    source = open_source(f"mqtt://{broker}/plant/#")
    assert not source.keeps_history
    with pytest.raises(UsageError, match="no history"):
        source.read(time.time() - 60, time.time() - 1)
    assert len(source.read(time.time(), time.time() + 0.2)) == 0


def test_a_broker_that_goes_away_is_named_and_followed_again() -> None:
    from paho.mqtt import publish  # noqa: PLC0415 - optional

    port = servers.free_port()
    with servers.mosquitto(port=port) as address:
        if address is None:
            pytest.skip("no MQTT broker: install one (Debian: apt install mosquitto)")
        follower = open_source(f"mqtt://{address}/plant/#").follow(0.0)
        follower.poll()
    end = time.monotonic() + 10
    with pytest.raises(UnreachableError, match="lost"):
        servers.repeat(follower.poll, 10.0)
    with servers.mosquitto(port=port):
        found: dict[Any, Any] = {}
        while not found and time.monotonic() < end + 10:
            publish.single("plant/p", "1.5", hostname="127.0.0.1", port=port)
            time.sleep(0.2)
            try:
                found |= follower.poll().series
            except UnreachableError:
                continue
        follower.close()
    assert ("", "p") in found


def test_a_password_is_asked_for_and_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with servers.mosquitto(("reader", "s3cret-door")) as address:
        if address is None:
            pytest.skip("no MQTT broker: install one (Debian: apt install mosquitto)")
        monkeypatch.setenv("PLANT_WORD", "s3cret-door")
        open_source(f"mqtt://reader@{address}/#", "env:PLANT_WORD").follow(0.0).close()
        monkeypatch.setenv("PLANT_WORD", "s3cret-wrong")
        with pytest.raises(UnreachableError, match=r"(?i)not authori[sz]ed") as caught:
            open_source(f"mqtt://reader@{address}/#", "env:PLANT_WORD").follow(0.0)
        assert "s3cret" not in str(caught.value)
    with pytest.raises(UnreachableError):
        open_source(f"mqtt://127.0.0.1:{servers.free_port()}/#").follow(0.0)
    with servers.SlowServer() as slow, pytest.raises(UnreachableError, match="does not answer"):
        open_source(f"mqtt://{slow}/#?timeout=0.3").follow(0.0)


def test_levels_of_topics() -> None:
    own = open_source("mqtt://h/site/+/+?asset=1")
    assert isinstance(own, MqttSource)
    assert own.parse("site/pump/flow", b"1", 5.0) == [(("pump", "flow"), 5.0, 1.0, "")]
    assert own.parse("site/pump/flow", b"NaN", 5.0) == []
    for odd in (b"\xff", b"7" * 400, b"[" * 100_000, b'{"value": ' + b"7" * 400 + b"}"):
        assert own.parse("site/pump/flow", odd, 5.0) == []
    with pytest.raises(UsageError, match="level"):
        open_source("mqtt://h/site/#?asset=pump")
