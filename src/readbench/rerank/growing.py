"""Learning on when a case is added or relabelled, without choosing everything anew.

A new label changes the weights of its whole class, and with them every entry of the matrix that the ridge inverts: no
update of low rank gives the new solution. What costs most of a fit is not that inverse, though, but the choice of views
and penalty among some twenty. Here both stay as they were chosen, likenesses are kept, and one factorisation gives
decision values, held-out posteriors and temperature exactly as a fit with these views and this penalty would. After a
tenth of the cases has changed it is time to choose again (`stale`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri

from readbench.encoders import Vectors
from readbench.errors import UsageError
from readbench.rerank.ridge import (
    Array,
    Ridge,
    _calibrated,
    _softmax,
    _without_own_block,
    case_weights,
    held_out_blocks,
)
from readbench.rerank.verdict import Judgement

STALE = 0.1
"""Share of changed cases after which views and penalty should be chosen again."""


class Growing:
    """Labelled cases to which others are added, and what they teach.

    Args:
        judgement: the last one for which views and penalty were chosen.

    Attributes:
        chosen: numbers of its views.
        penalty: of its ridge.
        labels: (L,) of the cases so far.
        groups: (L,) numbers of their recordings.
    """

    def __init__(self, judgement: Judgement) -> None:
        self.chosen, self.penalty = judgement.chosen, judgement.ridge.penalty
        self.labels = judgement.labels[judgement.cases]
        self.groups = judgement.groups[judgement.cases]
        self._items = [judgement.views[v].items[judgement.cases].astype(np.float64) for v in self.chosen]
        self._kernel: Array = np.mean([own @ own.T for own in self._items], axis=0)
        self._began, self._changes = len(self.labels), 0

    @property
    def stale(self) -> bool:
        """Whether so much has changed that views and penalty should be chosen again."""
        return self._changes > STALE * self._began

    def add(self, vectors: list[Vectors], label: int, group: int) -> None:
        """One more case.

        Args:
            vectors: (D,) of length one, for each of the chosen views.
            label: its fault type.
            group: number of its recording.
        """
        if len(vectors) != len(self.chosen):
            raise UsageError(f"A case needs a vector for each of {len(self.chosen)} views. Got {len(vectors)}.")
        self._items = [np.vstack([old, new]) for old, new in zip(self._items, vectors, strict=True)]
        row = np.mean([own @ own[-1] for own in self._items], axis=0)
        self._kernel = np.block([[self._kernel, row[:-1, None]], [row[None, :]]])
        self.labels = np.append(self.labels, np.int32(label))
        self.groups = np.append(self.groups, np.int64(group))
        self._changes += 1

    def relabel(self, case: int, label: int) -> None:
        """Give the case at a position (in the order of `labels`) another fault type."""
        if not 0 <= case < len(self.labels):
            raise UsageError(f"There are {len(self.labels)} cases, numbered from 0. Got {case}.")
        self.labels = self.labels.copy()
        self.labels[case] = label
        self._changes += 1

    def ridge(self) -> Ridge:
        """What all cases teach, with the views and the penalty that were chosen."""
        return ridge_at(self._kernel, self.labels, self.groups, self.penalty)


def ridge_at(kernel: Array, labels: NDArray[np.int32], groups: NDArray[np.integer], penalty: float) -> Ridge:
    """The ridge of one penalty; arguments as of `readbench.rerank.ridge.fit_ridge`.

    >>> kernel = np.kron(np.eye(2), np.ones((3, 3)))
    >>> ridge_at(kernel, np.repeat(np.int32([1, 2]), 3), np.arange(6), 0.1).posterior(kernel[:1]).argmax()
    np.int64(0)
    """
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) == 1:
        return Ridge(classes, np.zeros((len(labels), 1)), penalty, 1.0, 0.0, np.ones((len(labels), 1)))
    targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0 / (len(classes) - 1))
    weights = case_weights(codes)
    root = np.sqrt(weights)[:, None]
    half = _half_inverse(root * (kernel + 1.0) * root.T + penalty * np.eye(len(codes)))
    solution = half @ (half.T @ (root * targets))
    decision = _without_own_block(half, solution, root, targets, held_out_blocks(codes, groups))
    temperature, loss = _calibrated(decision, codes, weights)
    return Ridge(classes, root * solution, penalty, temperature, loss, _softmax(temperature * decision))


def _half_inverse(matrix: Array) -> Array:
    """H with H H^T the inverse of a positive definite matrix: its Cholesky factor, inverted and transposed."""
    factor, failed = dpotrf(matrix, lower=True)
    inverted, also_failed = dtrtri(np.tril(factor), lower=True)
    if failed or also_failed:
        raise UsageError("The likenesses of the cases are no kernel: give cosines of vectors, finite and symmetric.")
    half: Array = inverted.T
    return half
