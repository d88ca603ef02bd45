from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.protocol import Cuts, Protocol, Recording, windows_of
from readbench.benchmark.protocol._cut import window_starts
from readbench.engine.windows import UNLABELLED, WindowSet
from readbench.errors import DataError
from tests.benchmark.protocol.fakes import recording
from tests.naive import labels as naive

CLASSES = ("normal", "leak", "stuck")


@dataclass(frozen=True)
class Cut:
    """A recording and how to cut it."""

    series: Recording
    protocol: Protocol


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    stretches = draw(st.lists(st.tuples(st.integers(-1, 2), st.integers(1, 8)), min_size=1, max_size=5))
    labels = [label for label, length in stretches for _ in range(length)]
    protocol = Protocol(
        length=draw(st.none() | st.integers(1, 10)),
        stride=draw(st.none() | st.integers(1, 12)),
        normal_stride=draw(st.none() | st.integers(1, 5)),
        label_rule=draw(st.sampled_from(["majority", "majority-or-coverage"])),
    )
    return Cut(recording(labels, start=100.0, step=0.5), protocol)


def stride_of(cut: Cut) -> int:
    """Faulty recordings take the stride, the others the normal stride; each defaults to the next, then the length."""
    faulty = any(label > 0 for label in cut.series.labels.tolist())
    own = None if faulty else cut.protocol.normal_stride
    return own or cut.protocol.stride or length_of(cut)


def length_of(cut: Cut) -> int:
    return cut.protocol.length or len(cut.series.labels)


def start_of(window_id: str) -> int:
    return int(window_id.rpartition("@")[2])


def assert_all_that_fit(starts: Sequence[int], steps: int, length: int, stride: int) -> None:
    assert list(starts) == [s for s in range(steps) if s % stride == 0 and s + length <= steps]


def assert_each_holds_what_its_id_says(cut: Cut, windows: WindowSet) -> None:
    for window in windows:
        start = start_of(window.id)
        np.testing.assert_array_equal(window.values, cut.series.values[:, start : start + length_of(cut)])
        assert window.time == cut.series.start + cut.series.step * start
        assert window.channels == cut.series.channels
        assert window.group == cut.series.group


def assert_spans_show_the_fault(cut: Cut, windows: WindowSet) -> None:
    for i, window in enumerate(windows):
        start = start_of(window.id)
        own = cut.series.labels[start : start + length_of(cut)].tolist()
        assert tuple(windows.spans[i].tolist()) == naive.span(own, window.label)


def assert_unique_ids(windows: WindowSet) -> None:
    assert len(set(windows.ids.tolist())) == len(windows)


def assert_unlabelled_windows_are_left_out(cut: Cut, starts: Sequence[int]) -> None:
    """A window of which half or more is unlabelled is not there; all others are."""
    length, steps = length_of(cut), len(cut.series.labels)
    fitting = range(0, steps - length + 1, stride_of(cut))
    unknown = {s: (cut.series.labels[s : s + length] == UNLABELLED).sum() for s in fitting}
    assert list(starts) == [s for s in fitting if 2 * unknown[s] < length]


@given(st.integers(0, 40), st.integers(1, 12), st.integers(1, 12))
def test_windows_start_at_every_stride_and_fit(steps: int, length: int, stride: int) -> None:
    assert_all_that_fit(window_starts(steps, length, stride).tolist(), steps, length, stride)


@given(cuts())
def test_a_window_holds_what_its_id_says(cut: Cut) -> None:
    windows = windows_of(cut.series, cut.protocol, CLASSES)
    if windows is not None:
        assert_each_holds_what_its_id_says(cut, windows)
        assert_unique_ids(windows)
        assert_spans_show_the_fault(cut, windows)


@given(cuts())
def test_windows_mostly_unlabelled_are_left_out(cut: Cut) -> None:
    windows = windows_of(cut.series, cut.protocol, CLASSES)
    starts = [] if windows is None else [start_of(w.id) for w in windows]
    assert_unlabelled_windows_are_left_out(cut, starts)
    if windows is not None:
        assert (windows.labels >= 0).all()


