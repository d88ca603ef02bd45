"""A method fitted on cases, and what their labels teach about a window: the benchmark's engine, kept warm.

The ranking is the one of `readbench.pipeline.System`, to the bit. Where a method ends with Verdict over the whole
corpus, what its labels teach is learned once and used for every window; a new label costs one closed-form solution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

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


@dataclass(frozen=True, eq=False)
class Lesson:
    """What the labels of a corpus teach, whatever the window.

    Args:
        judgement: posteriors of windows and items.
        guesses: (N, K) probabilities of the fault types of all items: their label, else what the others say of them.
        calibration: how held-out cases fare.
    """

    judgement: Judgement
    guesses: Array
    calibration: Calibration

    @classmethod
    def of(cls, judgement: Judgement, rejected: NDArray[np.bool_]) -> Self:
        """Guesses are made block by block; what an item is known not to be, (N, K) by class number, is ruled out."""
        items = np.arange(len(judgement.labels))
        blocks = [judgement.opinion(items[start : start + BLOCK]) for start in range(0, len(items), BLOCK)]
        guesses: Array = np.concatenate(blocks)
        silent = judgement.labels == UNLABELLED
        guesses[silent] = _renormalised(guesses[silent], rejected[silent][:, judgement.ridge.classes])
        return cls(judgement, guesses, Calibration.of(judgement))

    def shared(self, count: int, ruled_out: NDArray[np.bool_] | None) -> Array:
        """(Q, N) what Verdict orders by: the probability that an item shares the fault type of each window."""
        posterior = self.judgement.ridge.posterior(self.judgement.query_likeness(np.arange(count)))
        return self._without(posterior, ruled_out) @ self.guesses.T

    def opinions(self, count: int, ruled_out: NDArray[np.bool_] | None) -> list[Opinion]:
        """Calibrated opinions on the windows, without the fault types (K,) that are ruled out."""
        said = opinions(self.judgement, np.arange(count), calibration=self.calibration)
        return [replace(opinion, posterior=self._without(opinion.posterior[None], ruled_out)[0]) for opinion in said]

    def votes(self, query: int, opinion: Opinion) -> tuple[Array, NDArray[np.intp]]:
        """(L,) what each case adds to the decision value of the most likely fault type, and the cases' positions."""
        likeness = self.judgement.query_likeness(np.array([query]))[0]
        votes: Array = (likeness + 1.0) * self.judgement.ridge.dual[:, opinion.posterior.argmax()]
        return votes, self.judgement.cases

    def _without(self, posterior: Array, ruled_out: NDArray[np.bool_] | None) -> Array:
        if ruled_out is None:
            return posterior
        return _renormalised(posterior, ruled_out[self.judgement.ridge.classes][None])


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
        self._lesson: Lesson | None = None
        for leg in self.system.legs:
            if isinstance(leg.retriever, EmbeddingRetriever):
                leg.retriever.cache = vectors
        with vectors.filing():
            self.system.fit(corpus, normals)

    @property
    def verdict(self) -> Verdict | None:
        """The reranker whose lesson can be learned ahead of every window; None for all other methods."""
        rerankers = self.system.rerankers
        if len(rerankers) != 1 or any(leg.uses_labels for leg in self.system.legs):
            return None
        return rerankers[0] if isinstance(rerankers[0], Verdict) and rerankers[0].pool is None else None

    @property
    def lesson(self) -> Lesson | None:
        """What the labels teach; None without labels."""
        return self._lesson_for(self.corpus[:1]) if len(self._cases) else None

    @property
    def items(self) -> list[Vectors]:
        """(N, D) the corpus as each view sees it, rows of length one."""
        return [view.items for view in self._views(self.corpus[:1])]

    def relabel(self, corpus: WindowSet, rejected: NDArray[np.bool_]) -> None:
        """Learn other labels of the same windows; only for methods with a `verdict`."""
        self.corpus, self.rejected, self._lesson = corpus, rejected, None

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
        if not len(self._cases):
            return [Ranked(order, own) for order, own in zip(rank(scores), scores, strict=True)]
        lesson = self._lesson_for(queries)
        order = rank(scores)
        if verdict is not None:
            order, scores = self._reordered(order, lesson.shared(len(queries), ruled_out), verdict, lesson.judgement)
        return [
            Ranked(order[q], scores[q], opinion.posterior @ lesson.guesses.T, opinion, *lesson.votes(q, opinion))
            for q, opinion in enumerate(lesson.opinions(len(queries), ruled_out))
        ]

    def _reordered(
        self, order: NDArray[np.int64], shared: Array, verdict: Verdict, judgement: Judgement
    ) -> tuple[NDArray[np.int64], Scores]:
        """The order of `Verdict.rerank`, and its scores by position in the corpus."""
        alike = np.take_along_axis(shared, order, axis=1)
        weighed = verdict.weighed(alike, judgement, self.corpus.labels[order]).astype(np.float32)
        scores = np.empty_like(weighed)
        np.put_along_axis(scores, order, weighed, axis=1)
        return np.take_along_axis(order, rank(weighed), axis=1), scores

    def _lesson_for(self, queries: WindowSet) -> Lesson:
        """What the labels teach, with the windows in its views; learned once, unless the windows change the views."""
        views = self._views(queries)
        if not self._within_corpus(queries):
            return self._learned(views)
        if self._lesson is None:
            self._lesson = self._learned(views)
        return replace(self._lesson, judgement=replace(self._lesson.judgement, views=views))

    def _learned(self, views: tuple[View, ...]) -> Lesson:
        judgement = judged(views, self._cases, self.corpus.labels, group_numbers(self.corpus))
        return Lesson.of(judgement, self.rejected)

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


def _renormalised(rows: Array, ruled_out: NDArray[np.bool_]) -> Array:
    """(M, K) probabilities without what is ruled out; a row of which nothing is left is zero."""
    kept = np.where(ruled_out, 0.0, rows)
    total = kept.sum(axis=1, keepdims=True)
    shares: Array = np.divide(kept, total, out=np.zeros_like(kept), where=total > 0)
    return np.where(ruled_out.any(axis=1, keepdims=True), shares, rows)
