"""Classic rerankers: the vote of the labelled, pseudo-relevance feedback and neighbour purity.

* `MajorityVote`: the class most first hits have is the query's, and its cases come first.
* `PseudoRelevanceFeedback`: what lies near the first hits moves up, without any label.
* `Purity` and `QueryPurity`: candidates whose neighbours in the corpus share their label are the more trustworthy ones.

Terms of different scales are brought onto one by z-scores over the candidates of each query (`standardise_scores`).
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
    """Candidates of the class most of the first k hits have, above all others.

    Normal is a class like any other; candidates without a label stay with the others. Within both groups the base
    order holds. Without a label among the first k nothing changes.

    Args:
        k: how many first hits vote, those without a label abstaining.
        scope: what is reordered, the pool or the whole corpus.
        pool: how many candidates the pool has.
    """

    uses_labels = True

    k: Annotated[int, ParameterRange(1)] = 10
    scope: Literal["pool", "corpus"] = "pool"
    pool: Annotated[int, ParameterRange(1)] = 20

    @property
    def depth(self) -> int | None:
        """The pool, and at least the k hits that vote; None for the whole corpus."""
        return None if self.scope == "corpus" else max(self.pool, self.k)

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) 1 for candidates of the elected class and 0 for others; the base scores where none is elected."""
        elected = count_votes(pool.labels[:, : self.k])[:, None]
        return np.where(elected == UNLABELLED, pool.scores, pool.labels == elected).astype(np.float32)


def count_votes(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """(Q,) most frequent label of each row of (Q, K) labels; of equally frequent ones the first in the row.

    Unlabelled entries abstain; a row of them elects nobody (-1).

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
    """Each row with mean 0 and deviation 1 over its known values.

    Args:
        values: (Q, K) one term of a score.
        known: (Q, K) which values count; all by default.

    Returns:
        (Q, K); zero where a value is unknown, that is neither rewarded nor punished, and in rows without spread.

    >>> standardise_scores(np.array([[1.0, 3.0, 9.0]]), np.array([[True, True, False]])).tolist()
    [[-1.0, 1.0, 0.0]]
    """
    known = np.ones(values.shape, bool) if known is None else known
    wide = np.where(known, values, 0.0).astype(np.float64)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    centred = np.where(known, wide - wide.sum(axis=1, keepdims=True) / count, 0.0)
    spread = np.sqrt((centred**2).sum(axis=1, keepdims=True) / count)
    # What is left of equal values after subtracting their mean is rounding, not spread.
    real = spread > 1e-9 * np.abs(wide).max(axis=1, keepdims=True, initial=0.0)
    scaled: NDArray[np.float64] = np.divide(centred, spread, out=np.zeros_like(centred), where=real)
    return scaled


@RERANKERS.register("prf", title="PRF", family="reranker", positional="k")
@dataclass(eq=False)
class PseudoRelevanceFeedback:
    """Weighs the base score against the distance to the centroid of the first k hits (after Rocchio, 1971).

    s'(q, x) = beta s(q, x) - (1 - beta) |phi(x) - c|, with c the mean of phi over the first k candidates.

    Args:
        k: how many first hits make the centroid; all candidates where there are fewer.
        beta: weight of the base score.
        scale: `printed` adds the two terms as they are, as the paper prints it; `z` z-scores both over the pool first,
            which matters for base scores of another scale than the distances, such as those of a fused list.
        pool: how many candidates are reordered.
    """

    uses_labels = False

    k: Annotated[int, ParameterRange(1)] = 10
    beta: Annotated[float, ParameterRange(0, 1)] = 0.5
    scale: Literal["printed", "z"] = "printed"
    pool: Annotated[int, ParameterRange(1)] = 20

    @property
    def depth(self) -> int:
        """The pool, and at least the k hits of the centroid."""
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
    """Weighs the base score against the share of a candidate's neighbours that have its label.

    s'(q, x) = alpha z(s(q, x)) + (1 - alpha) z(pi(x)), z-scored over the pool. Where pi is unknown (see
    `neighbour_purity`) its z is 0, so that a missing label neither lifts nor sinks a candidate.

    Args:
        k: how many neighbours in the corpus are looked at.
        alpha: weight of the base score.
        scope: what is reordered, the pool or the whole corpus.
        pool: how many candidates the pool has.
    """

    uses_labels = True

    k: Annotated[int, ParameterRange(1)] = 10
    alpha: Annotated[float, ParameterRange(0, 1)] = 0.5
    scope: Literal["pool", "corpus"] = "pool"
    pool: Annotated[int, ParameterRange(1)] = 20

    @property
    def depth(self) -> int | None:
        """The pool, or None for the whole corpus; the k neighbours lie in the corpus and ask for no deeper one."""
        return None if self.scope == "corpus" else self.pool

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores; the base scores for queries that know no purity."""
        purity, known = neighbour_purity(pool, self.k)
        return _weighed(pool, purity, known, self.alpha)


@RERANKERS.register("qpurity", title="QPurity", family="reranker", positional="k")
@dataclass(eq=False)
class QueryPurity:
    """Purity that counts only for candidates of the class that a vote of the first hits gives the query.

    A candidate of another class has purity 0 and one without a label an unknown purity, as in `Purity`. Where nobody
    votes nothing changes.

    Args:
        k: how many neighbours in the corpus are looked at.
        vote: how many first hits vote, those without a label abstaining.
        alpha: weight of the base score.
        scope: what is reordered, the pool or the whole corpus.
        pool: how many candidates the pool has.
    """

    uses_labels = True

    k: Annotated[int, ParameterRange(1)] = 10
    vote: Annotated[int, ParameterRange(1)] = 10
    alpha: Annotated[float, ParameterRange(0, 1)] = 0.5
    scope: Literal["pool", "corpus"] = "pool"
    pool: Annotated[int, ParameterRange(1)] = 20

    @property
    def depth(self) -> int | None:
        """The pool, and at least the hits that vote; None for the whole corpus."""
        return None if self.scope == "corpus" else max(self.pool, self.vote)

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores; the base scores for queries that know no purity or elect no class."""
        purity, known = neighbour_purity(pool, self.k)
        elected = count_votes(pool.labels[:, : self.vote])[:, None]
        other = pool.labelled & (pool.labels != elected)
        return _weighed(pool, np.where(other, 0.0, purity), (known | other) & (elected != UNLABELLED), self.alpha)


def neighbour_purity(pool: Pool, k: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Share of each candidate's k nearest neighbours in the corpus that have its label.

    Neighbours are found by the pool's own scorer, an item is never its own, and those without a label do not count:
    the share is of the labelled ones. It is unknown for a candidate without a label or without labelled neighbours.
    Which labels are known is a matter of the query.

    Returns:
        (Q, K) shares, zero where unknown, and (Q, K) which are known.
    """
    corpus = len(pool.items)
    if corpus < 2 or not pool.labelled.any():  # comparing the corpus with itself may take long
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
    """(Q, K) weighted sum of the z-scored base scores and purities; the base scores where no purity is known."""
    mixed = alpha * standardise_scores(pool.scores) + (1 - alpha) * standardise_scores(purity, known)
    return np.where(known.any(axis=1, keepdims=True), mixed, pool.scores).astype(np.float32)
