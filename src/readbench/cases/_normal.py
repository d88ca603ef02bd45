"""Whether a window shows normal operation: learned from a library's normals and from cases labelled normal.

Ridges (`readbench.engine.rerankers`) tell normal windows from faults by two views, and by both together: the levels,
movement and roughness of the channels in standard deviations of normal operation; and coarse MiniRocket features, which
the first look at a large library uses, too. Their logits are averaged. Penalties and temperatures are those under which
held-out recordings are most likely.

A logistic model of these logits, fitted on held-out recordings of which each has one vote, and normal ones together as
many as faults, tells by how much a window speaks for a fault: how many windows of either kind a library happens to keep
says nothing about a new one.

The ridges compare directions, and know nothing of the time before. Where a window brings that along, how far it departs
from it (`measure_departure`, the number that the evidence shows) says more: another logistic model joins its logarithm
with the log-odds of the first, both with weights that are not negative.

A window that departs farther than every known normal one is called beyond normal. With G recordings of normals, one of
another normal recording is so with probability 1 / (G + 1) at most (each recording has one vote; Lee, Barber and
Willett, 2023), and it is normal with no more than that, whatever its direction. Departures are those from the time
before; for windows without one, the mean of the `LARGEST` departures of what they show, in standard deviations of
normal operation, times the distance (one minus the cosine) to the nearest normal window by the coarse features, each
normal window being measured by those of *other* recordings.

How often a question is about normal operation before it is looked at is told by what was asked: faults, false alarms
that were labelled normal, and `UNFILED` looks at normal operation, for each fault, that nobody kept.

A normal window must not be given the name of a fault above one half in more than `MOST_NAMED` of cases. The library
counts how often that would happen to its own normal windows, each recording having one vote: by the probability of a
fault f, held out, and by that of the likeliest fault type m, from a ridge on the faults of other recordings. Where f m
is above one half too often, a bound on f is raised until (1 + votes) / (G + 1) is `MOST_NAMED`: the question's own
recording counts as one, where there are enough of them (19) for the promise to be kept. Up to it normal operation
is not ruled out unless the window is beyond normal, and gets what leaves the likeliest fault one half: the window is
not called normal, and no fault is certain. Above it, this ends over `RAMP` log-odds and not at once, so that a bound
that moves a little moves no answer by much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.cases._evidence import measure_departure
from readbench.cases._journal import REFERENCE_CASES, Snapshot
from readbench.cases._plausibility import LibraryProfile, describe_windows, mean_and_spread, spread_evenly
from readbench.cases._search import bare, fit_coarse
from readbench.engine.preparation import ChannelStats
from readbench.engine.protocols import Encoder, unit_vectors
from readbench.engine.rerankers import HeldOutValues, RidgePool, estimate_unseen_share, fit_ridge
from readbench.engine.windows import NORMAL, WindowSet

Array = NDArray[np.float64]
LEAST_NORMALS = 10
"""Normal windows, of two recordings at least, from which normal operation is an option."""
MOST_LEARNED = 400
"""Faults, and normal windows, that it learns from, evenly spread."""
UNFILED = 1 / 3
"""Looks at normal operation, for each fault, that nobody kept: assumed, since no library can know it."""
MOST_NAMED = 0.05
"""Share of the library's own normal windows that may be given a named fault above `LIKELY`."""
LIKELY = 0.5
FOLDS = 5
"""Parts of the recordings whose faults are held out in turn, to name faults for the normal windows of the same part."""
FARTHEST = 8.0
LEAST_SPREAD = 0.05
RAMP = 1.0
"""Log-odds of a fault above the bound over which it comes to be named as surely as it would be without one."""
LEAST_DEPARTURE = 1e-3
"""Departures below are alike: nothing moved."""
SHRINKAGE = 1e-3
"""Penalty on the weights of the logistic model, in standard deviations of what they weigh."""
CHOICES: tuple[tuple[int, ...], ...] = ((0,), (1,), (0, 1))
"""Views by which normal windows are told from faults. All three are pooled: on five simulators that is better than the
one that explains held-out recordings best, and an answer does not jump when another one does."""
LARGEST = 3
"""Departures of a window that make its size. On four simulators the product with the distance told faults from normals
best: better than the largest departure, the three largest, their mean square, or the distance alone."""
TINY = 1e-12
MOST_ODDS = 50.0
"""Log-odds beyond which nothing changes."""
NEAREST = 1e-6
"""Least distance to a normal window: of copies, the departure counts alone."""


