"""What windows of a recording bring along: the time before them, facts, rate and units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from readbench.benchmark.protocol import Cuts, Protocol, Recording, rows_before, windows_of
from readbench.engine.spec import build_source


def recorded(labels: list[int], **facts: object) -> Recording:
    """A recording of one channel that counts its steps."""
    steps = np.arange(len(labels), dtype=np.float32)[None]
    return Recording("r", steps, ("x",), np.array(labels, np.int32), "g", **facts)  # type: ignore[arg-type]


CLASSES = ("normal", "leak")


def befores(recording: Recording, **protocol: object) -> list[list[float] | None]:
    windows = windows_of(recording, Protocol(length=4, **protocol), CLASSES)  # type: ignore[arg-type]
    assert windows is not None
    return [None if window.before is None else window.before[0].tolist() for window in windows]


def test_before_ends_where_the_fault_began() -> None:
    found = befores(recorded([0] * 6 + [1] * 10))
    assert found == [None, [0, 1, 2, 3], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]


def test_before_never_overlaps_the_window() -> None:
    recording = recorded([0] * 5 + [1] * 3)
    assert befores(recording) == [None, [0, 1, 2, 3]]  # the second window begins at 4, its fault at 5


def test_before_holds_normal_steps_only() -> None:
    assert befores(recorded([0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1]))[2] == [0, 1, 4, 5]


def test_what_precedes_is_taken_whatever_it_holds() -> None:
    found = befores(recorded([0] * 4 + [1] * 8), before="preceding", before_steps=3)
    assert found == [None, [1, 2, 3], [5, 6, 7]]


def test_no_before_on_request() -> None:
    assert befores(recorded([0] * 4 + [1] * 4), before="none") == [None, None]


def test_a_recording_may_bring_the_time_before_it() -> None:
    recording = recorded([1] * 4, before=np.array([[7.0, np.nan, 9.0]]))
    assert befores(recording) == [[7.0, 7.0, 9.0]]
    assert befores(recording, missing="drop") == [[7.0, 9.0]]


def test_a_source_may_say_what_was_before_each_window() -> None:
    own = np.array([[3.0]], np.float32)
    cuts = Cuts(np.array([0, 4]), np.array([1, 1], np.int32), (own, None), {"gap": np.array([0.5, np.nan])})
    windows = windows_of(
        recorded([1] * 8, cuts=cuts, facts={"load": 1.0}, rate=5.0), Protocol(4), CLASSES, {"x": "bar"}
    )
    assert windows is not None
    assert windows[0].before is own
    assert windows[1].before is None
    assert [window.facts for window in windows] == [{"load": 1.0, "gap": 0.5}, {"load": 1.0}]
    assert (windows[0].rate, windows[0].units) == (5.0, ("bar",))


def test_a_series_handed_out_in_parts_brings_the_same_as_a_whole() -> None:
    labels = [0] * 5 + [1] * 3 + [0] * 6 + [1] * 10
    for rule in ("onset", "preceding"):
        protocol = Protocol(length=4, before=rule, before_steps=6)  # type: ignore[arg-type]
        whole = recorded(labels)
        kept = whole.values[:, rows_before(whole.labels, 12, protocol)]
        part = replace(whole, values=whole.values[:, 12:], labels=whole.labels[12:], before=kept)
        sets = [windows_of(recording, protocol, CLASSES) for recording in (whole, part)]
        assert sets[0] is not None
        assert sets[1] is not None
        befores = [[w.before for w in windows] for windows in (sets[0][3:], sets[1])]
        if rule == "onset":  # of normal windows the grid counts, which begins anew
            befores = [own[1:] for own in befores]
        np.testing.assert_equal(befores[0], befores[1])


def test_a_source_may_say_how_little_is_worth_bringing() -> None:
    labels = [0] * 2 + [1] * 8
    assert befores(recorded(labels), before_least=3) == [None, None]
    assert befores(recorded(labels), before_least=2) == [None, [0, 1]]


@pytest.mark.parametrize("name", ["sim_tanks", "mit_bih", "skab"])
def test_the_rule_is_a_parameter_of_the_source(name: str) -> None:
    protocol = build_source(f"{name}(before=none,before_steps=7)").info.protocol
    assert (protocol.before, protocol.before_steps) == ("none", 7)
    assert build_source(name).info.protocol.before == "onset"
