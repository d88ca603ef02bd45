"""How strange a window is to the cases: in doubt, unexplained, and whether its views tell a known story.

A window's strangeness joins doubt, what the cases leave unexplained, and clouds of decision values:

    s(q) = (1 - w) (b(q) / 2 + r(q)) + w (b(q) + asinh c(q)),     w = (G / (G + `HALF_AT` K))^2

    b   log-odds of the doubt 1 - max p(c | q), the posterior of all views together
    r   mean over the views, with weights, of asinh of what all cases leave unexplained, and of what those of the likely
        fault types do, in standard deviations of what is usual for the type (`_reach`)
    c   surprisal, -log sum over c of n_c / n N(z; mean_c, covariance_c); its tail is long

each standardised by the held-out cases. A view weighs the square of what it is worth in the library at hand: the area
under the ROC curve, less one half, by which it tells cases whose fault type is forgotten from held-out cases of the
other types, in the mean over the types. Which view notices what is new depends on the plant, and its known types tell.

Clouds: a ridge on each view alone gives decision values, one for each fault type. Cases that are held out with their
group show what those of a known fault look like: for each type a cloud in the space of all views' values z, described
by a Gaussian (Lee et al., 2018; there on the layers of a network). Groups count, not windows: each has one vote, and
with G groups of K types the clouds are trusted the less, the fewer groups a type has. A covariance of few groups is
drawn towards the one that all share, and that towards a multiple of the identity (Ledoit and Wolf, 2004). Where views
are pooled over several assets, cases are held out with their asset: what is only a machine that nobody has seen is not
to be called a new fault.

A view that sees nothing of a window is left out. Where all cases are of one type there is nothing to decide: strange is
what they leave unexplained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.calibration import auroc
from readbench.engine.rerankers._reach import Reach
from readbench.engine.rerankers._ridge import (
    TINY,
    Array,
    FittedVerdict,
    Novelty,
    fit_novelty,
    subsample_cases,
)

FLOOR = 0.01
"""Least doubt, and least certainty: beyond it the posterior says no more about what is new."""
FOLDS = 10
"""Parts of the groups that are held out in turn, to see how surprising a case is to the clouds of the others."""
HALF_AT = 8
"""Groups of a type, on average, with which the clouds count a quarter. Chosen on simulators, all of them and with few
groups left; the square was preferred to the first power, a tie there, once MIT-BIH's 14 patients had been seen."""
MOST_MEASURED = 1024
"""Cases whose reach is measured, of every type its share: what is usual is known by then, and memory stays bounded."""
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
        """Of values (L,) of cases in groups (L,), NaN where nothing is known."""
        known = ~np.isnan(values)
        if not known.any():
            return cls(0.0, 0.0)
        values, votes = values[known], one_vote_each(groups[known])
        mean = float(np.average(values, weights=votes))
        return cls(mean, float(np.average((values - mean) ** 2, weights=votes)) ** 0.5)

    def standardise(self, values: Array) -> Array:
        """Values in standard deviations; zero where the cases have none."""
        return (values - self.mean) / self.spread if self.spread > TINY else np.zeros_like(values)


