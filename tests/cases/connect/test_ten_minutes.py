"""The path of docs/connect.md, for each source: its lines are run as they stand there, against the real server."""

from __future__ import annotations

import re
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import requests
from typer.testing import CliRunner

from readbench.cases import Library
from readbench.cli import app
from tests.cases import samples
from tests.cases.connect import servers
from tests.cases.postgres import PostgresServer
from tests.cases.samples import CHANNELS, FAST, window

PAGE = Path(__file__).parents[3] / "docs" / "connect.md"
PASSWORD = "s3cret-ten"  # noqa: S105 - of servers that live for a test
STEPS = 40
HISTORY = 66 * STEPS


def shown(command: str) -> list[list[str]]:
    """Lines of the page that begin so, as words."""
    lines = re.findall(rf"^(readbench cases {command} .*)$", PAGE.read_text(), re.MULTILINE)
    return [shlex.split(line, comments=True)[1:] for line in lines]


FAMILIES = {words[4].split(":")[0]: words for words in shown("connect") if "://" in words[4]}


def recording(now: float) -> tuple[np.ndarray, np.ndarray]:
    """Times and (3, T) readings until now: normal operation, and a leak in the last 40 seconds."""
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(size=(3, HISTORY)), window("leak", rng, STEPS)], axis=1)
    times = np.floor(now) - 2 + np.arange(-HISTORY - STEPS, 0) + 1.0
    return times, np.round(values, 5)


@contextmanager
def prometheus(start: Callable[[servers.Rows], AbstractContextManager[str | None]]) -> Iterator[str]:
    times, values = recording(time.time())
    rows = {
        f'{name}{{rig="pump-1",unit="bar"}}': list(zip(times.tolist(), own.tolist(), strict=True))
        for name, own in zip(CHANNELS, values, strict=True)
    }
    with start(rows) as address:
        if address is None:
            pytest.skip("no such server here: apt install prometheus victoria-metrics")
        yield address


@contextmanager
def influxdb() -> Iterator[str]:
    with servers.influxdb(("reader", PASSWORD)) as address:
        if address is None:
            pytest.skip("no InfluxDB server: apt install influxdb")
        times, values = recording(time.time())
        lines = [
            f"line,rig=pump-1 {','.join(f'{n}={v}' for n, v in zip(CHANNELS, row, strict=True))} {round(1e9 * when)}"
            for when, row in zip(times, values.T, strict=True)
        ]
        for path, body in (("/query", {"q": "CREATE DATABASE plant"}), ("/write?db=plant", "\n".join(lines))):
            assert requests.post(f"http://{address}{path}", data=body, auth=("reader", PASSWORD), timeout=20).ok
        yield address


@contextmanager
def postgresql(server: PostgresServer) -> Iterator[str]:
    first = time.time() - HISTORY - STEPS - 1
    _, values = recording(time.time())
    rows = [f"({first + i}, 'pump-1', {','.join(map(str, row))})" for i, row in enumerate(values.T)]
    parts = [",".join(rows[i : i + 500]) for i in range(0, len(rows), 500)]
    server.ask("CREATE DATABASE plant")
    for query in (
        f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'",
        f"CREATE TABLE readings (ts double precision, rig text, {', '.join(f'{own} real' for own in CHANNELS)})",
        *(f"INSERT INTO readings VALUES {part}" for part in parts),  # noqa: S608 - our own numbers
        "GRANT SELECT ON readings TO reader",
    ):
        server.ask(query, "plant")
    yield f"127.0.0.1:{server.port}"


@contextmanager
def mqtt() -> Iterator[str]:
    """A broker, and a pump that speaks ten times a second."""
    paho = pytest.importorskip("paho.mqtt.client", reason="needs paho-mqtt: pip install 'readbench[mqtt]'")
    with servers.mosquitto() as address:
        if address is None:
            pytest.skip("no MQTT broker: apt install mosquitto")
        client, stop = paho.Client(paho.CallbackAPIVersion.VERSION2), threading.Event()
        host, _, port = address.partition(":")
        client.connect(host, int(port))
        client.loop_start()

        def speak() -> None:
            rng = np.random.default_rng(0)
            while not stop.wait(0.1):
                for name in CHANNELS:
                    client.publish(f"plant/pump-1/{name}", f"{rng.normal():.4f}")

        thread = threading.Thread(target=speak)
        thread.start()
        try:
            yield address
        finally:
            stop.set()
            thread.join()
            client.disconnect()
            client.loop_stop()