@dataclass(frozen=True)
class NormalOpinion:
    """How likely a window shows normal operation, and how far it cannot be ruled out, from 0 to 1."""

    probability: float
    held: float

    def beside(self, likeliest: float) -> float:
        """Its share beside the likeliest fault, given how likely that is if the window shows a fault.

        >>> NormalOpinion(0.1, held=1.0).beside(0.8), NormalOpinion(0.1, held=0.0).beside(0.8)
        (0.375, 0.1)
        """
        missing = 1.0 - LIKELY / likeliest - self.probability if likeliest > LIKELY else 0.0
        return self.probability + self.held * max(0.0, missing)


@dataclass(frozen=True, eq=False)
class NormalSizes:
    """How far windows depart from the normal ones.

    Args:
        vectors: (M, D) normal windows by coarse features, rows of length one.
        centre: (F,) mean description of them.
        spread: (F,) its standard deviation.
        held_out: sizes of the normal windows, by those of other recordings.
    """

    vectors: Array
    centre: Array
    spread: Array
    held_out: HeldOutValues

    @classmethod
    def of(cls, described: Array, vectors: Array, groups: NDArray[np.intp]) -> Self:
        """Of normal windows of several recordings (M,)."""
        sizes = np.empty(len(groups))
        for group in np.unique(groups):
            own = groups == group
            scale = mean_and_spread(described[~own])
            sizes[own] = measure_size(described[own], vectors[own], vectors[~own], *scale)
        return cls(vectors, *mean_and_spread(described), HeldOutValues.of(sizes, groups))

    @property
    def least(self) -> float:
        """1 / (recordings + 1): how likely a normal window of another recording is beyond all that are known."""
        return 1.0 / (self.held_out.groups + 1)

    def beyond(self, described: Array, vectors: Array) -> NDArray[np.bool_]:
        """(Q,) which windows depart farther than every known normal one."""
        sizes = measure_size(described, vectors, self.vectors, self.centre, self.spread)
        farther: NDArray[np.bool_] = sizes > self.held_out.values[-1]
        return farther


@dataclass(frozen=True, eq=False)
class TimeBefore:
    """What departures from the time before say of windows that bring it along.

    Args:
        weights: of the log-odds of a fault, of the logarithm of the departure, and a constant.
        held_out: departures of normal windows.
        whole: what the channels do among all cases.
    """

    weights: tuple[float, float, float]
    held_out: HeldOutValues
    whole: ChannelStats

    @classmethod
    def of(
        cls, odds: Array, departures: Array, normal: NDArray[np.bool_], groups: NDArray[np.intp], whole: ChannelStats
    ) -> Self | None:
        """Learned from windows; None where fewer than `LEAST_NORMALS` normal ones, or faults, bring the time before.

        Args:
            odds: (L,) log-odds of a fault by the ridges, held out.
            departures: (L,) from the time before; NaN where it is unknown.
            normal: (L,) which are normal.
            groups: (L,) recordings.
            whole: what the channels do among all cases.
        """
        known = ~np.isnan(departures)
        quiet = known & normal
        if min(quiet.sum(), (known & ~normal).sum()) < LEAST_NORMALS or len(np.unique(groups[quiet])) == 1:
            return None
        shown = np.stack([odds[known], _log(departures[known])], axis=1)
        first, second, constant = fit_logistic(shown, ~normal[known], balance_votes(normal[known], groups[known]))
        return cls((first, second, constant), HeldOutValues.of(departures[quiet], groups[quiet]), whole)

    def measure(self, windows: WindowSet) -> Array:
        """(N,) departures; NaN where a window does not bring the time before."""
        return np.array([measure_departure(window, self.whole) for window in windows])

    def join(self, odds: Array, departures: Array) -> Array:
        """(N,) log-odds of a fault by both; by the ridges alone where the departure is unknown."""
        first, second, constant = self.weights
        joined = first * odds + second * _log(departures) + constant
        return np.where(np.isnan(departures), odds, joined)

    @property
    def least(self) -> float:
        """1 / (recordings + 1), as of `NormalSizes`."""
        return 1.0 / (self.held_out.groups + 1)


