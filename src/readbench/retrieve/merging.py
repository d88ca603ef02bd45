"""Top-k lists of the parts of a corpus, merged into those of the whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from readbench.errors import UsageError
from readbench.ranking import rank
from readbench.retrieve.base import Hits


def merge_hits(parts: Sequence[Hits], starts: Sequence[int], k: int) -> Hits:
    """The k best of the whole corpus, best first; ties keep corpus order.

    Exact: an item among the k best of the whole is among the k best of its part. Lists stand in the order of the parts,
    and within a part ties already do, so a stable sort leaves equal scores in corpus order.

    Args:
        parts: hits in consecutive parts of the corpus, (Q, k) or fewer where a part is smaller; positions count from
            the start of the part.
        starts: position of the first item of each part in the whole, ascending.
        k: how many.

    >>> one, two = (Hits(np.array([[0, 1]]), np.array([[0.9, s]], np.float32)) for s in (0.1, 0.9))
    >>> merge_hits([one, two], [0, 5], 3).indices
    array([[0, 5, 6]])
    """
    if not parts or len(parts) != len(starts) or list(starts) != sorted(starts):
        raise UsageError(f"Expected one ascending start for each of the parts; got {len(parts)} and {list(starts)}.")
    scores = np.concatenate([part.scores for part in parts], axis=1)
    indices = np.concatenate([part.indices + start for part, start in zip(parts, starts, strict=True)], axis=1)
    order = rank(scores, k)
    return Hits(np.take_along_axis(indices, order, axis=1), np.take_along_axis(scores, order, axis=1))
