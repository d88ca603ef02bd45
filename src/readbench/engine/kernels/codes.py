"""Vectors as small integers: upper bounds of similarities at half the cost of the similarities.

A vector x is written as step * c + e, where c holds whole numbers of 16 bits and the length of the rest e is known. By
the inequality of Cauchy and Schwarz the product of two vectors q = step' * c' + e' and x lies within

    |e'| |x| + |step' c'| |e|    of    step' * step * (c' . c),

and c' . c is exact in 32-bit integers for a chunk of dimensions, as long as the codes stay below `largest_code`.
Processors multiply and add such integers twice as fast as single-precision numbers, or faster. LLVM finds the
instruction for the pattern in `_add_products`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from readbench.engine.kernels.compiling import Node, compiled, operation, wide_registers
from readbench.engine.kernels.memory import BLOCK, transpose_block

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int32]

_WIDE: Final = wide_registers()
_LANES: Final = 16 if _WIDE else 8
_VECTORS: Final = 2
ROWS: Final = _LANES * _VECTORS
"""Corpus vectors in a panel; their codes are interleaved, one pair of dimensions after another."""
QUERIES: Final = 10 if _WIDE else 5
"""Queries in a tile: the sums of a panel and a tile fit in registers."""
CHUNK: Final = 256
"""Pairs of dimensions that are summed in 32 bits; sums of chunks are taken in double precision."""
_TINY = np.float32(1e-30)
_UNIT = 2.0**-24
"""Relative rounding error of a single-precision operation."""

_INT, _LONG = ir.IntType(32), ir.IntType(64)
_SUMS = ir.VectorType(_INT, _LANES)
_CODES = ir.VectorType(ir.IntType(16), 2 * _LANES)
_PRODUCTS = ir.VectorType(_INT, 2 * _LANES)
_BOUNDS = ir.VectorType(ir.DoubleType(), _LANES)
KINDS: Node = types
"""Numba's types, untyped for mypy."""
_floats, _doubles, _int, _double = types.float32[::1], types.float64[::1], types.intp, types.float64
_vector = types.Array(types.float32, 1, "C", readonly=True)
_matrix = types.Array(types.float32, 2, "C", readonly=True)


def largest_code(dimensions: int) -> int:
    """Largest code whose inner products over a chunk of dimensions fit in 32 bits.

    >>> largest_code(384), largest_code(9996), largest_code(2)
    (2364, 2047, 32767)
    """
    return int(min(32767, np.sqrt((2**31 - 1) / min(2 * CHUNK, max(1, dimensions)))))


