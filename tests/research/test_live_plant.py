"""The plant of the live demonstration, and what a watch costs."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

pytest.importorskip("lancedb", reason="the case library needs LanceDB: pip install 'readbench[cases]'")

from readbench.cases.watch import Notice, NoticeCase, NoticeFault
from research import live_demo
from research.live_plant import simulate_plant
from research.watch_replay import AFTER, Replay, replay, summarise
from research.watching import measure_cost
from tests.cases.samples import FAST


def test_a_fault_that_begins_later_leaves_what_came_before_as_it_was() -> None:
    healthy = simulate_plant(899, "leak in tank 1", after=1)
    leaking = simulate_plant(600, "leak in tank 1", after=300)
    np.testing.assert_array_equal(healthy.values[:, :600], leaking.values[:, :600])
    level = leaking.channels.index("level_3")
    assert np.abs(healthy.values[level, 600:] - leaking.values[level, 600:]).max() > 0.5


def test_each_scrape_is_a_reading_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plant, now = simulate_plant(200, after=1), [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    exporter = live_demo._Exporter(plant, 50)
    exporter.server.server_close()
    began, late = exporter.begin(), np.random.default_rng(0).uniform(0.0, 0.09, 60)
    found = []
    for number in range(60):
        now[0] = began + 0.13 + live_demo.STEP_S * number + (late[number] if number else 0.0)
        found.append(exporter.text())
    assert found == [live_demo._lines(plant, plant.values[:, 50 + number]) for number in range(60)]


@pytest.mark.parametrize("missing", ["server", "port"])
def test_what_the_demonstration_needs_is_one_sentence(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if missing == "server" else f"/usr/bin/{name}")
    app = typer.Typer()
    app.command()(live_demo.main)
    before = signal.getsignal(signal.SIGTERM)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = CliRunner().invoke(app, ["--port", str(port)])
    signal.signal(signal.SIGTERM, before)
    sentence = "apt install prometheus" if missing == "server" else f"Port {port} is taken. Name another one"
    assert (found.exit_code, found.output.startswith("Error: ")) == (2, True)
    assert sentence in found.output


def test_what_was_told_is_counted() -> None:
    fault = NoticeFault(label="leak", probability=0.9)
    case = NoticeCase(id="T-1", label="leak", asset="rig", notes="")
    told = Notice(
        key="k", kind="fault", asset="rig", source="x", onset=5.0, seen=6.0, told=30.0, faults=(fault,), cases=(case,)
    )
    runs = [Replay("leak", 4.4, (told,), 1), Replay("bias", 4.4, (told,), 1), Replay("leak", 4.4, (), 0)]
    found = summarise([*runs, Replay("", 4.4, (), 2)])
    assert (found["faults"], found["told"], found["right_case_first"]) == (3, 2, 1)
    assert (found["named_right"], found["named_wrong"]) == (1, 1)
    assert found["median_delay_windows"] == 0.5
    assert (found["healthy_departures"], found["healthy_notices"]) == (2, 0)


@pytest.mark.slow  # a library of the plant is made
def test_a_fault_is_told_in_simulated_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.watch_replay.METHOD", FAST)
    found = replay(live_demo.make_library(tmp_path / "library"), "leak in tank 1", 3)
    assert found.departures == 1
    assert len(found.notices) == 1
    assert 0 < found.delay_s < AFTER * live_demo.WINDOW * live_demo.STEP_S


def test_the_cost_of_a_watch_is_measured() -> None:
    cost = measure_cost(2)
    assert cost["channels"] == 50
    assert cost["channels_per_core"] > 500
    assert cost["held_bytes_per_channel"] < 10_000
