"""Prometheus and VictoriaMetrics: real servers with a history, one that is slow, one that goes away."""

from __future__ import annotations

import numpy as np
import pytest

from readbench.cases.connect import SignalSource, open_source
from readbench.errors import DataError, UnreachableError, UsageError
from tests.cases.connect import servers
from tests.cases.connect.conftest import START, STEPS, readings

HASHED = "$2b$04$OdWI4oANMvteQmhqMk28dOX3JfRUWLK2QF4ZdjTc/bU8ophy.v1gu"
"""The password of a server that lives for a test, as its configuration wants it (bcrypt)."""


@pytest.fixture(params=["prometheus", "victoriametrics"])
def source(request: pytest.FixtureRequest) -> SignalSource:
    address = request.getfixturevalue({"prometheus": "prometheus", "victoriametrics": "victoria"}[request.param])
    return open_source(f"{request.param}://{address}/?asset=rig&unit=unit")


def test_labels_become_assets_channels_and_units(source: SignalSource) -> None:
    found = {(own.asset, own.name): own.unit for own in source.channels()}
    assert set(found) == {("a", "pressure"), ("a", "flow"), ("a", "speed{shaft=1}"), ("b", "flow"), ("b", "pressure")}
    assert found["a", "pressure"] == "bar"


def test_a_range_is_read_as_it_was_scraped(source: SignalSource) -> None:
    found = source.read(START + 10, START + 60, asset="a")
    own = found.of_asset("a")["flow"]
    expected = readings(2)[10:61]
    np.testing.assert_allclose(own.times, [when for when, _ in expected])
    np.testing.assert_allclose(own.values, [value for _, value in expected])
    assert found.assets == ("a",)


def test_a_gap_stays_a_gap(source: SignalSource) -> None:
    """A range query of Prometheus would repeat the last reading for five minutes."""
    times = source.read(START, START + STEPS, asset="b").of_asset("b")["flow"].times
    assert np.diff(times).max() == 81.0
    means = source.read(START, START + STEPS, asset="b", step=10.0).of_asset("b")["flow"].times
    assert 70 <= np.diff(means).max() <= 90


def test_means_suffice_for_an_overview(source: SignalSource) -> None:
    own = source.read(START + 9, START + 99, asset="a", step=10.0).of_asset("a")["flow"]
    values = np.array([value for _, value in readings(2)])
    assert len(own.times) == 10
    # Of (t - 10 s, t] or [t - 10 s, t], as servers have it.
    np.testing.assert_allclose(own.values[-1], values[90:100].mean(), atol=0.2)


@pytest.mark.parametrize("family", ["prometheus", "victoriametrics"])
@pytest.mark.parametrize("match", ["pressure", 'pressure{unit="bar"}', '{__name__=~"pres.*"}', '{unit="bar",}'])
def test_a_selector_chooses_readings_and_means_alike(request: pytest.FixtureRequest, family: str, match: str) -> None:
    address = request.getfixturevalue({"prometheus": "prometheus", "victoriametrics": "victoria"}[family])
    source = open_source(f"{family}://{address}/?asset=rig&unit=unit", options={"match": match})
    for asset, step in ((None, None), (None, 10.0), ("a", None), ("a", 10.0)):
        found = source.read(START + 9, START + 99, asset=asset, step=step)
        assert set(found.series) >= {("a", "pressure")}, (asset, step)
        assert {name for _, name in found.series} == {"pressure"}


def test_a_changed_unit_is_converted_and_told(source: SignalSource) -> None:
    found = source.read(START, START + STEPS, asset="b")
    own = found.of_asset("b")["pressure"]
    assert (own.unit, len(own.times)) == ("kPa", STEPS)
    np.testing.assert_allclose(own.values, [100 * value for _, value in readings(5)], rtol=1e-9)
    assert "changed from bar to kPa" in found.remarks[0]


def test_a_range_longer_than_an_hour_is_read_in_parts(source: SignalSource) -> None:
    assert len(source.read(START - 5000, START + STEPS, asset="a").of_asset("a")["flow"].times) == STEPS


def test_a_wrong_selector_says_what_the_server_says(prometheus: str) -> None:
    with pytest.raises(DataError, match=r"cannot answer: .*parse"):
        open_source(f"prometheus://{prometheus}/?match={{{{").read(START, START + 1)


def test_a_slow_server_is_left_in_time() -> None:
    with servers.SlowServer() as address, pytest.raises(UnreachableError, match="does not answer"):
        open_source(f"prometheus://{address}/?timeout=0.2").read(START, START + 1)


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(UnreachableError, match=r"prometheus://127.0.0.1:\d+/ does not answer"):
        open_source(f"prometheus://127.0.0.1:{servers.free_port()}").channels()


def test_a_password_opens_the_door_and_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with servers.prometheus(
        {"level": readings(1)}, web=f"basic_auth_users:\n  reader: {HASHED}\n", user=("reader", "s3cret-door")
    ) as address:
        if address is None:
            pytest.skip("no Prometheus server: install it (Debian: apt install prometheus)")
        monkeypatch.setenv("PLANT_WORD", "s3cret-door")
        assert len(open_source(f"prometheus://reader@{address}", "env:PLANT_WORD").read(START, START + 9)) == 10
        monkeypatch.setenv("PLANT_WORD", "s3cret-wrong")
        with pytest.raises(UsageError, match="refuses us") as caught:
            open_source(f"prometheus://reader@{address}", "env:PLANT_WORD").read(START, START + 9)
        assert "s3cret" not in str(caught.value)
