"""An opinion on a query: how likely each fault type is, which types cannot be ruled out, and whether it is new.

All three are measured by how cases of the corpus fare when their whole group is held out, so that no query is needed to
calibrate them. Values of held-out cases become p-values of a query's value s, each of the G groups having one vote:

    p(s) = (1 + sum over g of  share of the cases of g whose value is at least s) / (G + 1)

A new case of a new group has p(s) <= a with probability a at most, if its group is drawn like the others (Lee, Barber
and Willett, 2023); cases of one group may resemble each other as they like.

* Probabilities are the ridge's, sharpened by an exponent, p(c | q)^a / sum, under which held-out cases are most likely,
  each group having one vote: a long recording says no more than a short one about how certain one may be of a new one.
* A fault type c stays in the prediction set where p(1 - p(c | q)) > alpha.
* A query is as strange as it is both doubtful and unexplained, s = (1 - max p(c | q) + `FLOOR`) v(q); its novelty is
  1 - p(s), and it is called novel where p(s) <= false_alarms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.rerank.judgement import Judgement
from readbench.rerank.ridge import Array, Reach, alone, fit_reach

ALPHA = 0.1
FALSE_ALARMS = 0.05
FLOOR = 0.02
"""Least doubt: what no case explains is strange even where one fault type is certain."""
TINY = 1e-30
"""Least probability: what was rounded to zero is not impossible."""
EXPONENTS = 2.0 ** np.arange(-3, 3.01, 1 / 16)
"""Exponents of the posterior that are tried; 1 leaves it as it is."""
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
    """

    classes: NDArray[np.int32]
    posterior: Array
    candidates: tuple[int, ...]
    strangeness: float
    novelty: float
    novel: bool

    @property
    def label(self) -> int:
        """The most likely fault type."""
        return int(self.classes[self.posterior.argmax()])

    @property
    def confidence(self) -> float:
        """Its probability."""
        return float(self.posterior.max())


@dataclass(frozen=True, eq=False)
class Reference:
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
    def of(cls, values: Array, groups: NDArray[np.integer]) -> Reference:
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


@dataclass(frozen=True, eq=False)
class Calibration:
    """How held-out cases fare, which no query changes.

    Args:
        reach: how much of a window the cases leave unexplained.
        exponent: sharpens posteriors.
        surprise: 1 - p(true class) of held-out cases.
        strange: their strangeness.
    """

    reach: Reach
    exponent: float
    surprise: Reference
    strange: Reference

    @classmethod
    def of(cls, judgement: Judgement) -> Self:
        """Measured on the cases of a judgement."""
        ridge, cases = judgement.ridge, judgement.cases
        labels, groups = judgement.labels[cases], judgement.groups[cases]
        reach = fit_reach(judgement.item_likeness(cases), labels, groups, ridge.penalty)
        codes = np.searchsorted(ridge.classes, labels)
        exponent = best_exponent(ridge.held_out, codes, groups)
        held_out = sharpened(ridge.held_out, exponent)
        use = telling(codes, groups)
        return cls(
            reach=reach,
            exponent=exponent,
            surprise=Reference.of(1.0 - held_out[np.arange(len(cases)), codes][use], groups[use]),
            strange=Reference.of(strangeness(held_out, reach.held_out)[use], groups[use]),
        )


def opinions(
    judgement: Judgement,
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
    ridge, fitted = judgement.ridge, calibration or Calibration.of(judgement)
    likeness = judgement.query_likeness(queries)
    posterior = sharpened(ridge.posterior(likeness), fitted.exponent)
    possible = prediction_sets(posterior, fitted.surprise, alpha)
    own = strangeness(posterior, fitted.reach.unexplained(likeness))
    p = fitted.strange.p_values(own)
    return [
        Opinion(
            classes=ridge.classes,
            posterior=posterior[q],
            candidates=_by_probability(ridge.classes, posterior[q], possible[q]),
            strangeness=float(own[q]),
            novelty=float(1.0 - p[q]),
            novel=bool(p[q] <= false_alarms),
        )
        for q in range(len(queries))
    ]


def best_exponent(held_out: Array, codes: NDArray[np.intp], groups: NDArray[np.integer]) -> float:
    """The exponent of posteriors under which held-out cases are most likely, each group having one vote.

    Args:
        held_out: (L, K) posteriors of cases by cases of other groups.
        codes: (L,) columns of their true classes.
        groups: (L,) of the cases.
    """
    _, own, counts = np.unique(groups, return_inverse=True, return_counts=True)
    rows = np.arange(len(codes))
    losses = [
        np.average(-np.log(np.maximum(sharpened(held_out, a)[rows, codes], TINY)), weights=1.0 / counts[own])
        for a in EXPONENTS
    ]
    return float(EXPONENTS[int(np.argmin(losses))])


def sharpened(posterior: Array, exponent: float) -> Array:
    """(Q, K) posteriors to the power of an exponent: above 1 more certain, below 1 less; the order stays.

    >>> sharpened(np.array([[0.8, 0.2]]), 0.5).round(3)
    array([[0.667, 0.333]])
    """
    power: Array = np.maximum(posterior, TINY) ** exponent
    return power / power.sum(axis=1, keepdims=True)


def telling(codes: NDArray[np.intp], groups: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(L,) cases that tell how a new recording of a known fault would fare: those whose class has several groups.

    Where no class has, all cases: held out one by one they flatter, but nothing else is there.
    """
    several = ~alone(codes, groups)
    return several if several.any() else np.ones(len(codes), bool)


def strangeness(posterior: Array, unexplained: Array) -> Array:
    """(Q,) from posteriors (Q, K) and the shares (Q,) that the cases leave unexplained."""
    strange: Array = (1.0 - posterior.max(axis=1) + FLOOR) * unexplained
    return strange


def prediction_sets(posterior: Array, surprise: Reference, alpha: float) -> NDArray[np.bool_]:
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
