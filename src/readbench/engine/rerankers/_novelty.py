"""How strange a window is to the cases: in doubt, unexplained, and whether its views tell a known story.

A ridge on each view alone gives decision values, one for each fault type. Cases that are held out with their group show
what those of a known fault look like: for each fault type c a cloud in the space of all views' values z, described by
a Gaussian (Lee et al., 2018; there on the layers of a network). A new fault type lands where no type does, or its views
point to different types. A window's strangeness is

    s(q) = (1 - w) a(q) + w (b(q) + asinh c(q)),     w = (G / (G + `HALF_AT` K))^2

    a   log of (1 - max p(c | q) + `LEAST_DOUBT`) v(q): in doubt, and left unexplained by the cases (`fit_novelty`)
    b   log-odds of the doubt 1 - max p(c | q), the posterior of all views together
    c   surprisal, -log sum over c of n_c / n N(z; mean_c, covariance_c); its tail is long

each standardised by the held-out cases. Groups count, not windows: each has one vote, and with G groups of K types the
clouds are trusted the less, the fewer groups a type has. A covariance of few groups is drawn towards the one that all
share, and that towards a multiple of the identity (Ledoit and Wolf, 2004). Where views are pooled over several assets,
cases are held out with their asset: what is only a machine that nobody has seen is not to be called a new fault.

A view that sees nothing of a window is left out of its clouds. Where all cases are of one type there is nothing to
decide: strange is what they leave unexplained.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.engine.rerankers._ridge import TINY, Array, FittedVerdict, Novelty, fit_novelty

FLOOR = 0.01
"""Least doubt, and least certainty: beyond it the posterior says no more about what is new."""
FOLDS = 10
"""Parts of the groups that are held out in turn, to see how surprising a case is to the clouds of the others."""
HALF_AT = 8
"""Groups of a type, on average, with which the clouds count a quarter. Chosen on simulators, all of them and with few
groups left; the square was preferred to the first power, a tie there, once MIT-BIH's 14 patients had been seen."""
LEAST_DOUBT = 0.02
"""What no case explains is strange even where one fault type is certain."""
LEAST_VARIANCE = 1e-6
"""Added to each covariance, as a share of the mean variance: decision values of one view add up to zero, and a class of
one case has none."""


@dataclass(frozen=True, eq=False)
class ClassGaussians:
    """A Gaussian for each class.

    Args:
        means: (K, D).
        whitening: (K, D, D) inverse Cholesky factors of the covariances.
        offsets: (K,) logarithms of the classes' shares and of the factors' determinants.
    """

    means: Array
    whitening: Array
    offsets: Array

    @classmethod
    def of(cls, values: Array, codes: NDArray[np.intp], groups: NDArray[np.integer]) -> Self:
        """Fitted on values (L, D) of cases of classes (L,), all numbers that occur, and groups (L,) with one vote each.

        The spread is that of a new group: it has what groups scatter about their mean, and what the mean is off.
        """
        _, own = np.unique(codes, return_inverse=True)
        pairs, members, sizes = np.unique(np.stack([own, groups]), axis=1, return_inverse=True, return_counts=True)
        votes, counts, width = (1.0 / sizes)[members.ravel()], np.bincount(pairs[0]), values.shape[1]
        means = np.stack([np.average(values[own == c], axis=0, weights=votes[own == c]) for c in range(len(counts))])
        centred = values - means[own]
        free = max(len(sizes) - len(counts), 1)
        common = shrink_covariance(centred, votes, free) * len(sizes) / free
        least = max(LEAST_VARIANCE * float(values.var(axis=0).mean()), TINY)
        factors = []
        for c, count in enumerate(counts):
            spread = (votes[own == c, None] * centred[own == c]).T @ centred[own == c]
            joined = (spread + width * common) / (count + width) * (1.0 + 1.0 / count) + least * np.eye(width)
            factors.append(np.linalg.inv(np.linalg.cholesky(joined)))
        whitening = np.stack(factors)
        volumes = np.log(np.diagonal(whitening, axis1=1, axis2=2)).sum(axis=1)
        return cls(means, whitening, np.log(counts / len(sizes)) + volumes)

    def surprisal(self, values: Array) -> Array:
        """(Q,) negative log-densities of values (Q, D), up to a constant."""
        logs = np.stack(
            [
                offset - 0.5 * (((values - mean) @ factor.T) ** 2).sum(axis=1)
                for mean, factor, offset in zip(self.means, self.whitening, self.offsets, strict=True)
            ]
        )
        found: Array = -np.logaddexp.reduce(logs, axis=0)
        return found


