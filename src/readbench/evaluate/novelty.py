"""Are unknown faults told from known ones? Both figures see only the order of the scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.errors import NotFiniteError, UsageError
from readbench.evaluate.checks import require_probability

DETECTION = 0.95


def auroc(novel: ArrayLike, known: ArrayLike) -> float:
    """Probability that a novel query scores above a known one, ties counting half (Mann and Whitney, 1947).

    Args:
        novel: (n,) scores of what is new; larger means newer.
        known: (m,) scores of what is not.

    >>> auroc([3.0, 1.0], [0.0, 1.0])
    0.875
    """
    new, old = _scores(novel, known)
    order = np.sort(old)
    below = np.searchsorted(order, new, side="left") + np.searchsorted(order, new, side="right")
    return float(below.mean() / (2 * len(old)))


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
