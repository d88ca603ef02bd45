"""Classic rerankers: majority vote, pseudo-relevance feedback and neighbour purity.

* `MajorityVote`: cases of the most frequent class among the first hits come first.
* `PseudoRelevanceFeedback`: items near the first hits move up, without labels.
* `Purity` and `QueryPurity`: candidates whose corpus neighbours share their label move up.

Terms of different scales are z-scored over the candidates of each query (`standardise_scores`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from readbench.engine.parameters import ParameterRange
from readbench.engine.protocols import Pool, Scores
from readbench.engine.ranking import rank
from readbench.engine.registry import RERANKERS
from readbench.engine.windows import UNLABELLED


@RERANKERS.register("majvote", title="Majority-Vote", family="reranker", aliases=["majority-vote"], positional="k")
@dataclass(eq=False)
class MajorityVote:
    """Ranks candidates of the most frequent class among the first k hits above all others.

    Normal is a class like any other; candidates without a label stay with the others. Both groups keep the base order.
    Without a label among the first k nothing changes.

    Args:
        k: number of first hits that vote; those without a label abstain.
        scope: reorder the pool or the whole corpus.
        pool: number of candidates in the pool.
    """

    uses_labels = True

    k: Annotated[int, ParameterRange(1)] = 10
    scope: Literal["pool", "corpus"] = "pool"
    pool: Annotated[int, ParameterRange(1)] = 20

    @property
    def depth(self) -> int | None:
        """Size of the pool, at least k; None for the whole corpus."""
        return None if self.scope == "corpus" else max(self.pool, self.k)

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) 1 for candidates of the elected class and 0 for others; the base scores if none is elected."""
        elected = count_votes(pool.labels[:, : self.k])[:, None]
        return np.where(elected == UNLABELLED, pool.scores, pool.labels == elected).astype(np.float32)