def shrink_covariance(centred: Array, votes: Array, free: int) -> Array:
    """(D, D) covariance of centred values, drawn towards a multiple of the identity (Ledoit and Wolf, 2004).

    Args:
        centred: (L, D).
        votes: (L,) their weights.
        free: independent values among them: the fewer, the more it is drawn.
    """
    width, weights = centred.shape[1], votes / votes.sum()
    sample = (weights[:, None] * centred).T @ centred
    target = np.trace(sample) / width * np.eye(width)
    distance = float(((sample - target) ** 2).sum())
    noise = float(weights @ (centred**2).sum(axis=1) ** 2 - (sample**2).sum()) / free
    share = min(noise / distance, 1.0) if distance > TINY else 1.0
    shrunk: Array = share * target + (1.0 - share) * sample
    return shrunk


@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and standard deviation of held-out cases, each group having one vote."""

    mean: float
    spread: float

    @classmethod
    def of(cls, values: Array, groups: NDArray[np.integer]) -> Self:
        """Of values (L,) of cases in groups (L,)."""
        _, own, counts = np.unique(groups, return_inverse=True, return_counts=True)
        votes = 1.0 / counts[own]
        mean = float(np.average(values, weights=votes))
        return cls(mean, float(np.average((values - mean) ** 2, weights=votes)) ** 0.5)

    def standardise(self, values: Array) -> Array:
        """Values in standard deviations; zero where the cases have none."""
        return (values - self.mean) / self.spread if self.spread > TINY else np.zeros_like(values)


@dataclass(frozen=True, eq=False)
class Clouds:
    """Where known faults lie, by some of the views."""

    gaussians: ClassGaussians
    held_out: Array
    scale: Scale

    @classmethod
    def of(cls, values: Array, codes: NDArray[np.intp], groups: NDArray[np.integer], use: NDArray[np.bool_]) -> Self:
        """Fitted on held-out decision values (L, D); those of cases to `use` (L,) give the scale."""
        fold = np.unique(groups, return_inverse=True)[1] % FOLDS
        held_out = np.empty(len(codes))
        for own in np.unique(fold):
            rows = fold == own
            others = ~rows if not rows.all() else rows
            held_out[rows] = ClassGaussians.of(values[others], codes[others], groups[others]).surprisal(values[rows])
        return cls(ClassGaussians.of(values, codes, groups), held_out, Scale.of(held_out[use], groups[use]))


@dataclass(frozen=True, eq=False)
class Strangeness:
    """How strange windows are, learned from cases.

    Args:
        judgement: what the cases teach.
        use: (L,) which of them tell how a new recording of a known fault fares.
        reach: what the cases leave unexplained.
        doubt: scale of the log-odds of doubt.
        unexplained: scale of doubt times what is left unexplained, its logarithm.
        held_out: (L,) strangeness of the cases.
    """

    judgement: FittedVerdict
    use: NDArray[np.bool_]
    reach: Novelty
    doubt: Scale
    unexplained: Scale
    held_out: Array
    _clouds: dict[tuple[int, ...], Clouds] = field(default_factory=dict)

    @classmethod
    def of(cls, judgement: FittedVerdict, posterior: Array, use: NDArray[np.bool_]) -> Self:
        """Learned from a judgement, the calibrated posteriors (L, K) of its held-out cases, and which of them tell."""
        cases = judgement.cases
        labels, groups = judgement.labels[cases], judgement.groups[cases]
        reach = fit_novelty(judgement.item_likeness(cases), labels, judgement.apart, judgement.penalty)
        scales = (
            Scale.of(log_odds_of_doubt(posterior)[use], groups[use]),
            Scale.of(log_unexplained(posterior, reach.held_out)[use], groups[use]),
        )
        found = cls(judgement, use, reach, *scales, reach.held_out)
        if len(judgement.classes) == 1:
            return found
        clouds = found.clouds(tuple(range(len(judgement.alone))))
        total = found._add(posterior, reach.held_out, clouds.scale.standardise(clouds.held_out))
        return cls(judgement, use, reach, *scales, total, found._clouds)

    @property
    def trust(self) -> float:
        """How much the clouds count, in [0, 1]."""
        own = self.judgement
        groups = len(np.unique(own.groups[own.cases]))
        share: float = (groups / (groups + HALF_AT * len(own.classes))) ** 2
        return share

    def clouds(self, seen: tuple[int, ...]) -> Clouds:
        """The clouds by the views that see a window, by their places among the ridges on one view."""
        if seen not in self._clouds:
            own = self.judgement
            codes = np.searchsorted(own.classes, own.labels[own.cases])
            values = np.concatenate([centre_logs(own.alone[e].ridge.from_elsewhere) for e in seen], axis=1)
            self._clouds[seen] = Clouds.of(values, codes, own.groups[own.cases], self.use)
        return self._clouds[seen]

    def measure(self, judgement: FittedVerdict, queries: NDArray[np.intp], posterior: Array) -> Array:
        """(M,) strangeness of the queries of a judgement by the same cases, and of their posteriors (M, K)."""
        share = self.reach.unexplained_share(judgement.query_likeness(queries))
        if len(judgement.classes) == 1:
            return share
        logits, sees = judgement.query_decisions(queries)
        surprise = np.empty(len(queries))
        for pattern in np.unique(sees, axis=0):
            rows = (sees == pattern).all(axis=1)
            seen = tuple(np.flatnonzero(pattern).tolist()) or tuple(range(len(pattern)))
            clouds = self.clouds(seen)
            values = np.concatenate([logits[e][rows] for e in seen], axis=1)
            surprise[rows] = clouds.scale.standardise(clouds.gaussians.surprisal(values))
        return self._add(posterior, share, surprise)

    def _add(self, posterior: Array, share: Array, surprise: Array) -> Array:
        """(M,) strangeness from posteriors (M, K), unexplained shares and standardised surprisals."""
        told = self.doubt.standardise(log_odds_of_doubt(posterior)) + np.arcsinh(surprise)
        unexplained = self.unexplained.standardise(log_unexplained(posterior, share))
        total: Array = self.trust * told + (1.0 - self.trust) * unexplained
        return total


def log_unexplained(posterior: Array, share: Array) -> Array:
    """(Q,) logarithms of doubt, from posteriors (Q, K), times the shares (Q,) that the cases leave unexplained."""
    logs: Array = np.log((1.0 - posterior.max(axis=1) + LEAST_DOUBT) * np.maximum(share, TINY))
    return logs


def log_odds_of_doubt(posterior: Array) -> Array:
    """(Q,) log-odds that the most likely class of posteriors (Q, K) is wrong, within `FLOOR`.

    >>> log_odds_of_doubt(np.array([[0.5, 0.5], [1.0, 0.0]])).round(2)
    array([ 0.  , -4.62])
    """
    doubt = 1.0 - posterior.max(axis=1)
    odds: Array = np.log((doubt + FLOOR) / (1.0 - doubt + FLOOR))
    return odds


def centre_logs(posterior: Array) -> Array:
    """(L, K) the logits of posteriors: decision values add up to zero, so that what softmax took away comes back."""
    logs = np.log(np.maximum(posterior, np.finfo(np.float64).tiny))
    centred: Array = logs - logs.mean(axis=1, keepdims=True)
    return centred
