"""Strangeness of a window, given the cases: doubt, unexplained variance, and distance from known faults.

    s(q) = (1 - w) (b(q) / 2 + r(q)) + w (b(q) + asinh c(q)),     w = (G / (G + `QUARTER_WEIGHT_GROUPS` K))^2

    b   log-odds of the doubt 1 - max p(c | q), with the posterior of all views
    r   weighted mean over the views of asinh of the unexplained variance by all cases, and of that by the cases of the
        likely fault types, standardised by type (`_reach`)
    c   surprisal, -log sum over c of n_c / n N(z; mean_c, covariance_c), which has a long tail

each standardised by the held-out cases. The weight of a view is the square of its value on this library: the area under
the ROC curve, less one half, for separating cases of a forgotten fault type from held-out cases of the other types,
averaged over the types. Which view notices new faults depends on the plant, and its known types show it.

Surprisal: a single-view ridge gives one decision value per fault type. The values z of all views for cases held out
with their group are described by a Gaussian per type (Lee et al., 2018; there on the layers of a network). Each group
has one vote, and with G groups of K types the surprisal counts less if types have few groups. A covariance of few
groups is shrunk towards the common one, and that towards a multiple of the identity (Ledoit and Wolf, 2004). If views
are pooled over several assets, cases are held out with their asset: an unknown machine should not look like a new
fault.

A view with a zero vector of a window is left out. If all cases are of one type, strangeness is the unexplained share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.calibration import auroc
from readbench.engine.rerankers._nearest import MIN_PROBABILITY
from readbench.engine.rerankers._reach import Reach
from readbench.engine.rerankers._ridge import (
    Array,
    FittedVerdict,
    Novelty,
    fit_novelty,
    subsample_cases,
)

MIN_DOUBT = 0.01
"""Minimum doubt and certainty; beyond it the posterior is not informative about novelty."""
FOLDS = 10
"""Number of folds over groups for the surprisal of held-out cases."""
QUARTER_WEIGHT_GROUPS = 8
"""Mean groups per type at which the surprisal has a weight of one quarter. Chosen on simulators, with all groups and
with few; the square was preferred to the first power, a tie there, after seeing MIT-BIH's 14 patients."""
MAX_REACH_CASES = 1024
"""Maximum cases whose reach is measured, each type keeping its share; bounds memory."""
MIN_VARIANCE_SHARE = 1e-6
"""Added to each covariance, as a share of the mean variance: decision values of one view sum to zero, and a class of
one case has no variance."""


@dataclass(frozen=True, eq=False)
class ClassGaussians:
    """A Gaussian for each class.

    Args:
        means: (K, D).
        whitening: (K, D, D) inverse Cholesky factors of the covariances.
        offsets: (K,) logs of the classes' shares plus those of the factors' determinants.
    """

    means: Array
    whitening: Array
    offsets: Array

    @classmethod
    def of(cls, values: Array, codes: NDArray[np.intp], groups: NDArray[np.integer]) -> Self:
        """Fit to values (L, D) of cases with classes (L,) and groups (L,), with one vote per group.

        The spread is that of a new group: scatter of groups about their mean, plus the error of the mean.
        """
        _, kind = np.unique(codes, return_inverse=True)
        pairs, members, sizes = np.unique(np.stack([kind, groups]), axis=1, return_inverse=True, return_counts=True)
        votes, counts, width = (1.0 / sizes)[members.ravel()], np.bincount(pairs[0]), values.shape[1]
        means = np.stack([np.average(values[kind == c], axis=0, weights=votes[kind == c]) for c in range(len(counts))])
        centred = values - means[kind]
        free = max(len(sizes) - len(counts), 1)
        common = shrink_covariance(centred, votes, free) * len(sizes) / free
        least = max(MIN_VARIANCE_SHARE * float(values.var(axis=0).mean()), MIN_PROBABILITY)
        factors = []
        for c, count in enumerate(counts):
            spread = (votes[kind == c, None] * centred[kind == c]).T @ centred[kind == c]
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
    """(D, D) covariance of centred values, shrunk towards a multiple of the identity (Ledoit and Wolf, 2004).

    Args:
        centred: (L, D).
        votes: (L,) their weights.
        free: number of independent values; fewer shrink more.
    """
    width, weights = centred.shape[1], votes / votes.sum()
    sample = (weights[:, None] * centred).T @ centred
    target = np.trace(sample) / width * np.eye(width)
    distance = float(((sample - target) ** 2).sum())
    noise = float(weights @ (centred**2).sum(axis=1) ** 2 - (sample**2).sum()) / free
    share = min(noise / distance, 1.0) if distance > MIN_PROBABILITY else 1.0
    shrunk: Array = share * target + (1.0 - share) * sample
    return shrunk


