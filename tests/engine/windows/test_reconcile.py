from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from readbench.engine.preparation import (
    MAX_SCORE,
    ChannelStats,
    Normalisation,
    Scaler,
    channel_axis,
    dense,
    resample,
)
from readbench.engine.testing import sample_windows
from readbench.engine.windows import WindowSet
from readbench.errors import NotFiniteError, ParameterError, UsageError
from tests.engine.windows.strategies import window_sets
from tests.naive import reconcile as naive

Mode = Literal["channel", "window", "none", "normals"]
MODES: tuple[Mode, ...] = ("channel", "window", "none", "normals")


def nasty_windows() -> WindowSet:
    """Constant, tiny, huge, far from zero, one step long, channels in other orders."""
    rng = np.random.default_rng(3)
    return WindowSet.from_arrays(
        [
            rng.standard_normal((3, 40)),
            np.stack([np.full(25, 0.1), 1e6 + rng.standard_normal(25), 1e-30 * rng.standard_normal(25)]),
            rng.standard_normal((1, 1)),
            1e30 * rng.standard_normal((2, 17)),
            np.stack([np.repeat([-3.0, 3.0], 8), np.zeros(16), -1e6 + 5 * rng.standard_normal(16)]),
        ],
        channels=[("a", "b", "c"), ("const", "b", "tiny"), ("c",), ("huge", "a"), ("c", "zero", "far")],
    )


def sets() -> st.SearchStrategy[WindowSet]:
    return window_sets(min_size=1, max_size=4, finite=True) | st.integers(0, 99).map(
        lambda seed: sample_windows(5, ragged=True, length=12, seed=seed)
    )


def scale(windows: WindowSet, mode: Normalisation, corpus: WindowSet, normals: WindowSet) -> WindowSet:
    return Scaler.of(mode, corpus, normals)(windows)


def assert_scales_like_the_naive_twin(mode: Mode, scale: Callable[..., WindowSet], windows: WindowSet) -> None:
    scaled = scale(windows, mode, windows[::2], windows[1::2] if len(windows) > 1 else windows)
    reference = windows[::2] if mode == "channel" else windows[1::2] if len(windows) > 1 else windows
    expected = naive.normalise(windows, mode, reference)
    for mine, twin in zip(scaled, expected, strict=True):
        np.testing.assert_allclose(mine.values, twin, rtol=2e-6, atol=1e-6 * max(1.0, float(np.abs(twin).max())))


@pytest.mark.parametrize("mode", MODES)
@given(windows=sets())
def test_scaling_agrees_with_the_naive_twin(mode: Mode, windows: WindowSet) -> None:
    assert_scales_like_the_naive_twin(mode, scale, windows)


@pytest.mark.parametrize("mode", ["window", "none"])
def test_scaling_agrees_with_the_naive_twin_on_nasty_windows(mode: Mode) -> None:
    assert_scales_like_the_naive_twin(mode, scale, nasty_windows())


def test_scaling_by_the_corpus_agrees_with_the_naive_twin_on_nasty_windows() -> None:
    windows = nasty_windows()
    scaled = Scaler.of("channel", windows)(windows)
    for mine, twin in zip(scaled, naive.normalise(windows, "channel", windows), strict=True):
        np.testing.assert_allclose(mine.values, twin, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["channel", "window", "normals"])
def test_the_scaling_check_notices_wrong_statistics(mode: Mode) -> None:
    def off(windows: WindowSet, mode: Mode, corpus: WindowSet, normals: WindowSet) -> WindowSet:
        right = scale(windows, mode, corpus, normals)
        return replace(right, chunks=(right.chunks[0] * np.float32(1.001),))

    with pytest.raises(AssertionError):
        assert_scales_like_the_naive_twin(mode, off, sample_windows(6, ragged=True))


def test_scaling_leaves_the_original_alone_and_keeps_all_other_columns() -> None:
    windows = sample_windows(5, ragged=True)
    before = windows.fingerprint()
    scaled = Scaler.of("window", windows)(windows)
    assert windows.fingerprint() == before
    assert replace(scaled, chunks=windows.chunks).fingerprint() == before


def test_scaling_a_selection_touches_nothing_else() -> None:
    windows = sample_windows(6, ragged=True)
    part = Scaler.of("channel", windows)(windows[[4, 1]])
    whole = Scaler.of("channel", windows)(windows)
    for mine, other in zip(part, whole[[4, 1]], strict=True):
        np.testing.assert_array_equal(mine.values, other.values)


