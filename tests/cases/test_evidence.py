"""Why a case resembles a window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.cases import Library, draw_evidence
from readbench.engine.alignment import warping_path
from readbench.engine.windows import WindowSet
from tests.cases.samples import CHANNELS, windows
from tests.naive.dtw import dtw_d

RAMP = np.linspace(0, 6, 40)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_the_path_is_the_cheapest(left: int, right: int, channels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ours, theirs = rng.normal(size=(channels, left)), rng.normal(size=(channels, right))
    path, cost = warping_path(ours, theirs, band=1.0)
    assert cost == pytest.approx(dtw_d(ours, theirs, band=1.0), rel=1e-9)
    along = ((ours[:, path[:, 0]] - theirs[:, path[:, 1]]) ** 2).sum()
    assert cost == pytest.approx(along, rel=1e-9)
    assert path[0].tolist() == [0, 0]
    assert path[-1].tolist() == [left - 1, right - 1]
    assert {tuple(step) for step in np.diff(path, axis=0).tolist()} <= {(0, 1), (1, 0), (1, 1)}


def test_the_channels_that_depart_in_the_same_way_come_first(library: Library) -> None:
    evidence = library.explain(windows(1, seed=7), "w0")
    same = [channel.name for channel in evidence.channels if channel.same_way]
    assert sorted(same) == ["flow", "pressure"]
    assert evidence.channels[2].name == "speed"
    assert evidence.reference == "5 normal windows of pump 0"


def test_the_opposite_movement_is_not_the_same_way(library: Library) -> None:
    values = np.random.default_rng(0).normal(size=(3, 40))
    values[0] += RAMP
    values[1] -= RAMP
    evidence = library.explain(WindowSet.from_arrays([values], channels=CHANNELS), "w0")
    assert not any(channel.same_way for channel in evidence.channels)
    assert min(channel.agreement for channel in evidence.channels) < -0.5


def test_each_side_is_measured_by_the_normals_of_its_own_asset(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    library = Library.create(tmp_path / "l")
    for asset, level in (("low", 0.0), ("high", 100.0)):
        shown = WindowSet.from_arrays(rng.normal(level, 1, size=(5, 1, 40)), channels=("flow",))
        library.add_normals(shown, asset)
        library.add_one(rng.normal(level + 5, 1, size=(1, 40)), ["flow"], id=asset, asset=asset)
    channel = library.explain("low", "high").channels[0]
    assert channel.same_way
    assert channel.window == pytest.approx(5, abs=1)
    assert channel.case == pytest.approx(5, abs=1)


def test_a_channel_that_departs_on_one_side_only_speaks_against(library: Library) -> None:
    normal = np.random.default_rng(1).normal(size=(3, 40))
    evidence = library.explain(WindowSet.from_arrays([normal], channels=CHANNELS), "w0")
    assert {channel.name for channel in evidence.channels if channel.against} == {"flow", "pressure"}
    assert evidence.support < library.explain(windows(1, seed=7), "w0").support


def test_of_a_young_fault_departures_count_from_its_onset(library: Library) -> None:
    young = np.random.default_rng(3).normal(size=(3, 40))
    young[0, 30:] -= RAMP[:30:3]
    young[1, 30:] += RAMP[:30:3]
    asked = WindowSet.from_arrays([young], channels=CHANNELS)
    diluted, since = library.explain(asked, "w0"), library.explain(asked, "w0", onset=30)
    assert not any(channel.same_way for channel in diluted.channels)
    assert {channel.name for channel in since.channels if channel.same_way} == {"pressure", "flow"}
    assert not any(channel.against for channel in since.channels)
    assert since.path == diluted.path


def test_an_offset_alone_does_not_agree_and_sizes_have_no_end(library: Library) -> None:
    rng = np.random.default_rng(2)
    offset = rng.normal(size=(3, 40)) + np.array([[80.0], [0.0], [0.0]])
    case = library.add_one(rng.normal(size=(3, 40)) + np.array([[80.0], [0.0], [0.0]]), CHANNELS, id="offset").id
    evidence = library.explain(WindowSet.from_arrays([offset], channels=CHANNELS), case)
    channel = next(own for own in evidence.channels if own.name == CHANNELS[0])
    assert channel.agreement < 0.8
    assert channel.window > 60


def test_separation_is_that_of_pairs_of_other_recordings(library: Library, tmp_path: Path) -> None:
    found = library.ask("separation", pairs=20)
    assert (found.same, found.other) == (20, 20)
    assert found.support > 0.9, "the faults of the samples move different channels"
    alone = Library.create(tmp_path / "alone")
    alone.add(windows(1))
    assert alone.ask("separation").support is None


def test_channels_of_one_side_only_are_named(library: Library) -> None:
    asked = WindowSet.from_arrays([windows(1).values(0)], channels=("pressure", "flow", "heat"))
    evidence = library.explain(asked, "w1")
    assert (evidence.only_window, evidence.only_case) == (("heat",), ("speed",))
    stranger = library.explain(WindowSet.from_arrays([np.ones((1, 4))], channels=("heat",)), "w1")
    assert stranger.channels == ()


def test_the_figure_has_a_panel_for_each_channel(library: Library) -> None:
    figure = draw_evidence(library.explain(windows(1, seed=7), "w0"))
    titles = [axis.get_title(loc="left") for axis in figure.axes if axis.get_visible()]
    assert len(titles) == 3
    assert any("same way" in title for title in titles)
