from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import ArrayLike, NDArray

from readbench.engine import room
from readbench.engine.preparation import ChannelStats
from readbench.engine.testing import sample_windows
from readbench.engine.testing._samples import CLASSES
from readbench.engine.windows import UNLABELLED, WindowSet, concatenate
from readbench.errors import DataError, NotFiniteError
from tests.engine.windows.strategies import assert_same_windows, window_sets

Key = slice | NDArray[np.intp] | NDArray[np.bool_] | list[int]
KEYS: dict[str, tuple[Key, list[int]]] = {
    "slice": (slice(1, 5), [1, 2, 3, 4]),
    "step": (slice(None, None, 3), [0, 3, 6]),
    "reversed": (slice(None, None, -1), [7, 6, 5, 4, 3, 2, 1, 0]),
    "mask": (np.array([True, False, False, True, True, False, False, True]), [0, 3, 4, 7]),
    "empty mask": (np.zeros(8, bool), []),
    "list": ([6, 0, 3], [6, 0, 3]),
    "list of booleans": ([True, False, False, True, True, False, False, True], [0, 3, 4, 7]),
    "empty list": ([], []),
    "repeated": ([2, 2, 2], [2, 2, 2]),
    "negative": ([-1, -8], [7, 0]),
    "permutation": (np.array([3, 1, 0, 2, 7, 6, 5, 4]), [3, 1, 0, 2, 7, 6, 5, 4]),
}


def test_windows_keep_their_own_lengths_and_channels() -> None:
    matrices = [np.arange(10.0).reshape(2, 5), np.full((1, 3), 7.0), np.arange(12.0).reshape(3, 4)]
    windows = WindowSet.from_arrays(matrices, channels=[("a", "b"), ("b",), ("c", "a", "b")])
    assert windows.lengths.tolist() == [5, 3, 4]
    assert windows.channel_counts.tolist() == [2, 1, 3]
    for i, matrix in enumerate(matrices):
        np.testing.assert_array_equal(windows.values(i), matrix.astype(np.float32), strict=True)
        assert windows[i].values.flags.c_contiguous
    assert [windows.channels(i) for i in range(3)] == [("a", "b"), ("b",), ("c", "a", "b")]
    assert sum(chunk.size for chunk in windows.chunks) == 10 + 3 + 12


def test_from_arrays_copies_so_that_later_changes_do_not_reach_the_set() -> None:
    matrix = np.zeros((1, 3), np.float32)
    windows = WindowSet.from_arrays([matrix])
    matrix[:] = 5
    assert windows.values(0).tolist() == [[0.0, 0.0, 0.0]]


def test_columns_that_are_not_given_have_stated_defaults() -> None:
    windows = WindowSet.from_arrays(np.zeros((2, 3, 4)))
    window = windows[1]
    assert window.channels == ("ch0", "ch1", "ch2")
    assert (window.label, window.id, window.group, window.asset) == (UNLABELLED, "1", "1", "")
    assert np.isnan(window.time)
    assert windows.spans.tolist() == [[0, 0], [0, 0]]


def test_one_tuple_of_names_serves_all_windows() -> None:
    windows = WindowSet.from_arrays(np.zeros((3, 2, 4)), channels=("u", "v"))
    assert [w.channels for w in windows] == [("u", "v")] * 3
    assert windows.channel_sets == (("u", "v"),)


@pytest.mark.parametrize(("key", "wanted"), KEYS.values(), ids=KEYS.keys())
def test_selections_pick_the_right_windows_without_copying_values(key: Key, wanted: list[int]) -> None:
    windows = sample_windows(8, ragged=True)
    part = windows[key]
    assert part.ids.tolist() == [f"case {i}" for i in wanted]
    for i, origin in enumerate(wanted):
        same = windows[origin]
        assert np.shares_memory(part[i].values, windows.chunks[0])
        np.testing.assert_array_equal(part[i].values, same.values)
        assert (part[i].channels, part[i].label, part[i].group) == (same.channels, same.label, same.group)
        assert (part[i].asset, part[i].time, part[i].id) == (same.asset, same.time, same.id)


