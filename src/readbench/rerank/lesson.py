"""What the labels of a corpus teach, learned once and used for every query.

A lesson depends on the items, their labels and their recordings, never on a query. It says of a query how likely each
fault type is, which types cannot be ruled out and whether the query is new (`readbench.rerank.opinion`), and of an item
how likely it shares the query's fault type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from readbench.rerank.base import Vectors, View
from readbench.rerank.judgement import Judgement
from readbench.rerank.opinion import Calibration, Opinion, opinions
from readbench.rerank.ridge import Array
from readbench.windows import UNLABELLED

BLOCK = 4096
"""Items whose fault type is guessed at a time."""


@dataclass(frozen=True, eq=False)
class Teaching:
    """The part of a lesson that no query changes.

    Args:
        judgement: what the labelled cases teach.
        rejected: (N, K) classes, by label, that an item is known not to be; None where nothing is known.
    """

    judgement: Judgement
    rejected: NDArray[np.bool_] | None = None

    @cached_property
    def calibration(self) -> Calibration:
        """How held-out cases fare."""
        return Calibration.of(self.judgement)

    @cached_property
    def guesses(self) -> Array:
        """(N, K) probabilities of the fault types of all items: their label, else what the others say of them."""
        items = np.arange(len(self.judgement.labels))
        blocks = [self.judgement.opinion(items[start : start + BLOCK]) for start in range(0, len(items), BLOCK)]
        guesses: Array = np.concatenate(blocks)
        if self.rejected is not None:
            silent = self.judgement.labels == UNLABELLED
            guesses[silent] = _renormalise(guesses[silent], self.rejected[silent][:, self.judgement.ridge.classes])
        return guesses


@dataclass(frozen=True, eq=False)
class Lesson:
    """What labels teach, beside the queries that it is applied to.

    Args:
        teaching: the part that no query changes.
        queries: (Q, D) the queries as each view sees them, rows of length one.
    """

    teaching: Teaching
    queries: tuple[Vectors, ...]

    @classmethod
    def of(cls, judgement: Judgement, rejected: NDArray[np.bool_] | None = None) -> Lesson:
        """The lesson of a judgement, at the judgement's own queries."""
        return cls(Teaching(judgement, rejected), tuple(view.queries for view in judgement.views))

    def at(self, queries: Sequence[Vectors]) -> Lesson:
        """The same lesson, beside other queries."""
        return replace(self, queries=tuple(queries))

    @cached_property
    def judgement(self) -> Judgement:
        """What the labelled cases teach, with the queries in its views."""
        own = self.teaching.judgement
        views = tuple(View(queries, view.items) for queries, view in zip(self.queries, own.views, strict=True))
        return replace(own, views=views)

    @property
    def calibration(self) -> Calibration:
        """How held-out cases fare."""
        return self.teaching.calibration

    @property
    def guesses(self) -> Array:
        """(N, K) probabilities of the fault types of all items."""
        return self.teaching.guesses

    @property
    def classes(self) -> NDArray[np.int32]:
        """(K,) labels of the fault types."""
        return self.judgement.ridge.classes

    @property
    def cases(self) -> NDArray[np.intp]:
        """(L,) positions of the items that taught it."""
        return self.judgement.cases

    @property
    def _numbers(self) -> NDArray[np.intp]:
        return np.arange(len(self.queries[0]))

    def shared(self, ruled_out: NDArray[np.bool_] | None = None) -> Array:
        """(Q, N) probability that an item shares the fault type of each query, as Verdict orders by it.

        Args:
            ruled_out: by label, fault types that the queries are known not to be.
        """
        posterior = self.judgement.ridge.posterior(self.judgement.query_likeness(self._numbers))
        shares: Array = self._without(posterior, ruled_out) @ self.guesses.T
        return shares

    def opinions(self, ruled_out: NDArray[np.bool_] | None = None) -> list[Opinion]:
        """Calibrated opinions on the queries, without the fault types that are ruled out."""
        said = opinions(self.judgement, self._numbers, calibration=self.calibration)
        return [replace(opinion, posterior=self._without(opinion.posterior[None], ruled_out)[0]) for opinion in said]

    def votes(self, query: int, opinion: Opinion) -> Array:
        """(L,) what each case adds to the decision value of a query's most likely fault type; positive is for it."""
        likeness = self.judgement.query_likeness(np.array([query]))[0]
        votes: Array = (likeness + 1.0) * self.judgement.ridge.dual[:, opinion.posterior.argmax()]
        return votes

    def _without(self, posterior: Array, ruled_out: NDArray[np.bool_] | None) -> Array:
        return posterior if ruled_out is None else _renormalise(posterior, ruled_out[self.classes][None])


def _renormalise(rows: Array, ruled_out: NDArray[np.bool_]) -> Array:
    """(M, K) probabilities without what is ruled out; a row of which nothing is left is zero."""
    kept = np.where(ruled_out, 0.0, rows)
    total = kept.sum(axis=1, keepdims=True)
    shares: Array = np.divide(kept, total, out=np.zeros_like(kept), where=total > 0)
    return np.where(ruled_out.any(axis=1, keepdims=True), shares, rows)
