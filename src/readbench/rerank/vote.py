"""Majority-Vote: the class most first hits have is the query's, and its cases come first."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from readbench.parameters import Interval
from readbench.registry import RERANKERS
from readbench.rerank.base import Pool, Scores
from readbench.windows import UNLABELLED


@RERANKERS.register("majvote", title="Majority-Vote", family="reranker", aliases=["majority-vote"], positional="k")
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

    def __init__(
        self,
        k: Annotated[int, Interval(1)] = 10,
        scope: Literal["pool", "corpus"] = "pool",
        pool: Annotated[int, Interval(1)] = 20,
    ) -> None:
        self.k = k
        self.scope = scope
        self.pool = pool

    @property
    def depth(self) -> int | None:
        """The pool, and at least the k hits that vote; None for the whole corpus."""
        return None if self.scope == "corpus" else max(self.pool, self.k)

    def rerank(self, pool: Pool) -> Scores:
        """(Q, K) 1 for candidates of the elected class and 0 for others; the base scores where none is elected."""
        elected = vote(pool.labels[:, : self.k])[:, None]
        return np.where(elected == UNLABELLED, pool.scores, pool.labels == elected).astype(np.float32)


def vote(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """(Q,) most frequent label of each row of (Q, K) labels; of equally frequent ones the first in the row.

    Unlabelled entries abstain; a row of them elects nobody (-1).

    >>> vote(np.array([[4, 0, 0, 4, -1, -1, -1], [-1] * 7], np.int32)).tolist()
    [4, -1]
    """
    equal = (labels[:, :, None] == labels[:, None, :]) & (labels != UNLABELLED)[:, :, None]
    winner = equal.sum(axis=2).argmax(axis=1)
    elected: NDArray[np.int32] = labels[np.arange(len(labels)), winner]
    return np.where((labels == UNLABELLED).all(axis=1), np.int32(UNLABELLED), elected)