def count_votes(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """(Q,) most frequent label of each row of (Q, K) labels; ties go to the first in the row.

    Unlabelled entries abstain; a row without labels elects -1.

    >>> count_votes(np.array([[4, 0, 0, 4, -1, -1, -1], [-1] * 7], np.int32)).tolist()
    [4, -1]
    """
    equal = (labels[:, :, None] == labels[:, None, :]) & (labels != UNLABELLED)[:, :, None]
    winner = equal.sum(axis=2).argmax(axis=1)
    elected: NDArray[np.int32] = labels[np.arange(len(labels)), winner]
    return np.where((labels == UNLABELLED).all(axis=1), np.int32(UNLABELLED), elected)


def standardise_scores(
    values: NDArray[np.floating[Any]], known: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Scale each row to mean 0 and deviation 1 over its known values.

    Args:
        values: (Q, K) one term of a score.
        known: (Q, K) known values; all by default.

    Returns:
        (Q, K); zero, which is neutral, for unknown values and in constant rows.

    >>> standardise_scores(np.array([[1.0, 3.0, 9.0]]), np.array([[True, True, False]])).tolist()
    [[-1.0, 1.0, 0.0]]
    """
    known = np.ones(values.shape, bool) if known is None else known
    wide = np.where(known, values, 0.0).astype(np.float64)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    centred = np.where(known, wide - wide.sum(axis=1, keepdims=True) / count, 0.0)
    spread = np.sqrt((centred**2).sum(axis=1, keepdims=True) / count)
    # Residues of equal values after subtracting their mean are rounding.
    real = spread > 1e-9 * np.abs(wide).max(axis=1, keepdims=True, initial=0.0)
    scaled: NDArray[np.float64] = np.divide(centred, spread, out=np.zeros_like(centred), where=real)
    return scaled


@RERANKERS.register("prf", title="PRF", family="reranker", positional="k")
@dataclass(eq=False)
class PseudoRelevanceFeedback:
    """Combines the base score with the distance to the centroid of the first k hits (after Rocchio, 1971).

    s'(q, x) = beta s(q, x) - (1 - beta) |phi(x) - c|, with c the mean of phi over the first k candidates.

    Args:
        k: number of first hits in the centroid.
        beta: weight of the base score.
        scale: `printed` adds the two terms as printed in the paper; `z` z-scores both over the pool first, which
            matters if base scores and distances have different scales, as for a fused list.
        pool: number of candidates that are reordered.
    """

    uses_labels = False

    k: Annotated[int, ParameterRange(1)] = 10
    beta: Annotated[float, ParameterRange(0, 1)] = 0.5
    scale: Literal["printed", "z"] = "printed"
    pool: Annotated[int, ParameterRange(1)] = 20

    @property
    def depth(self) -> int:
        """Size of the pool, at least k."""
        return max(self.pool, self.k)

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores."""
        base, distance = pool.scores.astype(np.float64), self._distance(pool)
        if self.scale == "z":
            base, distance = standardise_scores(base), standardise_scores(distance)
        return (self.beta * base - (1 - self.beta) * distance).astype(np.float32)

    def _distance(self, pool: Pool) -> NDArray[np.float64]:
        """(Q, K) Euclidean distance of each candidate to its query's centroid."""
        distance = np.empty(pool.candidates.shape)
        for row, candidates in zip(distance, pool.candidates, strict=True):
            vectors = pool.items[candidates].astype(np.float64)
            row[:] = np.linalg.norm(vectors - vectors[: self.k].mean(axis=0), axis=1)
        return distance


@RERANKERS.register("purity", title="Purity", family="reranker", positional="k")
@dataclass(eq=False)
class Purity:
    """Combines the base score with the share of a candidate's neighbours that have its label.

    s'(q, x) = alpha z(s(q, x)) + (1 - alpha) z(pi(x)), z-scored over the pool. If pi is unknown (see
    `neighbour_purity`) its z is 0, so that a missing label is neutral.

    Args:
        k: number of neighbours in the corpus.
        alpha: weight of the base score.
        scope: reorder the pool or the whole corpus.
        pool: number of candidates in the pool.
    """

    uses_labels = True

    k: Annotated[int, ParameterRange(1)] = 10
    alpha: Annotated[float, ParameterRange(0, 1)] = 0.5
    scope: Literal["pool", "corpus"] = "pool"
    pool: Annotated[int, ParameterRange(1)] = 20

    @property
    def depth(self) -> int | None:
        """Size of the pool, or None for the whole corpus."""
        return None if self.scope == "corpus" else self.pool

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores; the base scores for queries without known purities."""
        purity, known = neighbour_purity(pool, self.k)
        return _weighed(pool, purity, known, self.alpha)


@RERANKERS.register("qpurity", title="QPurity", family="reranker", positional="k")
@dataclass(eq=False)
class QueryPurity:
    """Purity that counts only for candidates of the class that the first hits vote for.

    A candidate of another class has purity 0 and one without a label an unknown purity, as in `Purity`. Without votes
    nothing changes.

    Args:
        k: number of neighbours in the corpus.
        vote: number of first hits that vote; those without a label abstain.
        alpha: weight of the base score.
        scope: reorder the pool or the whole corpus.
        pool: number of candidates in the pool.
    """

    uses_labels = True

    k: Annotated[int, ParameterRange(1)] = 10
    vote: Annotated[int, ParameterRange(1)] = 10
    alpha: Annotated[float, ParameterRange(0, 1)] = 0.5
    scope: Literal["pool", "corpus"] = "pool"
    pool: Annotated[int, ParameterRange(1)] = 20

    @property
    def depth(self) -> int | None:
        """Size of the pool, at least `vote`; None for the whole corpus."""
        return None if self.scope == "corpus" else max(self.pool, self.vote)

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores; the base scores for queries without known purities or an elected class."""
        purity, known = neighbour_purity(pool, self.k)
        elected = count_votes(pool.labels[:, : self.vote])[:, None]
        other = pool.labelled & (pool.labels != elected)
        return _weighed(pool, np.where(other, 0.0, purity), (known | other) & (elected != UNLABELLED), self.alpha)


def neighbour_purity(pool: Pool, k: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Share of each candidate's k nearest corpus neighbours that have its label.

    Neighbours are found by the base scorer and exclude the candidate; those without a label do not count. The share is
    unknown for a candidate without a label or without labelled neighbours. Known labels depend on the query.

    Returns:
        (Q, K) shares, zero if unknown, and (Q, K) mask of known ones.
    """
    corpus = len(pool.items)
    if corpus < 2 or not pool.labelled.any():  # corpus similarity is expensive
        return np.zeros(pool.labels.shape), np.zeros(pool.labels.shape, bool)
    used, places = np.unique(pool.candidates, return_inverse=True)
    similarity = pool.corpus_similarity[used]
    similarity[np.arange(len(used)), used] = -np.inf
    neighbours = rank(similarity, min(k, corpus - 1))[places.reshape(pool.candidates.shape)]
    around = pool.corpus_labels[np.arange(len(neighbours))[:, None, None], neighbours]
    same = ((around == pool.labels[:, :, None]) & (around != UNLABELLED)).sum(axis=2)
    labelled = (around != UNLABELLED).sum(axis=2)
    return same / np.maximum(labelled, 1), pool.labelled & (labelled > 0)


def _weighed(pool: Pool, purity: NDArray[np.float64], known: NDArray[np.bool_], alpha: float) -> Scores:
    """(Q, K) weighted sum of z-scored base scores and purities; the base scores if no purity is known."""
    mixed = alpha * standardise_scores(pool.scores) + (1 - alpha) * standardise_scores(purity, known)
    return np.where(known.any(axis=1, keepdims=True), mixed, pool.scores).astype(np.float32)
