"""A list that follows the belief: some of its first ten places go to the fault types that are next likely.

Ten items of the most likely type are right or wrong together. Let b be the belief in the fault types, d_i = 1 / log2(i
+ 1) the discounts of NDCG@10 and c_i the type at place i. The list is the one with the largest

    sum over i of d_i b(c_i) / sum over i of d_i   +   spread * sum over the types c in the list of b(c)

the expected NDCG@10 and, times `spread`, the expected hit rate at ten. One item of a type is enough for a hit, and the
last places cost least: so the best list is the first 10 - m items by score and one item each, the first by score, of
the m likeliest types that are not among them. m is found by trying all.

The belief is the posterior, mixed with what the first places of the retrieval say: they know of likenesses that the
labels did not teach.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readbench.engine.rerankers._ridge import Array

LISTED = 10
"""Places that are spread; the rest of the list follows by score."""
DISCOUNTS: Array = 1 / np.log2(np.arange(2, LISTED + 2))
RETRIEVED = 0.2
"""Weight of the retrieval in the belief."""
FADES = 10
"""Place of the retrieval at which an item's say is 1 / e of that of the first."""


def mix_belief(posterior: Array, guesses: Array, candidates: NDArray[np.int64]) -> Array:
    """(M, C) the belief in the fault types: the posterior, and what the first places of the retrieval say.

    Args:
        posterior: (M, C) probabilities of the queries' types.
        guesses: (N, C) probabilities of the items' types.
        candidates: (M, K) items, in the order of the retrieval.
    """
    first = candidates[:, : 5 * FADES]
    say = np.exp(-np.arange(first.shape[1]) / FADES)
    found = np.einsum("k,mkc->mc", say, guesses[first])
    total = found.sum(axis=1, keepdims=True)
    near = np.divide(found, total, out=posterior.astype(np.float64), where=total > 0)
    belief: Array = (1 - RETRIEVED) * posterior + RETRIEVED * near
    return belief


def choose_spread(scores: Array, types: NDArray[np.intp], belief: Array, spread: Array) -> NDArray[np.bool_]:
    """(M, K) the items of the first places.

    Args:
        scores: (M, K) of the candidates; larger is better, equal ones keep their order.
        types: (M, K) columns of their most likely fault types; -1 for those of none.
        belief: (M, C) in the fault types.
        spread: (M,) what the expected hit rate is worth beside the expected NDCG.
    """
    listed = np.zeros(scores.shape, bool)
    order = np.argsort(-scores, axis=1, kind="stable")
    for row, own, kinds, shares, worth in zip(listed, order, types, belief, spread, strict=True):
        row[own[_choose(kinds[own], shares, worth)]] = True
    return listed


def _choose(types: NDArray[np.intp], belief: Array, spread: float) -> NDArray[np.intp]:
    """Places of the best list in the order by score, in which items have these types."""
    kinds, first = np.unique(types, return_index=True)
    first = first[kinds >= 0]
    by_belief = first[np.argsort(-belief[types[first]], kind="stable")]
    size = min(LISTED, len(types))
    best, most = np.arange(size), -np.inf
    for others in range(size):
        head = np.arange(size - others)
        tail = by_belief[~np.isin(types[by_belief], types[head])][:others]
        if len(tail) < others:
            break
        places = np.concatenate([head, tail])
        worth = _worth(types[places], belief, spread)
        if worth > most:
            best, most = places, worth
    return best


def _worth(types: NDArray[np.intp], belief: Array, spread: float) -> float:
    """The objective, for a list of items of these types."""
    known = types >= 0
    gain = (DISCOUNTS[: len(types)][known] * belief[types[known]]).sum() / DISCOUNTS[: len(types)].sum()
    return float(gain + spread * belief[np.unique(types[known])].sum())
