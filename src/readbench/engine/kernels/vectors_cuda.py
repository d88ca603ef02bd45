"""Exact search for the nearest vectors on a GPU: the corpus streams through it once, in blocks.

A product of matrices in single precision tells how similar two vectors can be at most. The few of each block that may
be nearest are compared again in double precision, as on a CPU (`readbench.engine.kernels.nearest`); where others might
be as near, the whole block is. So the answers are the same. Everything here runs on any device of torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readbench.engine.devices import import_optional, use_exact_products
from readbench.engine.kernels.sending import Lane, Transfer, prefetch
from readbench.engine.kernels.threads import Team

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Tensor = Any
"""Of torch, an optional package: its types cannot be named here."""

BLOCK_BYTES = 2**27
"""Of the corpus that are sent at a time."""
TILE_SCORES = 2**24
"""Scores of queries and a block that exist at a time."""
PAIR_NUMBERS = 2**25
"""Numbers that are compared at a time in double precision."""
UNIT = 2.0**-24
"""Largest relative error of one operation in single precision."""
TINIEST = 2.0**-126
"""Smaller numbers may become zero in single precision."""
SPARE = 32
"""Operations beside the sum of D products that the bound allows for; and vectors compared again beside the 2k best."""


class UncomparableError(Exception):
    """A vector of the corpus is not finite, or too large; the caller knows what to say of it."""

    def __init__(self, position: int) -> None:
        super().__init__(f"vector {position}")
        self.position = position


class Operand(NamedTuple):
    """Vectors (N, D) as given and as they are multiplied (shifted, or of length one), and lengths (N,) in float64."""

    vectors: Tensor
    rounded: Tensor
    lengths: Tensor


def nearest(
    queries: Floats, corpus: Floats, centre: Floats, k: int, *, cosine: bool, device: str, team: Team
) -> tuple[Ints, Floats]:
    """The k best of the corpus for each query, best first; ties keep corpus order.

    Args:
        queries: (Q, D) finite.
        corpus: (N, D) in rows; memory-mapped is fine, it is read once.
        centre: (D,) what both sides are shifted by where distances are wanted.
        k: at most N.
        cosine: by cosine, not by distance.
        device: of torch.
        team: threads that read the corpus.

    Returns:
        Positions and scores (Q, k).
    """
    torch = import_optional("torch", "top_k")
    with torch.inference_mode(), use_exact_products():
        shift = None if cosine else torch.tensor(centre, device=device)
        asked = _prepare(torch.tensor(queries, device=device), shift)
        scores = torch.full((len(queries), k), -np.inf, dtype=torch.float32, device=device)
        items = torch.full((len(queries), k), len(corpus), dtype=torch.int64, device=device)
        for first, vectors in stream_blocks(corpus, device, team):
            if bool((bad := ~vectors.isfinite().all(dim=1)).any()):
                raise UncomparableError(first + int(bad.int().argmax()))
            block = _prepare(vectors, shift)
            step = max(1, TILE_SCORES // len(vectors))
            for part in (slice(start, start + step) for start in range(0, len(queries), step)):
                own = Operand(*(values[part] for values in asked))
                scores[part], items[part] = _improve(own, block, (scores[part], items[part]), first, cosine=cosine)
        return items.cpu().numpy(), scores.cpu().numpy()


def stream_blocks(corpus: Floats, device: str, team: Team) -> Iterator[tuple[int, Tensor]]:
    """Consecutive blocks of a corpus on the device, with the position of their first vector."""
    width, lane = corpus.shape[1], Lane(device)
    rows = max(1, BLOCK_BYTES // (4 * width))
    starts = range(0, len(corpus), rows)

    def sent(start: int) -> Transfer:
        part = corpus[start : start + rows]
        buffer = lane.buffer(part.size).reshape(part.shape)
        team.each(lambda own: np.copyto(buffer[own], part[own]), team.shares(len(part)))
        return lane.send()

    for start, block in zip(starts, prefetch(sent, starts), strict=True):
        yield start, block.arrived().view(-1, width)


def _prepare(vectors: Tensor, shift: Tensor | None) -> Operand:
    """Bring vectors into the form in which they are multiplied; without a shift for cosines."""
    torch = import_optional("torch", "top_k")
    moved = vectors if shift is None else vectors - shift
    lengths = torch.linalg.vector_norm(moved, dim=1, dtype=torch.float64)
    if shift is None:
        moved = moved * (1 / lengths).where(lengths > 0, 0.0)[:, None]
    return Operand(vectors, moved.float(), lengths)


def _improve(
    queries: Operand, block: Operand, best: tuple[Tensor, Tensor], first: int, *, cosine: bool
) -> tuple[Tensor, Tensor]:
    """Scores and items (Q, k) of the best so far and those of a block, which begins at `first`."""
    torch = import_optional("torch", "top_k")
    size = len(block.vectors)
    most = _bound(queries, block, cosine=cosine).nan_to_num(np.inf)  # what is not a number is compared again, too
    likely = most.topk(min(2 * best[0].shape[1] + SPARE, size), dim=1)
    scores, items = _merge(best, queries, block, likely.indices.sort(dim=1).values, first, cosine=cosine)
    needed = _least_needed(queries, scores[:, -1], cosine=cosine)
    unsure = (~(likely.values[:, -1] < needed)).nonzero().ravel()
    if likely.indices.shape[1] < size and len(unsure):
        own, known = Operand(*(values[unsure] for values in queries)), (best[0][unsure], best[1][unsure])
        every = torch.arange(size, device=unsure.device).expand(len(unsure), size)
        scores[unsure], items[unsure] = _merge(known, own, block, every, first, cosine=cosine)
    return scores, items


def _bound(queries: Operand, block: Operand, *, cosine: bool) -> Tensor:
    """(Q, B) most that a similarity can be: a cosine, or a squared distance below that of query and centre."""
    products = queries.rounded @ block.rounded.T
    width = block.rounded.shape[1]
    share = (width + SPARE) * UNIT / (1 - (width + SPARE) * UNIT)
    if cosine:
        return products + share
    squares = (block.lengths**2).float()
    slack = (2 * share * queries.lengths).float()[:, None] * block.lengths.float() + (SPARE * UNIT) * squares
    return 2 * products - squares + slack + SPARE * width * TINIEST


def _least_needed(queries: Operand, scores: Tensor, *, cosine: bool) -> Tensor:
    """(Q,) what a similarity must reach to score as much as this, with room for rounding."""
    wanted = scores.double()
    if cosine:
        return (wanted - 4 * UNIT).float()
    return (queries.lengths**2 * (1 - SPARE * UNIT) - wanted**2 * (1 + SPARE * UNIT)).float()


def _merge(
    best: tuple[Tensor, Tensor], queries: Operand, block: Operand, items: Tensor, first: int, *, cosine: bool
) -> tuple[Tensor, Tensor]:
    """The best so far with items (Q, m) of a block, ascending in each row; all of them stand behind those before."""
    torch = import_optional("torch", "top_k")
    step = max(1, PAIR_NUMBERS // max(1, items.shape[1] * block.vectors.shape[1]))
    parts = [slice(start, start + step) for start in range(0, len(items), step)]
    own = torch.cat(
        [_compare(Operand(*(v[part] for v in queries)), block, items[part], cosine=cosine) for part in parts]
    )
    if bool((bad := ~own.isfinite()).any()):
        raise UncomparableError(first + int(items[bad].min()))
    scores, order = torch.cat([best[0], own], dim=1).sort(dim=1, descending=True, stable=True)
    k = best[0].shape[1]
    return scores[:, :k], torch.cat([best[1], items + first], dim=1).gather(1, order[:, :k])


def _compare(queries: Operand, block: Operand, items: Tensor, *, cosine: bool) -> Tensor:
    """(Q, m) scores of items (Q, m) of a block, in double precision and rounded once."""
    left, right = queries.vectors[:, None].double(), block.vectors[items].double()
    if not cosine:
        return -(left - right).square().sum(dim=2).sqrt().float()
    sizes = queries.lengths[:, None] * block.lengths[items]
    return ((left * right).sum(dim=2) / sizes).where(sizes > 0, 0.0).float()
