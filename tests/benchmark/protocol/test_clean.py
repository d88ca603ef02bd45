from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from readbench.benchmark.protocol import Recording, fill_missing
from readbench.benchmark.protocol._clean import clean, drop_missing, find_boundaries
from readbench.benchmark.protocol._source import Missing
from tests.benchmark.protocol.fakes import distinct, recording
from tests.naive import clean as naive

GAPS = (np.nan, np.inf, -np.inf)


@st.composite
def gappy(draw: st.DrawFn) -> Recording:
    """A recording of distinct readings, with gaps and label changes anywhere, sometimes without any reading."""
    channels, steps = draw(st.integers(1, 3)), draw(st.integers(1, 14))
    share = draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    values = distinct(channels, steps)
    gap = rng.random(values.shape) < share
    values[gap] = rng.choice(GAPS, int(gap.sum()))
    stretches = draw(st.lists(st.tuples(st.integers(-1, 2), st.integers(1, 6)), min_size=1, max_size=5))
    labels = [label for label, length in stretches for _ in range(length)]
    return recording((labels * steps)[:steps], values)


def assert_as_the_naive_fill(before: Recording, after: Recording) -> None:
    assert after.values.tolist() == naive.fill(before.values.tolist(), before.labels.tolist())
    assert after.labels.tolist() == before.labels.tolist()
    assert after.channels == before.channels


def stretch_of(before: Recording, step: int) -> slice:
    """The steps around one that have its label."""
    edges = find_boundaries(before.labels)
    at = int(np.searchsorted(edges, step, side="right"))
    return slice(int(edges[at - 1]), int(edges[at]))


def assert_no_reading_crosses_a_label_change(before: Recording, after: Recording) -> None:
    """Readings are distinct, so a value in a gap tells from which step it was taken; a stretch without any has none."""
    for row, filled in zip(before.values, after.values, strict=True):
        for t in np.flatnonzero(~np.isfinite(row)):
            if filled[t] == 0.0 or not np.isfinite(row[stretch_of(before, t)]).any():
                continue
            (origin,) = np.flatnonzero(row == filled[t])
            between = before.labels[min(origin, t) : max(origin, t) + 1]
            assert len(set(between.tolist())) == 1, f"step {t} holds a reading of step {origin} across {between}"


def assert_only_complete_rows_are_left(before: Recording, after: Recording) -> None:
    channels, steps = naive.drop(before.values.tolist(), before.labels.tolist())
    assert after.channels == tuple(before.channels[c] for c in channels)
    assert after.values.tolist() == [[before.values[c, t] for t in steps] for c in channels]
    assert after.labels.tolist() == [before.labels[t] for t in steps]


@given(gappy())
def test_filling_agrees_with_the_naive_twin(before: Recording) -> None:
    assert_as_the_naive_fill(before, fill_missing(before))


@given(gappy())
def test_a_reading_never_crosses_a_label_change(before: Recording) -> None:
    assert_no_reading_crosses_a_label_change(before, fill_missing(before))


@given(gappy())
def test_dropping_leaves_complete_rows_of_the_channels_that_exist(before: Recording) -> None:
    assert_only_complete_rows_are_left(before, drop_missing(before))


@pytest.mark.parametrize("convention", ["fill", "drop"])
@given(before=gappy())
def test_cleaning_twice_is_cleaning_once(convention: Missing, before: Recording) -> None:
    once = clean(before, convention)
    twice = clean(once, convention)
    assert np.isfinite(once.values).all()
    if not once.values.size:
        assert not twice.values.size
        return
    assert twice.values.tolist() == once.values.tolist()
    assert (twice.channels, twice.labels.tolist()) == (once.channels, once.labels.tolist())


@given(gappy())
def test_cleaning_leaves_its_input_alone(before: Recording) -> None:
    values, labels = before.values.copy(), before.labels.copy()
    clean(before, "fill")
    clean(before, "drop")
    np.testing.assert_array_equal(before.values, values)
    np.testing.assert_array_equal(before.labels, labels)


@given(st.lists(st.integers(-1, 3), max_size=20))
def test_boundaries_enclose_the_stretches_of_constant_label(labels: list[int]) -> None:
    edges = find_boundaries(np.array(labels, np.int32)).tolist()
    expected = [0, *(t for t in range(1, len(labels)) if labels[t] != labels[t - 1]), len(labels)]
    assert edges == expected


def filled(labels: list[int], *rows: list[float]) -> list[list[float]]:
    values: list[list[float]] = clean(recording(labels, rows), "fill").values.tolist()
    return values


def test_a_gap_takes_the_last_reading() -> None:
    assert filled([0] * 5, [1.0, np.nan, np.nan, 4.0, np.nan]) == [[1.0, 1.0, 1.0, 4.0, 4.0]]


def test_a_leading_gap_takes_the_next_reading() -> None:
    assert filled([0] * 4, [np.nan, np.nan, 3.0, 4.0]) == [[3.0, 3.0, 3.0, 4.0]]


def test_a_channel_never_recorded_is_zero_and_the_others_stay() -> None:
    assert filled([0] * 3, [np.nan] * 3, [1.0, np.nan, 3.0]) == [[0.0] * 3, [1.0, 1.0, 3.0]]


def test_a_gap_after_a_fault_begins_takes_the_fault_s_next_reading_not_the_normal_one_before() -> None:
    assert filled([0, 0, 1, 1], [1.0, 2.0, np.nan, 4.0]) == [[1.0, 2.0, 4.0, 4.0]]


def test_a_gap_before_a_fault_begins_is_not_filled_from_the_fault() -> None:
    assert filled([0, 0, 1, 1], [np.nan, np.nan, 3.0, 4.0]) == [[0.0, 0.0, 3.0, 4.0]]


