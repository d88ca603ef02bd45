"""OPC UA against a real server: history, subscription, units, and a server that starts again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from readbench.cases.connect import SourceFollower, SourceReadings, open_source
from readbench.errors import UnreachableError
from tests.cases.connect import servers

sync: Any = pytest.importorskip("asyncua.sync", reason="needs asyncua: pip install 'readbench[opcua]'")


@contextmanager
def running_plant(port: int) -> Iterator[dict[str, Any]]:
    """A server with two pumps, whose flows it keeps a history of; the pressures have none."""
    from asyncua import ua  # noqa: PLC0415 - optional

    server = sync.Server()
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}/plant")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    number = server.register_namespace("urn:plant")
    nodes: dict[str, Any] = {}
    plant = server.nodes.objects.add_object(number, "Plant")
    for pump in ("pump 1", "pump 2"):
        own = plant.add_object(number, pump)
        flow, pressure = own.add_variable(number, "flow", 1.0), own.add_variable(number, "pressure", 2.0)
        unit = ua.EUInformation(DisplayName=ua.LocalizedText("bar"))
        pressure.add_property(0, "EngineeringUnits", unit)
        own.add_variable(number, "state", "on")
        nodes |= {f"{pump} flow": flow, f"{pump} pressure": pressure}
    server.start()
    for pump in ("pump 1", "pump 2"):
        flow = nodes[f"{pump} flow"]
        server.tloop.post(server.aio_obj.historize_node_data_change(flow.aio_obj, count=1000))
    try:
        yield nodes
    finally:
        server.stop()


@pytest.fixture(scope="module")
def plant() -> Iterator[tuple[str, dict[str, Any]]]:
    port = servers.free_port()
    with running_plant(port) as nodes:
        yield f"opc.tcp://127.0.0.1:{port}/plant?root=2:Plant", nodes


def wait_for(follower: SourceFollower, wanted: tuple[str, str], value: float) -> SourceReadings:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        found = follower.poll()
        if wanted in found.series and found.series[wanted].values[-1] == value:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{wanted} never was {value}")


@pytest.mark.slow  # the server of asyncua takes seconds to start
def test_objects_are_assets_and_properties_units(plant: tuple[str, dict[str, Any]]) -> None:
    source = open_source(plant[0])
    found = {(own.asset, own.name): own.unit for own in source.channels()}
    source.close()
    assert found == {
        ("pump 1", "flow"): "",
        ("pump 1", "pressure"): "bar",
        ("pump 2", "flow"): "",
        ("pump 2", "pressure"): "bar",
    }


@pytest.mark.slow
def test_history_is_read_and_changes_are_followed(plant: tuple[str, dict[str, Any]]) -> None:
    address, nodes = plant
    source = open_source(f"{address}&interval=50")
    began = time.time()
    for value in (3.0, 4.0, 5.0):
        nodes["pump 1 flow"].write_value(value)
        time.sleep(0.02)
    time.sleep(0.3)
    found = source.read(began - 1, time.time() + 1, asset="pump 1")
    assert found.series["pump 1", "flow"].values.tolist()[-3:] == [3.0, 4.0, 5.0]
    assert "No history of pressure is kept." in found.remarks
    follower = source.follow(time.time())
    nodes["pump 2 pressure"].write_value(9.5)
    assert wait_for(follower, ("pump 2", "pressure"), 9.5).series["pump 2", "pressure"].unit == "bar"
    follower.close()
    source.close()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # the client drops what it was waiting for
def test_a_server_that_starts_again_is_followed_again() -> None:
    port = servers.free_port()
    with running_plant(port):
        source = open_source(f"opc.tcp://127.0.0.1:{port}/plant?root=2:Plant&interval=50&timeout=2")
        follower = source.follow(time.time())
        follower.poll()
    with pytest.raises(UnreachableError, match="does not answer"):
        servers.repeat(follower.poll, 10.0)
    with running_plant(port) as nodes:
        nodes["pump 1 flow"].write_value(8.0)
        wait_for(follower, ("pump 1", "flow"), 8.0)
        follower.close()
        source.close()


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(UnreachableError, match="does not answer"):
        open_source(f"opc.tcp://127.0.0.1:{servers.free_port()}/x?timeout=1").channels()
    with servers.SlowServer() as slow, pytest.raises(UnreachableError):
        open_source(f"opc.tcp://{slow}/x?timeout=0.3").channels()
