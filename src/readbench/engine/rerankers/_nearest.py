"""How near the labelled incidents of each class are: what a few cases say best.

An incident is a class in a recording. A window is as near to it as the mean of the upper half of its likenesses to the
incident's cases, and as near to a class as to its nearest incident. Likenesses are counted in standard deviations of
those between cases of different incidents. The more incidents per class there are, the better the ridges describe the
classes and the less the nearest incident counts: `ridge_weight` and `weight` are both 1 at `EQUAL_AT` incidents per
class; below it the first falls with the square of their number, and above it the second.

The posterior of both is sharpened by an exponent that maximises the likelihood of held-out cases, with one vote per
recording. Few recordings say little about it: a prior of `PRIOR_RECORDINGS` recordings, of which the likeliest class is
right for a share of `PRIOR_RIGHT`, votes as well. A class with one recording has no vote: its held-out cases flatter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
EQUAL_AT = 2.5
"""Incidents per class at which a standard deviation of nearness counts as much as a nat of the ridges."""
PRIOR_RECORDINGS, PRIOR_RIGHT = 4, 0.65
"""Weight of the prior, and how often its likeliest class is right."""
EXPONENTS = 2.0 ** np.arange(-4, 3.01, 1 / 8)
"""Tried exponents."""
MIN_PROBABILITY = 1e-30
"""Lowest probability; one that rounds to zero is not impossible."""
FARTHEST = -3.0
"""Nearness of a class of which no case is left, in standard deviations."""


@dataclass(frozen=True, eq=False)
class Incidents:
    """Labelled cases, by incident.

    Args:
        codes: (L,) numbers of the cases' classes, 0 to K - 1.
        groups: (L,) their recordings.
        numbers: (L,) their incidents, 0 to G - 1.
        mean: of the likenesses between cases of different incidents.
        spread: their standard deviation.
        exponent: of the posterior.
    """

    codes: NDArray[np.intp]
    groups: NDArray[np.integer]
    numbers: NDArray[np.intp]
    mean: float
    spread: float
    exponent: float = 1.0

    @classmethod
    def of(cls, kernel: Array, labels: NDArray[np.int32], groups: NDArray[np.integer]) -> Self:
        """The incidents of cases with these likenesses (L, L), labels (L,) and recordings (L,)."""
        codes = np.unique(labels, return_inverse=True)[1]
        numbers = np.unique(np.stack([codes, groups]), axis=1, return_inverse=True)[1].ravel()
        between = kernel[numbers[:, None] != numbers]
        return cls(codes, groups, numbers, float(between.mean()), float(between.std()))

    @property
    def _relative_number(self) -> float:
        return float((self.numbers.max() + 1) / (self.codes.max() + 1) / EQUAL_AT)

    @property
    def weight(self) -> float:
        """What a standard deviation of nearness counts."""
        return min(1.0, self._relative_number**-2)

    @property
    def ridge_weight(self) -> float:
        """What the ridges' log-posterior counts."""
        return min(1.0, self._relative_number**2)

    def nearness(self, likeness: Array) -> Array:
        """(M, K) weighted nearness of windows to the classes, from likenesses (M, L) to the cases."""
        return self._by_class(np.stack([_upper_half(likeness[:, rows]) for rows in self._rows()], axis=1))

    def held_out(self, kernel: Array, apart: NDArray[np.integer]) -> Array:
        """(L, K) the same of the cases themselves, by cases with another number in `apart` (L,).

        A case of a class that has one number only is compared with the other cases of its class.
        """
        near = np.stack([_upper_half(kernel[:, rows]) for rows in self._rows()], axis=1)
        for column, rows in enumerate(self._rows()):
            own = np.isin(apart, apart[rows])
            single = len(np.unique(apart[self.codes == self.codes[rows[0]]])) == 1
            near[own, column] = -np.inf
            for case in rows if single else ():
                others = rows[rows != case]
                near[case, column] = _upper_half(kernel[case, others][None])[0] if len(others) else -np.inf
        return self._by_class(near)

    def calibrate(self, logits: Array) -> float:
        """The exponent for held-out logits (L, K)."""
        pairs = np.unique(np.stack([self.codes, self.groups]), axis=1)
        several = np.bincount(pairs[0])[self.codes] > 1
        _, index, counts = np.unique(self.groups, return_inverse=True, return_counts=True)
        votes, rows = 1.0 / counts[index], np.arange(len(logits))
        others = logits.shape[1] - 1

        def loss(exponent: float) -> float:
            posterior = softmax(exponent * logits)
            first = posterior.max(axis=1)
            right, wrong = log_probability(first), log_probability((1.0 - first) / others)
            prior = np.average(PRIOR_RIGHT * right + (1.0 - PRIOR_RIGHT) * wrong, weights=votes)
            told = (votes * log_probability(posterior[rows, self.codes]))[several].sum()
            return -float(told + PRIOR_RECORDINGS * prior)

        return float(min(EXPONENTS, key=loss))

    def _rows(self) -> Iterator[NDArray[np.intp]]:
        """Cases of each incident in turn."""
        order = np.argsort(self.numbers, kind="stable")
        yield from np.split(order, np.cumsum(np.bincount(self.numbers))[:-1])

    def _by_class(self, near: Array) -> Array:
        classes = np.array([self.codes[rows[0]] for rows in self._rows()])
        best = np.stack([near[:, classes == code].max(axis=1) for code in range(classes.max() + 1)], axis=1)
        scaled = (best - self.mean) / self.spread if self.spread > 0 else np.zeros_like(best)
        nearness: Array = self.weight * np.maximum(scaled, FARTHEST)
        return nearness


def count_incidents(labels: NDArray[np.int32], groups: NDArray[np.integer]) -> int:
    """How many incidents cases with these labels (L,) and recordings (L,) are of."""
    return len(np.unique(np.stack([labels, groups]), axis=1).T)


def softmax(logits: Array) -> Array:
    """(M, K) probabilities in each row."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    posterior: Array = shifted / shifted.sum(axis=1, keepdims=True)
    return posterior


def log_probability(probability: Array) -> Array:
    """Logarithms, at least that of `MIN_PROBABILITY`."""
    logs: Array = np.log(np.maximum(probability, MIN_PROBABILITY))
    return logs


def _upper_half(likeness: Array) -> Array:
    """(M,) means of the upper half of each row (M, C)."""
    half = likeness.shape[1] // 2
    upper: Array = np.partition(likeness, half, axis=1)[:, half:].mean(axis=1)
    return upper
