"""Pools for the GPC case, and scikit-learn's way through them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.ranking import rank
from readbench.rerank import Pool, View

DEPTH = 20


def random_pool(queries: int, width: int, classes: int, items: int = 1000, seed: int = 0) -> Pool:
    """Clouds around one centre per class, and the nearest 20 items of each query."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((classes, width)) * 0.35 * 64 / width
    labels = rng.integers(1, classes + 1, items).astype(np.int32)
    vectors = (centres[labels - 1] + rng.standard_normal((items, width))).astype(np.float32)
    asked = (centres[rng.integers(0, classes, queries)] + rng.standard_normal((queries, width))).astype(np.float32)
    scores = asked @ vectors.T - (vectors**2).sum(axis=1) / 2
    top = rank(scores, DEPTH)
    best = np.take_along_axis(scores, top, axis=1)
    known = np.broadcast_to(labels, (queries, items))
    return Pool(top, best, (View(asked, vectors),), known, np.arange(items), lambda: vectors @ vectors.T)


def sklearn_probabilities(pool: Pool) -> NDArray[np.float64]:
    """(Q, K) probability that each candidate shares its query's class, one query after the other."""
    from sklearn.decomposition import PCA  # noqa: PLC0415
    from sklearn.gaussian_process import GaussianProcessClassifier  # noqa: PLC0415

    kernel = _laplacian()
    rows = []
    for candidates, query, labels, base in zip(pool.candidates, pool.queries, pool.labels, pool.scores, strict=True):
        if len(np.unique(labels)) < 2:
            rows.append(base.astype(np.float64))
            continue
        points = np.vstack([pool.items[candidates], query[None]]).astype(np.float64)
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        points = PCA(0.95, svd_solver="full").fit_transform(points)
        fitted = GaussianProcessClassifier(kernel, optimizer=None).fit(points[:-1], labels)
        chance = dict(zip(fitted.classes_.tolist(), fitted.predict_proba(points[-1:])[0], strict=True))
        rows.append(np.array([chance[label] for label in labels.tolist()]))
    return np.stack(rows)


def _laplacian() -> Any:  # noqa: ANN401 - a scikit-learn kernel
    from scipy.spatial.distance import cdist  # noqa: PLC0415
    from sklearn.gaussian_process.kernels import Kernel, NormalizedKernelMixin, StationaryKernelMixin  # noqa: PLC0415

    class Laplacian(StationaryKernelMixin, NormalizedKernelMixin, Kernel):  # type: ignore[misc]
        """exp(-|x - y|_1) with fixed length scale."""

        def __init__(self) -> None:
            """No parameters; scikit-learn reads them from here."""

        def __call__(self, left: Any, right: Any = None, eval_gradient: bool = False) -> Any:  # noqa: ANN401, ARG002, FBT001, FBT002
            return np.exp(-cdist(left, left if right is None else right, "cityblock"))

    return Laplacian()
