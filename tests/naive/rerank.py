"""Rerankers, straight from the paper's appendix, one query at a time; GPC by scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, DotProduct, PairwiseKernel

Matrix = NDArray[np.float64]

KERNELS = {
    "laplacian": PairwiseKernel(gamma=1.0, gamma_bounds="fixed", metric="laplacian"),
    "linear": DotProduct(sigma_0=0.0, sigma_0_bounds="fixed"),
    "rbf": RBF(length_scale=1.0, length_scale_bounds="fixed"),
}


def zscores(values: Sequence[float | None]) -> list[float]:
    """Over the known values; 0 for unknown ones and where all are equal."""
    known = [v for v in values if v is not None]
    if not known or max(known) == min(known):
        return [0.0] * len(values)
    mean = math.fsum(known) / len(known)
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in known) / len(known))
    return [0.0 if v is None else (v - mean) / spread for v in values]


def prf(scores: list[float], vectors: list[list[float]], k: int, beta: float, scale: str) -> list[float]:
    centroid = [sum(column) / len(column) for column in zip(*vectors[:k], strict=True)]
    distances = [math.dist(vector, centroid) for vector in vectors]
    if scale == "z":
        scores, distances = zscores(scores), zscores(distances)
    return [beta * s - (1 - beta) * d for s, d in zip(scores, distances, strict=True)]


def vote(labels: list[int]) -> int | None:
    """Most frequent label; the first to appear of equally frequent ones."""
    known = [label for label in labels if label >= 0]
    return max(known, key=known.count) if known else None


def majority_vote(scores: list[float], labels: list[int], k: int) -> list[float]:
    elected = vote(labels[:k])
    return scores if elected is None else [float(label == elected) for label in labels]


def purities(
    items: list[int], labels: list[int], similarity: list[list[float]], corpus_labels: list[int], k: int
) -> list[float | None]:
    """Of the candidates; None where unknown."""
    found: list[float | None] = []
    for item, label in zip(items, labels, strict=True):
        others = [other for other in range(len(corpus_labels)) if other != item]
        nearest = sorted(others, key=lambda other: -similarity[item][other])[:k]
        around = [corpus_labels[other] for other in nearest if corpus_labels[other] >= 0]
        found.append(around.count(label) / len(around) if around and label >= 0 else None)
    return found


def purity(scores: list[float], shares: list[float | None], alpha: float) -> list[float]:
    if all(share is None for share in shares):
        return scores
    return [alpha * s + (1 - alpha) * p for s, p in zip(zscores(scores), zscores(shares), strict=True)]


def query_purity(
    scores: list[float], labels: list[int], shares: list[float | None], voters: int, alpha: float
) -> list[float]:
    elected = vote(labels[:voters])
    if elected is None:
        return scores
    credit = [0.0 if label >= 0 and label != elected else share for label, share in zip(labels, shares, strict=True)]
    return purity(scores, credit, alpha)


def class_probabilities(points: Matrix, classes: Sequence[int], new: Matrix, kernel: str) -> dict[int, Matrix]:
    """(T,) probabilities at the new points, by class."""
    with config_context(assume_finite=True, skip_parameter_validation=True):  # only saves time
        model = GaussianProcessClassifier(KERNELS[kernel], optimizer=None).fit(points, classes)
        return dict(zip(model.classes_.tolist(), model.predict_proba(new).T, strict=True))


def gpc(
    scores: list[float], labels: list[int], vectors: Matrix, query: Matrix, k: int, variance: float, kernel: str
) -> list[float]:
    labelled = [i for i, label in enumerate(labels[:k]) if label >= 0]
    classes = [labels[i] for i in labelled]
    if len(set(classes)) < 2:
        return scores
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    target = query[None] / np.linalg.norm(query)
    space = PCA(variance, svd_solver="full").fit(np.vstack([units[:k], target]))
    points = space.transform(units)
    at_query = class_probabilities(points[labelled], classes, space.transform(target), kernel)
    at_items = class_probabilities(points[labelled], classes, points, kernel)
    return [
        float(at_query[label][0] if label in at_query else 0.0)
        if label >= 0
        else float(sum(at_query[c][0] * at_items[c][i] for c in at_query))
        for i, label in enumerate(labels)
    ]