@dataclass(frozen=True, eq=False)
class NormalModel:
    """Tells normal operation from faults.

    Args:
        profile: of the library.
        encoder: of the coarse features.
        views: (L, D) the windows that it learned from, as each of the two views sees them; rows of length one.
        ridges: fitted on the mean cosines of `CHOICES` of views.
        weights: of their log-odds of a fault, and a constant.
        often: windows of normal operation that are asked about, for each fault.
        sizes: of the normal windows.
        before: what the time before says; None where too few windows bring it along.
        bound: probability of a fault up to which normal operation is not ruled out.
    """

    profile: LibraryProfile
    encoder: Encoder
    views: tuple[Array, Array]
    ridges: RidgePool
    weights: tuple[float, float]
    often: float
    sizes: NormalSizes
    before: TimeBefore | None
    bound: float

    @classmethod
    def of(cls, snapshot: Snapshot, profile: LibraryProfile | None) -> Self | None:
        """Learned from a library; None where it knows too few normal windows, or no fault."""
        alarms, faults = np.flatnonzero(snapshot.labels == NORMAL), np.flatnonzero(snapshot.labels > NORMAL)
        stored = snapshot.normals[spread_evenly(len(snapshot.normals), MOST_LEARNED)]
        count = len(stored) + len(alarms)
        if profile is None or count < LEAST_NORMALS or not len(faults):
            return None
        chosen = np.concatenate([alarms, faults[spread_evenly(len(faults), MOST_LEARNED)]])
        cases = snapshot.windows(chosen)
        windows = WindowSet.of([*cases, *stored])
        normal = np.concatenate([snapshot.labels[chosen] == NORMAL, np.ones(len(stored), bool)])
        groups = np.unique(windows.groups.tolist(), return_inverse=True)[1]
        if len(np.unique(groups[normal])) == 1:
            return None
        # Of resolved cases alone: one that nobody knows anything about changes no answer to other questions.
        # So many that they stay the same, and all features with them, until there are twice as many.
        first = snapshot.windows(faults[: min(2 ** int(np.log2(len(faults))), REFERENCE_CASES)])
        whole = ChannelStats.of(first)
        described, encoder = describe_windows(profile, windows), fit_coarse(first, whole)
        vectors = _unit(encoder.encode(bare(windows)))
        sizes = NormalSizes.of(described[normal], vectors[normal], groups[normal])
        views = _depart(described, sizes.centre, sizes.spread), vectors
        labels = np.where(normal, 0, 1).astype(np.int32)
        kernels = [_likeness(views, views, own) for own in CHOICES]
        ridges = RidgePool.of([fit_ridge(kernel, labels, groups) for kernel in kernels], labels)
        odds = _log_odds(ridges.held_out)
        slope, constant = fit_logistic(odds[:, None], ~normal, balance_votes(normal, groups))
        odds = slope * odds + constant
        departures = np.array([measure_departure(window, whole) for window in windows])
        before = TimeBefore.of(odds, departures, normal, groups, whole)
        if before is not None:
            odds = before.join(odds, departures)
        types = np.concatenate([snapshot.labels[chosen], np.full(len(stored), NORMAL)]).astype(np.int32)
        named = name_held_out(kernels, types, groups)
        often = UNFILED + count_recordings(snapshot, alarms) / count_recordings(snapshot, faults)
        bound = bound_faults(_fault_share(odds, often)[normal], named, groups[normal])
        return cls(profile, encoder, views, ridges, (slope, constant), often, sizes, before, bound)

    def judge(self, windows: WindowSet) -> list[NormalOpinion]:
        """Whether windows show normal operation."""
        described = describe_windows(self.profile, windows)
        vectors = _unit(self.encoder.encode(bare(windows)))
        asked = _depart(described, self.sizes.centre, self.sizes.spread), vectors
        slope, constant = self.weights
        odds = (
            slope * _log_odds(self.ridges.posterior([_likeness(asked, self.views, own) for own in CHOICES])) + constant
        )
        beyond = self.sizes.beyond(described, vectors)
        most = np.where(beyond, self.sizes.least, 1.0)
        if self.before is not None:
            departures = self.before.measure(windows)
            odds, known = self.before.join(odds, departures), ~np.isnan(departures)
            far = np.where(departures > self.before.held_out.values[-1], self.before.least, 1.0)
            most = np.where(known, far, most)
        faults = _fault_share(odds, self.often)
        held = np.where(most < 1.0, 0.0, hold_below(faults, self.bound))
        return [NormalOpinion(*own) for own in zip(np.minimum(1.0 - faults, most).tolist(), held.tolist(), strict=True)]