def starts_in(labels: list[int], protocol: Protocol) -> list[int]:
    windows = windows_of(recording(labels), protocol, CLASSES)
    return [] if windows is None else [start_of(w.id) for w in windows]


def test_windows_do_not_overlap_unless_asked() -> None:
    assert starts_in([0] * 11, Protocol(length=4)) == [0, 4]
    assert starts_in([0] * 11, Protocol(length=4, stride=3)) == [0, 3, 6]


def test_normal_recordings_can_be_cut_more_densely_than_faulty_ones() -> None:
    protocol = Protocol(length=4, stride=4, normal_stride=2)
    assert starts_in([0] * 8, protocol) == [0, 2, 4]
    assert starts_in([0] * 7 + [1], protocol) == [0, 4]


def test_a_recording_of_native_length_is_one_window() -> None:
    series = recording([2] * 7)
    windows = windows_of(series, Protocol(length=None, label_rule="native"), CLASSES)
    assert windows is not None
    assert (windows.lengths.tolist(), windows.labels.tolist(), windows.ids.tolist()) == ([7], [2], ["r@0"])


def test_a_native_label_must_be_one() -> None:
    with pytest.raises(DataError, match=r"pump-3.*same at every step"):
        windows_of(recording([1, 2], name="pump-3"), Protocol(length=None, label_rule="native"), CLASSES)


def test_a_native_recording_without_a_label_gives_nothing() -> None:
    assert windows_of(recording([-1] * 3), Protocol(length=None, label_rule="native"), CLASSES) is None


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_recording_shorter_than_a_window_gives_nothing(steps: int) -> None:
    assert windows_of(recording([1] * steps), Protocol(length=4), CLASSES) is None


def test_a_recording_as_long_as_a_window_gives_one() -> None:
    assert starts_in([1] * 4, Protocol(length=4)) == [0]


@pytest.mark.parametrize("rule", ["majority", "native"])
def test_a_native_recording_of_which_no_row_is_left_gives_nothing(rule: str) -> None:
    series = recording([1, 1], [[1.0, np.nan], [np.nan, 2.0]])
    protocol = Protocol(length=None, missing="drop", label_rule="native" if rule == "native" else "majority")
    assert windows_of(series, protocol, CLASSES) is None


def test_a_recording_without_any_channel_gives_nothing() -> None:
    series = recording([1] * 4, [[np.nan] * 4])
    assert windows_of(series, Protocol(length=4, missing="drop"), CLASSES) is None
    filled = windows_of(series, Protocol(length=4), CLASSES)
    assert filled is not None
    assert filled[0].values.tolist() == [[0.0] * 4]


def test_windows_are_cut_after_cleaning() -> None:
    series = recording([1] * 5, [[1.0, np.nan, 3.0, 4.0, 5.0]])
    dropped = windows_of(series, Protocol(length=4, missing="drop"), CLASSES)
    assert dropped is not None
    assert [w.values.tolist() for w in dropped] == [[[1.0, 3.0, 4.0, 5.0]]]


def test_a_reading_that_overflows_single_precision_does_not_reach_a_window() -> None:
    windows = windows_of(recording([1] * 3, [[1.0, 1e39, 3.0]]), Protocol(length=3), CLASSES)
    assert windows is not None
    windows.require_finite()


def cut_at(starts: list[int], labels: list[int]) -> Recording:
    """Ten steps of which the source says itself where windows are."""
    return replace(recording([0] * 10), cuts=Cuts(np.array(starts, np.intp), np.array(labels, np.int32)))


def test_a_source_may_choose_its_windows_and_their_labels() -> None:
    series = cut_at([5, 1, 6], [2, -1, 0])
    windows = windows_of(series, Protocol(length=4), CLASSES)
    assert windows is not None
    assert windows.ids.tolist() == ["r@5", "r@6"]
    assert windows.labels.tolist() == [2, 0]
    assert [w.values.tolist() for w in windows] == [series.values[:, s : s + 4].tolist() for s in (5, 6)]


