"""Surprisal by Gaussians of classes, with inverses and determinants, one value at a time; folds fitted again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def shrunk(rows: list[Matrix]) -> Matrix:
    """The sample covariance of centred rows, mixed with the identity times the mean variance (Ledoit and Wolf)."""
    width = len(rows[0])
    sample = np.mean([np.outer(row, row) for row in rows], axis=0)
    target = np.eye(width) * sum(sample[i, i] for i in range(width)) / width
    noise = sum(((np.outer(row, row) - sample) ** 2).sum() for row in rows) / len(rows) ** 2
    distance = ((sample - target) ** 2).sum()
    share = min(1.0, noise / distance) if distance > 1e-30 else 1.0
    return np.asarray(share * target + (1 - share) * sample)


def surprisal(values: Matrix, codes: list[int], asked: Matrix) -> list[float]:
    """-log of the mixture of the classes' Gaussians at each asked value, without the factor of 2 pi."""
    classes, width = sorted(set(codes)), values.shape[1]
    own = {c: [v for v, code in zip(values, codes, strict=True) if code == c] for c in classes}
    means = {c: sum(rows) / len(rows) for c, rows in own.items()}
    common = shrunk([row - means[c] for c in classes for row in own[c]])
    least = 1e-6 * np.mean([np.var(column) for column in values.T])
    found = []
    for point in asked:
        density = 0.0
        for c in classes:
            spread = sum(np.outer(row - means[c], row - means[c]) for row in own[c])
            covariance = (spread + width * common) / (len(own[c]) + width) + least * np.eye(width)
            away = point - means[c]
            size = np.exp(-0.5 * away @ np.linalg.inv(covariance) @ away) / np.sqrt(np.linalg.det(covariance))
            density += len(own[c]) / len(values) * size
        found.append(float(-np.log(density)))
    return found


def held_out_surprisal(values: Matrix, codes: list[int], groups: list[int], folds: int) -> list[float]:
    """Surprisal of each case by those of the other folds; groups are dealt to folds in their order."""
    order = sorted(set(groups))
    fold = [order.index(group) % folds for group in groups]
    found = []
    for i, value in enumerate(values):
        others = [j for j in range(len(values)) if fold[j] != fold[i]] or list(range(len(values)))
        found += surprisal(values[others], [codes[j] for j in others], value[None])
    return found