@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and standard deviation of held-out cases, with one vote per group."""

    mean: float
    spread: float

    @classmethod
    def of(cls, values: Array, groups: NDArray[np.integer]) -> Self:
        """Estimate from values (L,) of cases in groups (L,), NaN if unknown."""
        known = ~np.isnan(values)
        if not known.any():
            return cls(0.0, 0.0)
        values, votes = values[known], one_vote_each(groups[known])
        mean = float(np.average(values, weights=votes))
        return cls(mean, float(np.average((values - mean) ** 2, weights=votes)) ** 0.5)

    def standardise(self, values: Array) -> Array:
        """Values in standard deviations; zero if the cases do not vary."""
        return (values - self.mean) / self.spread if self.spread > MIN_PROBABILITY else np.zeros_like(values)


def one_vote_each(groups: NDArray[np.integer]) -> Array:
    """(L,) weights that give each group of (L,) the same total."""
    _, members, counts = np.unique(groups, return_inverse=True, return_counts=True)
    votes: Array = (1.0 / counts)[members]
    return votes


@dataclass(frozen=True, eq=False)
class Clouds:
    """Gaussians of known faults in some of the views."""

    gaussians: ClassGaussians
    held_out: Array
    scale: Scale

    @classmethod
    def of(cls, values: Array, codes: NDArray[np.intp], groups: NDArray[np.integer], use: NDArray[np.bool_]) -> Self:
        """Fit to held-out decision values (L, D); the cases in `use` (L,) give the scale."""
        fold = np.unique(groups, return_inverse=True)[1] % FOLDS
        held_out = np.empty(len(codes))
        for number in np.unique(fold):
            rows = fold == number
            others = ~rows if not rows.all() else rows
            held_out[rows] = ClassGaussians.of(values[others], codes[others], groups[others]).surprisal(values[rows])
        return cls(ClassGaussians.of(values, codes, groups), held_out, Scale.of(held_out[use], groups[use]))


@dataclass(frozen=True, eq=False)
class Strangeness:
    """Strangeness of windows, learned from cases.

    Args:
        rows: (M,) the judgement's cases that it was learned from.
        use: (M,) those of them that show how a new recording of a known fault fares.
        held_out: (M,) strangeness of the cases.
        alone: unexplained share, if all cases are of one type; the following are for several types.
        reaches: reach of the cases in each view.
        weights: (V,) of the views.
        scales: of both signs of each view, of their mean, of doubt, and of doubt plus surprisal.
        trust: weight of the surprisal, in [0, 1].
    """

    rows: NDArray[np.intp]
    use: NDArray[np.bool_]
    held_out: Array
    alone: Novelty | None = None
    reaches: tuple[Reach, ...] = ()
    weights: tuple[float, ...] = ()
    scales: tuple[Scale, ...] = ()
    trust: float = 0.0
    _clouds: dict[tuple[int, ...], Clouds] = field(default_factory=dict)

    @classmethod
    def of(cls, judgement: FittedVerdict, posterior: Array, use: NDArray[np.bool_]) -> Self:
        """Fit to a judgement and calibrated posteriors (L, K) of its held-out cases; `use` (L,) as above."""
        labels, groups = judgement.labels[judgement.cases], judgement.groups[judgement.cases]
        every = np.arange(len(labels))
        if len(judgement.classes) == 1:
            alone = fit_novelty(judgement.item_likeness(judgement.cases), labels, judgement.apart, judgement.penalty)
            return cls(every, use, alone.held_out, alone)
        rows = subsample_cases(every, labels, MAX_REACH_CASES)
        told, posterior, groups = use[rows], posterior[rows], groups[rows]
        codes = np.searchsorted(judgement.classes, labels)[rows]
        kernels, sees = judgement.case_cosines(rows)
        reaches = tuple(Reach.of(kernel, codes, groups, judgement.apart[rows]) for kernel in kernels)
        known = _read_signs(posterior, [(reach.held_out, reach.by_type) for reach in reaches], sees)
        new = _read_signs(_forget(posterior, codes), [(reach.forgotten, reach.by_type) for reach in reaches], sees)
        worth = [weigh_sign(*pair, codes, groups, told) for pair in zip(known.T, new.T, strict=True)]
        weights = tuple(float(np.mean(pair)) ** 2 for pair in zip(worth[::2], worth[1::2], strict=True))
        count = len(np.unique(judgement.groups[judgement.cases]))
        trust = (count / (count + QUARTER_WEIGHT_GROUPS * len(judgement.classes))) ** 2
        found = cls(rows, told, np.zeros(0), None, reaches, weights, trust=trust)
        clouds = found.clouds(judgement, tuple(range(len(judgement.alone))))

        def scale(values: Array) -> Scale:
            return Scale.of(values[told], groups[told])

        signs = tuple(map(scale, known.T))
        doubt = log_odds_of_doubt(posterior)
        story = doubt + np.arcsinh(clouds.scale.standardise(clouds.held_out[rows]))
        left = _join(known, signs, weights)
        found = replace(found, scales=(*signs, scale(left), scale(doubt), scale(story)))
        return replace(found, held_out=found.add_up(doubt, left, story))

    def clouds(self, judgement: FittedVerdict, seen: tuple[int, ...]) -> Clouds:
        """Gaussians of the non-zero views, by their position among the single-view ridges."""
        if seen not in self._clouds:
            codes = np.searchsorted(judgement.classes, judgement.labels[judgement.cases])
            values = np.concatenate([centre_logs(judgement.alone[e].ridge.from_elsewhere) for e in seen], axis=1)
            use = np.isin(np.arange(len(codes)), self.rows[self.use])
            self._clouds[seen] = Clouds.of(values, codes, judgement.groups[judgement.cases], use)
        return self._clouds[seen]

    def measure(self, judgement: FittedVerdict, queries: NDArray[np.intp], posterior: Array) -> Array:
        """(M,) strangeness of queries with posteriors (M, K), in a judgement on the same cases."""
        if self.alone is not None:
            return self.alone.unexplained_share(judgement.query_likeness(queries))
        logits, sees = judgement.query_decisions(queries)
        surprise = np.empty(len(queries))
        for pattern in np.unique(sees, axis=0):
            rows = (sees == pattern).all(axis=1)
            seen = tuple(np.flatnonzero(pattern).tolist()) or tuple(range(len(pattern)))
            clouds = self.clouds(judgement, seen)
            values = np.concatenate([logits[e][rows] for e in seen], axis=1)
            surprise[rows] = clouds.scale.standardise(clouds.gaussians.surprisal(values))
        near = judgement.query_cosines(queries)
        left = [reach.measure(cosines[:, self.rows]) for reach, cosines in zip(self.reaches, near, strict=True)]
        doubt = log_odds_of_doubt(posterior)
        joined = _join(_read_signs(posterior, left, sees), self.scales[:-3], self.weights)
        return self.add_up(doubt, joined, doubt + np.arcsinh(surprise))

    def add_up(self, doubt: Array, left: Array, story: Array) -> Array:
        """(M,) strangeness from doubt, the mean of the signs, and doubt plus surprisal."""
        values = (left, doubt, story)
        joined, half, told = (scale.standardise(value) for scale, value in zip(self.scales[-3:], values, strict=True))
        total: Array = (1.0 - self.trust) * (0.5 * half + joined) + self.trust * told
        return total


def _read_signs(posterior: Array, left: Sequence[tuple[Array, Array]], sees: NDArray[np.bool_]) -> Array:
    """(M, 2 V) two signs of strangeness per view, larger for stranger windows; NaN for a zero vector.

    Args:
        posterior: (M, K) of all views.
        left: log unexplained variance by all cases, (M,), and by each type, (M, K), in each view.
        sees: (M, V) whether a window has a non-zero vector in a view.
    """
    signs = [sign for whole, by_type in left for sign in (whole, (posterior * by_type).sum(axis=1))]
    return np.where(sees.repeat(2, axis=1), np.stack(signs, axis=1), np.nan)


def _join(signs: Array, scales: Sequence[Scale], weights: Sequence[float]) -> Array:
    """(M,) weighted means of signs (M, 2 V); 0 if all views are zero."""
    shown = np.stack([scale.standardise(sign) for scale, sign in zip(scales, signs.T, strict=True)], axis=1)
    known = ~np.isnan(shown)
    counted = np.where(known, np.repeat(weights, 2), 0.0)
    # If no non-zero view has a weight, all count the same.
    counted = np.where(counted.sum(axis=1, keepdims=True) > MIN_PROBABILITY, counted, known.astype(np.float64))
    total = (counted * np.arcsinh(np.where(known, shown, 0.0))).sum(axis=1)
    joined: Array = total / np.maximum(counted.sum(axis=1), MIN_PROBABILITY)
    return joined


def weigh_sign(
    known: Array,
    forgotten: Array,
    codes: NDArray[np.intp],
    groups: NDArray[np.integer],
    use: NDArray[np.bool_],
) -> float:
    """Value of a sign, from 0 to 0.5: how well it separates cases of a forgotten type from cases of the others.

    Args:
        known: (L,) the sign of held-out cases.
        forgotten: (L,) the sign of the same cases without all cases of their type.
        codes: (L,) types.
        groups: (L,) each has one vote.
        use: (L,) cases that show how a new recording of a known fault fares.
    """
    worth = []
    for code in np.unique(codes):
        new, old = (codes == code) & ~np.isnan(forgotten), (codes != code) & use & ~np.isnan(known)
        if new.any() and old.any():
            votes, others = (one_vote_each(groups[rows]) for rows in (new, old))
            worth.append(auroc(forgotten[new], known[old], novel_votes=votes, known_votes=others) - 0.5)
    return max(float(np.mean(worth)), 0.0) if worth else 0.0


def _forget(posterior: Array, codes: NDArray[np.intp]) -> Array:
    """(L, K) posteriors without the type (L,) of each case, normalised."""
    left = np.where(np.arange(posterior.shape[1]) == codes[:, None], 0.0, np.maximum(posterior, MIN_PROBABILITY))
    shares: Array = left / left.sum(axis=1, keepdims=True)
    return shares


def log_odds_of_doubt(posterior: Array) -> Array:
    """(Q,) log-odds that the most likely class of posteriors (Q, K) is wrong, limited by `MIN_DOUBT`.

    >>> log_odds_of_doubt(np.array([[0.5, 0.5], [1.0, 0.0]])).round(2)
    array([ 0.  , -4.62])
    """
    doubt = 1.0 - posterior.max(axis=1)
    odds: Array = np.log((doubt + MIN_DOUBT) / (1.0 - doubt + MIN_DOUBT))
    return odds


def centre_logs(posterior: Array) -> Array:
    """(L, K) logits of posteriors: decision values sum to zero, which determines the constant lost by softmax."""
    logs = np.log(np.maximum(posterior, np.finfo(np.float64).tiny))
    centred: Array = logs - logs.mean(axis=1, keepdims=True)
    return centred
