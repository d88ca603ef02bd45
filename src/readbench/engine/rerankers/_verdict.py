"""Verdict, our own label-aware reranker: what resolved cases say a query is, over several views at once.

A posterior p(c | q) of the fault types is learned from the labelled cases by ridge (`fit_verdict`) on the sum of the
views' cosines. An item's score is the probability that it shares the query's fault type,

    score(x) = sum over c of p(c | q) p(c | x)

where p(c | x) is certain for a labelled item and the ridge's own opinion for one without a label. Items of one class
keep the order of the retrieval below.

Few labels name few types. How likely the query's is none of them is estimated from the types that were met in one
recording only (Good, 1953): u, their number over that of the labelled recordings, one more counted on both sides. The
order of the retrieval then counts with the weight sqrt(u) v, where v is the share of the query's nearest items that
have no label; with many labels it is nothing.

Where the cases are of several assets and views are pooled, the order of the retrieval counts a little in any case: it
decides where labels leave the fault type open, as on a machine that nobody has seen.

With `order=odds` labels correct the order of the retrieval instead of replacing it, so that few of them cannot spoil it:

    score(x) = z(x) + STEP sqrt(n) log(K (1 - u') sum over c of p(c | q) p(c | x) + u')

where z(x) is the retrieval's score in standard deviations of the query's scores, n the labelled incidents per class and
K the classes. The sum over its expectation, 1 / K, is how much more likely x shares the fault type of the query than
any other item does; u' is u for an item without a label and 0 for others. The nearest incidents count in p
(`_nearest`).

With `spread` the last of the first ten places go to the fault types that are next likely (`_spread`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from readbench.engine.abilities import GivesOpinion
from readbench.engine.parameters import ParameterRange
from readbench.engine.protocols import Pool, Scores, Vectors, View, unit_vectors
from readbench.engine.registry import RERANKERS
from readbench.engine.rerankers._opinion import LabelModel
from readbench.engine.rerankers._ridge import Array, FittedVerdict, fit_verdict
from readbench.engine.rerankers._spread import LISTED, choose_spread, mix_belief
from readbench.engine.retrievers import standardise_rows
from readbench.engine.windows import NORMAL, UNLABELLED

NEAREST = 5
"""Items of which the labels tell whether types near a query are named."""
HALF_AT = 10
"""The place at which the order of the retrieval is worth half of what it is at the first."""
NEARNESS = 0.4
"""What the first place of the retrieval is worth beside a certain fault type, where views are pooled: labels learned on
some machines mislead on others, nearest cases do not. On the simulators it costs nothing up to here."""
STEP = 0.3
"""What the log-odds of one incident per class count beside standard deviations of the retrieval's scores."""
LEAST_RATIO = 1e-3
"""Added to the odds before their logarithm is taken."""


