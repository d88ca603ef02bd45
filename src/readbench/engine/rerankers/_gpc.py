"""GPC: a Gaussian-process classifier fitted to the first hits of each query predicts the query's class.

It is solved by the Laplace approximation for many small problems at once: algorithms 3.1 and 3.2 of Rasmussen &
Williams, "Gaussian Processes for Machine Learning" (2006), with the logistic link. Several classes are handled as in
scikit-learn's `GaussianProcessClassifier`, with the same probabilities; here the linear algebra runs over a stack of
problems, and iteration ends when a step no longer moves the latent values, which is earlier than for the marginal
likelihood.

The approximation comes first (`one_vs_rest` and below), then the reranker `GaussianProcess` and its kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import erf, expit

from readbench.engine.parameters import ParameterRange
from readbench.engine.protocols import Pool, Scores, Vectors
from readbench.engine.registry import RERANKERS
from readbench.engine.windows import UNLABELLED

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Classes = NDArray[np.int64]

MAX_STEPS = 100
"""Maximum Newton steps; a handful is usual."""
TOLERANCE = 1e-6
"""Iteration ends when no latent value moves by more; the next step would be of the order of its square."""
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

    Each class of a query is set against its others and the results are normalised; with two classes one problem is
    enough.

    Args:
        kernel: (Q, K, K) covariance of the fitted points.
        cross: (Q, K, T) covariance of fitted and new points.
        prior: (Q, T) variance of the new points.
        classes: (Q, K) classes of the fitted points, from 0 to `count` - 1; negative for points to leave out.
        count: number of classes overall.

    Returns:
        (Q, count, T); zero for classes without a fitted point of the query.

    >>> apart, like_the_first = np.eye(2)[None], np.array([[[1.0], [0.0]]])
    >>> one_vs_rest(apart, like_the_first, np.ones((1, 1)), np.array([[0, 1]]), count=2).round(2).tolist()
    [[[0.58], [0.42]]]
    """
    owners = (classes[:, None] == np.arange(count)[None, :, None]).any(axis=2)
    pairs = owners.sum(axis=1) == 2
    fitted = owners.copy()
    # Of two classes the later one is fitted, as in scikit-learn; the other gets the rest.
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
    """Newton's method on P problems, each with its stopping step (algorithm 3.1).

    The curvature is that before the last step, which differs by at most the tolerance.

    Args:
        kernel: (P, K, K) covariance of the points.
        targets: (P, K) points of the positive class.
        present: (P, K) points that take part.
    """
    mode = Mode(np.empty(targets.shape), np.empty(targets.shape), np.empty(kernel.shape))
    active, latent = np.arange(len(kernel)), np.zeros(targets.shape)
    for step in range(MAX_STEPS):
        chance = expit(latent)
        curvature = np.where(present, chance * (1 - chance), 0.0)
        root = np.sqrt(curvature)
        factor = _factor(kernel, root)
        # Algorithm 3.1, lines 4 to 8: B = LL^T, b = W f + (y - p), a = b - W^(1/2) B^-1 W^(1/2) K b, f = K a.
        pull = curvature * latent + np.where(present, targets - chance, 0.0)
        weights = pull - root * _backward(factor, _forward(factor, root * _times(kernel, pull)))
        before, latent = latent, _times(kernel, weights)
        going = (np.abs(latent - before).max(axis=1) > TOLERANCE) & (step < MAX_STEPS - 1)
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
    # Equation 3.21: at the mode f = K slope, so no matrix is inverted for the mean.
    mean = _times(cross.transpose(0, 2, 1), mode.slope)
    explained = _forward(mode.factor, mode.root[:, :, None] * cross)
    # Rounding may make the variance negative where a new point is a fitted one.
    spread = np.maximum(prior - np.einsum("pkt,pkt->pt", explained, explained), 0.0)
    return expected_logistic(mean, spread)


def expected_logistic(mean: Floats, variance: Floats) -> Floats:
    """Mean of the logistic function of a Gaussian variable, accurate to 5e-4, also at variance 0.

    >>> expected_logistic(np.array([0.0, 2.0]), np.array([1.0, 0.0])).round(3).tolist()
    [0.5, 0.881]
    """
    # Each term is weight (1 + erf(slope x)) / 2, with a closed-form mean under a Gaussian.
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
        solved[:, i].T[...] /= lower[:, i, i]  # transposed, P is last and fits right sides of both shapes
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


Kernel = Literal["laplacian", "linear", "rbf"]

MAX_BLOCK_QUERIES = 64
"""Maximum queries fitted at a time: shares the cost of a call and stays in the cache."""
MAX_BLOCK_NUMBERS = 4_000_000
"""Maximum numbers in the largest array of a block; limits blocks of deep pools with unlabelled candidates."""
MIN_DIFFERENCE = 1e-6
"""Coordinates of unit vectors closer than this are equal, to the precision of the vectors."""


