"""Addresses, secrets, readings and followers, without a server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.cases.connect import (
    FAMILIES,
    NamedSource,
    SampledChannel,
    SourceAddress,
    SourceFile,
    SourceReadings,
    on_clock,
    open_source,
    parse_range,
)
from readbench.cases.connect._protocol import AHEAD_S, PollingFollower, QueueFollower
from readbench.errors import UnknownNameError, UnreachableError, UsageError
from tests.cases.connect.servers import free_port

SECRET = "s3cret-wörd"  # noqa: S105 - of no server
NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    "address",
    [
        f"prometheus://reader:{SECRET}@plant:9090",
        f"influxdb://plant/db?token={SECRET}",
        f"mqtt://plant/?password={SECRET}",
    ],
)
def test_an_address_with_a_secret_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(UsageError, match="--secret") as caught:
        SourceAddress.parse(address)
    assert SECRET not in str(caught.value)


def test_a_secret_is_named_not_given() -> None:
    with pytest.raises(UsageError, match="env:NAME") as caught:
        SourceAddress.parse("prometheus://plant", SECRET)
    assert SECRET not in str(caught.value)


def test_a_secret_comes_from_the_environment_or_a_file_and_is_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANT_WORD", SECRET)
    (tmp_path / "word").write_text(f"{SECRET}\n")
    for where in ("env:PLANT_WORD", f"file:{tmp_path / 'word'}"):
        own = SourceAddress.parse("prometheus://reader@plant", where)
        assert own.password() == SECRET
        assert SECRET not in f"{own} {own!r} {own.shown} {own.lost(f'refused {SECRET}')}"
    monkeypatch.setenv("PLANT_WORD", f" {SECRET}\n")
    assert SourceAddress.parse("prometheus://plant", "env:PLANT_WORD").password() == SECRET
    for wrong in (f"{SECRET}\nX-Other: 1", ""):
        monkeypatch.setenv("PLANT_WORD", wrong)
        with pytest.raises(UsageError, match="more than one line") as caught:
            SourceAddress.parse("prometheus://plant", "env:PLANT_WORD").password()
        assert SECRET not in str(caught.value)
    with pytest.raises(UsageError, match="NO_SUCH"):
        SourceAddress.parse("prometheus://plant", "env:NO_SUCH").password()
    with pytest.raises(UsageError, match="cannot be read"):
        SourceAddress.parse("prometheus://plant", f"file:{tmp_path / 'none'}").password()


@pytest.mark.parametrize("address", ["prometheus://{}", "prometheus://u@{}", "influxdb://u@{}/d", "influxdb2://{}/b"])
def test_a_secret_of_any_letters_is_sent(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANT_WORD", "geheim-ü-☃")
    with pytest.raises(UnreachableError):
        open_source(address.format(f"127.0.0.1:{free_port()}"), "env:PLANT_WORD").read(0.0, 1.0)


@given(
    st.sampled_from(sorted(set(FAMILIES) - {"folder"})),
    st.dictionaries(st.sampled_from(["asset", "query", "match"]), st.text(max_size=20)),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=10),
)
def test_an_address_that_is_shown_is_read_as_it_was(family: str, options: dict[str, str], path: str) -> None:
    own = SourceAddress(family, "plant", 1234, path.lstrip("/"), "user name", options)
    assert SourceAddress.parse(own.shown) == own


def test_wrong_addresses_say_what_to_write() -> None:
    with pytest.raises(UsageError, match="such as prometheus://"):
        SourceAddress.parse("plant")
    with pytest.raises(UsageError, match="such as folder:///data"):
        SourceAddress.parse("folder://data/plant")
    with pytest.raises(UsageError, match="cannot be read"):
        SourceAddress.parse("prometheus://plant:port")
    with pytest.raises(UnknownNameError, match="prometheus"):
        open_source("promethues://plant")
    with pytest.raises(UnknownNameError, match="match"):
        open_source("prometheus://plant/?macth=x")
    with pytest.raises(UsageError, match="positive number"):
        _ = SourceAddress.parse("prometheus://plant/?timeout=soon").timeout_s


def test_sources_are_kept_by_name_with_the_name_of_their_secret_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANT_WORD", SECRET)
    file = SourceFile(tmp_path / "sources.toml")
    assert file.all() == []
    own = NamedSource("plant", SourceAddress.parse('prometheus://h:1/?match={a="ü"}', "env:PLANT_WORD"))
    file.put(own)
    file.put(NamedSource("other", SourceAddress.parse("mqtt://h/plant/#")))
    assert file.get("plant") == own
    assert file.get("other").address.path == "plant/#"
    assert SECRET not in file.path.read_text()
    with pytest.raises(UnknownNameError, match="plant"):
        file.get("plnat")
    with pytest.raises(UsageError, match="no name"):
        file.put(NamedSource("a b", own.address))
    file.remove("plant")
    assert [source.name for source in file.all()] == ["other"]


def test_readings_come_in_order_and_without_what_is_no_number() -> None:
    own = SampledChannel.of([2.0, 1.0, 2.0, 3.0, np.nan], [1.0, np.inf, 5.0, 7.0, 1.0])
    assert (own.times.tolist(), own.values.tolist()) == ([2.0, 3.0], [5.0, 7.0])


def test_a_unit_that_cannot_be_converted_leaves_only_what_came_since() -> None:
    key = ("", "x")
    parts = [(key, SampledChannel.of([0.0], [1.0], "bar")), (key, SampledChannel.of([1.0], [2.0], "K"))]
    joined = SourceReadings.join(parts)
    assert joined.series[key].values.tolist() == [2.0]
    assert "no conversion" in joined.remarks[0]


def test_clocks_that_do_not_tick_alike_look_like_one_that_does() -> None:
    rng = np.random.default_rng(0)
    values, delays = rng.normal(size=200), rng.uniform(0.0, 0.2, 200)
    steady = SampledChannel.of(np.arange(200.0) + 0.98, values)
    found = [
        on_clock({"p": own}, 10.0, 1.0, 100)[0] for own in (steady, SampledChannel.of(steady.times + delays, values))
    ]
    np.testing.assert_allclose(found[0], found[1])


def test_a_missed_reading_lies_between_its_neighbours_and_a_slow_channel_holds() -> None:
    times = np.array([0.0, 1.0, 3.0, 4.0, 5.0, 6.0])
    assert on_clock({"p": SampledChannel.of(times, times)}, 0.0, 1.0, 7)[0].tolist() == [0, 1, 2, 3, 4, 5, 6]
    slow = SampledChannel.of([0.0, 3.0, 6.0], [0.0, 3.0, 6.0])
    assert on_clock({"p": slow}, 0.0, 1.0, 7)[0].tolist() == [0, 0, 0, 3, 3, 3, 6]


def test_a_channel_that_is_read_seldom_holds_and_one_that_stops_has_a_gap() -> None:
    times = np.arange(0.0, 60.0, 10.0)
    slow, stopped = SampledChannel.of(times, times), SampledChannel.of(np.arange(20.0), np.ones(20))
    found = on_clock({"slow": slow, "stopped": stopped}, 0.0, 1.0, 60)
    assert np.isfinite(found[0]).all()
    assert np.isfinite(found[1, :22]).all()
    assert np.isnan(found[1, 23:]).all()


class Replayed:
    """A source whose readings are a list; it can be away."""

    shown = "replayed"
    keeps_history = True

    def __init__(self) -> None:
        self.rows: list[tuple[float, float]] = []
        self.away = False

    def channels(self) -> list[object]:
        return []

    def read(self, start: float, end: float, **_: object) -> SourceReadings:
        if self.away:
            raise UnreachableError("away")
        inside = [row for row in self.rows if start <= row[0] <= end]
        return SourceReadings(
            {("", "x"): SampledChannel.of([row[0] for row in inside], [row[1] for row in inside])} if inside else {}
        )

    def follow(self, since: float) -> PollingFollower:
        return PollingFollower(self, since)  # type: ignore[arg-type]

    def close(self) -> None: ...


def values_of(found: SourceReadings) -> list[float]:
    return found.series["", "x"].values.tolist() if found.series else []


def test_a_follower_gives_every_reading_once_and_late_ones_too() -> None:
    source = Replayed()
    follower = source.follow(NOW)
    source.rows = [(NOW + 1, 1.0), (NOW + 2, 2.0)]
    assert values_of(follower.poll(NOW + 2)) == [1.0, 2.0]
    assert values_of(follower.poll(NOW + 3)) == []
    source.rows.append((NOW + 2.5, 3.0))
    assert values_of(follower.poll(NOW + 6)) == [3.0]


def test_nothing_is_lost_while_a_source_is_away() -> None:
    source = Replayed()
    follower = source.follow(NOW)
    source.rows = [(NOW + 1, 1.0)]
    assert values_of(follower.poll(NOW + 1)) == [1.0]
    source.away = True
    source.rows.append((NOW + 20, 2.0))
    with pytest.raises(UnreachableError):
        follower.poll(NOW + 30)
    source.away = False
    source.rows.append((NOW + 40, 3.0))
    assert values_of(follower.poll(NOW + 60)) == [2.0, 3.0]


def test_a_clock_that_jumps_ahead_does_not_silence_a_channel() -> None:
    source = Replayed()
    follower = source.follow(NOW)
    source.rows = [(NOW + 1, 1.0), (NOW + 2 + 10 * AHEAD_S, 99.0)]
    assert values_of(follower.poll(NOW + 2)) == [1.0]
    source.rows.append((NOW + 3, 3.0))
    assert values_of(follower.poll(NOW + 3)) == [3.0]
    queue = QueueFollower()
    for when, value in ((NOW + 1, 1.0), (NOW + 2 + 10 * AHEAD_S, 99.0), (NOW + 3, 3.0)):
        queue.take(("", "x"), when, value)
    assert values_of(queue.poll(NOW + 3)) == [1.0, 3.0]


def test_a_clock_that_is_set_back_is_silent_until_it_has_caught_up() -> None:
    source = Replayed()
    follower = source.follow(NOW)
    source.rows = [(NOW + 5, 1.0)]
    assert values_of(follower.poll(NOW + 5)) == [1.0]
    source.rows += [(NOW + 2, 7.0)]
    assert values_of(follower.poll(NOW + 6)) == []
    source.rows += [(NOW + 7, 2.0)]
    assert values_of(follower.poll(NOW + 7)) == [2.0]


def test_what_nobody_asks_for_is_held_within_bounds() -> None:
    queue = QueueFollower(most=10)
    for i in range(25):
        queue.take(("", "x"), NOW + i, float(i))
    found = queue.poll(NOW + 30)
    assert values_of(found) == [float(i) for i in range(15, 25)]
    assert found.remarks == ("15 readings came faster than they were read.",)


def test_ranges_as_people_write_them() -> None:
    assert parse_range("22:00", "22:13", now=NOW, zone="UTC") == (NOW - 800, NOW - 20)
    assert (
        parse_range("23:50", "00:10", now=NOW, zone="UTC")[1] - parse_range("23:50", "", now=NOW, zone="UTC")[0] == 1200
    )
    assert parse_range("-20m", "", now=NOW) == (NOW - 1200, NOW)
    assert parse_range("2023-11-14T22:00Z", "now", now=NOW) == (NOW - 800, NOW)
    with pytest.raises(UsageError, match="--start"):
        parse_range("", "14:20")
    with pytest.raises(UsageError, match="no time"):
        parse_range("noonish", "")