def one_vote_each(groups: NDArray[np.integer]) -> Array:
    """(L,) weights under which each group of (L,) counts the same."""
    _, own, counts = np.unique(groups, return_inverse=True, return_counts=True)
    votes: Array = (1.0 / counts)[own]
    return votes


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
        rows: (M,) which of the judgement's cases it learned from.
        use: (M,) which of them tell how a new recording of a known fault fares.
        held_out: (M,) strangeness of the cases.
        alone: what they leave unexplained, where all are of one type; the rest is for several.
        reaches: how far they reach in each view.
        weights: (V,) of the views.
        scales: of the signs of each view, in two columns, of their mean, of doubt, and of doubt and clouds together.
        trust: how much the clouds count, in [0, 1].
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
        """Learned from a judgement, the calibrated posteriors (L, K) of its held-out cases, and which of them tell."""
        labels, groups = judgement.labels[judgement.cases], judgement.groups[judgement.cases]
        every = np.arange(len(labels))
        if len(judgement.classes) == 1:
            alone = fit_novelty(judgement.item_likeness(judgement.cases), labels, judgement.apart, judgement.penalty)
            return cls(every, use, alone.held_out, alone)
        rows = subsample_cases(every, labels, MOST_MEASURED)
        told, posterior, groups = use[rows], posterior[rows], groups[rows]
        codes = np.searchsorted(judgement.classes, labels)[rows]
        kernels, sees = judgement.case_cosines(rows)
        reaches = tuple(Reach.of(kernel, codes, groups, judgement.apart[rows]) for kernel in kernels)
        known = _read_signs(posterior, [(own.held_out, own.by_type) for own in reaches], sees)
        new = _read_signs(_forget(posterior, codes), [(own.forgotten, own.by_type) for own in reaches], sees)
        worth = [weigh_sign(*pair, codes, groups, told) for pair in zip(known.T, new.T, strict=True)]
        weights = tuple(float(np.mean(pair)) ** 2 for pair in zip(worth[::2], worth[1::2], strict=True))
        count = len(np.unique(judgement.groups[judgement.cases]))
        trust = (count / (count + HALF_AT * len(judgement.classes))) ** 2
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
        """The clouds by the views that see a window, by their places among the ridges on one view."""
        if seen not in self._clouds:
            codes = np.searchsorted(judgement.classes, judgement.labels[judgement.cases])
            values = np.concatenate([centre_logs(judgement.alone[e].ridge.from_elsewhere) for e in seen], axis=1)
            use = np.isin(np.arange(len(codes)), self.rows[self.use])
            self._clouds[seen] = Clouds.of(values, codes, judgement.groups[judgement.cases], use)
        return self._clouds[seen]

    def measure(self, judgement: FittedVerdict, queries: NDArray[np.intp], posterior: Array) -> Array:
        """(M,) strangeness of the queries of a judgement by the same cases, and of their posteriors (M, K)."""
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
        left = [own.measure(cosines[:, self.rows]) for own, cosines in zip(self.reaches, near, strict=True)]
        doubt = log_odds_of_doubt(posterior)
        joined = _join(_read_signs(posterior, left, sees), self.scales[:-3], self.weights)
        return self.add_up(doubt, joined, doubt + np.arcsinh(surprise))

    def add_up(self, doubt: Array, left: Array, story: Array) -> Array:
        """(M,) strangeness from doubt, the joined signs, and doubt with clouds."""
        values = (left, doubt, story)
        own, half, told = (scale.standardise(value) for scale, value in zip(self.scales[-3:], values, strict=True))
        total: Array = (1.0 - self.trust) * (0.5 * half + own) + self.trust * told
        return total


def _read_signs(posterior: Array, left: Sequence[tuple[Array, Array]], sees: NDArray[np.bool_]) -> Array:
    """(M, 2 V) two signs of each view that windows are strange: the larger, the stranger; NaN where it sees nothing.

    Args:
        posterior: (M, K) of all views together.
        left: what all cases leave unexplained, (M,), and those of each type, (M, K), by each view.
        sees: (M, V) whether a view sees anything of a window.
    """
    signs = [sign for whole, by_type in left for sign in (whole, (posterior * by_type).sum(axis=1))]
    return np.where(sees.repeat(2, axis=1), np.stack(signs, axis=1), np.nan)


def _join(signs: Array, scales: Sequence[Scale], weights: Sequence[float]) -> Array:
    """(M,) weighted means of signs (M, 2 V); 0 where no view sees anything."""
    shown = np.stack([scale.standardise(sign) for scale, sign in zip(scales, signs.T, strict=True)], axis=1)
    known = ~np.isnan(shown)
    counted = np.where(known, np.repeat(weights, 2), 0.0)
    # Where no view that sees a window is worth anything, all count the same.
    counted = np.where(counted.sum(axis=1, keepdims=True) > TINY, counted, known.astype(np.float64))
    total = (counted * np.arcsinh(np.where(known, shown, 0.0))).sum(axis=1)
    joined: Array = total / np.maximum(counted.sum(axis=1), TINY)
    return joined


def weigh_sign(
    known: Array,
    forgotten: Array,
    codes: NDArray[np.intp],
    groups: NDArray[np.integer],
    use: NDArray[np.bool_],
) -> float:
    """How well a sign tells cases of a forgotten type from cases of the others, from 0 to 0.5.

    Args:
        known: (L,) the sign of held-out cases.
        forgotten: (L,) of the same cases, if their type had never been seen.
        codes: (L,) types.
        groups: (L,) each has one vote.
        use: (L,) which cases tell how a new recording of a known fault fares.
    """
    worth = []
    for code in np.unique(codes):
        new, old = (codes == code) & ~np.isnan(forgotten), (codes != code) & use & ~np.isnan(known)
        if new.any() and old.any():
            votes, others = (one_vote_each(groups[rows]) for rows in (new, old))
            worth.append(auroc(forgotten[new], known[old], novel_votes=votes, known_votes=others) - 0.5)
    return max(float(np.mean(worth)), 0.0) if worth else 0.0


def _forget(posterior: Array, codes: NDArray[np.intp]) -> Array:
    """(L, K) posteriors without the type (L,) of each case."""
    left = np.where(np.arange(posterior.shape[1]) == codes[:, None], 0.0, np.maximum(posterior, TINY))
    shares: Array = left / left.sum(axis=1, keepdims=True)
    return shares


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