def test_a_window_scaled_by_itself_has_mean_zero_and_deviation_one() -> None:
    for window in Scaler.of("window", sample_windows(1))(sample_windows(5, ragged=True)):
        np.testing.assert_allclose(window.values.mean(axis=1), 0, atol=1e-5)
        np.testing.assert_allclose(window.values.std(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("level", [0.0, 0.1, -7.3, 1e6, 1e-20, 3e38])
@pytest.mark.parametrize("mode", ["channel", "window", "normals"])
def test_a_constant_channel_becomes_zero(mode: Mode, level: float) -> None:
    flat = np.full(50, level, np.float32)
    windows = WindowSet.from_arrays([np.stack([flat, np.arange(50)])] * 3, channels=("flat", "moving"))
    scaled = Scaler.of(mode, windows, windows)(windows)
    assert not scaled.values(2)[0].any()
    assert scaled.values(2)[1].any()


def test_rounding_noise_on_a_constant_channel_becomes_zero() -> None:
    level = np.float32(1000.0)
    noisy = np.where(np.arange(40) % 2, level, np.nextafter(level, np.float32(0)))
    windows = WindowSet.from_arrays([noisy[None]], channels=("level",))
    for mode in ("channel", "window"):
        assert not Scaler.of(mode, windows)(windows).values(0).any()


def test_a_reading_off_an_almost_dead_channel_stays_finite_with_its_square() -> None:
    corpus = WindowSet.from_arrays([[[0.0, 3e-35]]], channels=("dead",))
    query = WindowSet.from_arrays([[[5613.0, -5613.0]]], channels=("dead",))
    scaled = Scaler.of("channel", corpus)(query).values(0)
    assert scaled[0, 0] > 1e9
    assert scaled[0, 1] < -1e9
    assert np.isfinite((scaled**2).sum() * np.float32(1e6))


def test_a_channel_the_corpus_never_saw_becomes_zero() -> None:
    corpus = WindowSet.from_arrays([[[1.0, 2.0]]], channels=("known",))
    query = WindowSet.from_arrays([[[1.0, 2.0], [8.0, 9.0]]], channels=("known", "new"))
    scaled = Scaler.of("channel", corpus)(query)
    np.testing.assert_allclose(scaled.values(0), [[-1, 1], [0, 0]])


def test_statistics_fixed_on_the_corpus_are_used_instead_of_its_own() -> None:
    corpus = WindowSet.from_arrays([[[1.0, 2.0]]], channels=("a",))
    fixed = corpus.with_stats(ChannelStats({"a": 10.0}, {"a": 2.0}))
    np.testing.assert_allclose(Scaler.of("channel", fixed)(corpus).values(0), [[-4.5, -4.0]])


def test_normals_scale_by_the_normal_windows_and_not_by_the_corpus() -> None:
    corpus = WindowSet.from_arrays([[[100.0, 300.0]]], channels=("a",)).with_stats(ChannelStats({"a": 9.0}, {"a": 9.0}))
    normals = WindowSet.from_arrays([[[1.0, 3.0]]], channels=("a",))
    query = WindowSet.from_arrays([[[5.0, 7.0]]], channels=("a",))
    np.testing.assert_allclose(Scaler.of("normals", corpus, normals)(query).values(0), [[3.0, 5.0]])


@pytest.mark.parametrize("normals", [None, WindowSet.from_arrays([])], ids=["none given", "empty"])
def test_scaling_by_normals_needs_normals(normals: WindowSet | None) -> None:
    windows = sample_windows(2)
    with pytest.raises(ParameterError, match=r"norm=normals needs normal windows.*norm=channel"):
        Scaler.of("normals", windows, normals)(windows)


def test_an_unknown_scaling_is_refused_with_the_known_ones() -> None:
    windows = sample_windows(2)
    with pytest.raises(ParameterError, match=r"one of channel, window, none, normals, before\. Got 'zscore'"):
        Scaler.of("zscore", windows)(windows)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES)
def test_values_that_are_not_finite_are_never_scaled(mode: Mode) -> None:
    bad = WindowSet.from_arrays([[[1.0, np.nan]]])
    with pytest.raises(NotFiniteError):
        Scaler.of(mode, sample_windows(2), sample_windows(2))(bad)


def test_no_windows_can_be_scaled() -> None:
    empty = sample_windows(2)[:0]
    for mode in MODES:
        assert len(Scaler.of(mode, sample_windows(2), sample_windows(2))(empty)) == 0


def test_moments_are_those_that_windows_are_scaled_by() -> None:
    windows = nasty_windows()
    scaler = Scaler.of("channel", windows)
    for window, scaled in zip(windows, scaler(windows), strict=True):
        mean, deviation = scaler.moments(window.channels)
        own = ((window.values - mean[:, None]) / deviation[:, None]).clip(-MAX_SCORE, MAX_SCORE)
        np.testing.assert_array_equal(own.astype(np.float32), scaled.values)


def test_a_channel_without_spread_has_an_infinite_deviation() -> None:
    scaler = Scaler("channel", ChannelStats({"still": 3.0, "moves": 1.0}, {"still": 0.0, "moves": 2.0}))
    mean, deviation = scaler.moments(("moves", "still", "unknown"))
    assert mean.tolist() == [1.0, 3.0, 0.0]
    assert deviation.tolist() == [2.0, np.inf, np.inf]


def test_a_scaler_without_statistics_asks_to_be_fitted() -> None:
    with pytest.raises(UsageError, match="Fit the encoder first: norm=channel"):
        Scaler("channel")(sample_windows(2))


def assert_statistics_match(windows: WindowSet, stats: ChannelStats) -> None:
    expected = naive.channel_stats(windows)
    assert set(stats.mean) == set(stats.std) == set(expected)
    for name, (mean, std) in expected.items():
        np.testing.assert_allclose(stats.mean[name], mean, rtol=1e-9, atol=1e-30)
        np.testing.assert_allclose(stats.std[name], std, rtol=1e-9, atol=1e-9 * abs(mean) + 1e-30)


@given(sets())
def test_channel_statistics_are_those_of_all_samples_together(windows: WindowSet) -> None:
    assert_statistics_match(windows, ChannelStats.of(windows))


def test_channel_statistics_of_nasty_windows() -> None:
    assert_statistics_match(nasty_windows(), ChannelStats.of(nasty_windows()))


def _offset_windows(offset: float) -> WindowSet:
    rng = np.random.default_rng(0)
    return WindowSet.from_arrays(offset + rng.standard_normal((20, 1, 100)), channels=("a",))


def assert_spread_is_exact(windows: WindowSet, std: float) -> None:
    wide = np.concatenate([w.values.astype(np.float64).ravel() for w in windows])
    np.testing.assert_allclose(std, wide.std(), rtol=1e-10)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, -1e6])
