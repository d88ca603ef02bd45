"""Exact nearest vectors on a CPU: the k best of a range of the corpus for each query, in one pass.

What the codes (`readbench.engine.kernels.codes`) cannot rule out is compared in double precision. The k best so far are
a heap whose root is the worst of them: what comes next has to beat the root. Ties are broken by position: of equal
scores, the item that comes first in the corpus is better.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from readbench.engine.kernels.codes import (
    CHUNK,
    KINDS,
    QUERIES,
    ROWS,
    Doubles,
    Floats,
    Ints,
    add_products,
    find_promising,
    pack_panel,
)
from readbench.engine.kernels.compiling import compiled

HeapScores = NDArray[np.float32]
Longs = NDArray[np.int64]

_heap_float, _heap_int = types.float32, types.intp


@compiled(types.boolean(_heap_float, _heap_int, _heap_float, _heap_int))
def behind(score: np.float32, item: int, other: np.float32, other_item: int) -> bool:
    """Whether an item ranks behind another: lower score, or the same and later in the corpus."""
    return bool(score < other or (score == other and item > other_item))


@compiled(types.none(types.float32[::1], types.int64[::1], _heap_float, _heap_int))
def replace_root(scores: HeapScores, items: Longs, score: np.float32, item: int) -> None:
    """Put an item in place of the root of a heap and let it sink to where it belongs."""
    place = 0
    while 2 * place + 1 < len(scores):
        child = 2 * place + 1
        if child + 1 < len(scores) and behind(scores[child + 1], items[child + 1], scores[child], items[child]):
            child += 1
        if not behind(scores[child], items[child], score, item):
            break
        scores[place], items[place] = scores[child], items[child]
        place = child
    scores[place], items[place] = score, item


_int, _single, _double = types.intp, types.float32, types.float64
_floats = types.float32[::1]
_vector, _matrix = (KINDS.Array(types.float32, axes, "C", readonly=True) for axes in (1, 2))
_ROUNDING = 2.0**-22
"""More than what a score loses when it is stored in single precision."""


@compiled(KINDS.UniTuple(_double, 2)(_vector, _vector), any_order=True)
def _product(query: Floats, row: Floats) -> tuple[float, float]:
    """Inner products of the row with the query and with itself."""
    product = square = 0.0
    for k in range(len(query)):
        value = np.float64(row[k])
        product += np.float64(query[k]) * value
        square += value * value
    return product, square


@compiled(_double(_vector, _vector), any_order=True)
def _squared_distance(query: Floats, row: Floats) -> float:
    total = 0.0
    for k in range(len(query)):
        difference = np.float64(query[k]) - np.float64(row[k])
        total += difference * difference
    return total


@compiled(_single(_vector, _double, _vector, types.boolean))
def exact_score(query: Floats, length: float, row: Floats, cosine: bool) -> np.float32:  # noqa: FBT001
    """Cosine (0 with a vector of length 0) or negative Euclidean distance."""
    if not cosine:
        return np.float32(-np.sqrt(_squared_distance(query, row)))
    product, square = _product(query, row)
    size = length * np.sqrt(square)
    return np.float32(product / size) if size > 0 else np.float32(0)


@compiled(types.void(_matrix, _matrix, types.int64[:, ::1], types.float32[:, ::1]))
def distances_of_pairs(left: Floats, right: Floats, pairs: Longs, out: Floats) -> None:
    """Write the Euclidean distance of left[q] and right[n] to out[q, n], for the pairs (q, n) in rows (P, 2)."""
    for pair in range(len(pairs)):
        q, n = pairs[pair]
        out[q, n] = np.float32(np.sqrt(_squared_distance(left[q], right[n])))


@compiled(_double(_single, _double, types.boolean))
def _threshold(worst: np.float32, length: float, cosine: bool) -> float:  # noqa: FBT001
    """What the bound of `find_promising` must reach for a score above `worst`, with room for rounding."""
    if not np.isfinite(worst):
        return -np.inf
    score = np.float64(worst)
    if cosine:
        return score - _ROUNDING
    # |q - x|^2 <= s^2 is  2 q.x - |x|^2 >= |q|^2 - s^2;  1e-12 is more than double precision loses in |q|^2.
    return length * length * (1 - 1e-12) - score * score * (1 + _ROUNDING)


_SCAN = _int(
    *(_matrix, _int, _int, _matrix, types.float64[::1], _floats, types.boolean),
    *(types.int32[::1], _int, _double, types.float64[::1], types.float32[:, ::1], types.int64[:, ::1]),
    *(_floats, _floats),
)


@compiled(_SCAN)
def scan(  # noqa: PLR0913, PLR0917 - flat arrays in, flat arrays out
    corpus: Floats,
    first: int,
    last: int,
    queries: Floats,
    lengths: Doubles,
    centre: Floats,
    cosine: bool,  # noqa: FBT001
    packed: Ints,
    top: int,
    coarseness: float,
    tiles: Doubles,
    scores: Floats,
    items: Longs,
    scratch: Floats,
    panel: Floats,
) -> int:
    """Heaps of the best of corpus vectors [first, last).

    Args:
        corpus: (N, D).
        first: where the range begins.
        last: where it ends.
        queries: (Q, D) as they are compared at last.
        lengths: (Q,) of the queries (of the shifted ones for distances).
        centre: (D,) see `pack_panel`.
        cosine: by cosine, not by distance.
        packed: from `pack_queries`.
        top: see `pack_panel`.
        coarseness: see `pack_panel`.
        tiles: (tiles, 3, QUERIES) flat, the numbers of the queries for `find_promising`; the last of them is updated.
        scores: (Q, k) heaps, filled with -inf.
        items: (Q, k) filled with numbers behind all positions.
        scratch: see `pack_panel`.
        panel: see `pack_panel`.

    Returns:
        The first vector that is not finite, or -1.
    """
    rows, sums, found = np.zeros(3 * ROWS), np.zeros(QUERIES * ROWS), np.zeros(QUERIES, np.int64)
    pairs, used = len(panel) // ROWS, (corpus.shape[1] + 1) // 2
    for start in range(first, last, ROWS):
        stop = min(start + ROWS, last)
        bad = pack_panel(corpus, start, stop, centre, top, coarseness, cosine, scratch, panel, rows)
        if bad >= 0:
            return bad
        for tile in range((len(queries) + QUERIES - 1) // QUERIES):
            sums[:] = 0
            for pair in range(0, used, CHUNK):
                place = (tile * pairs + pair) * QUERIES
                add_products(panel, pair * ROWS, packed, place, min(CHUNK, used - pair), sums)
            find_promising(sums, rows, tiles, 3 * tile * QUERIES, found)
            for q in range(tile * QUERIES, min(len(queries), (tile + 1) * QUERIES)):
                bits = found[q - tile * QUERIES]
                for item in range(start, stop):
                    if not bits >> (item - start):  # nothing promising is left in the panel
                        break
                    if not bits >> (item - start) & 1:
                        continue
                    score = exact_score(queries[q], lengths[q], corpus[item], cosine)
                    if behind(scores[q, 0], items[q, 0], score, item):
                        replace_root(scores[q], items[q], score, item)
                        # From here on a vector must beat the new root of the heap.
                        place = (3 * tile + 2) * QUERIES + q - tile * QUERIES
                        tiles[place] = _threshold(scores[q, 0], lengths[q], cosine)
    return -1
