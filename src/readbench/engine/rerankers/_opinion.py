"""Calibrated opinions on a query: probabilities of fault types, a prediction set, and novelty.

All are calibrated on cases of the corpus that are held out with their whole group, so no query is needed. Values of
held-out cases give the p-value of a query's value s, with one vote per group of G:

    p(s) = (1 + sum over g of  share of the cases of g whose value is at least s) / (G + 1)

If a new case's group is drawn like the others, p(s) <= a with probability a at most (Lee, Barber and Willett, 2023);
cases of one group may be dependent.

* Probabilities are the ridge's, sharpened by an exponent, p(c | q)^a / sum, that maximises the likelihood of held-out
  cases with one vote per group, so that a long recording does not count more than a short one.
* A fault type c is in the prediction set if p(1 - p(c | q)) > alpha.
* A query is strange if its fault type is in doubt and its views match no known fault (`_novelty`). Its novelty is
  1 - p(s) of its strangeness s; it is called novel if p(s) <= false_alarms.

`LabelModel` holds what the labels of a corpus teach. It is learned once from items, labels and recordings and used for
every query. It also gives the probability that an item shares the query's fault type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.protocols import Vectors
from readbench.engine.rerankers._nearest import MIN_PROBABILITY
from readbench.engine.rerankers._novelty import Strangeness
from readbench.engine.rerankers._ridge import Array, FittedVerdict, find_single_group_cases
from readbench.engine.windows import UNLABELLED

ALPHA = 0.1
FALSE_ALARMS = 0.05
EXPONENTS = 2.0 ** np.arange(-3, 3.01, 1 / 16)
"""Tried exponents of the posterior; 1 leaves it unchanged."""
DECIMALS = 12
"""p-values are sums of shares; after rounding, equal ones are equal."""


@dataclass(frozen=True, eq=False)
class Opinion:
    """Calibrated opinion on one query.

    Args:
        classes: (K,) labels of the known fault types.
        posterior: (K,) their probabilities.
        candidates: labels in the prediction set, most likely first; includes the most likely one.
        strangeness: larger for stranger queries.
        novelty: 1 - p-value of the strangeness among held-out cases, in [0, 1).
        novel: whether it is called a new fault.
        threshold: minimum probability of a fault type in the prediction set.
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
        """Probability of the most likely fault type."""
        return float(self.posterior.max())


