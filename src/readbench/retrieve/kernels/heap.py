"""The k best so far as a heap whose root is the worst of them: what comes next has to beat the root.

Ties are broken by position: of equal scores, the item that comes first in the corpus is better.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from readbench.kernels.compiling import compiled

Floats = NDArray[np.float32]
Longs = NDArray[np.int64]

_single, _int = types.float32, types.intp


@compiled(types.boolean(_single, _int, _single, _int))
def behind(score: np.float32, item: int, other: np.float32, other_item: int) -> bool:
    """Whether an item ranks behind another: lower score, or the same and later in the corpus."""
    return bool(score < other or (score == other and item > other_item))


@compiled(types.none(types.float32[::1], types.int64[::1], _single, _int))
def replace_root(scores: Floats, items: Longs, score: np.float32, item: int) -> None:
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
