"""How strange a window is to the cases: whether its fault type is in doubt, and whether its views tell a known story.

A ridge on each view alone gives decision values, one for each fault type. Cases that are held out with their group show
what those of a known fault look like: for each fault type c a cloud in the space of all views' values z, described by
a Gaussian (Lee et al., 2018; there on the layers of a network). A new fault type lands where no type does, or its views
point to different types. With the posterior p(c | q) of all views together, a window's strangeness is

    s(q) = standardised surprisal + standardised log-odds of doubt,
    surprisal(z) = -log sum over c of n_c / n N(z; mean_c, covariance_c),     doubt = 1 - max p(c | q)

each standardised by the held-out cases, every group having one vote. The covariance of a class with few cases is drawn
towards the one that all share, and that towards a multiple of the identity (Ledoit and Wolf, 2004).

A view that sees nothing of a window is left out of its clouds. Where all cases are of one type there is nothing to
decide: strange is what they leave unexplained (`fit_novelty`).
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
    def of(cls, values: Array, codes: NDArray[np.intp]) -> Self:
        """Fitted on values (L, D) of cases of classes (L,); each number that occurs is a class."""
        classes, own, counts = np.unique(codes, return_inverse=True, return_counts=True)
        width = values.shape[1]
        means = np.stack([values[own == c].mean(axis=0) for c in range(len(classes))])
        centred = values - means[own]
        common = shrink_covariance(centred)
        least = max(LEAST_VARIANCE * float(values.var(axis=0).mean()), TINY)
        factors = []
        for c, count in enumerate(counts):
            spread = centred[own == c].T @ centred[own == c]
            joined = (spread + width * common) / (count + width) + least * np.eye(width)
            factors.append(np.linalg.inv(np.linalg.cholesky(joined)))
        whitening = np.stack(factors)
        volumes = np.log(np.diagonal(whitening, axis1=1, axis2=2)).sum(axis=1)
        return cls(means, whitening, np.log(counts / len(codes)) + volumes)

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


def shrink_covariance(centred: Array) -> Array:
    """(D, D) covariance of centred values (L, D), drawn towards a multiple of the identity (Ledoit and Wolf, 2004)."""
    count, width = centred.shape
    sample = centred.T @ centred / count
    target = np.trace(sample) / width * np.eye(width)
    distance = float(((sample - target) ** 2).sum())
    noise = float(((centred**2).sum(axis=1) ** 2).mean() - (sample**2).sum()) / count
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
            held_out[rows] = ClassGaussians.of(values[others], codes[others]).surprisal(values[rows])
        return cls(ClassGaussians.of(values, codes), held_out, Scale.of(held_out[use], groups[use]))


@dataclass(frozen=True, eq=False)
class Strangeness:
    """How strange windows are, learned from cases.

    Args:
        judgement: what the cases teach.
        use: (L,) which of them tell how a new recording of a known fault fares.
        doubt: scale of the log-odds of doubt.
        reach: what the cases leave unexplained, where they are of one type.
        held_out: (L,) strangeness of the cases.
    """

    judgement: FittedVerdict
    use: NDArray[np.bool_]
    doubt: Scale
    reach: Novelty | None
    held_out: Array
    _clouds: dict[tuple[int, ...], Clouds] = field(default_factory=dict)

    @classmethod
    def of(cls, judgement: FittedVerdict, posterior: Array, use: NDArray[np.bool_]) -> Self:
        """Learned from a judgement, the calibrated posteriors (L, K) of its held-out cases, and which of them tell."""
        cases = judgement.cases
        labels, groups = judgement.labels[cases], judgement.groups[cases]
        if len(judgement.classes) == 1:
            reach = fit_novelty(judgement.item_likeness(cases), labels, groups, judgement.penalty)
            return cls(judgement, use, Scale(0.0, 0.0), reach, reach.held_out)
        odds = log_odds_of_doubt(posterior)
        doubt = Scale.of(odds[use], groups[use])
        found = cls(judgement, use, doubt, None, np.empty(0))
        clouds = found.clouds(tuple(range(len(judgement.alone))))
        total = clouds.scale.standardise(clouds.held_out) + doubt.standardise(odds)
        return cls(judgement, use, doubt, None, total, found._clouds)

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
        if self.reach is not None:
            return self.reach.unexplained_share(judgement.query_likeness(queries))
        logits, sees = judgement.query_decisions(queries)
        surprise = np.empty(len(queries))
        for pattern in np.unique(sees, axis=0):
            rows = (sees == pattern).all(axis=1)
            seen = tuple(np.flatnonzero(pattern).tolist()) or tuple(range(len(pattern)))
            clouds = self.clouds(seen)
            values = np.concatenate([logits[e][rows] for e in seen], axis=1)
            surprise[rows] = clouds.scale.standardise(clouds.gaussians.surprisal(values))
        strange: Array = surprise + self.doubt.standardise(log_odds_of_doubt(posterior))
        return strange


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