@RERANKERS.register("gpc", title="GPC", family="reranker", positional="k")
@dataclass(eq=False)
class GaussianProcess:
    """Ranks candidates by the probability that they share the query's class, with a classifier fitted per query.

    The labelled candidates among the first k are its training set (normal is a class like any other): unit vectors,
    reduced by PCA of those k and the query, one-vs-rest Laplace approximation, fixed length scale 1. A labelled
    candidate x scores p(y_x | q), which is 0 for a class unseen among the first k; one without a label scores
    sum_c p(c | q) p(c | x). A query keeps its base scores if its training set has fewer than two classes, or all its
    points are equal.

    Args:
        k: number of first hits the classifier is fitted on; none: the size of the pool.
        variance: share of the variance that the PCA keeps, with at least one component.
        kernel: exp(-|x - x'|_1) as in the paper, x . x', or exp(-|x - x'|^2 / 2).
        scope: reorder the pool or the whole corpus; the classifier is the same.
        pool: number of candidates in the pool.
    """

    uses_labels = True

    k: Annotated[int, ParameterRange(2)] | None = None
    variance: Annotated[float, ParameterRange(0, 1)] = 0.95
    kernel: Kernel = "laplacian"
    scope: Literal["pool", "corpus"] = "pool"
    pool: Annotated[int, ParameterRange(1)] = 20

    @property
    def window(self) -> int:
        """Number of first hits the classifier is fitted on."""
        return self.k or self.pool

    @property
    def depth(self) -> int | None:
        """Size of the pool, at least k; None for the whole corpus."""
        return None if self.scope == "corpus" else max(self.pool, self.window)

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores."""
        scores = pool.scores.astype(np.float32)
        names = np.unique(pool.labels[pool.labelled])
        classes = np.where(pool.labelled, np.searchsorted(names, pool.labels), UNLABELLED)
        window = classes[:, : self.window]
        # A query has two classes if some labelled candidate differs from the highest one.
        several = ((window != window.max(axis=1, keepdims=True, initial=-1)) & (window >= 0)).any(axis=1)
        for rows in _blocks(np.flatnonzero(several), self._numbers(pool, len(names))):
            scores[rows] = self._block(pool, rows, classes[rows], len(names))
        return scores

    def _numbers(self, pool: Pool, count: int) -> int:
        """Numbers in the largest array for one query: fitted by new points, for each class."""
        columns = int(pool.candidates.shape[1])
        points = min(self.window, columns)
        new = 1 if pool.labelled.all() else columns + 1
        return max(points, new) * points * min(count, points)

    def _block(self, pool: Pool, rows: NDArray[np.int64], classes: Classes, count: int) -> Scores:
        """(B, K) new scores of queries with at least two classes."""
        window, unlabelled = classes[:, : self.window], classes < 0
        near, below = np.split(pool.candidates[rows], [self.window], axis=1)
        if not unlabelled.any():
            below = below[:, :0]
        inner, outer = cosines(pool.items, near, pool.queries[rows], below)
        space = Space.fit(inner, self.variance)
        points, new = space.points[:, :-1], space.points[:, -1:]
        if unlabelled.any():
            new = np.concatenate([new, points, space.project(outer)], axis=1)
        kernel, cross = covariance(points, points, self.kernel), covariance(points, new, self.kernel)
        chances = one_vs_rest(kernel, cross, variances(new, self.kernel), window, count)
        query, others = chances[:, :, 0], chances[:, :, 1:]
        expected = np.take_along_axis(query, np.maximum(classes, 0), axis=1)
        if unlabelled.any():
            expected = np.where(unlabelled, np.einsum("qc,qct->qt", query, others), expected)
        same = _spread(points, window >= 0) <= MIN_DIFFERENCE
        return np.where(same[:, None], pool.scores[rows], expected).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Space:
    """Principal components of Q small sets of M points each, from inner products alone.

    There are few points, and their vectors may be long.

    Args:
        points: (Q, M, R) coordinates of the points; dropped components are zero.
        mixing: (Q, M, R) maps centred products with the points to coordinates.
        level: (Q, 1, M) subtracted from the products with each point to centre them.
    """

    points: Floats
    mixing: Floats
    level: Floats

    @classmethod
    def fit(cls, products: Floats, variance: float) -> Space:
        """Keep components until they explain more than a share of the variance.

        Their number is that of scikit-learn's `PCA(n_components=variance)`. Components of equal variance are an
        arbitrary choice, on which the Laplacian kernel depends.

        Args:
            products: (Q, M, M) inner products of the points.
            variance: the share, from 0 to 1; at least one component is kept.
        """
        level = products.mean(axis=1, keepdims=True) - products.mean(axis=(1, 2), keepdims=True)
        values, bases = np.linalg.eigh(_centred(products, level))
        values, bases = np.maximum(values[:, ::-1], 0.0), bases[:, :, ::-1]  # largest first, none below zero
        total = np.maximum(values.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        explained = np.cumsum(values, axis=1) / total
        # A component is kept while the earlier ones explain no more than the share.
        kept = np.concatenate([np.ones((len(values), 1), bool), explained[:, :-1] <= variance], axis=1)
        size = kept.sum(axis=1).max(initial=1)
        lengths, bases = np.sqrt(np.where(kept, values, 0.0))[:, None, :size], bases[:, :, :size]
        real = np.broadcast_to(lengths > 1e-6 * np.sqrt(total)[:, None], bases.shape)  # shorter ones are rounding
        mixing = np.divide(bases, lengths, out=np.zeros_like(bases), where=real)
        return cls(bases * lengths, mixing, level)

    def project(self, products: Floats) -> Floats:
        """(Q, T, R) coordinates of further points from their (Q, T, M) products with the fitted ones."""
        return _centred(products, self.level) @ self.mixing


def cosines(
    items: Vectors, near: NDArray[np.int64], queries: Vectors, below: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Cosines among a query and its first hits, and between these and further candidates.

    Args:
        items: (N, D) vectors of the corpus; those of length zero have cosine 0 with all.
        near: (Q, M - 1) positions of the first hits.
        queries: (Q, D) vectors of the queries.
        below: (Q, T) positions of the further candidates.

    Returns:
        (Q, M, M) with the query last, and (Q, T, M).
    """
    size = near.shape[1] + 1
    inner, outer = np.empty((len(near), size, size)), np.empty((*below.shape, size))
    used, places = np.unique(below, return_inverse=True)
    others = _unit(items[used])
    vectors = np.empty((size, items.shape[1]))  # of one query at a time, to stay in the cache
    for i, (hits, query, place) in enumerate(zip(near, queries, places.reshape(below.shape), strict=True)):
        vectors[:-1], vectors[-1] = items[hits], query
        inner[i] = vectors @ vectors.T
        outer[i] = (others @ vectors.T)[place]
    lengths = np.sqrt(np.diagonal(inner, axis1=1, axis2=2))
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 1e-12)
    return inner * scale[:, :, None] * scale[:, None], outer * scale[:, None]


