"""The calibrated opinion on a query: how likely each fault type is, which types cannot be ruled out, whether it is new.

All three are measured by how cases of the corpus fare when their whole group is held out, so that no query is needed to
calibrate them. Values of held-out cases become p-values of a query's value s, each of the G groups having one vote:

    p(s) = (1 + sum over g of  share of the cases of g whose value is at least s) / (G + 1)

A new case of a new group has p(s) <= a with probability a at most, if its group is drawn like the others (Lee, Barber
and Willett, 2023); cases of one group may resemble each other as they like.

* Probabilities are the ridge's, sharpened by an exponent, p(c | q)^a / sum, under which held-out cases are most likely,
  each group having one vote: a long recording says no more than a short one about how certain one may be of a new one.
* A fault type c stays in the prediction set where p(1 - p(c | q)) > alpha.
* A query is strange where its fault type is in doubt and its views tell no known story (`_novelty`); its novelty is
  1 - p(s) of its strangeness s, and it is called novel where p(s) <= false_alarms.

What the labels of a corpus teach is learned once and used for every query (`LabelModel`). It depends on the items,
their labels and their recordings, never on a query. Besides opinions on queries it says of an item how likely it shares
the query's fault type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.protocols import Vectors
from readbench.engine.rerankers._novelty import Strangeness
from readbench.engine.rerankers._ridge import TINY, Array, FittedVerdict, find_single_group_cases
from readbench.engine.windows import UNLABELLED

ALPHA = 0.1
FALSE_ALARMS = 0.05
EXPONENTS = 2.0 ** np.arange(-3, 3.01, 1 / 16)
"""Exponents of the posterior that are tried; 1 leaves it as it is."""
ASSUMED_GROUPS, ASSUMED_RIGHT = 4, 0.65
"""How often the likeliest class is right, before held-out cases tell; what this counts, in groups."""
DECIMALS = 12
"""p-values are sums of shares: after rounding, equal ones are equal."""


@dataclass(frozen=True, eq=False)
class Opinion:
    """What resolved cases say of one query.

    Args:
        classes: (K,) labels of the known fault types.
        posterior: (K,) their probabilities.
        candidates: labels that cannot be ruled out, most likely first; the most likely one always is among them.
        strangeness: orders queries from the most familiar to the strangest.
        novelty: 1 - p-value of the strangeness among held-out cases, in [0, 1).
        novel: whether it is called new.
        threshold: probability from which a fault type cannot be ruled out.
    """

    classes: NDArray[np.int32]
    posterior: Array
    candidates: tuple[int, ...]
    strangeness: float
    novelty: float
    novel: bool
    threshold: float = 0.0

    @property
    def label(self) -> int:
        """The most likely fault type."""
        return int(self.classes[self.posterior.argmax()])

    @property
    def confidence(self) -> float:
        """Its probability."""
        return float(self.posterior.max())


@dataclass(frozen=True, eq=False)
class HeldOutValues:
    """Values of held-out cases, each group having one vote.

    Args:
        values: (L,) ascending.
        tail: (L + 1,) votes for a value at least as large as each of them; 0 at the end.
        groups: G.
    """

    values: Array
    tail: Array
    groups: int

    @classmethod
    def of(cls, values: Array, groups: NDArray[np.integer]) -> HeldOutValues:
        """The reference of values (L,) of cases in groups (L,)."""
        _, codes = np.unique(groups, return_inverse=True)
        counts = np.bincount(codes)
        order = np.argsort(values, kind="stable")
        votes = (1.0 / counts)[codes][order]
        return cls(values[order], np.append(np.cumsum(votes[::-1])[::-1], 0.0), len(counts))

    def p_values(self, values: Array) -> Array:
        """p-values of any array of values; small where a value is larger than those of held-out cases."""
        votes = self.tail[np.searchsorted(self.values, values, side="left")]
        p: Array = np.round((1.0 + votes) / (self.groups + 1), DECIMALS)
        return p

    def largest_above(self, alpha: float) -> float:
        """The largest value whose p-value is above a level; infinite where that of every value is."""
        if 1.0 / (self.groups + 1) > alpha:
            return np.inf
        above = np.flatnonzero(self.p_values(self.values) > alpha)
        return float(self.values[above[-1]]) if len(above) else -np.inf


@dataclass(frozen=True, eq=False)
class Calibration:
    """How held-out cases fare, which no query changes.

    Args:
        exponent: sharpens posteriors.
        surprise: 1 - p(true class) of held-out cases.
        strangeness: what makes a window strange.
        strange: the strangeness of held-out cases.
    """

    exponent: float
    surprise: HeldOutValues
    strangeness: Strangeness
    strange: HeldOutValues

    @classmethod
    def of(cls, judgement: FittedVerdict) -> Self:
        """Measured on the cases of a judgement."""
        cases = judgement.cases
        labels, groups = judgement.labels[cases], judgement.groups[cases]
        codes = np.searchsorted(judgement.classes, labels)
        use = informative_cases(codes, groups)
        if judgement.incidents is None:
            exponent = best_exponent(judgement.held_out, codes, groups)
        else:
            told = ~find_single_group_cases(codes, groups)
            exponent = best_exponent(judgement.held_out, codes, groups, informative=told)
        held_out = sharpen(judgement.held_out, exponent)
        strangeness = Strangeness.of(judgement, sharpen(judgement.from_elsewhere, exponent), use)
        return cls(
            exponent=exponent,
            surprise=HeldOutValues.of(1.0 - held_out[np.arange(len(cases)), codes][use], groups[use]),
            strangeness=strangeness,
            strange=HeldOutValues.of(strangeness.held_out[strangeness.use], groups[strangeness.rows][strangeness.use]),
        )


def give_opinions(
    judgement: FittedVerdict,
    queries: NDArray[np.intp],
    *,
    alpha: float = ALPHA,
    false_alarms: float = FALSE_ALARMS,
    calibration: Calibration | None = None,
) -> list[Opinion]:
    """Opinions on queries.

    Args:
        judgement: what labelled cases teach.
        queries: (M,) their numbers.
        alpha: share of queries whose prediction set may miss their fault type.
        false_alarms: share of queries with a known fault type that may be called novel.
        calibration: of the same cases, where it is known already.
    """
    fitted, classes = calibration or Calibration.of(judgement), judgement.classes
    posterior = sharpen(judgement.query_posterior(queries), fitted.exponent)
    possible = prediction_sets(posterior, fitted.surprise, alpha)
    own = fitted.strangeness.measure(judgement, queries, posterior)
    p = fitted.strange.p_values(own)
    threshold = max(0.0, 1.0 - fitted.surprise.largest_above(alpha))
    return [
        Opinion(
            classes=classes,
            posterior=posterior[q],
            candidates=_by_probability(classes, posterior[q], possible[q]),
            strangeness=float(own[q]),
            novelty=float(1.0 - p[q]),
            novel=bool(p[q] <= false_alarms),
            threshold=threshold,
        )
        for q in range(len(queries))
    ]


def best_exponent(
    held_out: Array,
    codes: NDArray[np.intp],
    groups: NDArray[np.integer],
    *,
    informative: NDArray[np.bool_] | None = None,
) -> float:
    """The exponent of posteriors under which held-out cases are most likely, each group having one vote.

    Args:
        held_out: (L, K) posteriors of cases by cases of other groups.
        codes: (L,) columns of their true classes.
        groups: (L,) of the cases.
        informative: (L,) cases whose class has several groups. Where they are given, others do not vote, and
            `ASSUMED_GROUPS` more groups do, of which the likeliest class is right as often as `ASSUMED_RIGHT`.
    """
    _, own, counts = np.unique(groups, return_inverse=True, return_counts=True)
    rows, votes = np.arange(len(codes)), 1.0 / counts[own]
    losses = []
    for exponent in EXPONENTS:
        sharp = sharpen(held_out, exponent)
        loss = -np.log(np.maximum(sharp[rows, codes], TINY))
        if informative is None:
            losses.append(np.average(loss, weights=votes))
            continue
        first = sharp.max(axis=1)
        wrong = np.maximum((1.0 - first) / max(sharp.shape[1] - 1, 1), TINY)
        assumed = -ASSUMED_RIGHT * np.log(first) - (1.0 - ASSUMED_RIGHT) * np.log(wrong)
        known = (votes * loss)[informative].sum() + ASSUMED_GROUPS * np.average(assumed, weights=votes)
        losses.append(known / (votes[informative].sum() + ASSUMED_GROUPS))
    return float(EXPONENTS[int(np.argmin(losses))])


def sharpen(posterior: Array, exponent: float) -> Array:
    """(Q, K) posteriors to the power of an exponent: above 1 more certain, below 1 less; the order stays.

    >>> sharpen(np.array([[0.8, 0.2]]), 0.5).round(3)
    array([[0.667, 0.333]])
    """
    power: Array = np.maximum(posterior, TINY) ** exponent
    return power / power.sum(axis=1, keepdims=True)


def informative_cases(codes: NDArray[np.intp], groups: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(L,) cases that tell how a new recording of a known fault would fare: those whose class has several groups.

    Where no class has, all cases: held out one by one they flatter, but nothing else is there.
    """
    several = ~find_single_group_cases(codes, groups)
    return several if several.any() else np.ones(len(codes), bool)