@RERANKERS.register("verdict", title="Verdict", tags=["normals-last"], abilities=(GivesOpinion,))
class Verdict:
    """Orders by the probability of sharing the query's fault type, learned from resolved cases.

    Args:
        pool: see only this many candidates and their labels; none: the whole corpus.
        drop_normals: cases known to be normal teach nothing and come last; otherwise they are one more class.
        views: `chosen`: the combination that explains held-out recordings best. `pooled`: where the cases are of
            several assets, all, each as certain as held-out assets let it be: the query's machine may be a new one.
        spread: what the expected hit rate at ten is worth beside the expected NDCG@10; 0 orders by probability alone.
        order: by the `probability` of sharing the fault type, or by the retrieval's scores with what labels add to
            their `odds`.
    """

    uses_labels = True

    def __init__(
        self,
        pool: Annotated[int, ParameterRange(2)] | None = None,
        *,
        drop_normals: bool = True,
        views: Literal["chosen", "pooled"] = "chosen",
        spread: Annotated[float, ParameterRange(0)] = 0.0,
        order: Literal["probability", "odds"] = "probability",
    ) -> None:
        self.pool = pool
        self.drop_normals = drop_normals
        self.views = views
        self.spread = spread
        self.order = order

    @property
    def depth(self) -> int | None:
        """The size of the pool."""
        return self.pool

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) probabilities that each candidate shares the query's fault type; -1 for known normals.

        Queries that know no label keep their base scores; where few types are named, the base order counts too.
        """
        views = tuple(View(unit_vectors(view.queries), unit_vectors(view.items)) for view in pool.views)
        scores = np.where(pool.labelled.any(axis=1, keepdims=True), np.float32(0), pool.scores)
        for rows, labels in self._lessons(pool):
            cases = self.cases(labels)
            if len(cases):
                judgement = self._judge(views, cases, labels, pool.groups, pool.assets)
                shared = judgement.shared(rows, pool.candidates[rows])
                own = self.weigh(shared, judgement, pool.labels[rows], pool.scores[rows])
                if self.spread:
                    used, places = np.unique(pool.candidates[rows], return_inverse=True)
                    guesses, places = judgement.opinion(used), places.reshape(shared.shape)
                    own = self.spread_out(own, judgement.query_posterior(rows), guesses, places, pool.labels[rows])
                scores[rows] = own
            elif self.drop_normals:
                scores[rows] = np.where(pool.labels[rows] == NORMAL, np.float32(-1), scores[rows])
        return scores

    def learn(
        self,
        items: Sequence[Vectors],
        labels: NDArray[np.int32],
        groups: NDArray[np.int64],
        rejected: NDArray[np.bool_] | None = None,
        assets: NDArray[np.int64] | None = None,
    ) -> LabelModel | None:
        """What the labels teach, apart from any query; None where no case teaches anything."""
        cases = self.cases(labels)
        if not len(cases):
            return None
        views = tuple(View(own[:0], own) for own in items)
        return LabelModel.of(self._judge(views, cases, labels, groups, assets), rejected)

    def rerank_by(self, lesson: LabelModel, pool: Pool, ruled_out: NDArray[np.bool_] | None = None) -> Scores:
        """(Q, K) as `rerank`, by a lesson at the pool's queries that was learned ahead."""
        shared = np.take_along_axis(lesson.shared(ruled_out), pool.candidates, axis=1)
        scores = self.weigh(shared, lesson.judgement, pool.labels, pool.scores)
        if self.spread:
            posterior = lesson.posterior(ruled_out)
            scores = self.spread_out(scores, posterior, lesson.guesses, pool.candidates, pool.labels)
        return scores.astype(np.float32)

    def weigh(
        self, shared: Array, judgement: FittedVerdict, labels: NDArray[np.int32], retrieved_by: Scores
    ) -> Array:
        """(M, K) scores of candidates, in the order of the retrieval.

        Args:
            shared: (M, K) probabilities that they share the query's fault type.
            judgement: what gave them.
            labels: (M, K) of the candidates, -1 where unknown.
            retrieved_by: (M, K) their scores in the retrieval.
        """
        if self.order == "odds":
            scores = self._correct(shared, judgement, labels, retrieved_by)
            return np.where(labels == NORMAL, -1.0, scores) if self.drop_normals else scores
        silent = (labels[:, :NEAREST] == UNLABELLED).mean(axis=1, keepdims=True)
        doubt = silent * judgement.unseen_share**0.5
        retrieved = 1 / (1 + np.arange(shared.shape[1]) / HALF_AT)
        scores = (1 - doubt) * shared + doubt * retrieved
        if judgement.pooled:
            scores = (scores + NEARNESS * retrieved) / (1 + NEARNESS)
        return np.where(labels == NORMAL, -1.0, scores) if self.drop_normals else scores

    def _correct(
        self, shared: Array, judgement: FittedVerdict, labels: NDArray[np.int32], retrieved_by: Scores
    ) -> Array:
        """(M, K) the retrieval's scores with the log-odds that labels add, brought into (0, 1)."""
        unknown = np.where(labels == UNLABELLED, judgement.unseen_share, 0.0)
        odds = len(judgement.classes) * (1 - unknown) * shared + unknown
        weight = STEP * judgement.incidents_per_class**0.5
        total = standardise_rows(retrieved_by) + weight * np.log(odds + LEAST_RATIO)
        scores: Array = (1 + total / (1 + np.abs(total))) / 2
        return scores

    def spread_out(
        self,
        scores: Array,
        posterior: Array,
        guesses: Array,
        candidates: NDArray[np.int64],
        labels: NDArray[np.int32],
    ) -> Array:
        """(M, K) scores by which the first places follow the belief; below 0 they stay as they are.

        Args:
            scores: (M, K) of the candidates, in the order of the retrieval.
            posterior: (M, C) probabilities of the queries' fault types.
            guesses: (N, C) probabilities of the items' fault types.
            candidates: (M, K) rows of `guesses`.
            labels: (M, K) of the candidates, -1 where unknown.
        """
        types = np.where(guesses.any(axis=1), guesses.argmax(axis=1), -1)[candidates]
        spread = np.full(len(scores), self.spread)
        if self.order == "odds":  # types of unlabelled candidates are guesses: few labels spread nothing
            spread *= (labels[:, :LISTED] != UNLABELLED).mean(axis=1)
        listed = choose_spread(scores, types, mix_belief(posterior, guesses, candidates), spread)
        return np.where(scores < 0, scores, (scores + listed) / 2)

    def cases(self, labels: NDArray[np.int32]) -> NDArray[np.intp]:
        """Positions of the items that teach something, by the labels (N,) of the corpus, -1 where unknown."""
        return np.flatnonzero(labels > NORMAL if self.drop_normals else labels != UNLABELLED)

    def _judge(
        self,
        views: tuple[View, ...],
        cases: NDArray[np.intp],
        labels: NDArray[np.int32],
        groups: NDArray[np.int64],
        assets: NDArray[np.int64] | None,
    ) -> FittedVerdict:
        return fit_verdict(views, cases, labels, groups, self._pooled_over(assets), nearest=self.order == "odds")

    def _pooled_over(self, assets: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        return assets if self.views == "pooled" else None

    def _lessons(self, pool: Pool) -> list[tuple[NDArray[np.intp], NDArray[np.int32]]]:
        """Queries that know the same labels, and those (N,) labels."""
        labels = pool.corpus_labels
        if self.pool is not None:
            labels = np.full(labels.shape, UNLABELLED, np.int32)
            np.put_along_axis(labels, pool.candidates, pool.labels, axis=1)
        distinct, of = np.unique(labels, axis=0, return_inverse=True)
        return [(np.flatnonzero(of == k), known) for k, known in enumerate(distinct)]
