"""Surprisal by Gaussians of classes, with inverses and determinants, one value at a time; folds fitted again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def shrunk(rows: list[Matrix], votes: list[float], free: int) -> Matrix:
    """The weighted covariance of centred rows, mixed with the identity times the mean variance (Ledoit and Wolf)."""
    width, total = len(rows[0]), sum(votes)
    sample = np.zeros((width, width))
    for row, vote in zip(rows, votes, strict=True):
        sample += vote / total * np.outer(row, row)
    target = np.eye(width) * sum(sample[i, i] for i in range(width)) / width
    noise = sum(v / total * ((np.outer(r, r) - sample) ** 2).sum() for r, v in zip(rows, votes, strict=True)) / free
    distance = ((sample - target) ** 2).sum()
    share = min(1.0, noise / distance) if distance > 1e-30 else 1.0
    return np.asarray(share * target + (1 - share) * sample)


def surprisal(values: Matrix, codes: list[int], groups: list[int], asked: Matrix) -> list[float]:
    """-log of the mixture of the classes' Gaussians at each asked value, without the factor of 2 pi."""
    classes, width, pairs = sorted(set(codes)), values.shape[1], list(zip(codes, groups, strict=True))
    votes = [1.0 / pairs.count(pair) for pair in pairs]
    count = {c: len({pair for pair in pairs if pair[0] == c}) for c in classes}
    means = {}
    for c in classes:
        rows = [(v, value) for v, value, code in zip(votes, values, codes, strict=True) if code == c]
        means[c] = sum(v * value for v, value in rows) / count[c]
    away = [value - means[c] for value, c in zip(values, codes, strict=True)]
    free = max(1, len(set(pairs)) - len(classes))
    common = shrunk(away, votes, free) * len(set(pairs)) / free
    least = 1e-6 * np.mean([np.var(column) for column in values.T])
    found = []
    for point in asked:
        density = 0.0
        for c in classes:
            spread = sum(v * np.outer(r, r) for v, r, code in zip(votes, away, codes, strict=True) if code == c)
            covariance = (spread + width * common) / (count[c] + width) * (1 + 1 / count[c]) + least * np.eye(width)
            off = point - means[c]
            size = np.exp(-0.5 * off @ np.linalg.inv(covariance) @ off) / np.sqrt(np.linalg.det(covariance))
            density += count[c] / len(set(pairs)) * size
        found.append(float(-np.log(density)))
    return found


def held_out_surprisal(values: Matrix, codes: list[int], groups: list[int], folds: int) -> list[float]:
    """Surprisal of each case by those of the other folds; groups are dealt to folds in their order."""
    order = sorted(set(groups))
    fold = [order.index(group) % folds for group in groups]
    found = []
    for i, value in enumerate(values):
        others = [j for j in range(len(values)) if fold[j] != fold[i]] or list(range(len(values)))
        found += surprisal(values[others], [codes[j] for j in others], [groups[j] for j in others], value[None])
    return found