def test_a_large_offset_does_not_cancel_the_spread(offset: float) -> None:
    windows = _offset_windows(offset)
    assert_spread_is_exact(windows, ChannelStats.of(windows).std["a"])


def test_the_spread_check_notices_the_textbook_formula() -> None:
    windows = _offset_windows(1e6)
    wide = np.concatenate([w.values.astype(np.float64).ravel() for w in windows])
    with pytest.raises(AssertionError):
        assert_spread_is_exact(windows, float(np.sqrt((wide**2).mean() - wide.mean() ** 2)))


def test_a_constant_channel_has_no_spread_at_all() -> None:
    windows = WindowSet.from_arrays(np.full((3, 1, 7), 0.1), channels=("a",))
    assert ChannelStats.of(windows).std["a"] == 0.0


def test_statistics_of_nothing_are_empty() -> None:
    assert ChannelStats.of(sample_windows(2)[:0]).mean == {}


def test_statistics_do_not_depend_on_how_the_samples_are_cut() -> None:
    samples = np.random.default_rng(1).standard_normal((2, 60))
    whole = ChannelStats.of(WindowSet.from_arrays([samples]))
    parts = ChannelStats.of(WindowSet.from_arrays(np.split(samples, [7, 8, 40], axis=1)))
    for name in whole.mean:
        np.testing.assert_allclose(
            (parts.mean[name], parts.std[name]), (whole.mean[name], whole.std[name]), rtol=1e-12, atol=1e-15
        )


matrices = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 3), st.integers(1, 20)),
    elements=st.floats(-1e6, 1e6, width=32) | st.just(0.0),
)


def assert_resamples_like_interp(values: NDArray[np.float32], resampled: NDArray[np.float32], length: int) -> None:
    assert resampled.shape == (values.shape[0], length)
    assert resampled.dtype == np.float32
    kind = np.finfo(np.float32)  # below its normal numbers, steps stay as large as the smallest of all
    tolerance = 4 * max(float(kind.eps) * float(np.abs(values).max()), float(kind.smallest_subnormal))
    np.testing.assert_allclose(resampled, naive.resample(values, length), rtol=0, atol=tolerance)


@given(matrices, st.integers(1, 50))
def test_lengths_are_interpolated_linearly(values: NDArray[np.float32], length: int) -> None:
    assert_resamples_like_interp(values, resample(values, length), length)


