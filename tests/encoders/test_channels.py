from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.encoders.channels import ChannelEncoder, Pooling
from readbench.testing import sample_windows
from readbench.windows import WindowSet


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
