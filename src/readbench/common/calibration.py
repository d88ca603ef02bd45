"""Whether stated certainty holds: calibration of probabilities, and detection of what is new.

`reliability`, `expected_calibration_error` and `coverage` ask whether a probability, or a prediction set, keeps its
word. `auroc`, `false_alarm_rate` and `detection_rate` ask whether unknown faults are told from known ones; they see
only the order of the scores.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.common.checks import require_probability
from readbench.errors import NotFiniteError, ParameterError, UsageError

BINS = 15
Binning = Literal["mass", "width"]
"""Bins that hold equally many answers, or that are equally wide between 0 and 1."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Stated against real certainty, bin by bin; empty bins are left out.

    Args:
        confidence: (B,) mean stated probability, ascending.
        accuracy: (B,) share of right answers.
        count: (B,) answers in the bin.
    """

    confidence: Floats
    accuracy: Floats
    count: NDArray[np.int64]

    @property
    def error(self) -> float:
        """ECE = sum over bins of (count / n) |accuracy - confidence| (Naeini et al., 2015)."""
        return float(np.average(np.abs(self.accuracy - self.confidence), weights=self.count))


def reliability(confidence: ArrayLike, correct: ArrayLike, *, bins: int = BINS, by: Binning = "mass") -> Reliability:
    """The reliability curve of answers.

    Bins of equal mass are the default: answers crowd near certainty, where bins of equal width would put most of them
    into one and leave a handful to each of the others. Equal confidences share a bin, so the order of the answers does
    not matter and a bin may stay empty.

    Args:
        confidence: (n,) stated probability of each answer, in [0, 1].
        correct: (n,) whether it was right.
        bins: most bins.
        by: what the bins have in common.

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
    confidence: ArrayLike, correct: ArrayLike, *, bins: int = BINS, by: Binning = "mass"
) -> float:
    """Mean gap between stated and real certainty over the bins of `reliability`, weighted by their size.

    >>> round(expected_calibration_error([0.8, 0.8, 0.8, 0.8], [True, True, False, False]), 3)
    0.3
    """
    return reliability(confidence, correct, bins=bins, by=by).error


def calibration_floor(
    confidence: ArrayLike, *, seed: int, draws: int = 100, bins: int = BINS, by: Binning = "mass"
) -> float:
    """The mean ECE of answers that are right exactly as often as stated: what chance alone gives with so many answers.

    Bins of few answers never show their true share of right ones, so an ECE is above zero for honest probabilities
    too; an error near this figure is no evidence against them.

    Args:
        confidence: (n,) stated probability of each answer, in [0, 1].
        seed: of the draws.
        draws: how often the answers are drawn.
        bins: most bins.
        by: what the bins have in common.

    >>> calibration_floor([0.5] * 100, seed=0) > calibration_floor([0.5] * 10_000, seed=0)
    True
    """
    stated = np.asarray(confidence, np.float64)
    right = np.random.default_rng(seed).random((draws, len(stated))) < stated
    return float(np.mean([expected_calibration_error(stated, row, bins=bins, by=by) for row in right]))


def coverage(sets: Sequence[Collection[int]], labels: ArrayLike) -> float:
    """Share of queries whose prediction set holds their true label.

    >>> coverage([{1, 2}, {3}], [2, 1])
    0.5
    """
    true = np.asarray(labels).tolist()
    if not true or len(true) != len(sets):
        raise UsageError(f"Coverage needs a set for each label, and one at least; got {len(sets)} and {len(true)}.")
    return float(np.mean([label in own for own, label in zip(sets, true, strict=True)]))


def _answers(confidence: ArrayLike, correct: ArrayLike) -> tuple[Floats, Floats]:
    """Both as float vectors of one length, after making sure that the first holds probabilities."""
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


DETECTION = 0.95


def auroc(
    novel: ArrayLike, known: ArrayLike, *, novel_votes: ArrayLike | None = None, known_votes: ArrayLike | None = None
) -> float:
    """Probability that a novel query scores above a known one, ties counting half (Mann and Whitney, 1947).

    Args:
        novel: (n,) scores of what is new; larger means newer.
        known: (m,) scores of what is not.
        novel_votes: (n,) what each of them counts; one each by default.
        known_votes: (m,) likewise.

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


def false_alarm_rate(novel: ArrayLike, known: ArrayLike, *, detection: float = DETECTION) -> float:
    """Share of known queries that score at least as high as the threshold which finds `detection` of the novel ones.

    Args:
        novel: (n,) scores of what is new; larger means newer.
        known: (m,) scores of what is not.
        detection: least share of the novel queries at or above the threshold.

    >>> false_alarm_rate([3.0, 2.0, 1.0], [0.0, 1.5, 2.5, 9.0], detection=0.6)
    0.5
    """
    new, old = _scores(novel, known)
    require_probability("detection", detection, "false_alarm_rate")
    needed = int(np.ceil(round(detection * len(new), 9)))
    threshold = np.sort(new)[len(new) - needed]
    return float((old >= threshold).mean())


def detection_rate(novel: ArrayLike, known: ArrayLike, false_alarms: ArrayLike) -> NDArray[np.float64]:
    """Share of novel queries above the threshold that alarms at most so many of the known: the ROC curve, as steps.

    Args:
        novel: (n,) scores of what is new; larger means newer.
        known: (m,) scores of what is not.
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
    """Both as vectors of finite numbers, neither empty."""
    new, old = np.asarray(novel, np.float64), np.asarray(known, np.float64)
    if new.ndim != 1 or old.ndim != 1 or not len(new) or not len(old):
        raise UsageError(
            f"Novelty needs scores of novel and of known queries, one of each at least; got shapes {new.shape} and"
            f" {old.shape}."
        )
    if not (np.isfinite(new).all() and np.isfinite(old).all()):
        raise NotFiniteError("A novelty score is NaN or infinite. Leave out queries that have no score.")
    return new, old