@dataclass(frozen=True, eq=False)
class HeldOutValues:
    """Reference distribution of values of held-out cases, with one vote per group.

    Args:
        values: (L,) ascending.
        tail: (L + 1,) votes for values at least as large as each of them; 0 at the end.
        groups: number of groups G.
    """

    values: Array
    tail: Array
    groups: int

    @classmethod
    def of(cls, values: Array, groups: NDArray[np.integer]) -> HeldOutValues:
        """Build from values (L,) of cases in groups (L,)."""
        _, codes = np.unique(groups, return_inverse=True)
        counts = np.bincount(codes)
        order = np.argsort(values, kind="stable")
        votes = (1.0 / counts)[codes][order]
        return cls(values[order], np.append(np.cumsum(votes[::-1])[::-1], 0.0), len(counts))

    def p_values(self, values: Array) -> Array:
        """p-values of an array of values; small for values above those of held-out cases."""
        votes = self.tail[np.searchsorted(self.values, values, side="left")]
        p: Array = np.round((1.0 + votes) / (self.groups + 1), DECIMALS)
        return p

    def largest_above(self, alpha: float) -> float:
        """The largest value with a p-value above alpha; infinite if every value has one."""
        if 1.0 / (self.groups + 1) > alpha:
            return np.inf
        above = np.flatnonzero(self.p_values(self.values) > alpha)
        return float(self.values[above[-1]]) if len(above) else -np.inf


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibration on held-out cases, independent of queries.

    Args:
        exponent: sharpens posteriors.
        surprise: 1 - p(true class) of held-out cases.
        strangeness: fitted measure of strangeness.
        strange: strangeness of held-out cases.
    """

    exponent: float
    surprise: HeldOutValues
    strangeness: Strangeness
    strange: HeldOutValues

    @classmethod
    def of(cls, judgement: FittedVerdict) -> Self:
        """Fit to the cases of a judgement."""
        cases = judgement.cases
        labels, groups = judgement.labels[cases], judgement.groups[cases]
        codes = np.searchsorted(judgement.classes, labels)
        exponent = 1.0 if judgement.incidents else best_exponent(judgement.held_out, codes, groups)
        held_out = sharpen(judgement.held_out, exponent)
        use = informative_cases(codes, groups)
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
    """Form opinions on queries.

    Args:
        judgement: fitted on labelled cases.
        queries: (M,) indices of queries.
        alpha: maximum share of queries whose prediction set misses their fault type.
        false_alarms: maximum share of queries with a known fault type that are called novel.
        calibration: on the same cases, if known.
    """
    fitted, classes = calibration or Calibration.of(judgement), judgement.classes
    posterior = sharpen(judgement.query_posterior(queries), fitted.exponent)
    possible = prediction_sets(posterior, fitted.surprise, alpha)
    strange = fitted.strangeness.measure(judgement, queries, posterior)
    p = fitted.strange.p_values(strange)
    threshold = max(0.0, 1.0 - fitted.surprise.largest_above(alpha))
    return [
        Opinion(
            classes=classes,
            posterior=posterior[q],
            candidates=_by_probability(classes, posterior[q], possible[q]),
            strangeness=float(strange[q]),
            novelty=float(1.0 - p[q]),
            novel=bool(p[q] <= false_alarms),
            threshold=threshold,
        )
        for q in range(len(queries))
    ]


def best_exponent(held_out: Array, codes: NDArray[np.intp], groups: NDArray[np.integer]) -> float:
    """Exponent of posteriors that maximises the likelihood of held-out cases, with one vote per group.

    Args:
        held_out: (L, K) posteriors of cases by cases of other groups.
        codes: (L,) columns of their true classes.
        groups: (L,) of the cases.
    """
    _, index, counts = np.unique(groups, return_inverse=True, return_counts=True)
    rows = np.arange(len(codes))
    losses = [
        np.average(-np.log(np.maximum(sharpen(held_out, a)[rows, codes], MIN_PROBABILITY)), weights=1.0 / counts[index])
        for a in EXPONENTS
    ]
    return float(EXPONENTS[int(np.argmin(losses))])


def sharpen(posterior: Array, exponent: float) -> Array:
    """(Q, K) posteriors to the power of an exponent, normalised: above 1 more certain, below 1 less.

    >>> sharpen(np.array([[0.8, 0.2]]), 0.5).round(3)
    array([[0.667, 0.333]])
    """
    power: Array = np.maximum(posterior, MIN_PROBABILITY) ** exponent
    return power / power.sum(axis=1, keepdims=True)


def informative_cases(codes: NDArray[np.intp], groups: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(L,) cases that show how a new recording of a known fault fares: those whose class has several groups.

    If no class has, all cases: held out one by one they are optimistic, but there are no others.
    """
    several = ~find_single_group_cases(codes, groups)
    return several if several.any() else np.ones(len(codes), bool)


def prediction_sets(posterior: Array, surprise: HeldOutValues, alpha: float) -> NDArray[np.bool_]:
    """(Q, K) mask of classes in the prediction set.

    Args:
        posterior: (Q, K).
        surprise: 1 - p(true class) of held-out cases.
        alpha: maximum share of sets that miss the true class.
    """
    possible = surprise.p_values(1.0 - posterior) > alpha
    possible[np.arange(len(posterior)), posterior.argmax(axis=1)] = True
    return possible


def _by_probability(classes: NDArray[np.int32], posterior: Array, possible: NDArray[np.bool_]) -> tuple[int, ...]:
    order = np.argsort(-posterior, kind="stable")
    return tuple(classes[order[possible[order]]].tolist())


BLOCK = 4096
"""Items whose fault types are estimated at a time."""


@dataclass(frozen=True, eq=False)
class FittedLabels:
    """The part of a lesson that is independent of queries.

    Args:
        judgement: fitted on the labelled cases.
        rejected: (N, K) classes, by label, that an item is known not to have; None if unknown.
        measured: calibration on held-out cases, if known.
    """

    judgement: FittedVerdict
    rejected: NDArray[np.bool_] | None = None
    measured: Calibration | None = None

    @cached_property
    def calibration(self) -> Calibration:
        """Calibration on held-out cases."""
        return self.measured or Calibration.of(self.judgement)

    @cached_property
    def guesses(self) -> Array:
        """(N, K) probabilities of the fault types of all items: their label, else the posterior."""
        items = np.arange(len(self.judgement.labels))
        return np.concatenate([self.guess(items[start : start + BLOCK]) for start in range(0, len(items), BLOCK)])

    def grow(self, judgement: FittedVerdict, rejected: NDArray[np.bool_] | None) -> FittedLabels:
        """Update for more items or changed labels; only changed items are computed again."""
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
        """(M, K) probabilities of the fault types of some items."""
        guesses = self.judgement.opinion(items)
        if self.rejected is not None:
            silent = self.judgement.labels[items] == UNLABELLED
            ruled_out = self.rejected[items[silent]][:, self.judgement.classes]
            guesses[silent] = _renormalise(guesses[silent], ruled_out)
        return guesses