def covariance(first: Floats, second: Floats, kernel: Kernel) -> Floats:
    """(Q, M, T) kernel values of (Q, M, R) and (Q, T, R) points; length scale 1.

    >>> corners = np.array([[[0.0, 0.0], [1.0, 1.0]]])
    >>> covariance(corners, corners[:, :1], "laplacian").round(3).tolist()
    [[[1.0], [0.135]]]
    """
    if kernel == "linear":
        return first @ second.transpose(0, 2, 1)
    metric = "cityblock" if kernel == "laplacian" else "sqeuclidean"
    distance = np.empty((len(first), first.shape[1], second.shape[1]))
    for out, these, those in zip(distance, first, second, strict=True):
        cdist(these, those, metric, out=out)
    return np.exp(-distance if kernel == "laplacian" else -0.5 * distance)


def variances(points: Floats, kernel: Kernel) -> Floats:
    """(Q, T) kernel value of each of (Q, T, R) points with itself."""
    return np.einsum("qtr,qtr->qt", points, points) if kernel == "linear" else np.ones(points.shape[:2])


def _blocks(rows: NDArray[np.int64], numbers: int) -> Iterator[NDArray[np.int64]]:
    """Blocks of queries within the memory bound, if each takes so many numbers."""
    size = min(MAX_BLOCK_QUERIES, max(1, MAX_BLOCK_NUMBERS // max(1, numbers)))
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _spread(points: Floats, labelled: NDArray[np.bool_]) -> Floats:
    """(Q,) maximum difference in any coordinate between labelled points of (Q, M, R)."""
    there = labelled[:, :, None]
    high = np.where(there, points, -np.inf).max(axis=1)
    low = np.where(there, points, np.inf).min(axis=1)
    spread: Floats = (high - low).max(axis=1)
    return spread


def _centred(products: Floats, level: Floats) -> Floats:
    """Centre inner products (Q, T, M) by the mean of the M points."""
    centred: Floats = products - products.mean(axis=2, keepdims=True) - level
    return centred


def _unit(vectors: Vectors) -> Floats:
    """(M, D) unit vectors in double precision; zero vectors stay zero."""
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("md,md->m", wide, wide))[:, None]
    np.divide(wide, lengths, out=wide, where=lengths > 1e-12)
    return wide
