"""Which channels tell the classes of a corpus apart: those worth drawing where there are too many to draw all."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.windows import NORMAL, WindowSet, channel_axis

MOST_WINDOWS = 2_000
"""Windows looked at, evenly spaced."""


@dataclass(frozen=True, eq=False)
class Telling:
    """Channels by how far each class departs in them from all other windows.

    Args:
        channels: all channel names of the corpus.
        labels: (K,) classes that have windows, without normal.
        departure: (K, C) in standard deviations; 0 where a class lacks the channel.
    """

    channels: tuple[str, ...]
    labels: NDArray[np.int32]
    departure: NDArray[np.float64]

    def order(self) -> tuple[str, ...]:
        """All channels, so that the first few show as much as they can of every class.

        A channel shows a class to the share of its departure in the class's best channel. Each place goes to the
        channel that adds most to what those before it show, all classes together; what adds nothing comes last.
        """
        share = self.departure / np.maximum(self.departure.max(axis=1, initial=0.0, keepdims=True), 1e-12)
        seen = np.zeros((len(share), 1))
        order: list[int] = []
        while len(order) < len(self.channels):
            gain = np.maximum(share - seen, 0.0).sum(axis=0)
            best = int(gain.argmax())
            if gain[best] <= 0.0:
                break
            order.append(best)
            seen = np.maximum(seen, share[:, [best]])
        rest = sorted(set(range(len(self.channels))) - set(order), key=lambda c: -float(share[:, c].sum()))
        return tuple(self.channels[c] for c in (*order, *rest))

    def best(self, among: Collection[str]) -> dict[int, str]:
        """The channel of some that tells most, by class."""
        places = [c for c, name in enumerate(self.channels) if name in among]
        best = self.departure[:, places].argmax(axis=1)
        return {int(k): self.channels[places[c]] for k, c in zip(self.labels, best, strict=True)}


def telling(corpus: WindowSet) -> Telling:
    """Compare mean, deviation and mean absolute step of each channel between each class and the rest."""
    if len(corpus) > MOST_WINDOWS:
        corpus = corpus[np.linspace(0, len(corpus) - 1, MOST_WINDOWS).astype(np.intp)]
    channels = channel_axis(corpus)
    features = _features(corpus, channels)
    labels = np.unique(corpus.labels[corpus.labels > NORMAL])
    departure = np.zeros((len(labels), len(channels)))
    for k, label in enumerate(labels):
        departure[k] = _departure(features[corpus.labels == label], features[corpus.labels != label])
    return Telling(channels, labels, departure)


def _departure(own: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
    """(C,) the largest difference of means over the features (N, C, 3), in pooled deviations."""
    (mean, spread), (other, other_spread) = _moments(own), _moments(rest)
    pooled = np.sqrt((spread**2 + other_spread**2) / 2)
    floor = 1e-6 * (np.abs(mean) + np.abs(other)) + 1e-12
    apart = np.abs(mean - other) / np.maximum(pooled, floor)
    return np.nan_to_num(apart, nan=0.0).max(axis=1)


def _moments(features: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(C, 3) mean and deviation over the windows that have the channel; NaN where none has."""
    present = ~np.isnan(features)
    count = np.where(present.any(axis=0), present.sum(axis=0), np.nan)
    mean = np.where(present, features, 0.0).sum(axis=0) / count
    return mean, np.sqrt((np.where(present, features - mean, 0.0) ** 2).sum(axis=0) / count)


def _features(windows: WindowSet, channels: tuple[str, ...]) -> NDArray[np.float64]:
    """(N, C, 3) mean, deviation and mean absolute step; NaN where a window lacks the channel."""
    place = {name: c for c, name in enumerate(channels)}
    rows = [np.array([place[name] for name in names], np.intp) for names in windows.channel_sets]
    out = np.full((len(windows), len(channels), 3), np.nan)
    for i in range(len(windows)):
        values = windows.values(i).astype(np.float64)
        steps = np.abs(np.diff(values, axis=1, prepend=values[:, :1])).mean(axis=1)
        out[i, rows[windows.channel_set[i]]] = np.stack([values.mean(axis=1), values.std(axis=1), steps], axis=1)
    return out
