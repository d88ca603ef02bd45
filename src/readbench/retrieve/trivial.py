"""Floors that bound the achievable range: chance, and the most frequent class."""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np

from readbench.parameters import Interval
from readbench.registry import RETRIEVERS
from readbench.retrieve.base import Scores
from readbench.windows import UNLABELLED, WindowSet


@RETRIEVERS.register("random", title="Random", family="trivial", tags=["by-position"])
class Random:
    """Independent uniform scores: chance level.

    Args:
        seed: of the scores. A query and a corpus position always get the same score, so that corpora of different
            pollution are nested here too.
    """

    uses_labels = False
    corpus_dependent = False

    def __init__(self, seed: Annotated[int, Interval(0)] = 0) -> None:
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
