"""Windows as models see them: which channels, how many points, which digits, which pixels."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from readbench.engine.llm import Reduction, WindowExcerpt, compare
from readbench.engine.llm._exhibits import Plotter, best_lag, most_variable_channels, numbers, shorten
from readbench.engine.llm._messages import quote
from readbench.engine.windows import WindowSet

floats = st.floats(-1e6, 1e6, width=32)


def windows(values: np.ndarray) -> WindowSet:
    return WindowSet.from_arrays([values], channels=[f"s{c}" for c in range(len(values))])


def test_the_channels_with_the_highest_variance_are_shown_in_their_own_order() -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((30, 64)) * rng.permutation(30)[:, None]
    shown = Reduction(channels=20, points=None)(windows(values), 0)
    best = sorted(sorted(range(30), key=lambda c: -values[c].var())[:20])
    assert shown.channels == tuple(f"s{c}" for c in best)
    np.testing.assert_array_equal(shown.values, values[best].astype(np.float32))


def test_of_equal_channels_the_first_are_shown() -> None:
    assert most_variable_channels(np.ones((5, 8), np.float32), 3).tolist() == [0, 1, 2]


@given(st.lists(floats, min_size=1, max_size=40), st.integers(1, 40))
def test_points_are_means_over_stretches_that_cover_everything_once(row: list[float], points: int) -> None:
    found = shorten(np.array([row], np.float32), points)[0]
    count = min(points, len(row))
    edges = [k * len(row) // count for k in range(count + 1)]
    expected = [sum(row[a:b]) / (b - a) for a, b in pairwise(edges)]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-2)


def test_seasons_are_removed_and_noted_by_channel() -> None:
    values = np.stack([np.tile(np.arange(16.0), 8), np.linspace(0, 9, 128)])
    shown = Reduction(tsad=True)(windows(values), 0)
    assert shown.notes == ("season of 16 steps removed", "raw values")
    assert np.ptp(shown.values[0]) < 1e-3
    np.testing.assert_allclose(shown.values[1], values[1], rtol=1e-5)
    assert Reduction()(windows(values), 0).notes == ("", "")


@given(st.lists(floats, min_size=2, max_size=30))
def test_numbers_keep_what_tells_values_apart(row: list[float]) -> None:
    values = np.array(row, np.float32)
    read = np.array([float(word) for word in numbers(values).split()])
    deviation, largest = values.std(dtype=np.float64), float(np.abs(values).max())
    digits = deviation * 0.0051 if deviation > 1e-3 else largest * 0.0051
    assert np.abs(read - values).max() <= digits + 1e-6 * largest


def test_the_same_window_has_the_same_pixels_and_is_drawn_once(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((5, 40)).astype(np.float32)
    names = tuple("abcde")
    one, two = (Plotter(tmp_path / folder).sheet(names, values) for folder in ("one", "two"))
    assert one == two
    assert (one.width, one.height) == (800, 220)
    assert one.png.startswith(b"\x89PNG")
    kept = next((tmp_path / "one").rglob("*.png"))
    kept.write_bytes(b"kept")
    assert Plotter(tmp_path / "one").sheet(names, values).png == b"kept"


def test_other_values_names_and_overlays_are_other_pictures(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((1, 40)).astype(np.float32)
    plotter = Plotter(tmp_path)
    sheets = [
        plotter.sheet(("a",), values),
        plotter.sheet(("b",), values),
        plotter.sheet(("a",), values[:, ::-1]),
        plotter.sheet(("a",), values, np.roll(values, 5)),
    ]
    assert len({sheet.png for sheet in sheets}) == 4


@pytest.mark.parametrize("name", ["$\\frac{1}{0}$", "水位", "a\nb\x00c", "", "x" * 500])
def test_any_name_and_a_constant_channel_can_be_drawn(name: str, tmp_path: Path) -> None:
    nothing = np.full((1, 9), np.nan, np.float32)
    assert Plotter(tmp_path).sheet((name,), np.ones((1, 9), np.float32), nothing).png


@given(st.text(max_size=300))
def test_a_quoted_name_is_one_line_without_a_way_out(text: str) -> None:
    inside = quote(text)[1:-1]
    assert inside.isprintable()
    assert not set(inside) & {"<", ">", "\n"}
    assert '"' not in inside.replace('\\"', "").replace("\\\\", "")


def exhibit(values: np.ndarray, *names: str) -> WindowExcerpt:
    return WindowExcerpt(names, values.astype(np.float32), ("",) * len(names))


@pytest.mark.parametrize("lag", [-9, 0, 5])
def test_a_shifted_copy_is_found_where_it_is(lag: int) -> None:
    rng = np.random.default_rng(1)
    long = rng.standard_normal((2, 100)).cumsum(axis=1)
    query, candidate = long[:, 20:80], long[:, 20 - lag : 80 - lag]
    assert best_lag(query, candidate) == lag
    comparison = compare(exhibit(query, "a", "b"), exhibit(candidate, "a", "b"))
    assert comparison.lag == lag
    assert dict(comparison.residuals) == pytest.approx({"a": 0.0, "b": 0.0}, abs=1e-5)
    there = np.isfinite(comparison.overlay)
    np.testing.assert_allclose(comparison.overlay[there], candidate.astype(np.float32)[there], rtol=1e-5)
    assert there.sum() == 2 * (60 - abs(lag))


def test_residuals_are_of_shared_channels_and_grow_with_the_difference() -> None:
    rng = np.random.default_rng(2)
    base = rng.standard_normal((2, 64))
    other = np.stack([base[1] + 10, base[0]])
    comparison = compare(exhibit(base, "a", "b"), exhibit(other, "b", "c"))
    ((name, apart),) = comparison.residuals
    assert name == "b"
    assert apart > 5
    assert np.isnan(comparison.overlay[1]).all()
    assert compare(exhibit(base, "a", "b"), exhibit(other, "x", "y")).residuals == ()