def prediction_sets(posterior: Array, surprise: HeldOutValues, alpha: float) -> NDArray[np.bool_]:
    """(Q, K) which classes cannot be ruled out.

    Args:
        posterior: (Q, K).
        surprise: 1 - p(true class) of held-out cases.
        alpha: share of sets that may miss the true class.
    """
    possible = surprise.p_values(1.0 - posterior) > alpha
    possible[np.arange(len(posterior)), posterior.argmax(axis=1)] = True
    return possible


def _by_probability(classes: NDArray[np.int32], posterior: Array, possible: NDArray[np.bool_]) -> tuple[int, ...]:
    order = np.argsort(-posterior, kind="stable")
    return tuple(classes[order[possible[order]]].tolist())


BLOCK = 4096
"""Items whose fault type is guessed at a time."""


@dataclass(frozen=True, eq=False)
class FittedLabels:
    """The part of a lesson that no query changes.

    Args:
        judgement: what the labelled cases teach.
        rejected: (N, K) classes, by label, that an item is known not to be; None where nothing is known.
        measured: how held-out cases fare, where that is known already.
    """

    judgement: FittedVerdict
    rejected: NDArray[np.bool_] | None = None
    measured: Calibration | None = None

    @cached_property
    def calibration(self) -> Calibration:
        """How held-out cases fare."""
        return self.measured or Calibration.of(self.judgement)

    @cached_property
    def guesses(self) -> Array:
        """(N, K) probabilities of the fault types of all items: their label, else what the others say of them."""
        items = np.arange(len(self.judgement.labels))
        return np.concatenate([self.guess(items[start : start + BLOCK]) for start in range(0, len(items), BLOCK)])

    def grow(self, judgement: FittedVerdict, rejected: NDArray[np.bool_] | None) -> FittedLabels:
        """The same with more items, or other labels of them; only what changed is guessed again."""
        grown, known = FittedLabels(judgement, rejected, self.calibration), len(self.judgement.labels)
        same = np.zeros(len(judgement.labels), np.bool_)
        same[:known] = judgement.labels[:known] == self.judgement.labels
        if rejected is not None and self.rejected is not None:
            classes = judgement.classes
            same[:known] &= (rejected[:known, classes] == self.rejected[:, classes]).all(axis=1)
        guesses = np.empty((len(same), self.guesses.shape[1]))
        guesses[same] = self.guesses[same[:known]]
        guesses[~same] = grown.guess(np.flatnonzero(~same))
        grown.__dict__["guesses"] = guesses
        return grown

    def guess(self, items: NDArray[np.intp]) -> Array:
        """(M, K) of some items."""
        guesses = self.judgement.opinion(items)
        if self.rejected is not None:
            silent = self.judgement.labels[items] == UNLABELLED
            ruled_out = self.rejected[items[silent]][:, self.judgement.classes]
            guesses[silent] = _renormalise(guesses[silent], ruled_out)
        return guesses


