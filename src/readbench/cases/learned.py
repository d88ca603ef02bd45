"""A method fitted on cases, and what their labels teach about a window: the benchmark's engine, kept warm.

The ranking is the one of `readbench.pipeline.System`, to the bit. Where a method ends with Verdict over the whole
corpus, what its labels teach is learned once and used for every window; a new label costs one closed-form solution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from readbench.cases.vectors import StoredVectors
from readbench.encoders import Vectors, unit
from readbench.pipeline import System, group_numbers
from readbench.ranking import rank
from readbench.rerank import View
from readbench.rerank.opinion import Calibration, Opinion, opinions
from readbench.rerank.verdict import Judgement, Verdict, judged
from readbench.retrieve import Scores
from readbench.retrieve.embedding import EmbeddingRetriever
from readbench.spec import MethodSpec
from readbench.windows import NORMAL, UNLABELLED, WindowSet, channel_axis

BLOCK = 1024
"""Items whose fault type is guessed at a time."""
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ranked:
    """What a method says of one window.

    Args:
        order: (N,) positions, best first.
        scores: (N,) of the method, by position.
        shared: (N,) probabilities of sharing the window's fault type; None without labels.
        opinion: on the fault type; None without labels.
        votes: (L,) what each of the cases says about the most likely type; positive is for it.
        voters: (L,) their positions.
    """

    order: NDArray[np.int64]
    scores: Scores
    shared: Array | None = None
    opinion: Opinion | None = None
    votes: Array | None = None
    voters: NDArray[np.intp] | None = None


class FittedMethod:
    """A method on a corpus.

    Args:
        spec: what to run.
        corpus: N labelled windows.
        normals: windows of normal operation.
        vectors: where vectors of cases are kept.
        rejected: (N, K) fault types, by the corpus's class numbers, that an item is known not to be.
    """

    def __init__(
        self,
        spec: MethodSpec,
        corpus: WindowSet,
        normals: WindowSet,
        vectors: StoredVectors,
        rejected: NDArray[np.bool_],
    ) -> None:
        self.system = System(spec)
        self.corpus = corpus
        self.rejected = rejected
        self._units: dict[int, Vectors] = {}
        for leg in self.system.legs:
            if isinstance(leg.retriever, EmbeddingRetriever):
                leg.retriever.cache = vectors
        with vectors.filing():
            self.system.fit(corpus, normals)

    @cached_property
    def verdict(self) -> Verdict | None:
        """The reranker whose lesson can be learned ahead of every window; None for all other methods."""
        last = self.system.rerankers[0] if len(self.system.rerankers) == 1 else None
        ahead = isinstance(last, Verdict) and last.pool is None and not any(leg.uses_labels for leg in self.system.legs)
        return last if ahead and isinstance(last, Verdict) else None

    def relabel(self, corpus: WindowSet, rejected: NDArray[np.bool_]) -> None:
        """Learn other labels of the same windows; only for methods with a `verdict`."""
        self.corpus, self.rejected = corpus, rejected
        for name in ("_lesson", "_guesses", "_calibration"):
            self.__dict__.pop(name, None)

    def ask(self, queries: WindowSet, ruled_out: NDArray[np.bool_] | None = None) -> list[Ranked]:
        """Rank the corpus for each of Q windows.

        Args:
            queries: the windows.
            ruled_out: (K,) fault types that the windows are known not to be.
        """
        verdict = self.verdict
        if verdict is None:
            scores = self.system.score(queries)
        else:
            scores = self.system.combine([leg.score(queries) for leg in self.system.legs])
        lesson = self._lesson_for(queries)
        if lesson is None:
            return [Ranked(order, own) for order, own in zip(rank(scores), scores, strict=True)]
        posterior = _without(lesson.ridge.posterior(lesson.query_likeness(np.arange(len(queries)))), ruled_out, lesson)
        shared = posterior @ self._guesses.T
        if verdict is None:
            order = rank(scores)
        else:
            order, scores = self._reordered(scores, shared, verdict)
        said = opinions(lesson, np.arange(len(queries)), calibration=self._calibration_of(lesson))
        return [
            Ranked(
                order[q],
                scores[q],
                shared[q],
                replace(said[q], posterior=posterior[q]),
                _votes(lesson, q, int(posterior[q].argmax())),
                lesson.cases,
            )
            for q in range(len(queries))
        ]

    def _reordered(self, scores: Scores, shared: Array, verdict: Verdict) -> tuple[NDArray[np.int64], Scores]:
        """The order of `Verdict.rerank`: by probability, equal ones as before; known normals last."""
        base = rank(scores)
        new = shared.astype(np.float32)
        if verdict.drop_normals:
            new[:, self.corpus.labels == NORMAL] = -1.0
        within = rank(np.take_along_axis(new, base, axis=1))
        return np.take_along_axis(base, within, axis=1), new

    def _lesson_for(self, queries: WindowSet) -> Judgement | None:
        """What the labels teach, with the windows in its views; None where there are no labels."""
        if not len(self._cases):
            return None
        views = self._views(queries)
        if self._within_corpus(queries):
            return replace(self._lesson, views=views)
        return judged(views, self._cases, self.corpus.labels, group_numbers(self.corpus))

    @cached_property
    def _lesson(self) -> Judgement:
        """What the labels teach, whatever the window."""
        return judged(self._views(self.corpus[:1]), self._cases, self.corpus.labels, group_numbers(self.corpus))

    @cached_property
    def _calibration(self) -> Calibration:
        return Calibration.of(self._lesson)

    def _calibration_of(self, lesson: Judgement) -> Calibration | None:
        """The one that is kept, unless the lesson was learned for these windows alone."""
        return self._calibration if lesson.ridge is self._lesson.ridge else None

    @cached_property
    def _guesses(self) -> Array:
        """(N, K) probabilities of the fault types of all items: their label, else what the others say of them."""
        items = np.arange(len(self.corpus))
        blocks = [self._lesson.opinion(items[start : start + BLOCK]) for start in range(0, len(items), BLOCK)]
        guesses: Array = np.concatenate(blocks)
        open_ones = self.corpus.labels == UNLABELLED
        guesses[open_ones] = _renormalised(guesses[open_ones], self.rejected[open_ones][:, self._lesson.ridge.classes])
        return guesses

    @property
    def _cases(self) -> NDArray[np.intp]:
        labels = self.corpus.labels
        return self.verdict.cases(labels) if self.verdict else np.flatnonzero(labels > NORMAL)

    def _views(self, queries: WindowSet) -> tuple[View, ...]:
        """Windows and corpus as the legs see them, rows of length one; the corpus's embeddings are kept."""
        views = []
        for number, leg in enumerate(self.system.viewing):
            own, items = leg.represent(self.corpus, queries)
            if number not in self._units or not leg.embeds:
                self._units[number] = unit(items)
            views.append(View(unit(own), self._units[number]))
        return tuple(views)

    def _within_corpus(self, queries: WindowSet) -> bool:
        """Whether the corpus looks the same beside these windows as without them."""
        if self.system.viewing[0].embeds:
            return True
        known = set(channel_axis(self.corpus))
        shorter = queries.lengths.max(initial=1) <= self.corpus.lengths.max(initial=1)
        return bool(shorter) and known.issuperset(channel_axis(queries))


def _without(posterior: Array, ruled_out: NDArray[np.bool_] | None, lesson: Judgement) -> Array:
    if ruled_out is None:
        return posterior
    return _renormalised(posterior, np.broadcast_to(ruled_out[lesson.ridge.classes], posterior.shape))


def _renormalised(rows: Array, ruled_out: NDArray[np.bool_]) -> Array:
    """(M, K) probabilities without what is ruled out; a row of which nothing is left is zero."""
    kept = np.where(ruled_out, 0.0, rows)
    total = kept.sum(axis=1, keepdims=True)
    shares: Array = np.divide(kept, total, out=np.zeros_like(kept), where=total > 0)
    return np.where(ruled_out.any(axis=1, keepdims=True), shares, rows)


def _votes(lesson: Judgement, query: int, fault: int) -> Array:
    """(L,) what each case adds to the decision value of a fault type."""
    likeness = lesson.query_likeness(np.array([query]))[0]
    votes: Array = (likeness + 1.0) * lesson.ridge.dual[:, fault]
    return votes
