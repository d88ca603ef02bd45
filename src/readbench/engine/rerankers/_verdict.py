"""Verdict, our label-aware reranker: ranks by fault types learned from resolved cases, over several views.

A posterior p(c | q) of the fault types is learned from the labelled cases by ridge (`fit_verdict`) on the mean cosine
of the views. An item's score is the probability that it shares the query's fault type,

    score(x) = sum over c of p(c | q) p(c | x)

where p(c | x) is certain for a labelled item and the ridge's posterior for an unlabelled one. Items of one class keep
the retrieval order.

With few labels the query's type may have none. The probability u of that is estimated from the types seen in only one
recording (Good, 1953): their number over that of labelled recordings, each increased by one. The retrieval order then
has the weight sqrt(u) v, where v is the share of the query's nearest items without a label; with many labels it
vanishes.

If the cases are of several assets and views are pooled, the retrieval order always has a small weight: it decides where
labels leave the fault type open, as on an unknown machine.

With `order=odds`, labels correct the retrieval's scores instead of replacing them, so few labels cannot spoil the list:

    score(x) = z(x) + 0.3 sqrt(n) log(K (1 - u_x) sum over c of p(c | q) p(c | x) + u_x)

with z(x) the retrieval's score standardised per query, n the labelled incidents per class, K the number of classes, and
u_x = u for an item without a label, else 0. K times the sum is the likelihood ratio of sharing the fault type. The
posteriors include the nearest incidents (`_nearest`).

With `spread`, the last of the first ten places go to the next likely fault types (`_spread`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from readbench.engine.abilities import GivesOpinion
from readbench.engine.parameters import ParameterRange
from readbench.engine.protocols import Pool, Scores, Vectors, View, unit_vectors
from readbench.engine.registry import RERANKERS
from readbench.engine.rerankers._opinion import LabelModel
from readbench.engine.rerankers._ridge import Array, FittedVerdict, fit_verdict
from readbench.engine.rerankers._spread import SPREAD_PLACES, choose_spread, mix_belief
from readbench.engine.retrievers import standardise_rows
from readbench.engine.windows import NORMAL, UNLABELLED

NEAREST_ITEMS = 5
"""Nearest items whose labels show whether the types near a query are labelled."""
HALF_WEIGHT_PLACE = 10
"""Place at which the retrieval order has half the weight of the first place."""
NEAREST_WEIGHT = 0.4
"""Weight of the first retrieved place relative to a certain fault type, if views are pooled: labels learned on some
machines mislead on others, nearest cases do not. On the simulators this costs nothing up to here."""
ODDS_WEIGHT = 0.3
"""Weight of the log-odds at one incident per class, relative to standard deviations of the retrieval's scores."""
MIN_ODDS = 0.1
"""Added to the odds before the logarithm."""