def test_the_interpolation_check_notices_the_nearest_sample() -> None:
    values = np.array([[0.0, 1.0, 4.0]], np.float32)
    nearest = values[:, np.round(np.linspace(0, 2, 5)).astype(int)]
    with pytest.raises(AssertionError):
        assert_resamples_like_interp(values, nearest, 5)


def test_long_signals_are_interpolated_as_exactly_as_short_ones() -> None:
    values = np.random.default_rng(0).standard_normal((2, 20_000)).astype(np.float32)
    assert_resamples_like_interp(values, resample(values, 30_011), 30_011)


@given(matrices, st.integers(2, 50))
def test_the_first_and_the_last_sample_stay(values: NDArray[np.float32], length: int) -> None:
    resampled = resample(values, length)
    np.testing.assert_array_equal(resampled[:, 0], values[:, 0])
    if values.shape[1] > 1:
        np.testing.assert_array_equal(resampled[:, -1], values[:, -1])


def test_a_finer_grid_keeps_every_measured_point() -> None:
    values = np.random.default_rng(0).standard_normal((2, 9)).astype(np.float32)
    np.testing.assert_allclose(resample(values, 33)[:, ::4], values, rtol=1e-6)


def test_a_single_sample_is_held() -> None:
    assert resample(np.array([[2.0], [3.0]], np.float32), 3).tolist() == [[2.0] * 3, [3.0] * 3]


@pytest.mark.parametrize("align", ["name", "position"])
@given(windows=sets(), other=sets(), length=st.none() | st.integers(1, 20))
def test_the_common_grid_agrees_with_the_naive_twin(
    align: Literal["name", "position"], windows: WindowSet, other: WindowSet, length: int | None
) -> None:
    axis = channel_axis(windows, other)
    expected = naive.dense(windows, axis, length or int(windows.lengths.max()), by_name=align == "name")
    mine = dense(windows, channels=axis, length=length, align=align)
    assert mine.shape == expected.shape
    assert mine.dtype == np.float32
    scale = max(float(np.abs(w.values).max()) for w in windows)
    np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-6 * scale)


def test_rows_by_name_and_by_position_differ_where_orders_do() -> None:
    windows = WindowSet.from_arrays([[[1.0], [2.0]], [[3.0], [4.0]]], channels=[("a", "b"), ("b", "a")])
    assert dense(windows, align="name")[:, :, 0].tolist() == [[1.0, 2.0], [4.0, 3.0]]
    assert dense(windows, align="position")[:, :, 0].tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("align", ["name", "position"])
def test_a_missing_channel_is_a_row_of_zeros(align: Literal["name", "position"]) -> None:
    windows = WindowSet.from_arrays([np.ones((2, 3)), np.ones((1, 3))], channels=[("a", "b"), ("a",)])
    assert dense(windows, align=align)[1].tolist() == [[1.0] * 3, [0.0] * 3]


def test_a_missing_channel_reads_as_its_mean_after_scaling() -> None:
    windows = WindowSet.from_arrays([[[4.0, 6.0], [1.0, 3.0]], [[5.0, 5.0]]], channels=[("a", "b"), ("a",)])
    grid = dense(Scaler.of("channel", windows)(windows))
    assert grid[1].tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("align", ["name", "position"])
def test_channels_outside_the_axis_are_left_out(align: Literal["name", "position"]) -> None:
    windows = WindowSet.from_arrays([[[1.0], [2.0]], [[3.0], [4.0]]], channels=[("a", "b"), ("c", "d")])
    expected = [[[1.0]], [[0.0]]] if align == "name" else [[[1.0]], [[3.0]]]
    assert dense(windows, channels=("a",), align=align).tolist() == expected


def test_the_axis_names_each_channel_once_in_order_of_first_use() -> None:
    left = WindowSet.from_arrays(
        [np.zeros((2, 1)), np.zeros((1, 1)), np.zeros((1, 1))], channels=[("b", "a"), ("z",), ("c",)]
    )
    right = WindowSet.from_arrays([np.zeros((2, 1))], channels=[("d", "b")])
    assert channel_axis(left, right) == ("b", "a", "z", "c", "d")
    assert channel_axis(left[[2, 0]], right) == ("c", "b", "a", "d")
    assert channel_axis() == ()


def test_no_windows_make_an_empty_grid() -> None:
    empty = sample_windows(2)[:0]
    assert dense(empty, channels=("a", "b"), length=5).shape == (0, 2, 5)
    assert dense(empty).shape[0] == 0
    assert dense(empty, align="position").shape[0] == 0


def test_values_that_are_not_finite_reach_no_grid() -> None:
    with pytest.raises(NotFiniteError):
        dense(WindowSet.from_arrays([[[1.0, np.inf]]]))
