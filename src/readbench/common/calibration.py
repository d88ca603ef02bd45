"""Calibration of probabilities and detection of novel faults.

`reliability`, `expected_calibration_error` and `coverage` measure whether stated probabilities and prediction sets
hold. `auroc`, `false_alarm_rate` and `detection_rate` measure how well novelty scores separate unknown faults from
known ones; only the order of the scores matters.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.common.checks import require_probability
from readbench.errors import NotFiniteError, ParameterError, UsageError

DEFAULT_BINS = 15
Binning = Literal["mass", "width"]
"""Bins with equally many answers, or of equal width between 0 and 1."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Reliability curve: stated confidence against accuracy per bin; empty bins are left out.

    Args:
        confidence: (B,) mean stated probability, ascending.
        accuracy: (B,) share of correct answers.
        count: (B,) answers in the bin.
    """

    confidence: Floats
    accuracy: Floats
    count: NDArray[np.int64]

    @property
    def error(self) -> float:
        """ECE = sum over bins of (count / n) |accuracy - confidence| (Naeini et al., 2015)."""
        return float(np.average(np.abs(self.accuracy - self.confidence), weights=self.count))


def reliability(
    confidence: ArrayLike, correct: ArrayLike, *, bins: int = DEFAULT_BINS, by: Binning = "mass"
) -> Reliability:
    """Compute the reliability curve of answers.

    The default is bins of equal mass: most confidences are near 1, and bins of equal width would put most answers into
    one bin. Equal confidences share a bin, so the order of the answers does not matter and a bin may stay empty.

    Args:
        confidence: (n,) stated probability of each answer, in [0, 1].
        correct: (n,) whether it was correct.
        bins: maximum number of bins.
        by: kind of bins.

    >>> curve = reliability([0.2, 0.2, 0.9, 0.9], [False, False, True, True], bins=2)
    >>> curve.confidence, curve.accuracy, curve.count
    (array([0.2, 0.9]), array([0., 1.]), array([2, 2]))
    """
    stated, right = _answers(confidence, correct)
    if bins < 1:
        raise ParameterError(f"The 'bins' parameter of reliability must be an int in the range [1, inf). Got {bins}.")
    if by == "mass":
        place = np.searchsorted(np.sort(stated), stated) * bins // len(stated)
    else:
        place = np.minimum((stated * bins).astype(np.intp), bins - 1)
    count = np.bincount(place, minlength=bins)
    filled = count > 0
    sums = (np.bincount(place, weights=values, minlength=bins)[filled] for values in (stated, right))
    said, was = (total / count[filled] for total in sums)
    return Reliability(said, was, count[filled])


def expected_calibration_error(
    confidence: ArrayLike, correct: ArrayLike, *, bins: int = DEFAULT_BINS, by: Binning = "mass"
) -> float:
    """Expected calibration error: mean |accuracy - confidence| over bins, weighted by their count.

    >>> round(expected_calibration_error([0.8, 0.8, 0.8, 0.8], [True, True, False, False]), 3)
    0.3
    """
    return reliability(confidence, correct, bins=bins, by=by).error


def calibration_floor(
    confidence: ArrayLike, *, seed: int, draws: int = 100, bins: int = DEFAULT_BINS, by: Binning = "mass"
) -> float:
    """Mean ECE of perfectly calibrated answers: the part of an ECE that is due to chance.

    A bin of few answers never shows its true accuracy, so the ECE of honest probabilities is above zero, too. An ECE
    near this floor is no evidence of miscalibration.

    Args:
        confidence: (n,) stated probability of each answer, in [0, 1].
        seed: of the draws.
        draws: number of random draws.
        bins: maximum number of bins.
        by: kind of bins.

    >>> calibration_floor([0.5] * 100, seed=0) > calibration_floor([0.5] * 10_000, seed=0)
    True
    """
    stated = np.asarray(confidence, np.float64)
    right = np.random.default_rng(seed).random((draws, len(stated))) < stated
    return float(np.mean([expected_calibration_error(stated, row, bins=bins, by=by) for row in right]))


def coverage(sets: Sequence[Collection[int]], labels: ArrayLike) -> float:
    """Share of queries whose prediction set contains the true label.

    >>> coverage([{1, 2}, {3}], [2, 1])
    0.5
    """
    true = np.asarray(labels).tolist()
    if not true or len(true) != len(sets):
        raise UsageError(f"Coverage needs a set for each label, and one at least; got {len(sets)} and {len(true)}.")
    return float(np.mean([label in chosen for chosen, label in zip(sets, true, strict=True)]))


def _answers(confidence: ArrayLike, correct: ArrayLike) -> tuple[Floats, Floats]:
    """Check and convert to two float vectors of equal length, the first with values in [0, 1]."""
    stated, right = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    if stated.ndim != 1 or stated.shape != right.shape or not len(stated):
        raise UsageError(
            f"Calibration needs a probability and a verdict for each answer, one at least; got shapes {stated.shape}"
            f" and {right.shape}."
        )
    wrong = np.flatnonzero(~((stated >= 0) & (stated <= 1)))
    if wrong.size:
        raise NotFiniteError(f"Answer {int(wrong[0])} states {stated[wrong[0]]}, which is no probability in [0, 1].")
    return stated, right


DEFAULT_DETECTION = 0.95


def auroc(
    novel: ArrayLike, known: ArrayLike, *, novel_votes: ArrayLike | None = None, known_votes: ArrayLike | None = None
) -> float:
    """Probability that a novel query scores above a known one, ties counting half (Mann and Whitney, 1947).

    Args:
        novel: (n,) scores of novel queries; larger means more novel.
        known: (m,) scores of known queries.
        novel_votes: (n,) weights of the novel queries; 1 each by default.
        known_votes: (m,) weights of the known queries; 1 each by default.

    >>> auroc([3.0, 1.0], [0.0, 1.0])
    0.875
    """
    new, old = _scores(novel, known)
    order = np.argsort(old, kind="stable")
    votes = np.ones(len(old)) if known_votes is None else np.asarray(known_votes, np.float64)
    tally = np.append(0.0, np.cumsum(votes[order]))
    below = sum(tally[np.searchsorted(old[order], new, side=side)] for side in ("left", "right"))
    weights = None if novel_votes is None else np.asarray(novel_votes, np.float64)
    return float(np.average(below, weights=weights) / (2 * tally[-1]))


def false_alarm_rate(novel: ArrayLike, known: ArrayLike, *, detection: float = DEFAULT_DETECTION) -> float:
    """Share of known queries at or above the threshold that detects a share `detection` of the novel ones.

    Args:
        novel: (n,) scores of novel queries; larger means more novel.
        known: (m,) scores of known queries.
        detection: minimum share of novel queries at or above the threshold.

    >>> false_alarm_rate([3.0, 2.0, 1.0], [0.0, 1.5, 2.5, 9.0], detection=0.6)
    0.5
    """
    new, old = _scores(novel, known)
    require_probability("detection", detection, "false_alarm_rate")
    needed = int(np.ceil(round(detection * len(new), 9)))
    threshold = np.sort(new)[len(new) - needed]
    return float((old >= threshold).mean())


def detection_rate(novel: ArrayLike, known: ArrayLike, false_alarms: ArrayLike) -> NDArray[np.float64]:
    """Detection rate at given false alarm rates: the ROC curve, as steps.

    Args:
        novel: (n,) scores of novel queries; larger means more novel.
        known: (m,) scores of known queries.
        false_alarms: (K,) allowed shares of known queries above the threshold, in [0, 1].

    Returns:
        (K,) shares. Without ties the area below the steps is the AUROC.

    >>> detection_rate([3.0, 1.0], [0.0, 2.0], [0.0, 0.5, 1.0])
    array([0.5, 1. , 1. ])
    """
    new, old = _scores(novel, known)
    thresholds = np.append(np.sort(old)[::-1], -np.inf)
    allowed = np.floor(np.round(np.asarray(false_alarms, np.float64) * len(old), 9)).astype(np.intp)
    rates: NDArray[np.float64] = (new > thresholds[allowed][:, None]).mean(axis=1)
    return rates


def _scores(novel: ArrayLike, known: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Check and convert to two non-empty vectors of finite numbers."""
    new, old = np.asarray(novel, np.float64), np.asarray(known, np.float64)
    if new.ndim != 1 or old.ndim != 1 or not len(new) or not len(old):
        raise UsageError(
            f"Novelty needs scores of novel and of known queries, one of each at least; got shapes {new.shape} and"
            f" {old.shape}."
        )
    if not (np.isfinite(new).all() and np.isfinite(old).all()):
        raise NotFiniteError("A novelty score is NaN or infinite. Leave out queries that have no score.")
    return new, old