def name_held_out(kernels: list[Array], types: NDArray[np.int32], groups: NDArray[np.intp]) -> Array:
    """(M,) probability of the likeliest fault type of each normal window, by faults of other recordings, or a new type.

    Args:
        kernels: (L, L) likenesses of normal windows and faults by several views; the one that tells faults best counts.
        types: (L,) fault types, `NORMAL` for normal windows.
        groups: (L,) recordings.
    """
    normals, faults = np.flatnonzero(types == NORMAL), np.flatnonzero(types != NORMAL)
    kernel = min(kernels, key=lambda own: fit_ridge(own[np.ix_(faults, faults)], types[faults], groups[faults]).loss)
    fold = np.unique(groups, return_inverse=True)[1] % FOLDS
    likeliest = np.ones(len(normals))
    for part in np.unique(fold[normals]):
        others, own = faults[fold[faults] != part], fold[normals] == part
        if len(others):
            ridge = fit_ridge(kernel[np.ix_(others, others)], types[others], groups[others])
            likeliest[own] = ridge.posterior(kernel[np.ix_(normals[own], others)]).max(axis=1)
    return likeliest * (1.0 - estimate_unseen_share(types[faults], groups[faults]))


def bound_faults(faults: Array, named: Array, groups: NDArray[np.intp]) -> float:
    """The probability of a fault above which at most `MOST_NAMED` of normal windows are given a name; 0 where few are.

    Args:
        faults: (M,) probabilities that the normal windows show a fault.
        named: (M,) those of the likeliest fault type, if they do.
        groups: (M,) recordings, each of which has one vote.

    >>> bound_faults(np.array([0.9, 0.8, 0.1, 0.1]), np.ones(4), np.arange(4))
    0.9
    """
    _, own, counts = np.unique(groups, return_inverse=True, return_counts=True)
    votes = np.where(faults * named > LIKELY, (1.0 / counts)[own], 0.0)
    # The question's recording is one more; it may be the farthest of all. Fewer than 19 cannot promise that, and none
    # of their windows is named: on simulators with 8 and 18 recordings that came near to the promise.
    allowed = max(0.0, MOST_NAMED * (len(counts) + 1) - 1.0)
    order = np.argsort(-faults, kind="stable")
    above = np.round(np.cumsum(votes[order]) - allowed, 12) > 0.0  # sums of shares: equal ones are equal
    return float(faults[order][above.argmax()]) if above.any() else 0.0


def hold_below(faults: Array, bound: float) -> Array:
    """(Q,) 1 for probabilities of a fault up to a bound, falling to 0 over `RAMP` log-odds.

    >>> hold_below(np.array([0.5, 0.7, 0.9]), 0.6).round(2)
    array([1.  , 0.56, 0.  ])
    """
    shown, least = (np.clip(own, TINY, 1.0 - TINY) for own in (faults, bound))
    above = np.log(shown / (1.0 - shown)) - np.log(least / (1.0 - least))
    held: Array = (1.0 - above / RAMP).clip(0.0, 1.0)
    return held