@contextmanager
def opcua() -> Iterator[str]:
    sync = pytest.importorskip("asyncua.sync", reason="needs asyncua: pip install 'readbench[opcua]'")
    from asyncua import ua  # noqa: PLC0415 - optional

    port = servers.free_port()
    server = sync.Server()
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}/plant")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    number = server.register_namespace("urn:plant")
    pump = server.nodes.objects.add_object(number, "Plant").add_object(number, "pump-1")
    nodes = [pump.add_variable(number, name, 0.0) for name in CHANNELS]
    server.start()
    try:
        for node in nodes:
            server.tloop.post(server.aio_obj.historize_node_data_change(node.aio_obj, count=1000))
        times, values = recording(time.time())
        for when, row in zip(times[-3 * STEPS :], values.T[-3 * STEPS :], strict=True):
            for node, value in zip(nodes, row.tolist(), strict=True):
                stamp = datetime.fromtimestamp(float(when), UTC)
                node.write_value(ua.DataValue(ua.Variant(value, ua.VariantType.Double), SourceTimestamp=stamp))
        yield f"127.0.0.1:{port}"
    finally:
        server.stop()


@contextmanager
def folder(where: Path) -> Iterator[str]:
    times, values = recording(time.time())
    own = where / "pump-1"
    own.mkdir(parents=True)
    rows = [f"{when:.3f},{','.join(map(str, row))}" for when, row in zip(times, values.T, strict=True)]
    (own / "today.csv").write_text("\n".join([f"time,{','.join(CHANNELS)}", *rows, ""]))
    yield str(where)


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result.output


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library.create(tmp_path / "library")
    library.add_normals(samples.normals(20), rate=1.0)
    rng = np.random.default_rng(0)
    for i in range(18):
        fault = samples.FAULTS[i % 3]
        library.add_one(window(fault, rng), CHANNELS, rate=1.0, label=fault, id=f"w{i}", units=("bar", "bar", "bar"))
    return library


@pytest.mark.slow  # servers start, and MQTT is listened to
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_page_is_followed_line_by_line(
    family: str, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("PLANT_TOKEN", PASSWORD)
    with ExitStack() as stack:
        place = stack.enter_context(_serve(family, tmp_path, request))
        there = "/data/plant" if family == "folder" else r"127\.0\.0\.1:\d+"
        connect = [re.sub(there, place, word) for word in FAMILIES[family]]
        where, now = library.store.where, time.time()
        assert "line is " in run(*_in(where, connect))
        seen = run(*_in(where, next(words for words in shown("connect") if "--channels" in words)))
        assert all(name in seen for name in ("pump-1", *CHANNELS))
        search = [*_in(where, next(words for words in shown("search") if "-40s" in words)), "--method", FAST]
        if family == "mqtt":
            search[search.index("-40s")] = "now"
            assert "pump-1" in run(*search, "--end", "+2s")
        else:
            search[search.index("-40s")] = f"{now - STEPS - 2:.0f}"  # the commands before took their time
            said = run(*search, "--end", f"{now:.0f}")
            assert re.search(r"leak", said), said
        watch = next(words for words in shown("watch") if words[-1] == "line")
        said = run(*_in(where, watch), "--method", FAST, "--once")
        kept = [path for path in Path(where).rglob("*") if path.is_file()]
        assert not any(PASSWORD.encode() in path.read_bytes() for path in kept)
        learned = Path(where) / "watch-line" / "normals.json"
        assert learned.exists() == (family not in {"mqtt", "opc.tcp"}), "only those have no long history"


def _in(where: str, words: list[str]) -> list[str]:
    return [where if word == "plant" else word for word in words]


def _serve(family: str, tmp_path: Path, request: pytest.FixtureRequest) -> AbstractContextManager[str]:
    if family == "postgresql":
        if find_spec("psycopg") is None:
            pytest.skip("needs psycopg: pip install 'readbench[postgres]'")
        return postgresql(request.getfixturevalue("postgres"))
    made: dict[str, Callable[[], AbstractContextManager[str]]] = {
        "prometheus": lambda: prometheus(servers.prometheus),
        "victoriametrics": lambda: prometheus(servers.victoria_metrics),
        "influxdb": influxdb,
        "mqtt": mqtt,
        "opc.tcp": opcua,
        "folder": lambda: folder(tmp_path / "data"),
    }
    return made[family]()