@RERANKERS.register("verdict", title="Verdict", tags=["normals-last"], abilities=(GivesOpinion,))
@dataclass(eq=False)
class Verdict:
    """Ranks by the probability of sharing the query's fault type, learned from resolved cases.

    Args:
        pool: number of candidates, whose labels alone are used; none: the whole corpus.
        drop_normals: exclude known normals from learning and rank them last; otherwise normal is a class.
        views: `chosen`: the combination that explains held-out recordings best. `pooled`: if the cases are of several
            assets, all combinations, each calibrated on held-out assets, since the query's machine may be unknown.
        spread: weight of the expected hit rate at ten relative to the expected NDCG@10; 0 ranks by probability alone.
        order: `probability` ranks by the probability of sharing the fault type; `odds` adds its log-odds to the
            retrieval's scores, with a weight that grows with the number of labelled incidents.
    """

    uses_labels = True

    pool: Annotated[int, ParameterRange(2)] | None = None
    drop_normals: bool = True
    views: Literal["chosen", "pooled"] = "chosen"
    spread: Annotated[float, ParameterRange(0)] = 0.0
    order: Literal["probability", "odds"] = "probability"

    @property
    def depth(self) -> int | None:
        """Size of the pool."""
        return self.pool

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) probabilities that each candidate shares the query's fault type; -1 for known normals.

        Queries without known labels keep their base scores; with few labelled types, the base order counts too.
        """
        views = tuple(View(unit_vectors(view.queries), unit_vectors(view.items)) for view in pool.views)
        scores = np.where(pool.labelled.any(axis=1, keepdims=True), np.float32(0), pool.scores)
        for rows, labels in self._lessons(pool):
            cases = self.cases(labels)
            if len(cases):
                judgement = self._judge(views, cases, labels, pool.groups, pool.assets)
                shared = judgement.shared(rows, pool.candidates[rows])
                weighed = self.weigh(shared, judgement, pool.labels[rows], pool.scores[rows])
                if self.spread:
                    used, places = np.unique(pool.candidates[rows], return_inverse=True)
                    guesses, places = judgement.opinion(used), places.reshape(shared.shape)
                    posterior = judgement.query_posterior(rows)
                    weighed = self.spread_out(weighed, posterior, guesses, places, pool.labels[rows])
                scores[rows] = weighed
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
        """Learn from the labels; None if no case can be learned from."""
        cases = self.cases(labels)
        if not len(cases):
            return None
        views = tuple(View(vectors[:0], vectors) for vectors in items)
        return LabelModel.of(self._judge(views, cases, labels, groups, assets), rejected)

    def rerank_by(self, lesson: LabelModel, pool: Pool, ruled_out: NDArray[np.bool_] | None = None) -> Scores:
        """(Q, K) as `rerank`, by an earlier lesson at the pool's queries."""
        shared = np.take_along_axis(lesson.shared(ruled_out), pool.candidates, axis=1)
        scores = self.weigh(shared, lesson.judgement, pool.labels, pool.scores)
        if self.spread:
            posterior = lesson.posterior(ruled_out)
            scores = self.spread_out(scores, posterior, lesson.guesses, pool.candidates, pool.labels)
        return scores.astype(np.float32)

    def weigh(
        self, shared: Array, judgement: FittedVerdict, labels: NDArray[np.int32], retrieved_scores: Scores
    ) -> Array:
        """(M, K) scores of candidates in retrieval order.

        Args:
            shared: (M, K) probabilities that they share the query's fault type.
            judgement: source of the probabilities.
            labels: (M, K) of the candidates, -1 if unknown.
            retrieved_scores: (M, K) scores of the retrieval.
        """
        if self.order == "odds":
            scores = self._correct(shared, judgement, labels, retrieved_scores)
            return np.where(labels == NORMAL, -1.0, scores) if self.drop_normals else scores
        silent = (labels[:, :NEAREST_ITEMS] == UNLABELLED).mean(axis=1, keepdims=True)
        doubt = silent * judgement.unseen_share**0.5
        retrieved = 1 / (1 + np.arange(shared.shape[1]) / HALF_WEIGHT_PLACE)
        scores = (1 - doubt) * shared + doubt * retrieved
        if judgement.pooled:
            scores = (scores + NEAREST_WEIGHT * retrieved) / (1 + NEAREST_WEIGHT)
        return np.where(labels == NORMAL, -1.0, scores) if self.drop_normals else scores

    def _correct(
        self, shared: Array, judgement: FittedVerdict, labels: NDArray[np.int32], retrieved_scores: Scores
    ) -> Array:
        """(M, K) scores of the retrieval plus weighted log-odds, mapped into (0, 1)."""
        unknown = np.where(labels == UNLABELLED, judgement.unseen_share, 0.0)
        odds = len(judgement.classes) * (1 - unknown) * shared + unknown
        weight = ODDS_WEIGHT * judgement.incidents_per_class**0.5
        total = standardise_rows(retrieved_scores) + weight * np.log(odds + MIN_ODDS)
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
        """(M, K) scores that diversify the first places; negative scores are kept.

        Args:
            scores: (M, K) of the candidates in retrieval order.
            posterior: (M, C) probabilities of the queries' fault types.
            guesses: (N, C) probabilities of the items' fault types.
            candidates: (M, K) rows of `guesses`.
            labels: (M, K) of the candidates, -1 if unknown.
        """
        types = np.where(guesses.any(axis=1), guesses.argmax(axis=1), -1)[candidates]
        spread = np.full(len(scores), self.spread)
        if self.order == "odds":  # types of unlabelled candidates are guesses: few labels spread nothing
            spread *= (labels[:, :SPREAD_PLACES] != UNLABELLED).mean(axis=1)
        listed = choose_spread(scores, types, mix_belief(posterior, guesses, candidates), spread)
        return np.where(scores < 0, scores, (scores + listed) / 2)

    def cases(self, labels: NDArray[np.int32]) -> NDArray[np.intp]:
        """Positions of the items to learn from, by corpus labels (N,), -1 if unknown."""
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
        """Groups of queries that know the same labels, with those (N,) labels."""
        labels = pool.corpus_labels
        if self.pool is not None:
            labels = np.full(labels.shape, UNLABELLED, np.int32)
            np.put_along_axis(labels, pool.candidates, pool.labels, axis=1)
        distinct, of = np.unique(labels, axis=0, return_inverse=True)
        return [(np.flatnonzero(of == k), known) for k, known in enumerate(distinct)]
