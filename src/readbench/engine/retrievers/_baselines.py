"""Baselines that bound the achievable range: chance, class sizes and shortcuts.

`Random` and `Majority` are floors: chance, and the most frequent class. `Stats`, `ChannelPresence` and `BeforeLevel`
probe shortcuts: how far one gets without looking at the course of the signal, or at the time before it alone. A dataset
that these solve does not test diagnosis. They are baselines like any other, so that every table shows how much of a
score a shortcut would have earned.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.abilities import UsesContext
from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import LevelScale, Scaler, channel_axis, measure_levels
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
