"""Baselines that bound the achievable range: chance, class sizes and shortcuts.

`Random` and `Majority` are floors: chance, and the most frequent class. `Stats`, `ChannelPresence` and `BeforeLevel`
probe shortcuts: how far one gets without looking at the course of the signal, or at the time before it alone. A dataset
that these solve does not test diagnosis. They are baselines like any other, so that every table shows how much of a
score a shortcut would have earned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.abilities import UsesContext
from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import Scaler, channel_axis
from readbench.engine.protocols import Scores
from readbench.engine.registry import RETRIEVERS
from readbench.engine.retrievers._euclidean import euclidean_distances
from readbench.engine.windows import UNLABELLED, WindowSet


@RETRIEVERS.register("random", title="Random", family="trivial", tags=["by-position"])
class Random:
    """Independent uniform scores: chance level.

    Args:
        seed: of the scores. A query and a corpus position always get the same score, so that corpora of different
            pollution are nested here too.
    """

    uses_labels = False
    corpus_dependent = False

    def __init__(self, seed: Annotated[int, ParameterRange(0)] = 0) -> None:
        self.seed = seed

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        """Remember the size of the corpus."""
        self.size_ = len(corpus)
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) uniform in [0, 1)."""
        rows = [np.random.default_rng([self.seed, q]).random(self.size_, np.float32) for q in range(len(queries))]
        return np.stack(rows) if rows else np.empty((0, self.size_), np.float32)


@RETRIEVERS.register("majority", title="Majority", family="trivial")
class Majority:
    """The most frequent corpus label first, the same for every query; normal counts as a label, none does not."""

    uses_labels = True
    corpus_dependent = True

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        """Find the most frequent label; ties go to the lower index."""
        known = corpus.labels[corpus.labels != UNLABELLED]
        values, counts = np.unique(known, return_counts=True)
        self.prevalent_ = np.isin(corpus.labels, values[counts.argmax()] if len(known) else [])
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N): 1 for items of the most frequent label, else 0."""
        return np.tile(self.prevalent_.astype(np.float32), (len(queries), 1))


@dataclass(frozen=True, eq=False)
class LevelScale:
    """Means and deviations of channels on one scale: that of the corpus items that have the channel.

    Args:
        axis: C channels.
        mean: (2C,) of the channels' means, then of their deviations.
        spread: (2C,) likewise; infinite where it is none.
    """

    axis: tuple[str, ...]
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]

    @classmethod
    def of(cls, axis: tuple[str, ...], raw: NDArray[np.float64]) -> Self:
        """The scale of a corpus's levels (N, 2C)."""
        present = ~np.isnan(raw)
        count = np.maximum(present.sum(axis=0), 1)
        mean = np.where(present, raw, 0).sum(axis=0) / count
        spread = np.sqrt((np.where(present, raw - mean, 0) ** 2).sum(axis=0) / count)
        return cls(axis, mean, np.where(spread > 1e-12 * np.abs(mean), spread, np.inf))

    def __call__(self, raw: NDArray[np.float64]) -> NDArray[np.float32]:
        """(N, 2C) scaled; what is absent is at the mean."""
        features: NDArray[np.float32] = np.nan_to_num((raw - self.mean) / self.spread, nan=0.0).astype(np.float32)
        return features


def measure_levels(
    series: Sequence[NDArray[np.float32] | None], channels: Sequence[tuple[str, ...]], axis: tuple[str, ...]
) -> NDArray[np.float64]:
    """(N, 2C) means, then deviations, of N series (C', T) on a channel axis; NaN where a channel, or all, is absent."""
    place = {name: c for c, name in enumerate(axis)}
    raw = np.full((len(series), 2, len(axis)), np.nan)
    for i, (own, names) in enumerate(zip(series, channels, strict=True)):
        if own is None:
            continue
        known = [k for k, name in enumerate(names) if name in place]
        values = own[known].astype(np.float64)
        columns = [place[names[k]] for k in known]
        raw[i, 0, columns] = values.mean(axis=1)
        raw[i, 1, columns] = values.std(axis=1)
    return raw.reshape(len(series), -1)


@RETRIEVERS.register("stats", title="Stats", family="shortcut", abilities=(UsesContext,))
class Stats:
    """Mean and standard deviation of each channel, nothing else of the signal.

    Each feature is scaled by its mean and deviation over the corpus items that have the channel; a channel that a
    window lacks is at the mean.

    Args:
        norm: `none`, or `before`: windows are scaled by the time before them first, so that levels are departures.
    """

    uses_labels = False
    corpus_dependent = True

    def __init__(self, norm: Literal["none", "before"] = "none") -> None:
        self.norm = norm

    @property
    def uses_context(self) -> bool:
        """Whether it looks at the time before."""
        return self.norm == "before"

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Compute and scale the corpus's features."""
        self.windows_ = Scaler.of(self.norm, corpus, normals)
        raw = self._raw(corpus, channel_axis(corpus))
        self.scale_ = LevelScale.of(channel_axis(corpus), raw)
        self.features_ = self.scale_(raw)
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) negative Euclidean distances between scaled features."""
        asked = self.scale_(self._raw(queries, self.scale_.axis))
        return np.negative(euclidean_distances(asked, self.features_))

    def _raw(self, windows: WindowSet, axis: tuple[str, ...]) -> NDArray[np.float64]:
        scaled = self.windows_(windows)
        places = range(len(scaled))
        return measure_levels([scaled.values(i) for i in places], [scaled.channels(i) for i in places], axis)


@RETRIEVERS.register("before-level", title="Before alone", family="shortcut", abilities=(UsesContext,))
class BeforeLevel:
    """Mean and standard deviation of each channel in the time before a window, and nothing of the window itself.

    Scaled as by `stats`; beside them stands, for each channel, whether there is any of it before the window. What this
    finds is the operating point and which sensors there are: a shortcut to the class, not a diagnosis.
    """

    uses_labels = False
    corpus_dependent = True
    uses_context = True

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        """Compute and scale the corpus's features."""
        raw = self._raw(corpus, channel_axis(corpus))
        self.scale_ = LevelScale.of(channel_axis(corpus), raw)
        self.features_ = self._features(raw)
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) negative Euclidean distances between features."""
        asked = self._features(self._raw(queries, self.scale_.axis))
        return np.negative(euclidean_distances(asked, self.features_))

    def _features(self, raw: NDArray[np.float64]) -> NDArray[np.float32]:
        """(N, 3C) scaled means and deviations, and 1 for each channel that is there."""
        present = ~np.isnan(raw[:, : len(self.scale_.axis)])
        return np.concatenate([self.scale_(raw), present.astype(np.float32)], axis=1)

    def _raw(self, windows: WindowSet, axis: tuple[str, ...]) -> NDArray[np.float64]:
        context, places = windows.context, range(len(windows))
        befores = [None if context is None else context.before_of(i) for i in places]
        return measure_levels(befores, [windows.channels(i) for i in places], axis)


@RETRIEVERS.register("channel-presence", title="Channel presence", family="shortcut")
class ChannelPresence:
    """Which channels a window has, and no value of any of them (Jaccard similarity of the names)."""

    uses_labels = False
    corpus_dependent = False

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        """Remember the corpus's channel sets."""
        self.sets_ = [frozenset(names) for names in corpus.channel_sets]
        self.of_ = corpus.channel_set
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) shared channels over all channels of the pair."""
        own = [frozenset(names) for names in queries.channel_sets]
        table = np.array([[len(a & b) / len(a | b) for b in self.sets_] for a in own], np.float32)
        return table.reshape(len(own), len(self.sets_))[queries.channel_set][:, self.of_]