@given(window_sets(min_size=1), st.data())
def test_a_selection_of_a_selection_is_the_composed_selection(windows: WindowSet, data: st.DataObject) -> None:
    positions = st.lists(st.integers(0, len(windows) - 1), min_size=1, max_size=8)
    first = data.draw(positions)
    second = data.draw(st.lists(st.integers(0, len(first) - 1), max_size=8))
    assert_same_windows(windows[first][second], windows[[first[i] for i in second]])


def test_the_check_of_equal_sets_notices_every_difference() -> None:
    windows = sample_windows(3, ragged=True)
    for other in (
        windows[::-1],
        windows[:2],
        windows.anonymous(),
        replace(windows, classes=("ok", *CLASSES[1:])),
        replace(windows, times=windows.times + 1),
        replace(windows, spans=windows.spans + 1),
        replace(windows, chunks=(windows.chunks[0] + 1,)),
    ):
        with pytest.raises(AssertionError):
            assert_same_windows(windows, other)


def test_numpy_integers_and_negative_positions_give_a_window() -> None:
    windows = sample_windows(4)
    assert windows[np.int64(2)].id == "case 2"  # type: ignore[call-overload]
    assert windows[-1].id == "case 3"


def test_a_position_outside_the_set_is_an_index_error() -> None:
    windows = sample_windows(4)
    with pytest.raises(IndexError):
        windows[4]
    with pytest.raises(IndexError):
        windows[np.ones(3, bool)]


def test_iteration_visits_every_window_in_order_and_can_be_repeated() -> None:
    windows = sample_windows(5, ragged=True)
    for _ in range(2):
        assert [w.id for w in windows] == [f"case {i}" for i in range(5)]


def test_blocks_cover_the_set_once_and_in_order() -> None:
    windows = sample_windows(7)
    blocks = list(windows.blocks(3))
    assert [len(b) for b in blocks] == [3, 3, 1]
    assert [name for b in blocks for name in b.ids.tolist()] == windows.ids.tolist()
    assert all(np.shares_memory(b[0].values, windows.chunks[0]) for b in blocks)


@given(st.lists(window_sets(max_size=3), min_size=1, max_size=4))
def test_concatenation_joins_end_to_end_without_copying(sets: list[WindowSet]) -> None:
    joined = concatenate(sets)
    windows = [w for s in sets for w in s]
    assert len(joined) == len(windows)
    for mine, theirs in zip(joined, windows, strict=True):
        assert np.shares_memory(mine.values, theirs.values)
        np.testing.assert_array_equal(mine.values, theirs.values)
        assert (mine.channels, mine.label, mine.id) == (theirs.channels, theirs.label, theirs.id)
        assert (mine.group, mine.asset) == (theirs.group, theirs.asset)
    assert joined.spans.tolist() == [span for s in sets for span in s.spans.tolist()]
    assert len(set(joined.channel_sets)) == len(joined.channel_sets)


def test_concatenated_slices_of_one_set_are_that_set_again() -> None:
    windows = sample_windows(9, ragged=True)
    joined = concatenate([windows[:4], windows[4:4], windows[4:]])
    assert_same_windows(joined, windows)
    assert joined.fingerprint() == windows.fingerprint()


def test_sets_with_different_channels_share_one_vocabulary_when_joined() -> None:
    left = WindowSet.from_arrays([np.zeros((2, 3)), np.zeros((1, 3))], channels=[("a", "b"), ("b",)])
    right = WindowSet.from_arrays([np.ones((1, 2)), np.ones((2, 2))], channels=[("b",), ("b", "a")])
    joined = concatenate([left, right])
    assert [w.channels for w in joined] == [("a", "b"), ("b",), ("b",), ("b", "a")]
    assert joined.channel_sets == (("a", "b"), ("b",), ("b", "a"))


