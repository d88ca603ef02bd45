"""Scores of a corpus in blocks of consecutive items: all of them, or the best in bounded memory.

A retriever that says how it scores a block gets its matrix and its search from the same numbers, so that a search finds
what ranking the matrix would find, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from readbench.engine.abilities import Hits
from readbench.engine.kernels.threads import Team
from readbench.engine.protocols import Scores
from readbench.engine.ranking import rank
from readbench.errors import ParameterError, UsageError

Block = tuple[int, Scores]
"""Position of the first item, and the scores (Q, B) of this and the next."""
PER_THREAD = 4
"""Pieces that each thread scores between two blocks."""


def score_blocks(items: int, size: int, work: Callable[[slice], Scores]) -> Iterator[Block]:
    """Blocks of scores in corpus order, their pieces scored side by side on all threads.

    Args:
        items: in the corpus.
        size: items of a piece.
        work: scores (Q, B) of the B items of a piece.

    >>> [(start, scores.shape) for start, scores in score_blocks(5, 2, lambda at: np.zeros((3, at.stop - at.start)))]
    [(0, (3, 5))]
    """
    pieces = [slice(start, min(start + size, items)) for start in range(0, items, size)]
    with Team() as team:
        for at in range(0, len(pieces), PER_THREAD * team.size):
            some = pieces[at : at + PER_THREAD * team.size]
            yield some[0].start, np.concatenate(team.each(work, some), axis=1)


def fill_scores(blocks: Iterable[Block], out: Scores) -> Scores:
    """Write all blocks into the matrix (Q, N)."""
    for start, scores in blocks:
        out[:, start : start + scores.shape[1]] = scores
    return out


def best_of(blocks: Iterable[Block], queries: int, k: int) -> Hits:
    """The k best of all blocks for each query, best first; ties keep corpus order.

    >>> blocks = [(0, np.array([[0.1, 0.9]], np.float32)), (2, np.array([[0.9, 0.5]], np.float32))]
    >>> best_of(blocks, 1, 3).indices
    array([[1, 2, 3]])
    """
    best = Hits(np.empty((queries, 0), np.int64), np.empty((queries, 0), np.float32))
    for start, scores in blocks:
        best = merge_hits([best, top(scores, k)], [0, start], k)
    return best


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


def top(scores: Scores, k: int) -> Hits:
    """The k best of a matrix (Q, N) for each query, best first; ties keep corpus order."""
    require_places(k)
    order = rank(scores, k)
    return Hits(order, np.take_along_axis(scores, order, axis=1))


def require_places(k: int) -> None:
    """Refuse a search for nothing."""
    if k < 1:
        raise ParameterError(f"The 'k' parameter of search must be an int in the range [1, inf). Got {k} instead.")
