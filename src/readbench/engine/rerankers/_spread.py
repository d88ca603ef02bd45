"""Diversified lists: some of the first ten places go to the next likely fault types.

Ten items of the most likely type are right or wrong together. Let b be the belief in the fault types, d_i = 1 / log2(i
+ 1) the discounts of NDCG@10 and c_i the type at place i. The list maximises

    sum over i of d_i b(c_i) / sum over i of d_i   +   spread * sum over the types c in the list of b(c)

the expected NDCG@10 plus `spread` times the expected hit rate at ten. One item of a type is enough for a hit, and the
last places cost least. So the best list is the first 10 - m items by score, then the best item of each of the m
likeliest types not among them; all m are tried.

The belief is the posterior mixed with the types of the first retrieved items, which know similarities that the labels
did not teach.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readbench.engine.rerankers._ridge import Array

SPREAD_PLACES = 10
"""Places that are diversified; the rest of the list follows by score."""
DISCOUNTS: Array = 1 / np.log2(np.arange(2, SPREAD_PLACES + 2))
RETRIEVED_WEIGHT = 0.2
"""Weight of the retrieved items in the belief."""
RETRIEVED_DECAY = 10
"""Number of places over which the weight of a retrieved item falls to 1 / e."""


def mix_belief(posterior: Array, guesses: Array, candidates: NDArray[np.int64]) -> Array:
    """(M, C) belief in the fault types: the posterior mixed with the types of the first retrieved items.

    Args:
        posterior: (M, C) probabilities of the queries' types.
        guesses: (N, C) probabilities of the items' types.
        candidates: (M, K) items in retrieval order.
    """
    first = candidates[:, : 5 * RETRIEVED_DECAY]
    say = np.exp(-np.arange(first.shape[1]) / RETRIEVED_DECAY)
    found = np.einsum("k,mkc->mc", say, guesses[first])
    total = found.sum(axis=1, keepdims=True)
    near = np.divide(found, total, out=posterior.astype(np.float64), where=total > 0)
    belief: Array = (1 - RETRIEVED_WEIGHT) * posterior + RETRIEVED_WEIGHT * near
    return belief


def choose_spread(scores: Array, types: NDArray[np.intp], belief: Array, spread: Array) -> NDArray[np.bool_]:
    """(M, K) mask of the items in the first places.

    Args:
        scores: (M, K) of the candidates; larger is better, ties keep their order.
        types: (M, K) most likely fault type of each candidate, as a column; -1 for none.
        belief: (M, C) in the fault types.
        spread: (M,) weights of the expected hit rate relative to the expected NDCG.
    """
    listed = np.zeros(scores.shape, bool)
    order = np.argsort(-scores, axis=1, kind="stable")
    for row, ranked, kinds, shares, weight in zip(listed, order, types, belief, spread, strict=True):
        row[ranked[_choose(kinds[ranked], shares, weight)]] = True
    return listed


def _choose(types: NDArray[np.intp], belief: Array, spread: float) -> NDArray[np.intp]:
    """Positions of the best list among items sorted by score, with these types."""
    kinds, first = np.unique(types, return_index=True)
    first = first[kinds >= 0]
    by_belief = first[np.argsort(-belief[types[first]], kind="stable")]
    size = min(SPREAD_PLACES, len(types))
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
    """The objective for a list of items with these types."""
    known = types >= 0
    gain = (DISCOUNTS[: len(types)][known] * belief[types[known]]).sum() / DISCOUNTS[: len(types)].sum()
    return float(gain + spread * belief[np.unique(types[known])].sum())
