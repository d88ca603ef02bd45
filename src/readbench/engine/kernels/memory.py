"""Memory for compiled code: aligned, found by address, turned block by block, and kept within a budget.

`PieceCache` holds what a fitted retriever keeps of its corpus, converted, from call to call; `cache_bytes` is its
budget.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from readbench.engine.kernels.compiling import Node, operation
from readbench.errors import ParameterError

BLOCK: Final = 16
"""Side of the squares that `transpose_block` turns."""
_CACHE_LINE = 64
_FLOAT_BYTES = 4
_ROW = ir.VectorType(ir.FloatType(), BLOCK)
_MASK = ir.VectorType(ir.IntType(32), BLOCK)


def allocate_aligned(size: int) -> NDArray[np.float32]:
    """An empty buffer that begins on a cache line: vectors that straddle two lines load half as fast.

    >>> allocate_aligned(5).ctypes.data % 64
    0
    """
    raw = np.empty(size + _CACHE_LINE // _FLOAT_BYTES, np.float32)
    skip = -raw.ctypes.data % _CACHE_LINE // _FLOAT_BYTES
    return raw[skip : skip + size]


@operation
def floats_at(_typing: Node, address: Node) -> Node:  # noqa: ARG001 - numba reads the names
    """A pointer to the float32 values at a memory address, for `numba.carray`."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        return builder.inttoptr(values[0], ir.FloatType().as_pointer())

    return types.CPointer(types.float32)(types.intp), generate


@operation
def transpose_block(_typing: Node, source: Node, start: Node, step: Node, target: Node, to: Node, by: Node) -> Node:  # noqa: ARG001
    """target[to + by * j + i] = source[start + step * i + j] for i and j below `BLOCK`.

    Four rounds, in each of which rows 8, 4, 2 and 1 apart exchange halves, quarters and so on.
    """

    def generate(context: Node, builder: Node, signature: Node, values: Node) -> Node:
        def row(array: int, k: int) -> Node:
            data = context.make_array(signature.args[array])(context, builder, values[array]).data
            skipped = builder.mul(values[array + 2], ir.Constant(values[array + 2].type, k))
            return builder.bitcast(builder.gep(data, [builder.add(values[array + 1], skipped)]), _ROW.as_pointer())

        rows = [builder.load(row(0, k), align=_FLOAT_BYTES) for k in range(BLOCK)]
        for apart in (8, 4, 2, 1):
            for i in range(BLOCK):
                if not i & apart:
                    rows[i], rows[i + apart] = _exchange(builder, rows[i], rows[i + apart], apart)
        for k in range(BLOCK):
            builder.store(rows[k], row(3, k), align=_FLOAT_BYTES)
        return context.get_dummy_value()

    return types.none(source, types.intp, types.intp, target, types.intp, types.intp), generate


def _exchange(builder: Node, upper: Node, lower: Node, apart: int) -> tuple[Node, Node]:
    """Of each 2 x 2 square of pieces `apart` wide, swap the two off the diagonal."""
    kept = [k if not k & apart else BLOCK + k - apart for k in range(BLOCK)]
    moved = [k + apart if not k & apart else BLOCK + k for k in range(BLOCK)]
    masks = [ir.Constant(_MASK, places) for places in (kept, moved)]
    return builder.shuffle_vector(upper, lower, masks[0]), builder.shuffle_vector(upper, lower, masks[1])


Piece = TypeVar("Piece")
DEFAULT_MB = 512


def cache_bytes() -> int:
    """`READBENCH_KEPT_MB`, else 512, in bytes: the most that one fitted retriever keeps.

    >>> cache_bytes() == 512 * 2**20
    True
    """
    variable = os.environ.get("READBENCH_KEPT_MB", str(DEFAULT_MB))
    if not variable.isdigit():
        raise ParameterError(f"READBENCH_KEPT_MB must be a whole number from 0 on. Got {variable!r} instead.")
    return int(variable) * 2**20


class PieceCache(Generic[Piece]):
    """Pieces of a corpus, numbered: kept where all of them together fit in `cache_bytes`, else made at every call.

    >>> made = []
    >>> small, large = PieceCache[list](10), PieceCache[list](2**40)
    >>> for kept in (small, small, large, large):
    ...     _ = kept.get(0, lambda: made.append("made") or [1, 2])
    >>> len(made)
    3
    """

    def __init__(self, total_bytes: int) -> None:
        self._fits = total_bytes <= cache_bytes()
        self._pieces: dict[int, Piece] = {}

    def get(self, number: int, make: Callable[[], Piece]) -> Piece:
        """Piece `number`, made where it is not kept."""
        if number in self._pieces:
            return self._pieces[number]
        piece = make()
        if self._fits:
            self._pieces[number] = piece
        return piece
