"""Exact search for the nearest vectors on a GPU: the corpus streams through it once, in blocks.

A product of matrices in single precision tells how similar two vectors can be at most. What could be among the k best
is compared again in double precision, as on a CPU (`readbench.engine.kernels.nearest`), so that the answers are the
same. Everything here runs on any device of torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

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
"""Operations beside the sum of D products that the bound allows for."""


@dataclass(frozen=True, eq=False)
class Best:
    """The k best so far of each query, best first; free places score -inf and name the item behind all others."""

    items: Tensor
    scores: Tensor

    @classmethod
    def none(cls, queries: int, k: int, items: int, device: str) -> Self:
        """All places free."""
        torch = import_optional("torch", "top_k")
        places = torch.full((queries, k), items, dtype=torch.int64, device=device)
        return cls(places, torch.full((queries, k), -np.inf, dtype=torch.float32, device=device))

    def merge(self, rows: Tensor, items: Tensor, scores: Tensor) -> Best:
        """With further items, given by ascending position within each query; all of them stand behind those here."""
        torch = import_optional("torch", "top_k")
        count, k = self.items.shape
        own = torch.arange(count, device=rows.device).repeat_interleave(k)
        rows = torch.cat([own, rows])
        items, scores = torch.cat([self.items.ravel(), items]), torch.cat([self.scores.ravel(), scores])
        order = scores.argsort(descending=True, stable=True)
        order = order[rows[order].argsort(stable=True)]
        first = torch.searchsorted(rows[order], torch.arange(count, device=rows.device))
        kept = order[first[:, None] + torch.arange(k, device=rows.device)]
        return Best(items[kept], scores[kept])


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries on the device.

    Args:
        vectors: (Q, D) as given.
        rounded: (Q, D) as they are multiplied: shifted by the centre, or of length one.
        lengths: (Q,) float64, of the shifted queries, or of the queries where cosines are wanted.
        centre: (D,) the shift.
        cosine: the metric.
    """

    vectors: Tensor
    rounded: Tensor
    lengths: Tensor
    centre: Tensor
    cosine: bool

    @classmethod
    def of(cls, vectors: Tensor, centre: Tensor, *, cosine: bool) -> Self:
        """Bring queries into the form in which they are multiplied."""
        rounded, lengths = _rounded(vectors, centre, cosine=cosine)
        return cls(vectors, rounded, lengths, centre, cosine)

    def __getitem__(self, part: slice) -> Queries:
        return Queries(self.vectors[part], self.rounded[part], self.lengths[part], self.centre, self.cosine)

    def at_most(self, block: DeviceBlock) -> tuple[Tensor, Tensor]:
        """(Q, B) similarities in single precision, and what they can be at most.

        Similarities are cosines, or what a squared distance is below that of query and centre.
        """
        products = self.rounded @ block.rounded.T
        width = block.rounded.shape[1]
        share = (width + SPARE) * UNIT / (1 - (width + SPARE) * UNIT)
        if self.cosine:
            return products, products + share
        squares = (block.lengths**2).float()
        near = 2 * products - squares
        slack = (2 * share * self.lengths).float()[:, None] * block.lengths.float() + (SPARE * UNIT) * squares
        return near, near + slack + SPARE * width * TINIEST

    def least_needed(self, scores: Tensor) -> Tensor:
        """(Q,) what a similarity must reach to score as much as this, with room for rounding."""
        scores = scores.double()
        if self.cosine:
            return (scores - 4 * UNIT).float()
        reach = self.lengths**2 * (1 - SPARE * UNIT) - scores**2 * (1 + SPARE * UNIT)
        return reach.float()

    def scores(self, block: DeviceBlock, rows: Tensor, items: Tensor) -> Tensor:
        """(P,) scores of pairs of queries and vectors of a block, in double precision and rounded once."""
        torch = import_optional("torch", "top_k")
        step = max(1, PAIR_NUMBERS // self.vectors.shape[1])
        parts = [self._scores(block, rows[i : i + step], items[i : i + step]) for i in range(0, len(rows), step)]
        return torch.cat(parts) if parts else self.lengths.new_empty(0).float()

    def _scores(self, block: DeviceBlock, rows: Tensor, items: Tensor) -> Tensor:
        left, right = self.vectors[rows].double(), block.vectors[items].double()
        if not self.cosine:
            return -(left - right).square().sum(dim=1).sqrt().float()
        sizes = self.lengths[rows] * block.lengths[items]
        return ((left * right).sum(dim=1) / sizes).where(sizes > 0, 0.0).float()


@dataclass(frozen=True, eq=False)
class DeviceBlock:
    """Vectors of the corpus on the device; the fields are those of `Queries`."""

    vectors: Tensor
    rounded: Tensor
    lengths: Tensor

    @classmethod
    def of(cls, vectors: Tensor, queries: Queries) -> Self:
        """Bring vectors into the form in which they are multiplied."""
        return cls(vectors, *_rounded(vectors, queries.centre, cosine=queries.cosine))


class UncomparableError(Exception):
    """A vector of the corpus is not finite, or too large; the caller knows what to say of it."""

    def __init__(self, position: int) -> None:
        super().__init__(f"vector {position}")
        self.position = position


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
        there = Queries.of(*(torch.tensor(own, device=device) for own in (queries, centre)), cosine=cosine)
        best = Best.none(len(queries), k, len(corpus), device)
        for first, vectors in stream_blocks(corpus, device, team):
            block = DeviceBlock.of(_usable(vectors, first), there)
            best = _with_block(best, there, block, first)
        return best.items.cpu().numpy(), best.scores.cpu().numpy()


def stream_blocks(corpus: Floats, device: str, team: Team) -> Iterator[tuple[int, Tensor]]:
    """Consecutive blocks of a corpus on the device, with the position of their first vector."""
    width, lane = corpus.shape[1], Lane(device)
    rows = max(1, BLOCK_BYTES // (4 * width))
    starts = range(0, len(corpus), rows)

    def sent(start: int) -> Transfer:
        part = corpus[start : start + rows]
        _copy(part, lane.buffer(part.size).reshape(part.shape), team)
        return lane.send()

    for start, block in zip(starts, prefetch(sent, starts), strict=True):
        yield start, block.arrived().view(-1, width)


def _copy(part: Floats, buffer: Floats, team: Team) -> None:
    """Copy vectors into a buffer, each thread one share: a call costs as much as a megabyte."""
    team.each(lambda own: np.copyto(buffer[own], part[own]), team.shares(len(part)))


def _rounded(vectors: Tensor, centre: Tensor, *, cosine: bool) -> tuple[Tensor, Tensor]:
    """Vectors as they are multiplied, and their lengths (N,) in double precision."""
    torch = import_optional("torch", "top_k")
    moved = vectors if cosine else vectors - centre
    lengths = torch.linalg.vector_norm(moved, dim=1, dtype=torch.float64)
    if cosine:
        moved = moved * (1 / lengths).where(lengths > 0, 0.0)[:, None]
    return moved.float(), lengths


def _usable(vectors: Tensor, first: int) -> Tensor:
    """The vectors of a block, if all of them are finite."""
    bad = ~vectors.isfinite().all(dim=1)
    if bool(bad.any()):
        raise UncomparableError(first + int(bad.int().argmax()))
    return vectors


def _with_block(best: Best, queries: Queries, block: DeviceBlock, first: int) -> Best:
    """The best so far and those of a block, as many queries at a time as `TILE_SCORES` allows."""
    torch = import_optional("torch", "top_k")
    step = max(1, TILE_SCORES // len(block.vectors))
    parts = []
    for start in range(0, len(queries.vectors), step):
        own = slice(start, start + step)
        parts.append(_improved(Best(best.items[own], best.scores[own]), queries[own], block, first))
    return Best(torch.cat([part.items for part in parts]), torch.cat([part.scores for part in parts]))


def _improved(best: Best, queries: Queries, block: DeviceBlock, first: int) -> Best:
    near, most = queries.at_most(block)
    needed = queries.least_needed(_least(best, queries, block, near))
    rows, items = (~(most < needed[:, None])).nonzero(as_tuple=True)  # what is not a number is compared again, too
    scores = queries.scores(block, rows, items)
    bad = ~scores.isfinite()
    if bool(bad.any()):
        raise UncomparableError(first + int(items[bad][0]))
    return best.merge(rows, items + first, scores)


def _least(best: Best, queries: Queries, block: DeviceBlock, near: Tensor) -> Tensor:
    """(Q,) a score that the k-th best of each query reaches for sure: from the best so far and some of the block."""
    torch = import_optional("torch", "top_k")
    k = best.scores.shape[1]
    likely = near.nan_to_num().topk(min(k, near.shape[1]), dim=1).indices
    rows = torch.arange(len(near), device=near.device).repeat_interleave(likely.shape[1])
    scores = queries.scores(block, rows, likely.ravel()).reshape(likely.shape)
    return torch.cat([best.scores, scores.nan_to_num(-np.inf, neginf=-np.inf)], dim=1).topk(k, dim=1).values[:, -1]
