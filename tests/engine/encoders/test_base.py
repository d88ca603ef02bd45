"""However many windows, and however large: what is in memory at a time is bounded."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.engine import protocols as base
from readbench.engine.encoders import Raw, Rocket, _channels as channels
from readbench.engine.encoders._channels import VECTOR_NUMBERS, ChannelEncoder, Pooling
from readbench.engine.protocols import BatchEncoder, Vectors
from readbench.engine.registry import ENCODERS
from readbench.engine.windows import WindowSet
from readbench.testing import sample_windows

RAGGED = sample_windows(23, channels=5, length=40, ragged=True)


@dataclass
class Counting(BatchEncoder):
    """Embeds a window as its mean and size, and notes how much it was given at a time."""

    seen: list[tuple[int, int]] = field(default_factory=list)

    def encode_batch(self, windows: WindowSet) -> Vectors:
        self.seen.append((len(windows), int(self.footprint(windows).sum())))
        rows = [[w.values.mean(), w.values.size] for w in windows]
        return np.array(rows, np.float32).reshape(len(windows), 2)


@dataclass
class CountingChannels(ChannelEncoder):
    """Embeds a series as its mean and maximum, and notes how much it was given at a time."""

    pool: Pooling = "mean"
    batch: int = 1000
    batches_seen: list[int] = field(default_factory=list)
    series_seen: list[tuple[int, ...]] = field(default_factory=list)

    def encode_batch(self, windows: WindowSet) -> Vectors:
        self.batches_seen.append(int(windows.channel_counts.sum()))
        return super().encode_batch(windows)

    def embed(self, series: NDArray[np.float32]) -> Vectors:
        self.series_seen.append(series.shape)
        return np.stack([series.mean(axis=1), series.max(axis=1)], axis=1)


def pieces_one_by_one(sizes: list[int], limit: int) -> list[int]:
    """Number of windows of each batch: a window joins while the sum stays within the limit."""
    counts: list[int] = []
    total = 0
    for size in sizes:
        if counts and total + size <= limit:
            counts[-1] += 1
            total += size
        else:
            counts.append(1)
            total = size
    return counts


@pytest.mark.parametrize("limit", [1, 60, 137, 200, 1000, 10**9])
def test_a_batch_holds_as_many_windows_as_the_limit_admits(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    expected = Counting().encode(RAGGED)
    monkeypatch.setattr(base, "MAX_BATCH_NUMBERS", limit)
    encoder = Counting()
    np.testing.assert_array_equal(encoder.encode(RAGGED), expected)
    sizes = [w.values.size for w in RAGGED]
    assert [count for count, _ in encoder.seen] == pieces_one_by_one(sizes, limit)
    assert all(size <= limit for count, size in encoder.seen if count > 1)


def test_no_windows_give_no_vectors_of_the_same_width() -> None:
    assert Counting().encode(RAGGED[:0]).shape == (0, 2)


def test_wide_windows_come_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "MAX_BATCH_NUMBERS", 700 * (VECTOR_NUMBERS + 8))
    wide, narrow = np.zeros((4, 664, 8)), np.zeros((5, 20, 8))
    encoder = CountingChannels()
    encoder.encode(WindowSet.from_arrays([*wide, *narrow]))
    assert encoder.batches_seen == [664, 664, 664, 684, 80]


def test_long_series_are_embedded_in_smaller_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MAX_BATCH_POINTS", 100)
    windows = WindowSet.from_arrays([np.ones((7, 30)), np.ones((2, 300)), np.ones((40, 5))])
    encoder = CountingChannels(batch=16)
    np.testing.assert_array_equal(encoder.encode(windows), np.ones((3, 2)))
    assert encoder.series_seen == [(16, 5), (16, 5), (8, 5), (3, 30), (3, 30), (1, 30), (1, 300), (1, 300)]


def test_vectors_of_short_series_count_as_well() -> None:
    """A window of one number is not free: the vector of its channel waits in memory."""
    encoder = CountingChannels()
    windows = WindowSet.from_arrays(np.zeros((50, 1, 1)))
    assert (encoder.footprint(windows) > VECTOR_NUMBERS).all()


@pytest.mark.parametrize("encoder", [Raw(), Rocket(features=84)], ids=lambda e: type(e).__name__)
def test_a_window_counts_by_the_grid_it_is_brought_to(encoder: Raw | Rocket) -> None:
    corpus = WindowSet.from_arrays(np.random.default_rng(0).standard_normal((4, 30, 50)))
    tiny = WindowSet.from_arrays(np.zeros((3, 1, 2)))
    assert (encoder.fit(corpus, corpus[:0]).footprint(tiny) > 30 * 50).all()


def test_every_encoder_of_the_package_is_bounded() -> None:
    assert all(issubclass(entry.factory, BatchEncoder) for entry in ENCODERS if isinstance(entry.factory, type))