@dataclass(frozen=True, eq=False)
class LabelModel:
    """What labels teach, beside the queries that it is applied to.

    Args:
        fitted: the part that no query changes.
        queries: (Q, D) the queries as each view sees them, rows of length one.
    """

    fitted: FittedLabels
    queries: tuple[Vectors, ...]

    @classmethod
    def of(cls, judgement: FittedVerdict, rejected: NDArray[np.bool_] | None = None) -> LabelModel:
        """The lesson of a judgement, at the judgement's own queries."""
        return cls(FittedLabels(judgement, rejected), tuple(view.queries for view in judgement.views))

    def prepare(self) -> Self:
        """Compute now what is the same for all queries."""
        _ = self.fitted.calibration, self.fitted.guesses
        return self

    def at(self, queries: Sequence[Vectors]) -> LabelModel:
        """The same lesson, beside other queries."""
        return replace(self, queries=tuple(queries))

    def grow(
        self,
        items: Sequence[Vectors],
        labels: NDArray[np.int32],
        groups: NDArray[np.int64],
        rejected: NDArray[np.bool_] | None,
    ) -> LabelModel:
        """The same lesson where items came in behind the N of its corpus, or labels changed; it learns nothing new.

        Args:
            items: (N + M, D) all of them as each view sees them, rows of length one.
            labels: (N + M,) what they are now, by the numbers that the lesson knows; others for types it does not.
            groups: (N + M,) numbers of recordings.
            rejected: (N + M, K) classes that they are known not to be.
        """
        judgement = self.fitted.judgement.on(items, labels, groups)
        return LabelModel(self.fitted.grow(judgement, rejected), tuple(own[:0] for own in items))

    @cached_property
    def judgement(self) -> FittedVerdict:
        """What the labelled cases teach, with the queries in its views."""
        return self.fitted.judgement.beside(self.queries)

    @property
    def calibration(self) -> Calibration:
        """How held-out cases fare."""
        return self.fitted.calibration

    @property
    def guesses(self) -> Array:
        """(N, K) probabilities of the fault types of all items."""
        return self.fitted.guesses

    @property
    def classes(self) -> NDArray[np.int32]:
        """(K,) labels of the fault types."""
        return self.judgement.classes

    @property
    def cases(self) -> NDArray[np.intp]:
        """(L,) positions of the items that taught it."""
        return self.judgement.cases

    @property
    def _numbers(self) -> NDArray[np.intp]:
        return np.arange(len(self.queries[0]))

    def posterior(self, ruled_out: NDArray[np.bool_] | None = None) -> Array:
        """(Q, K) probabilities of the fault types of the queries, as Verdict orders by them.

        Args:
            ruled_out: by label, fault types that the queries are known not to be.
        """
        return self._without(self.judgement.query_posterior(self._numbers), ruled_out)

    def shared(self, ruled_out: NDArray[np.bool_] | None = None) -> Array:
        """(Q, N) probability that an item shares the fault type of each query; `ruled_out` as for `posterior`."""
        shares: Array = self.posterior(ruled_out) @ self.guesses.T
        return shares

    def opinions(self, ruled_out: NDArray[np.bool_] | None = None) -> list[Opinion]:
        """Calibrated opinions on the queries, without the fault types that are ruled out."""
        said = give_opinions(self.judgement, self._numbers, calibration=self.calibration)
        return [replace(opinion, posterior=self._without(opinion.posterior[None], ruled_out)[0]) for opinion in said]

    def votes(self, query: int, opinion: Opinion) -> Array:
        """(L,) what each case adds to the decision value of a query's most likely fault type; positive is for it."""
        return self.judgement.votes(query, int(opinion.posterior.argmax()))

    def _without(self, posterior: Array, ruled_out: NDArray[np.bool_] | None) -> Array:
        return posterior if ruled_out is None else _renormalise(posterior, ruled_out[self.classes][None])


def _renormalise(rows: Array, ruled_out: NDArray[np.bool_]) -> Array:
    """(M, K) probabilities without what is ruled out; a row of which nothing is left is zero."""
    kept = np.where(ruled_out, 0.0, rows)
    total = kept.sum(axis=1, keepdims=True)
    shares: Array = np.divide(kept, total, out=np.zeros_like(kept), where=total > 0)
    return np.where(ruled_out.any(axis=1, keepdims=True), shares, rows)
