"""Compiled code of symbolic retrieval: the features behind words, and the inverted index.

`project` computes the features of a series, one sliding word window after the other. The index is made in two passes
over bags of words (`tally`, `build_postings`). A search adds, for each word of a query, its weights to the documents
that hold it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from readbench.engine.preparation import RESOLUTION


@njit(cache=True, nogil=True, error_model="numpy")
def project(
    rows: NDArray[np.float32],
    basis: NDArray[np.float64],
    stride: int,
    standardise: bool,  # noqa: FBT001
) -> NDArray[np.float32]:
    """Inner products of every word window with the columns of a basis.

    Sums run in float64 and always in the same order, so that equal stretches of signal give equal features wherever
    they lie: a bin edge may then coincide with a value.

    Args:
        rows: (M, T) series.
        basis: (w, L), w <= T.
        stride: steps from one word window to the next.
        standardise: bring each word window to mean 0 and deviation 1 first; a constant one has features 0.

    Returns:
        (M, W, L) features, W = 1 + (T - w) // stride.
    """
    size, letters = basis.shape
    words = 1 + (rows.shape[1] - size) // stride
    features = np.empty((len(rows), words, letters), np.float32)
    sums = np.empty(letters)
    for i in range(len(rows)):
        for k in range(words):
            part = rows[i, k * stride : k * stride + size]
            shift, scale = _mean_and_scale(part) if standardise else (0.0, 1.0)
            sums[:] = 0
            level = 0.0
            for t in range(size):
                value = (part[t] - shift) * scale
                level += abs(value)
                for letter in range(letters):
                    sums[letter] += value * basis[t, letter]
            # Sums that cancel to less than rounding are zero, so that a flat stretch has one word and not many.
            noise = RESOLUTION * level / size
            for letter in range(letters):
                features[i, k, letter] = sums[letter] if abs(sums[letter]) > noise else 0
    return features


@njit(cache=True, nogil=True, error_model="numpy")
def _mean_and_scale(part: NDArray[np.float32]) -> tuple[float, float]:
    """Mean, and one over the standard deviation; a constant part has scale 0."""
    mean = 0.0
    for value in part:
        mean += value
    mean /= len(part)
    square = 0.0
    for value in part:
        square += (value - mean) ** 2
    deviation = np.sqrt(square / len(part))
    return mean, 1 / deviation if deviation > RESOLUTION * abs(mean) else 0.0


Float = NDArray[np.float32]
Integers = NDArray[np.signedinteger]
Queries = tuple[Integers, Integers, Float]
"""Where each query begins, then the words of all and how often each occurs."""
Postings = tuple[Integers, NDArray[Any]]
"""Where each word begins, then pairs (document, weight): side by side, so that a rare word costs one cache miss."""


@njit(cache=True, nogil=True, error_model="numpy")
def tally(words: Integers, size: int) -> NDArray[np.int64]:
    """(size,) how often each word occurs in a list of them."""
    counts = np.zeros(size, np.int64)
    for word in words:
        counts[word] += 1
    return counts


@njit(cache=True, nogil=True, error_model="numpy")
def build_postings(  # noqa: PLR0913, PLR0917 - what BM25 is made of
    bags: Queries,
    place: NDArray[np.int32],
    field: NDArray[np.int64],
    fields: int,
    weight: NDArray[np.float64],
    k1: float,
    b: float,
    starts: NDArray[np.int64],
    pairs: NDArray[Any],
) -> NDArray[Any]:
    """Fill the postings, in the order of words and then of documents.

    Args:
        bags: where each document begins, then the words of all and how often each occurs in its document.
        place: the number in the index of each word.
        field: (V,) of each word of the index.
        fields: how many there are.
        weight: (V,) of each word of the index, its inverse frequency.
        k1: of BM25.
        b: of BM25.
        starts: (V + 1,) where each word begins.
        pairs: document and weight of each posting, filled and returned.
    """
    pointer, words, times = bags
    means = _field_lengths(bags, 0, len(pointer) - 1, place, field, fields) / (len(pointer) - 1)
    following = starts.copy()
    for document in range(len(pointer) - 1):
        lengths = _field_lengths(bags, document, document + 1, place, field, fields) / means
        for p in range(pointer[document], pointer[document + 1]):
            word, often = place[words[p]], times[p]
            length = lengths[field[word]]
            pairs[following[word]].document = document
            # BM25: idf tf (k1 + 1) / (tf + k1 (1 - b + b |d| / mean |d|)), lengths within the word's own field.
            pairs[following[word]].weight = weight[word] * often * (k1 + 1) / (often + k1 * (1 - b + b * length))
            following[word] += 1
    return pairs


@njit(cache=True, nogil=True, error_model="numpy")
def _field_lengths(
    bags: Queries, first: int, last: int, place: NDArray[np.int32], field: NDArray[np.int64], fields: int
) -> NDArray[np.float64]:
    """(fields,) words of documents [first, last) in each field."""
    pointer, words, times = bags
    lengths = np.zeros(fields)
    for p in range(pointer[first], pointer[last]):
        lengths[field[place[words[p]]]] += times[p]
    return lengths


@njit(cache=True, nogil=True, error_model="numpy")
def all_scores(queries: Queries, postings: Postings, documents: int) -> Float:
    """(Q, N) product of the queries with the postings, two sparse matrices."""
    count = len(queries[0]) - 1
    scores = np.empty((count, documents), np.float32)
    for q in range(count):
        _add_up(queries, q, postings, scores[q])
    return scores


@njit(cache=True, nogil=True, error_model="numpy")
def best_scores(queries: Queries, postings: Postings, documents: int, depth: int) -> tuple[NDArray[np.int64], Float]:
    """(Q, depth) documents and scores, best first and equal ones in order of position; depth <= N."""
    count = len(queries[0]) - 1
    found = np.empty((count, depth), np.int64)
    best = np.empty((count, depth), np.float32)
    scores = np.empty(documents, np.float32)
    for q in range(count):
        _add_up(queries, q, postings, scores)
        _keep_best(scores, found[q], best[q])
    return found, best


@njit(cache=True, nogil=True, error_model="numpy")
def _add_up(queries: Queries, q: int, postings: Postings, scores: Float) -> None:
    """(N,) scores for one query; always in the order of the words, so that equal documents score alike.

    Where the words begin is looked up for all of them beforehand: the loads overlap instead of waiting in turn.
    """
    pointer, words, times = queries
    starts, pairs = postings
    own = words[pointer[q] : pointer[q + 1]]
    first, end = starts[own], starts[own + 1]
    scores[:] = 0
    for k in range(len(own)):
        often = times[pointer[q] + k]
        for p in range(first[k], end[k]):
            scores[pairs[p].document] += often * pairs[p].weight


@njit(cache=True, nogil=True, error_model="numpy")
def _keep_best(scores: Float, found: NDArray[np.int64], best: Float) -> None:
    """Sort the highest scores into a short list; a score must beat the last place to enter it."""
    depth = len(best)
    for document in range(len(scores)):
        score = scores[document]
        if document >= depth and score <= best[-1]:  # of equal scores the earlier document stays
            continue
        place = min(document, depth - 1)
        while place > 0 and best[place - 1] < score:
            best[place], found[place] = best[place - 1], found[place - 1]
            place -= 1
        best[place], found[place] = score, document