def fit_logistic(shown: Array, positive: NDArray[np.bool_], votes: Array) -> tuple[float, ...]:
    """Weights, none negative, and constant of the likeliest logistic model on F numbers.

    Args:
        shown: (L, F).
        positive: (L,) which are to have high log-odds.
        votes: (L,) what each counts.

    >>> fit_logistic(np.array([[0.0, 1.0], [0.0, -1.0]]), np.array([True, False]), np.ones(2))[0]
    0.0
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to import

    count = shown.shape[1]
    centre, spread = shown.mean(axis=0), np.maximum(shown.std(axis=0), TINY)
    scaled, sign, share = (shown - centre) / spread, np.where(positive, 1.0, -1.0), votes / votes.sum()

    def lose(given: Array) -> tuple[float, Array]:
        weights = given[:count]
        margin = sign * (scaled @ weights + given[count])
        slope = -share * sign / (1.0 + np.exp(margin.clip(-MOST_ODDS, MOST_ODDS)))
        loss = float(share @ np.logaddexp(0.0, -margin) + SHRINKAGE * weights @ weights)
        return loss, np.append(slope @ scaled + 2 * SHRINKAGE * weights, slope.sum())

    bounds = [*[(0, None)] * count, (None, None)]
    found = minimize(lose, np.append(np.ones(count), 0.0), jac=True, bounds=bounds).x
    weights = found[:count] / spread
    return (*weights.tolist(), float(found[count] - weights @ centre))


def balance_votes(normal: NDArray[np.bool_], groups: NDArray[np.intp]) -> Array:
    """(L,) votes of windows: all normal recordings together have as many as all with faults, and share them evenly.

    >>> balance_votes(np.array([True, True, True, False]), np.array([0, 0, 1, 2]))
    array([0.25, 0.25, 0.5 , 1.  ])
    """
    votes = np.empty(len(normal))
    for kind in (normal, ~normal):
        _, own, counts = np.unique(groups[kind], return_inverse=True, return_counts=True)
        votes[kind] = 1.0 / (len(counts) * counts[own])
    return votes


def count_recordings(snapshot: Snapshot, cases: NDArray[np.intp]) -> int:
    """Of how many recordings cases are."""
    return len({snapshot.case(position).recording for position in cases.tolist()})


def _log(departures: Array) -> Array:
    logs: Array = np.log(np.maximum(departures, LEAST_DEPARTURE))
    return logs


def _log_odds(posterior: Array) -> Array:
    """(Q,) log-odds of a fault from posteriors (Q, 2) of normal windows and faults."""
    normal, fault = np.log(np.maximum(posterior, TINY)).T
    odds: Array = fault - normal
    return odds


def _fault_share(odds: Array, often: float) -> Array:
    """(Q,) probabilities of a fault from how much windows speak for one, normal ones being asked about so `often`."""
    share: Array = 1.0 / (1.0 + often * np.exp(-odds.clip(-MOST_ODDS, MOST_ODDS)))
    return share


def measure_size(described: Array, vectors: Array, normals: Array, centre: Array, spread: Array) -> Array:
    """(N,) how far windows depart from normal ones, by what they show and by how near one comes.

    Args:
        described: (N, F) the windows, as `describe_windows` does.
        vectors: (N, D) their coarse features, rows of length one.
        normals: (M, D) those of normal windows.
        centre: (F,) mean description of these.
        spread: (F,) its standard deviation.
    """
    departures = np.abs(_standardise(described, centre, spread))
    count = min(LARGEST, departures.shape[1])
    largest = np.partition(departures, departures.shape[1] - count, axis=1)[:, -count:].mean(axis=1)
    distance = 1.0 - (vectors @ normals.T).max(axis=1)
    size: Array = largest * np.maximum(distance, NEAREST)
    return size


def _standardise(described: Array, centre: Array, spread: Array) -> Array:
    """Departures in standard deviations; none where nothing is known."""
    scores: Array = np.nan_to_num((described - centre) / np.maximum(spread, LEAST_SPREAD), posinf=0.0, neginf=0.0)
    return scores


def _depart(described: Array, centre: Array, spread: Array) -> Array:
    """(N, 2 F) departures from normal and their sizes, rows of length one: both ways to leave it are alike."""
    scores = _standardise(described, centre, spread).clip(-FARTHEST, FARTHEST)
    return _unit(np.concatenate([scores, np.abs(scores)], axis=1))


def _unit(vectors: NDArray[np.floating]) -> Array:
    return unit_vectors(vectors.astype(np.float32)).astype(np.float64)


def _likeness(left: tuple[Array, Array], right: tuple[Array, Array], chosen: tuple[int, ...]) -> Array:
    mean: Array = np.mean([left[v] @ right[v].T for v in chosen], axis=0)
    return mean
