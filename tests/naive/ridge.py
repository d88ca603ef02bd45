"""Ridge from resolved cases, fitted again without each block; its variance by conditioning a Gaussian."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def targets(labels: list[int]) -> Matrix:
    classes = sorted(set(labels))
    return np.array([[1.0 if own == c else -1.0 / (len(classes) - 1) for c in classes] for own in labels])


def weights(labels: list[int]) -> Matrix:
    """The square root of how much rarer a class is than if all were equally frequent."""
    return np.array([(len(labels) / (len(set(labels)) * labels.count(own))) ** 0.5 for own in labels])


def decision(kernel: Matrix, cross: Matrix, wanted: Matrix, weight: Matrix, penalty: float) -> Matrix:
    """Minimises sum_i w_i (y_i - f_i)^2 + penalty |f|^2 for f in the kernel's space."""
    square = kernel + 1.0 + penalty * np.diag(1.0 / weight)
    return (cross + 1.0) @ np.linalg.solve(square, wanted)


def variance(kernel: Matrix, cross: Matrix, own: Matrix, weight: Matrix, penalty: float) -> Matrix:
    square = kernel + 1.0 + penalty * np.diag(1.0 / weight)
    return np.array([k + 1.0 - (c + 1.0) @ np.linalg.solve(square, c + 1.0) for k, c in zip(own, cross, strict=True)])


def blocks(labels: list[int], groups: list[int]) -> list[list[int]]:
    found = []
    lonely = {c for c in labels if len({g for g, own in zip(groups, labels, strict=True) if own == c}) == 1}
    for i, own in enumerate(labels):
        if own in lonely:
            found.append([i])
    for group in sorted(set(groups)):
        rows = [i for i, g in enumerate(groups) if g == group and labels[i] not in lonely]
        if rows:
            found.append(rows)
    return found


def softmax(logits: Matrix) -> Matrix:
    return np.array([np.exp(row - row.max()) / np.exp(row - row.max()).sum() for row in logits])


def loss(posterior: Matrix, labels: list[int], weight: Matrix) -> float:
    classes = sorted(set(labels))
    lost = [-w * np.log(p[classes.index(own)]) for p, own, w in zip(posterior, labels, weight, strict=True)]
    return float(sum(lost) / sum(weight))