def pair_count(dimensions: int) -> int:
    """Pairs of codes of a vector, padded to whole blocks."""
    return -(-dimensions // (2 * BLOCK)) * BLOCK


def pack_queries(codes: NDArray[np.int16]) -> Ints:
    """Codes (Q, D) as tiles (tiles, pairs, QUERIES) of pairs, flat, padded with zeros."""
    count, dimensions = codes.shape
    tiles, pairs = -(-count // QUERIES), pair_count(dimensions)
    padded = np.zeros((tiles * QUERIES, 2 * pairs), np.int16)
    padded[:count, :dimensions] = codes
    return np.ascontiguousarray(padded.view(np.int32).reshape(tiles, QUERIES, pairs).transpose(0, 2, 1)).ravel()


@operation
def _float_of_bits(_typing: Node, bits: Node) -> Node:  # noqa: ARG001 - numba reads the names
    """The single-precision number with these bits."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        return builder.bitcast(values[0], ir.FloatType())

    return types.float32(types.int32), generate


@compiled(types.float32(_floats))
def _largest(row: Floats) -> np.float32:
    """Largest magnitude; as integers, the bits of non-negative numbers are in the same order."""
    bits, top = row.view(np.int32), np.int32(0)
    for k in range(len(row)):
        own = np.int32(bits[k] & np.int32(0x7FFFFFFF))
        top = max(own, top)
    largest: np.float32 = _float_of_bits(top)
    return largest


@compiled(types.float64(_vector, _floats, _floats), any_order=True)
def _shift(row: Floats, centre: Floats, shifted: Floats) -> float:
    """Write row - centre; returns its squared length."""
    square = 0.0
    for k in range(len(row)):
        value = row[k] - centre[k]
        shifted[k] = value
        square += np.float64(value) * np.float64(value)
    return square


@compiled(types.float32(_floats, types.float32, types.float32, types.int16[::1]), any_order=True)
def _quantise(row: Floats, inverse: np.float32, step: np.float32, codes: NDArray[np.int16]) -> np.float32:
    """Write the nearest codes; returns the squared length of the remainder."""
    left = np.float32(0)
    for k in range(len(row)):
        code = np.rint(row[k] * inverse)
        codes[k] = np.int16(code)
        rest = row[k] - code * step
        left += rest * rest
    return left


@compiled(KINDS.UniTuple(_double, 3)(_vector, _floats, _int, _floats, types.int16[::1]))
def _encode(row: Floats, centre: Floats, top: int, shifted: Floats, codes: NDArray[np.int16]) -> Node:
    """Write the codes of row - centre; returns its length, the step and a bound on the length of the remainder.

    The bound allows for rounding in the shift, in each remainder and in the sum of their squares.
    """
    length = np.sqrt(_shift(row, centre, shifted))
    largest = _largest(shifted)
    if not largest > _TINY:
        codes[:] = 0
        return length, 0.0, length
    step = largest / np.float32(top)  # the largest number gets the largest code
    left = _quantise(shifted, np.float32(top) / largest, step, codes)
    rest = np.sqrt(np.float64(left)) * (1 + 2 * _UNIT * len(row)) + 8 * _UNIT * length
    return length, np.float64(step), rest


@compiled(_int(_matrix, _int, _int, _floats, _int, _double, types.boolean, _floats, _floats, _doubles))
def pack_panel(  # noqa: PLR0913, PLR0917 - flat arrays in, flat arrays out
    corpus: Floats,
    first: int,
    last: int,
    centre: Floats,
    top: int,
    coarseness: float,
    cosine: bool,  # noqa: FBT001
    scratch: Floats,
    panel: Floats,
    rows: Doubles,
) -> int:
    """Write codes and bounds of the corpus vectors [first, last), at most `ROWS`.

    Args:
        corpus: (N, D).
        first: where the range begins.
        last: where it ends.
        centre: (D,) subtracted from each vector.
        top: largest code.
        coarseness: the largest |e'| / |q| of the queries.
        cosine: bound the cosine, not the negative squared distance.
        scratch: BLOCK rows of pairs, then a row of D.
        panel: (pairs, ROWS) flat, as pairs of codes.
        rows: (3, ROWS) flat: factor of the products, factor of the query's length, term; see `find_promising`.

    Returns:
        The first vector that is not finite, or -1.
    """
    dimensions = corpus.shape[1]
    pairs = len(panel) // ROWS
    codes, shifted = scratch[: BLOCK * pairs].view(np.int16), scratch[BLOCK * pairs :]
    for group in range(0, ROWS, BLOCK):
        for member in range(min(BLOCK, last - first - group)):
            lane, own = group + member, codes[2 * pairs * member :][:dimensions]
            length, step, rest = _encode(corpus[first + lane], centre, top, shifted, own)
            if not np.isfinite(length):
                return first + lane
            # |e'| |x| + |step' c'| |e|, over |q|: |step' c'| is |q - e'|, at most (1 + coarseness) |q|.
            doubt = coarseness * length + (1 + coarseness) * rest
            if cosine:
                scale = 1 / length if length > 0 else 0.0
                rows[lane], rows[ROWS + lane], rows[2 * ROWS + lane] = step * scale, doubt * scale, 0
            else:
                rows[lane], rows[ROWS + lane] = 2 * step, 2 * doubt
                rows[2 * ROWS + lane] = -length * length * (1 - 16 * _UNIT)
        for block in range(0, pairs, BLOCK):
            transpose_block(scratch, block, pairs, panel, block * ROWS + group, ROWS)
    return -1


def _splat(builder: Node, number: Node, kind: Node) -> Node:
    empty = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(empty, number, ir.Constant(_INT, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(_SUMS, [0] * _LANES))


def _add_products(builder: Node, sums: Node, left: Node, right: Node) -> Node:
    """Add the product of both codes of a pair, lane by lane."""
    wide = [builder.sext(builder.bitcast(codes, _CODES), _PRODUCTS) for codes in (left, right)]
    products, nothing = builder.mul(*wide), ir.Constant(_PRODUCTS, ir.Undefined)
    halves = [ir.Constant(_SUMS, list(range(part, 2 * _LANES, 2))) for part in (0, 1)]
    return builder.add(sums, builder.add(*(builder.shuffle_vector(products, nothing, half) for half in halves)))


def _vector_at(builder: Node, data: Node, start: int, kind: Node) -> Node:
    pointer = builder.gep(data, [ir.Constant(_LONG, start)])
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=4)


def _inner_products(builder: Node, panel: Node, queries: Node, pairs: Node) -> list[Node]:
    """Emit the loop over pairs; returns the sums, query by query, `_VECTORS` each."""
    before = builder.block
    loop, after = builder.append_basic_block("pairs"), builder.append_basic_block("summed")
    builder.branch(loop)
    builder.position_at_end(loop)
    step = builder.phi(_LONG)
    sums = [builder.phi(_SUMS) for _ in range(QUERIES * _VECTORS)]
    codes = builder.gep(panel, [builder.mul(step, ir.Constant(_LONG, ROWS))])
    vectors = [_vector_at(builder, codes, v * _LANES, _SUMS) for v in range(_VECTORS)]
    own = builder.gep(queries, [builder.mul(step, ir.Constant(_LONG, QUERIES))])
    added = []
    for q in range(QUERIES):
        pair = _splat(builder, builder.load(builder.gep(own, [ir.Constant(_LONG, q)])), _SUMS)
        added += [_add_products(builder, sums[q * _VECTORS + v], vectors[v], pair) for v in range(_VECTORS)]
    following = builder.add(step, ir.Constant(_LONG, 1))
    starts = (ir.Constant(_LONG, 0), *[ir.Constant(_SUMS, [0] * _LANES)] * len(sums))
    for phi, start, end in zip((step, *sums), starts, (following, *added), strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(end, loop)
    builder.cbranch(builder.icmp_signed("<", following, pairs), loop, after)
    builder.position_at_end(after)
    return added


def _data(context: Node, builder: Node, signature: Node, values: Node, argument: int) -> Node:
    return context.make_array(signature.args[argument])(context, builder, values[argument]).data


@operation
def add_products(
    _typing: Node,
    panel: Node,
    at: Node,  # noqa: ARG001 - numba reads the names
    queries: Node,
    start: Node,  # noqa: ARG001
    pairs: Node,  # noqa: ARG001
    sums: Node,
) -> Node:
    """Add the products of the codes of a panel and a tile of queries to sums (QUERIES, ROWS), for a chunk of pairs.

    The chunk begins at `panel[at]` and `queries[start]`.
    """

    def generate(context: Node, builder: Node, signature: Node, values: Node) -> Node:
        data = [_data(context, builder, signature, values, argument) for argument in (0, 2, 5)]
        codes = builder.gep(builder.bitcast(data[0], _INT.as_pointer()), [values[1]])
        found = _inner_products(builder, codes, builder.gep(data[1], [values[3]]), values[4])
        for place, products in enumerate(found):
            before = _vector_at(builder, data[2], place * _LANES, _BOUNDS)
            after = builder.fadd(before, builder.sitofp(products, _BOUNDS))
            target = builder.gep(data[2], [ir.Constant(_LONG, place * _LANES)])
            builder.store(after, builder.bitcast(target, _BOUNDS.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.none(panel, types.intp, queries, types.intp, types.intp, sums), generate


@operation
def find_promising(_typing: Node, sums: Node, rows: Node, tile: Node, at: Node, found: Node) -> Node:  # noqa: ARG001
    """Compare a panel with a tile of queries: found[q] has bit r where vector r may be good enough for query q.

    That is where  sums[q, r] * a * rows[0, r] + b * rows[1, r] + rows[2, r]  is not below c; the numbers (a, b, c) of
    query q are `tile[at + q]`, `tile[at + QUERIES + q]` and `tile[at + 2 * QUERIES + q]`.
    """

    def generate(context: Node, builder: Node, signature: Node, values: Node) -> Node:
        data = [_data(context, builder, signature, values, argument) for argument in (0, 1, 2, 4)]
        numbers = builder.gep(data[2], [values[3]])
        for q in range(QUERIES):
            places = [builder.gep(numbers, [ir.Constant(_LONG, part * QUERIES + q)]) for part in range(3)]
            scale, size, least = (_splat(builder, builder.load(place), _BOUNDS) for place in places)
            bits = ir.Constant(_LONG, 0)
            for v in range(_VECTORS):
                factor, doubt, term = (
                    _vector_at(builder, data[1], part * ROWS + v * _LANES, _BOUNDS) for part in range(3)
                )
                product = builder.fmul(_vector_at(builder, data[0], q * ROWS + v * _LANES, _BOUNDS), scale)
                rest = builder.fadd(builder.fmul(size, doubt), term)
                bound = builder.fadd(builder.fmul(product, factor), rest)
                mask = builder.bitcast(builder.fcmp_unordered(">=", bound, least), ir.IntType(_LANES))
                shifted = builder.shl(builder.zext(mask, _LONG), ir.Constant(_LONG, v * _LANES))
                bits = builder.or_(bits, shifted)
            builder.store(bits, builder.gep(data[3], [ir.Constant(_LONG, q)]))
        return context.get_dummy_value()

    return types.none(sums, rows, tile, types.intp, found), generate
