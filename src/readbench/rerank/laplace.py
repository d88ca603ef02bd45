"""Gaussian-process classification by the Laplace approximation, for many small problems at once.

Algorithms 3.1 and 3.2 of Rasmussen & Williams, "Gaussian Processes for Machine Learning" (2006), with the logistic
link. Several classes are treated as scikit-learn's `GaussianProcessClassifier` does, so that both give the same
probabilities; here the linear algebra runs over a stack of problems, and the search ends when a step no longer moves
the latent values, which is seen earlier than in the marginal likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Classes = NDArray[np.int64]

STEPS = 100
"""Newton steps at most; a handful is usual."""
TOLERANCE = 1e-6
"""A step that moves no latent value by more is the last; the next would be of the order of its square."""
SLOPES = np.array([0.41, 0.4, 0.37, 0.44, 0.39])
WEIGHTS = np.array([-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654])
"""The logistic function as a weighted sum of error functions (Williams & Barber, 1998, appendix A).

Constants of scikit-learn's `GaussianProcessClassifier`.
"""


@dataclass(frozen=True, eq=False)
class Mode:
    """Gaussian approximations of P posteriors over K latent values each, around their modes.

    Args:
        slope: (P, K) gradient of the log-likelihood, target minus probability; zero for absent points.
        root: (P, K) square root of its negative curvature; zero for absent points.
        factor: (P, K, K) lower Cholesky factor of I + root kernel root.
    """

    slope: Floats
    root: Floats
    factor: Floats


def one_vs_rest(kernel: Floats, cross: Floats, prior: Floats, classes: Classes, count: int) -> Floats:
    """Class probabilities of T new points for each of Q queries.

    Each class of a query is set against its others and the results are scaled to sum to one; with two classes one
    problem decides both.

    Args:
        kernel: (Q, K, K) covariance of the fitted points.
        cross: (Q, K, T) covariance of fitted and new points.
        prior: (Q, T) variance of the new points.
        classes: (Q, K) classes of the fitted points, from 0 up to `count` - 1; negative for points to leave out.
        count: number of classes overall.

    Returns:
        (Q, count, T); zero for classes that no fitted point of the query has.

    >>> apart, like_the_first = np.eye(2)[None], np.array([[[1.0], [0.0]]])
    >>> one_vs_rest(apart, like_the_first, np.ones((1, 1)), np.array([[0, 1]]), count=2).round(2).tolist()
    [[[0.58], [0.42]]]
    """
    owners = (classes[:, None] == np.arange(count)[None, :, None]).any(axis=2)
    pairs = owners.sum(axis=1) == 2
    fitted = owners.copy()
    fitted[pairs, owners[pairs].argmax(axis=1)] = False
    query, positive = np.nonzero(fitted)
    mode = posterior_mode(kernel[query], classes[query] == positive[:, None], classes[query] >= 0)
    chances = np.zeros((*owners.shape, cross.shape[2]))
    chances[query, positive] = predict(mode, cross[query], prior[query])
    chances[owners & ~fitted] = 1.0 - chances[pairs].sum(axis=1)
    total = chances.sum(axis=1, keepdims=True)
    np.divide(chances, total, out=chances, where=total != 0)
    return chances


def posterior_mode(kernel: Floats, targets: Bools, present: Bools) -> Mode:
    """Newton's method on P problems; each stops on its own (algorithm 3.1).

    The curvature kept is the one the last step started from, which differs by no more than the tolerance.

    Args:
        kernel: (P, K, K) covariance of the points.
        targets: (P, K) which points are of the positive class.
        present: (P, K) which points take part.
    """
    mode = Mode(np.empty(targets.shape), np.empty(targets.shape), np.empty(kernel.shape))
    active, latent = np.arange(len(kernel)), np.zeros(targets.shape)
    for step in range(STEPS):
        chance = expit(latent)
        curvature = np.where(present, chance * (1 - chance), 0.0)
        root = np.sqrt(curvature)
        factor = _factor(kernel, root)
        pull = curvature * latent + np.where(present, targets - chance, 0.0)
        weights = pull - root * _backward(factor, _forward(factor, root * _times(kernel, pull)))
        before, latent = latent, _times(kernel, weights)
        going = (np.abs(latent - before).max(axis=1) > TOLERANCE) & (step < STEPS - 1)
        ended = active[~going]
        mode.slope[ended] = np.where(present, targets - expit(latent), 0.0)[~going]
        mode.root[ended], mode.factor[ended] = root[~going], factor[~going]
        if not going.any():
            break
        active, latent = active[going], latent[going]
        kernel, targets, present = kernel[going], targets[going], present[going]
    return mode


def predict(mode: Mode, cross: Floats, prior: Floats) -> Floats:
    """(P, T) probabilities of the positive class at new points (algorithm 3.2).

    Args:
        mode: the fitted problems.
        cross: (P, K, T) covariance of fitted and new points.
        prior: (P, T) variance of the new points.
    """
    mean = _times(cross.transpose(0, 2, 1), mode.slope)
    explained = _forward(mode.factor, mode.root[:, :, None] * cross)
    spread = np.maximum(prior - np.einsum("pkt,pkt->pt", explained, explained), 0.0)
    return expected_logistic(mean, spread)


def expected_logistic(mean: Floats, variance: Floats) -> Floats:
    """Mean of the logistic function of a Gaussian variable, to 5e-4; defined at variance 0 too.

    >>> expected_logistic(np.array([0.0, 2.0]), np.array([1.0, 0.0])).round(3).tolist()
    [0.5, 0.881]
    """
    total = np.full(mean.shape, 0.5 * WEIGHTS.sum())
    for slope, weight in zip(SLOPES, WEIGHTS, strict=True):
        total += 0.5 * weight * erf(slope * mean / np.sqrt(1 + 2 * slope**2 * variance))
    return total


def _factor(kernel: Floats, root: Floats) -> Floats:
    """(P, K, K) lower Cholesky factors of I + root kernel root."""
    inner = root[:, :, None] * kernel
    inner *= root[:, None, :]
    _diagonal(inner)[...] += 1.0
    factor: Floats = np.linalg.cholesky(inner).astype(np.float64, copy=False)
    return factor


def _forward(lower: Floats, right: Floats) -> Floats:
    """Solve `lower` x = `right` for (P, K, K) triangles and (P, K) or (P, K, T) right sides."""
    solved = right.copy()
    for i in range(lower.shape[1]):
        solved[:, i] -= np.einsum("pj,pj...->p...", lower[:, i, :i], solved[:, :i])
        solved[:, i].T[...] /= lower[:, i, i]
    return solved


def _backward(lower: Floats, right: Floats) -> Floats:
    """Solve the transpose of `lower` x = `right` for (P, K) right sides."""
    solved = right.copy()
    for i in reversed(range(lower.shape[1])):
        solved[:, i] -= np.einsum("pj,pj->p", lower[:, i + 1 :, i], solved[:, i + 1 :])
        solved[:, i] /= lower[:, i, i]
    return solved


def _times(matrices: Floats, vectors: Floats) -> Floats:
    """(P, M) products of (P, M, K) matrices and (P, K) vectors."""
    products: Floats = np.matmul(matrices, vectors[:, :, None])[:, :, 0]
    return products


def _diagonal(matrices: Floats) -> Floats:
    """(P, K) writable view of the diagonals of contiguous (P, K, K) matrices."""
    size = matrices.shape[1]
    return matrices.reshape(len(matrices), size * size)[:, :: size + 1]
