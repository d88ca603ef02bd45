"""What cases leave unexplained of a window, inverted again for each case that is held out or forgotten."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def unexplained(kernel: Matrix, near: Matrix, kept: Sequence[int], penalty: float, least: float) -> float:
    """Logarithm of the variance that is left of one window by the cases that are kept."""
    if not len(kept):
        return 0.0
    among = kernel[np.ix_(kept, kept)] + penalty * np.eye(len(kept))
    left = 1.0 - float(near[list(kept)] @ np.linalg.inv(among) @ near[list(kept)])
    return math.log(max(left, least))


def held_out(kernel: Matrix, apart: Sequence[int], penalty: float, least: float) -> list[float]:
    """Of each case by those that are held out with something else."""
    every = range(len(apart))
    return [unexplained(kernel, kernel[i], [j for j in every if apart[j] != apart[i]], penalty, least) for i in every]


def forgotten(kernel: Matrix, codes: Sequence[int], apart: Sequence[int], penalty: float, least: float) -> list[float]:
    """The same without the cases of its own type."""
    found = []
    for i in range(len(codes)):
        kept = [j for j in range(len(codes)) if apart[j] != apart[i] and codes[j] != codes[i]]
        found.append(unexplained(kernel, kernel[i], kept, penalty, least))
    return found


def by_type(
    kernel: Matrix, codes: Sequence[int], groups: Sequence[int], apart: Sequence[int], penalty: float, least: float
) -> Matrix:
    """Of each case by those of each type, in standard deviations of what is usual for the type."""
    classes, every = sorted(set(codes)), range(len(codes))
    raw = np.zeros((len(codes), len(classes)))
    for k, code in enumerate(classes):
        together = len({apart[j] for j in every if codes[j] == code}) == 1
        for i in every:
            own = together and codes[i] == code
            kept = [j for j in every if codes[j] == code and (j != i if own else apart[j] != apart[i])]
            raw[i, k] = unexplained(kernel, kernel[i], kept, penalty, least)
    means, variances, counts = [], [], []
    for k, code in enumerate(classes):
        rows = [i for i in every if codes[i] == code]
        votes = [1.0 / sum(groups[j] == groups[i] for j in rows) for i in rows]
        means.append(float(np.average(raw[rows, k], weights=votes)))
        variances.append(float(np.average((raw[rows, k] - means[-1]) ** 2, weights=votes)))
        counts.append(len({groups[i] for i in rows}))
    total = sum(counts)
    mean = sum(n * m for n, m in zip(counts, means, strict=True)) / total
    within = sum(n * v for n, v in zip(counts, variances, strict=True)) / total
    common = within + sum(n * (m - mean) ** 2 for n, m in zip(counts, means, strict=True)) / total
    for k, count in enumerate(counts):
        trust = count / (count + 1.0)
        spread = math.sqrt(trust * variances[k] + (1 - trust) * common + 0.1 * within + 1e-6)
        raw[:, k] = (raw[:, k] - trust * means[k] - (1 - trust) * mean) / spread
    return raw