@pytest.mark.parametrize("start", [-1, 7, 10])
def test_a_chosen_window_must_fit_into_the_recording(start: int) -> None:
    with pytest.raises(DataError, match=f"Recording r: .* at step {start} does not fit into 10"):
        windows_of(cut_at([0, start], [1, 1]), Protocol(length=4), CLASSES)


def test_a_chosen_label_must_be_in_the_vocabulary() -> None:
    with pytest.raises(DataError, match="Recording r, cuts: label 3"):
        windows_of(cut_at([0], [3]), Protocol(length=4), CLASSES)


def test_no_chosen_window_is_no_window() -> None:
    assert windows_of(cut_at([], []), Protocol(length=4), CLASSES) is None


def test_an_unknown_time_stays_unknown() -> None:
    windows = windows_of(recording([1] * 8), Protocol(length=4), CLASSES)
    assert windows is not None
    assert np.isnan(windows.times).all()


def test_a_recording_needs_one_distinct_name_per_channel() -> None:
    values, labels = np.zeros((2, 3)), np.zeros(3, np.int32)
    for channels in (("a",), ("a", "a"), ("a", "b", "c")):
        with pytest.raises(DataError, match="Recording bad"):
            Recording("bad", values, channels, labels, "g")


def test_a_recording_needs_one_label_per_timestep() -> None:
    with pytest.raises(DataError, match="Recording bad: 3 timesteps"):
        Recording("bad", np.zeros((1, 3)), ("a",), np.zeros(2, np.int32), "g")


def test_a_recording_is_a_matrix() -> None:
    with pytest.raises(DataError, match="Recording bad"):
        Recording("bad", np.zeros(3), ("a", "b", "c"), np.zeros(3, np.int32), "g")


# The rules, broken on purpose: the same checks must see it.


@pytest.mark.parametrize(
    "starts",
    [
        pytest.param([0, 4, 8], id="a window beyond the end"),
        pytest.param([0], id="the last one that fits is missing"),
        pytest.param([1, 5], id="late"),
        pytest.param([0, 2, 4], id="another stride"),
    ],
)
def test_wrong_starts_are_caught(starts: list[int]) -> None:
    with pytest.raises(AssertionError):
        assert_all_that_fit(starts, steps=10, length=4, stride=4)


def test_values_of_another_place_are_caught() -> None:
    cut = Cut(recording([0] * 8, start=0.0), Protocol(length=4))
    right = windows_of(cut.series, cut.protocol, CLASSES)
    assert right is not None
    shifted = WindowSet.from_arrays(
        [right.values(1), right.values(0)],
        channels=cut.series.channels,
        ids=right.ids.tolist(),
        groups=right.groups.tolist(),
        times=right.times,
    )
    with pytest.raises(AssertionError):
        assert_each_holds_what_its_id_says(cut, shifted)


def test_a_span_that_does_not_show_the_fault_is_caught() -> None:
    cut = Cut(recording([0, 1, 1, 1]), Protocol(length=4))
    right = windows_of(cut.series, cut.protocol, CLASSES)
    assert right is not None
    for wrong in ([0, 4], [1, 3], [0, 0]):
        with pytest.raises(AssertionError):
            assert_spans_show_the_fault(cut, replace(right, spans=np.array([wrong], np.int32)))


def test_a_repeated_id_is_caught() -> None:
    windows = windows_of(recording([0] * 8), Protocol(length=4), CLASSES)
    assert windows is not None
    with pytest.raises(AssertionError):
        assert_unique_ids(windows[[0, 1, 1]])


def test_an_unlabelled_window_that_is_kept_and_a_labelled_one_that_is_lost_are_caught() -> None:
    cut = Cut(recording([-1, -1, 0, 0, 0, 0, 0, 0]), Protocol(length=4))
    assert_unlabelled_windows_are_left_out(cut, [4])
    for wrong in ([0, 4], []):
        with pytest.raises(AssertionError):
            assert_unlabelled_windows_are_left_out(cut, wrong)