def test_sets_with_different_classes_cannot_be_joined() -> None:
    left = WindowSet.from_arrays(np.zeros((1, 1, 2)), labels=[1], classes=("normal", "leak"))
    right = WindowSet.from_arrays(np.zeros((1, 1, 2)), labels=[1], classes=("normal", "clog"))
    with pytest.raises(DataError, match=r"different classes.*clog.*leak"):
        concatenate([left, right])


def test_a_set_without_class_names_joins_any_other() -> None:
    named = sample_windows(2)
    assert concatenate([named.anonymous(), named]).classes == CLASSES


def test_nothing_cannot_be_joined() -> None:
    with pytest.raises(DataError, match="at least one"):
        concatenate([])


def test_compact_holds_only_its_own_values_and_names() -> None:
    windows = sample_windows(8, ragged=True)
    part = windows[[5, 1]]
    own = part.compact()
    assert_same_windows(own, part)
    assert own.fingerprint() == part.fingerprint()
    assert sum(chunk.size for chunk in own.chunks) == sum(w.values.size for w in part)
    assert not any(np.shares_memory(w.values, windows.chunks[0]) for w in own)
    assert set(own.channel_sets) == {w.channels for w in part}


def test_a_large_copy_lies_in_a_file_that_nobody_finds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    windows = sample_windows(8, ragged=True)
    monkeypatch.setattr(room, "MAX_IN_MEMORY_BYTES", 100)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = windows[::-1].anonymous()
    assert isinstance(own.chunks[0].base, np.memmap)
    assert [w.values.tolist() for w in own] == [w.values.tolist() for w in windows[::-1]]
    assert own.fingerprint() == windows[::-1].anonymous().fingerprint()
    assert not list(tmp_path.iterdir())


def assert_hides_all_but_values(seen: WindowSet, original: WindowSet) -> None:
    """A method that is given `seen` learns the values and channel names of `original`, and nothing else."""
    n = len(original)
    assert seen.labels.tolist() == [UNLABELLED] * n
    assert seen.classes == ()
    assert seen.ids.tolist() == seen.groups.tolist() == [str(i) for i in range(n)]
    assert seen.assets.tolist() == [""] * n
    assert np.isnan(seen.times).all()
    assert seen.spans.tolist() == [[0, 0]] * n
    assert set(seen.channel_sets) == {w.channels for w in original}
    assert sum(chunk.size for chunk in seen.chunks) == sum(w.values.size for w in original)
    for mine, theirs in zip(seen, original, strict=True):
        np.testing.assert_array_equal(mine.values, theirs.values)
        assert mine.channels == theirs.channels
        assert not np.shares_memory(mine.values, theirs.values)


@given(window_sets(max_size=5), st.data())
def test_anonymous_windows_tell_nothing_but_their_values(windows: WindowSet, data: st.DataObject) -> None:
    part = windows[data.draw(st.lists(st.sampled_from(range(len(windows))), max_size=4)) if len(windows) else []]
    assert_hides_all_but_values(part.anonymous(), part)


def test_the_check_of_anonymous_windows_notices_each_leak() -> None:
    windows = sample_windows(6, ragged=True)
    part = windows[2:5]
    seen = part.anonymous()
    assert_hides_all_but_values(seen, part)
    leaks = [replace(seen, **{name: getattr(part, name)}) for name in ("labels", "classes", "ids", "groups", "assets")]
    leaks += [
        replace(seen, times=part.times),
        replace(seen, spans=part.spans + 1),
        replace(seen, channel_sets=(*seen.channel_sets, ("a channel of another window",))),
        replace(seen, chunks=part.chunks, chunk=part.chunk, offset=part.offset),
    ]
    for leak in leaks:
        with pytest.raises(AssertionError):
            assert_hides_all_but_values(leak, part)


def test_anonymous_windows_keep_the_statistics_they_are_scaled_by() -> None:
    stats = ChannelStats({"sensor 0": 1.0}, {"sensor 0": 2.0})
    assert sample_windows(3).with_stats(stats).anonymous().stats is stats