def test_a_channel_absent_during_a_fault_stays_at_its_normal_level() -> None:
    """Zero would mark the fault."""
    assert filled([0, 0, 0, 1, 1], [7.0, 9.0, 8.0, np.nan, np.nan]) == [[7.0, 9.0, 8.0, 8.0, 8.0]]


def test_a_channel_absent_in_the_time_before_is_at_its_normal_level() -> None:
    before = replace(recording([0, 1], [[5.0, 9.0]]), before=np.full((1, 3), np.nan))
    after = clean(before, "fill")
    assert after.before is not None
    assert after.before.tolist() == [[5.0] * 3]
    nothing = clean(replace(before, labels=np.ones(2, np.int32)), "fill").before
    assert nothing is not None
    assert nothing.tolist() == [[0.0] * 3]


def test_unlabelled_steps_are_a_stretch_of_their_own() -> None:
    assert filled([0, -1, -1, 0], [1.0, np.nan, 3.0, np.nan]) == [[1.0, 3.0, 3.0, 1.0]]


@pytest.mark.parametrize("gap", GAPS)
def test_infinity_is_a_gap_like_nan(gap: float) -> None:
    assert filled([0] * 3, [1.0, gap, 3.0]) == [[1.0, 1.0, 3.0]]
    dropped = clean(recording([0] * 3, [[1.0, gap, 3.0]]), "drop")
    assert dropped.values.tolist() == [[1.0, 3.0]]


@pytest.mark.parametrize("sentinel", [-1.18e42, 1e300])
def test_a_reading_beyond_the_range_of_a_window_is_a_gap(sentinel: float) -> None:
    assert filled([0] * 3, [1.0, sentinel, 3.0]) == [[1.0, 1.0, 3.0]]
    assert clean(recording([0] * 3, [[1.0, sentinel, 3.0]]), "drop").values.tolist() == [[1.0, 3.0]]


def test_filling_keeps_single_precision() -> None:
    before = replace(recording([0] * 3), values=np.array([[1.0, np.nan, 2.0]] * 2, np.float32))
    assert clean(before, "fill").values.dtype == np.float32


def test_dropping_a_row_drops_its_label_and_keeps_what_belongs_to_the_recording() -> None:
    before = recording([0, 1, 2], [[1.0, np.nan, 3.0], [4.0, 5.0, 6.0]], name="well", group="g", side="test")
    after = clean(before, "drop")
    assert after.labels.tolist() == [0, 2]
    assert (after.id, after.group, after.side, after.channels) == ("well", "g", "test", ("x0", "x1"))


def test_dropping_ignores_gaps_of_a_channel_never_recorded() -> None:
    after = clean(recording([0] * 3, [[np.nan] * 3, [1.0, 2.0, 3.0]]), "drop")
    assert after.channels == ("x1",)
    assert after.values.tolist() == [[1.0, 2.0, 3.0]]


def test_dropping_may_leave_nothing() -> None:
    assert clean(recording([0, 0], [[1.0, np.nan], [np.nan, 2.0]]), "drop").values.shape == (2, 0)
    assert clean(recording([0, 0], [[np.nan, np.nan]]), "drop").values.shape == (0, 2)


# The rules, broken on purpose: the same checks must see it.

LEADING = recording([0, 0, 1, 1, 1], [[1.0, 2.0, np.nan, np.nan, 5.0]])
MIDDLE = recording([0, 0, 0, 0], [[1.0, np.nan, np.nan, 4.0], [np.nan, np.nan, np.nan, np.nan]])


def _forward(values: NDArray[np.float64]) -> NDArray[np.float64]:
    out = values.copy()
    for t in range(1, out.shape[1]):
        out[:, t] = np.where(np.isnan(out[:, t]), out[:, t - 1], out[:, t])
    return out


def test_a_fill_across_a_fault_boundary_is_caught() -> None:
    broken = replace(LEADING, values=_forward(np.asarray(LEADING.values, np.float64)))
    with pytest.raises(AssertionError, match="across"):
        assert_no_reading_crosses_a_label_change(LEADING, broken)
    with pytest.raises(AssertionError):
        assert_as_the_naive_fill(LEADING, broken)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param([[1.0, 4.0, 4.0, 4.0], [0.0] * 4], id="next reading instead of the last"),
        pytest.param([[1.0, 2.0, 3.0, 4.0], [0.0] * 4], id="interpolated"),
        pytest.param([[1.0, 1.0, 1.0, 4.0], [2.5] * 4], id="absent channel at a mean"),
        pytest.param([[1.0, 1.0, 1.0, 4.0], [np.nan] * 4], id="absent channel left missing"),
    ],
)
def test_another_way_to_fill_is_caught(wrong: list[list[float]]) -> None:
    with pytest.raises(AssertionError):
        assert_as_the_naive_fill(MIDDLE, replace(MIDDLE, values=np.array(wrong)))


def test_another_way_to_drop_is_caught() -> None:
    before = recording([0, 1, 2], [[1.0, np.nan, 3.0], [4.0, 5.0, 6.0], [np.nan] * 3])
    right = drop_missing(before)
    labels_not_dropped = replace(right, labels=before.labels[:2])
    gappy_channels_dropped = replace(before, values=before.values[1:2], channels=("x1",))
    absent_channel_as_zero = fill_missing(before)
    assert_only_complete_rows_are_left(before, right)
    for broken in (labels_not_dropped, gappy_channels_dropped, absent_channel_as_zero):
        with pytest.raises(AssertionError):
            assert_only_complete_rows_are_left(before, broken)
