"""Baselines that bound the achievable range: chance, class sizes and shortcuts.

`Random` and `Majority` are floors: chance, and the most frequent class. `Stats` and `ChannelPresence` probe shortcuts:
how far one gets without looking at the course of the signal. A dataset that these solve does not test diagnosis. They
are baselines like any other, so that every table shows how much of a score a shortcut would have earned.
"""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import channel_axis
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


@RETRIEVERS.register("stats", title="Stats", family="shortcut")
class Stats:
    """Mean and standard deviation of each channel, nothing else of the signal.

    Each feature is scaled by its mean and deviation over the corpus items that have the channel; a channel that a
    window lacks is at the mean.
    """

    uses_labels = False
    corpus_dependent = True

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        """Compute and scale the corpus's features."""
        self.axis_ = channel_axis(corpus)
        raw = self._raw(corpus)
        present = ~np.isnan(raw)
        count = np.maximum(present.sum(axis=0), 1)
        self.mean_ = np.where(present, raw, 0).sum(axis=0) / count
        spread = np.sqrt((np.where(present, raw - self.mean_, 0) ** 2).sum(axis=0) / count)
        self.scale_ = np.where(spread > 1e-12 * np.abs(self.mean_), spread, np.inf)
        self.features_ = self._features(corpus)
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) negative Euclidean distances between scaled features."""
        return np.negative(euclidean_distances(self._features(queries), self.features_))

    def _features(self, windows: WindowSet) -> NDArray[np.float32]:
        scaled = (self._raw(windows) - self.mean_) / self.scale_
        features: NDArray[np.float32] = np.nan_to_num(scaled, nan=0.0).astype(np.float32)
        return features

    def _raw(self, windows: WindowSet) -> NDArray[np.float64]:
        """(N, 2C) means, then deviations, on the corpus's channel axis; NaN where a window lacks the channel."""
        windows.require_finite()
        place = {name: c for c, name in enumerate(self.axis_)}
        raw = np.full((len(windows), 2, len(self.axis_)), np.nan)
        for i in range(len(windows)):
            names = windows.channels(i)
            known = [k for k, name in enumerate(names) if name in place]
            values = windows.values(i)[known].astype(np.float64)
            columns = [place[names[k]] for k in known]
            raw[i, 0, columns] = values.mean(axis=1)
            raw[i, 1, columns] = values.std(axis=1)
        return raw.reshape(len(windows), -1)


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