def test_stats_are_kept_by_selection_and_dropped_on_request() -> None:
    stats = ChannelStats({"sensor 0": 1.0}, {"sensor 0": 2.0})
    windows = sample_windows(3).with_stats(stats)
    assert windows[1:].stats is stats
    assert windows.compact().stats is stats
    assert windows.with_stats(None).stats is None


@pytest.mark.parametrize(("bad", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_a_value_that_is_not_finite_is_named_with_window_channel_and_step(bad: float, shown: str) -> None:
    values = np.zeros((3, 2, 5))
    values[1, 1, 3] = values[2, 0, 0] = bad
    windows = WindowSet.from_arrays(values, channels=("level", "flow"), ids=["w0", "run7/42", "w2"])
    with pytest.raises(NotFiniteError, match=rf"Window run7/42 holds {shown} in channel 'flow' at step 3\."):
        windows.require_finite()
    windows[:1].require_finite()


BAD_MATRICES: dict[str, ArrayLike] = {
    "scalar": 1.0,
    "row": [1.0, 2.0],
    "cube": np.zeros((1, 2, 3)),
    "no channel": np.zeros((0, 3)),
    "no step": np.zeros((3, 0)),
    "rows of different length": [[1.0, 2.0], [3.0]],
    "text": [["high", "low"]],
}


@pytest.mark.parametrize("bad", BAD_MATRICES.values(), ids=BAD_MATRICES.keys())
def test_what_is_no_matrix_is_refused_with_its_position(bad: ArrayLike) -> None:
    with pytest.raises(DataError, match=r"Window 1 .*matrix \(channels, time\)"):
        WindowSet.from_arrays([np.zeros((1, 2)), bad])


@pytest.mark.parametrize("names", [("a", "a"), ("a",), ("a", "b", "c")], ids=["duplicate", "too few", "too many"])
def test_channel_names_must_be_distinct_and_as_many_as_rows(names: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match=r"Window 1 has 2 channels.*distinct"):
        WindowSet.from_arrays([np.zeros((1, 3)), np.zeros((2, 3))], channels=[("a",), names])


def test_channel_names_are_needed_for_every_window() -> None:
    with pytest.raises(DataError, match="names for 1 windows, but 2"):
        WindowSet.from_arrays(np.zeros((2, 1, 3)), channels=[("a",)])


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("column", ["labels", "ids", "groups", "assets", "times"])
def test_a_column_of_the_wrong_length_is_refused(column: str, count: int) -> None:
    too_many = ["1"] * (count + 1) if column in {"ids", "groups", "assets"} else [1] * (count + 1)
    with pytest.raises(DataError, match=f"Expected {count} "):
        WindowSet.from_arrays([np.zeros((1, 3))] * count, **{column: too_many})  # type: ignore[arg-type]


@pytest.mark.parametrize("spans", [[[0, 1]], [0, 1, 0, 1], [[0, 1, 2], [0, 1, 2]], []])
def test_spans_are_a_start_and_a_stop_for_each_window(spans: ArrayLike) -> None:
    with pytest.raises(DataError, match="Expected 2 spans"):
        WindowSet.from_arrays(np.zeros((2, 1, 3)), spans=spans)
    assert WindowSet.from_arrays([], spans=[]).spans.shape == (0, 2)


def test_an_empty_set_supports_everything() -> None:
    empty = WindowSet.from_arrays([], classes=CLASSES)
    assert len(empty) == 0
    assert not list(empty)
    assert not list(empty.blocks(3))
    assert empty.channel_counts.tolist() == []
    empty.require_finite()
    for same in (empty.compact(), empty[:], empty[[]], empty[np.zeros(0, bool)], concatenate([empty, empty])):
        assert_same_windows(same, empty)
        assert same.fingerprint() == empty.fingerprint()
    assert len(empty.anonymous()) == 0
    assert_same_windows(concatenate([empty, sample_windows(2)]), sample_windows(2))