@dataclass(frozen=True, eq=False)
class LabelModel:
    """What labels teach, with queries to apply it to.

    Args:
        fitted: the part that is independent of queries.
        queries: (Q, D) queries in each view, unit vectors.
    """

    fitted: FittedLabels
    queries: tuple[Vectors, ...]

    @classmethod
    def of(cls, judgement: FittedVerdict, rejected: NDArray[np.bool_] | None = None) -> LabelModel:
        """The lesson of a judgement, with its queries."""
        return cls(FittedLabels(judgement, rejected), tuple(view.queries for view in judgement.views))

    def prepare(self) -> Self:
        """Compute now what all queries share."""
        _ = self.fitted.calibration, self.fitted.guesses
        return self

    def at(self, queries: Sequence[Vectors]) -> LabelModel:
        """The same lesson with other queries."""
        return replace(self, queries=tuple(queries))

    def grow(
        self,
        items: Sequence[Vectors],
        labels: NDArray[np.int32],
        groups: NDArray[np.int64],
        rejected: NDArray[np.bool_] | None,
    ) -> LabelModel:
        """The same lesson for more items or changed labels, without learning.

        Args:
            items: (N + M, D) all items in each view, unit vectors.
            labels: (N + M,) current labels, numbered as the lesson knows them; other numbers for unknown types.
            groups: (N + M,) numbers of recordings.
            rejected: (N + M, K) classes that they are known not to have.
        """
        judgement = self.fitted.judgement.on(items, labels, groups)
        return LabelModel(self.fitted.grow(judgement, rejected), tuple(units[:0] for units in items))

    @cached_property
    def judgement(self) -> FittedVerdict:
        """The judgement on the labelled cases, with the queries in its views."""
        return self.fitted.judgement.beside(self.queries)

    @property
    def calibration(self) -> Calibration:
        """Calibration on held-out cases."""
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
        """(L,) positions of the items it was learned from."""
        return self.judgement.cases

    @property
    def _numbers(self) -> NDArray[np.intp]:
        return np.arange(len(self.queries[0]))

    def posterior(self, ruled_out: NDArray[np.bool_] | None = None) -> Array:
        """(Q, K) probabilities of the queries' fault types, before calibration.

        Args:
            ruled_out: by label, fault types that the queries are known not to have.
        """
        return self._without(self.judgement.query_posterior(self._numbers), ruled_out)

    def shared(self, ruled_out: NDArray[np.bool_] | None = None) -> Array:
        """(Q, N) probability that an item shares each query's fault type; `ruled_out` as for `posterior`."""
        shares: Array = self.posterior(ruled_out) @ self.guesses.T
        return shares

    def opinions(self, ruled_out: NDArray[np.bool_] | None = None) -> list[Opinion]:
        """Calibrated opinions on the queries; fault types that are ruled out have probability 0."""
        said = give_opinions(self.judgement, self._numbers, calibration=self.calibration)
        return [replace(opinion, posterior=self._without(opinion.posterior[None], ruled_out)[0]) for opinion in said]

    def votes(self, query: int, opinion: Opinion) -> Array:
        """(L,) contribution of each case to the decision value of a query's most likely fault type."""
        return self.judgement.votes(query, int(opinion.posterior.argmax()))

    def _without(self, posterior: Array, ruled_out: NDArray[np.bool_] | None) -> Array:
        return posterior if ruled_out is None else _renormalise(posterior, ruled_out[self.classes][None])


def _renormalise(rows: Array, ruled_out: NDArray[np.bool_]) -> Array:
    """(M, K) probabilities without ruled-out classes, normalised; a row without others is zero."""
    kept = np.where(ruled_out, 0.0, rows)
    total = kept.sum(axis=1, keepdims=True)
    shares: Array = np.divide(kept, total, out=np.zeros_like(kept), where=total > 0)
    return np.where(ruled_out.any(axis=1, keepdims=True), shares, rows)
