from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine.encoders._channels import KEYED_WIDTH, ChannelEncoder, Pooling, _key, pool_channels
from readbench.engine.windows import WindowSet
from readbench.testing import sample_windows


class Moments(ChannelEncoder):
    """Embeds a series as its mean, deviation and first value; takes lengths that are multiples of 8."""

    def __init__(self, pool: Pooling = "mean", batch: int = 4) -> None:
        self.pool = pool
        self.batch = batch
        self.seen: list[tuple[int, ...]] = []

    def admissible(self, length: int) -> int:
        return max(8, 8 * round(length / 8))

    def embed(self, series: NDArray[np.float32]) -> NDArray[np.float32]:
        self.seen.append(series.shape)
        return np.stack([series.mean(axis=1), series.std(axis=1), series[:, 0]], axis=1)


def test_the_mean_over_channels_is_the_paper_s_pooling() -> None:
    window = WindowSet.from_arrays([np.array([[1.0] * 8, [3.0] * 8])])
    assert Moments().encode(window).tolist() == [[2.0, 0.0, 2.0]]


def test_permuting_channels_does_not_change_the_mean() -> None:
    windows = sample_windows(5, channels=4)
    turned = WindowSet.from_arrays([w.values[::-1] for w in windows], channels=[w.channels[::-1] for w in windows])
    np.testing.assert_allclose(Moments().encode(windows), Moments().encode(turned), rtol=1e-6)


def test_the_keyed_pooling_knows_which_channel_is_which() -> None:
    values = sample_windows(1, channels=2)[0].values
    one = WindowSet.from_arrays([values], channels=("a", "b"))
    same = WindowSet.from_arrays([values[::-1]], channels=("b", "a"))
    swapped = WindowSet.from_arrays([values], channels=("b", "a"))
    encoder = Moments("keyed")
    np.testing.assert_allclose(encoder.encode(one), encoder.encode(same), rtol=1e-5, atol=1e-6)
    assert not np.allclose(encoder.encode(one), encoder.encode(swapped), atol=1e-3)


def keyed_slowly(vectors: NDArray[np.float32], channels: tuple[str, ...]) -> NDArray[np.float64]:
    """The keyed vector of one window, number by number."""
    out = np.zeros(KEYED_WIDTH)
    for vector, name in zip(vectors, channels, strict=True):
        places, signs = _key(name, len(vector), KEYED_WIDTH)
        for number, place, sign in zip(vector.tolist(), places.tolist(), signs.tolist(), strict=True):
            out[place] += sign * number
    return out


def test_the_keyed_pooling_equals_a_slow_loop() -> None:
    windows = sample_windows(6, channels=5, ragged=True)
    vectors = np.random.default_rng(0).normal(size=(int(windows.channel_counts.sum()), 300)).astype(np.float32)
    ends = np.cumsum(windows.channel_counts)
    expected = [keyed_slowly(own, w.channels) for own, w in zip(np.split(vectors, ends[:-1]), windows, strict=True)]
    np.testing.assert_allclose(pool_channels(vectors, windows, "keyed"), expected, rtol=1e-5, atol=1e-5)


def test_a_channel_s_key_follows_from_its_name_alone_and_loses_nothing() -> None:
    places, signs = _key("flow", 512, KEYED_WIDTH)
    assert len(set(places.tolist())) == 512
    assert set(signs.tolist()) == {-1.0, 1.0}
    assert places[:4].tolist() == [2075, 619, 346, 3622]  # vectors are kept between versions and machines
    assert not np.array_equal(places, _key("level", 512, KEYED_WIDTH)[0])


def test_keyed_products_are_those_of_the_channels_side_by_side_within_chance() -> None:
    rng = np.random.default_rng(0)
    for trial in range(20):
        names = tuple(f"sensor {trial} {k}" for k in range(8))
        windows = WindowSet.from_arrays(list(np.zeros((2, 8, 4))), channels=names)
        vectors = rng.normal(size=(16, 512)).astype(np.float32)
        one, two = pool_channels(vectors, windows, "keyed")
        first, second = vectors[:8].ravel(), vectors[8:].ravel()
        chance = np.linalg.norm(first) * np.linalg.norm(second) / np.sqrt(KEYED_WIDTH)
        assert abs(one @ two - first @ second) < 4 * chance


def test_long_vectors_widen_the_keyed_one() -> None:
    window = WindowSet.from_arrays([np.zeros((2, 4))])
    assert pool_channels(np.ones((2, KEYED_WIDTH + 5), np.float32), window, "keyed").shape == (1, KEYED_WIDTH + 5)


def test_stats_puts_mean_deviation_and_maximum_side_by_side() -> None:
    window = WindowSet.from_arrays([np.array([[1.0] * 8, [3.0] * 8])])
    assert Moments("stats").encode(window).tolist() == [[2.0, 0.0, 2.0, 1.0, 0.0, 1.0, 3.0, 0.0, 3.0]]


def test_lengths_are_resampled_to_admissible_ones_and_batches_are_bounded() -> None:
    encoder = Moments(batch=4)
    encoder.encode(sample_windows(9, channels=5, length=40, ragged=True))
    assert all(rows <= 4 and length % 8 == 0 for rows, length in encoder.seen)


@pytest.mark.parametrize("pool", ["mean", "stats", "keyed"])
def test_the_order_of_windows_does_not_matter(pool: Pooling) -> None:
    windows = sample_windows(9, channels=5, length=40, ragged=True)
    order = np.random.default_rng(0).permutation(9)
    encoder = Moments(pool)
    np.testing.assert_allclose(encoder.encode(windows)[order], encoder.encode(windows[order]), rtol=1e-5, atol=1e-5)


def test_no_windows_give_no_vectors() -> None:
    assert len(Moments().encode(sample_windows(3)[:0])) == 0
