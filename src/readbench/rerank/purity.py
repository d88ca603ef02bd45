"""Purity: candidates whose neighbours in the corpus share their label are the more trustworthy ones."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from readbench.parameters import Interval
from readbench.ranking import rank
from readbench.registry import RERANKERS
from readbench.rerank.base import Pool, Scores
from readbench.rerank.vote import vote
from readbench.rerank.zscores import zscored
from readbench.windows import UNLABELLED


@RERANKERS.register("purity", title="Purity", family="reranker", positional="k")
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

    def __init__(
        self,
        k: Annotated[int, Interval(1)] = 10,
        alpha: Annotated[float, Interval(0, 1)] = 0.5,
        scope: Literal["pool", "corpus"] = "pool",
        pool: Annotated[int, Interval(1)] = 20,
    ) -> None:
        self.k = k
        self.alpha = alpha
        self.scope = scope
        self.pool = pool

    @property
    def depth(self) -> int | None:
        """The pool, or None for the whole corpus; the k neighbours lie in the corpus and ask for no deeper one."""
        return None if self.scope == "corpus" else self.pool

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores; the base scores for queries that know no purity."""
        purity, known = neighbour_purity(pool, self.k)
        return _weighed(pool, purity, known, self.alpha)


@RERANKERS.register("qpurity", title="QPurity", family="reranker", positional="k")
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

    def __init__(
        self,
        k: Annotated[int, Interval(1)] = 10,
        vote: Annotated[int, Interval(1)] = 10,
        alpha: Annotated[float, Interval(0, 1)] = 0.5,
        scope: Literal["pool", "corpus"] = "pool",
        pool: Annotated[int, Interval(1)] = 20,
    ) -> None:
        self.k = k
        self.vote = vote
        self.alpha = alpha
        self.scope = scope
        self.pool = pool

    @property
    def depth(self) -> int | None:
        """The pool, and at least the hits that vote; None for the whole corpus."""
        return None if self.scope == "corpus" else max(self.pool, self.vote)

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) new scores; the base scores for queries that know no purity or elect no class."""
        purity, known = neighbour_purity(pool, self.k)
        elected = vote(pool.labels[:, : self.vote])[:, None]
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
    mixed = alpha * zscored(pool.scores) + (1 - alpha) * zscored(purity, known)
    return np.where(known.any(axis=1, keepdims=True), mixed, pool.scores).astype(np.float32)
