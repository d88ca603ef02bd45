"""A vector type for numba: one number of each of `LANES` series, and the few operations that DTW needs on it.

Numba has no vector type, and what LLVM vectorises by itself keeps the state of a recursion in memory. In variables of
an LLVM vector type the state stays in registers, and the kernels read like the scalar recursion. LLVM splits the
vectors into whatever registers the processor has, so that the same code serves every instruction set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
from llvmlite import binding, ir
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_jitable, register_model
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Node = Any
"""A type, value, builder or context of numba or LLVM, which are untyped."""


def _wide_registers() -> bool:
    """Whether kernels are compiled for a processor with 512-bit registers."""
    features: str | None = config.CPU_FEATURES
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    return "+avx512f" in features.split(",")


LANES: Final = 64 if _wide_registers() else 32
"""Series compared at once: as many as keep two rows of the recursion in registers."""


def compiled(signature: Node, *, any_order: bool = False) -> Callable[[F], F]:
    """Decorator: numba without the interpreter's lock, kept on disk between processes.

    With `any_order`, sums may be taken in the order that vectorises best (the same at every call). What is kept of a
    module is not renewed when only a module that it calls has changed: after such an edit, touch the callers.
    """
    relaxed = {"reassoc"} if any_order else False
    decorate: Callable[[F], F] = njit(signature, nogil=True, cache=True, error_model="numpy", fastmath=relaxed)
    return decorate


def inlined(function: F) -> F:
    """Decorator: a piece of compiled code, copied to where it is called."""
    jitted: F = register_jitable(inline="always")(function)
    return jitted


def aligned(size: int) -> NDArray[np.float32]:
    """An empty buffer that begins on a cache line: vectors that straddle two lines load half as fast.

    >>> aligned(5).ctypes.data % 64
    0
    """
    raw = np.empty(size + 16, np.float32)
    skip = -raw.ctypes.data % 64 // 4
    return raw[skip : skip + size]


class Lanes(types.Type):  # type: ignore[misc]
    """Numba's name for the vector type."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes({LANES})")


_LANES = Lanes()
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_INDEX = ir.IntType(32)
BLOCK: Final = 16
"""Side of the squares that `transpose_block` turns."""
_BLOCK_ROW = ir.VectorType(ir.FloatType(), BLOCK)
_ELEMENT_BYTES = 4


@register_model(Lanes)  # type: ignore[untyped-decorator]
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Node, kind: Node) -> None:
        super().__init__(manager, kind, _VECTOR)


_operation: Callable[[Callable[..., Node]], Callable[..., Node]] = intrinsic


def _pointer(context: Node, builder: Node, signature: Node, values: Node) -> Node:
    array = context.make_array(signature.args[0])(context, builder, values[0])
    return builder.bitcast(builder.gep(array.data, [values[1]]), _VECTOR.as_pointer())


@_operation
def load(_typing: Node, array: Node, start: Node) -> Node:  # noqa: ARG001 - numba reads the names
    """The lanes at `array[start : start + LANES]`."""

    def generate(context: Node, builder: Node, signature: Node, values: Node) -> Node:
        return builder.load(_pointer(context, builder, signature, values), align=_ELEMENT_BYTES)

    return _LANES(array, types.intp), generate


@_operation
def store(_typing: Node, array: Node, start: Node, lanes: Node) -> Node:  # noqa: ARG001
    """Write the lanes to `array[start : start + LANES]`."""

    def generate(context: Node, builder: Node, signature: Node, values: Node) -> Node:
        builder.store(values[2], _pointer(context, builder, signature, values), align=_ELEMENT_BYTES)
        return context.get_dummy_value()

    return types.none(array, types.intp, _LANES), generate


@_operation
def splat(_typing: Node, number: Node) -> Node:  # noqa: ARG001
    """The same number in every lane."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        empty = ir.Constant(_VECTOR, ir.Undefined)
        one = builder.insert_element(empty, values[0], ir.Constant(_INDEX, 0))
        everywhere = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
        return builder.shuffle_vector(one, empty, everywhere)

    return _LANES(types.float32), generate


@_operation
def add(_typing: Node, left: Node, right: Node) -> Node:  # noqa: ARG001
    """Left + right, lane by lane."""
    return _LANES(_LANES, _LANES), lambda _context, builder, _signature, values: builder.fadd(*values)


@_operation
def subtract(_typing: Node, left: Node, right: Node) -> Node:  # noqa: ARG001
    """Left - right, lane by lane."""
    return _LANES(_LANES, _LANES), lambda _context, builder, _signature, values: builder.fsub(*values)


def _choice(comparison: str) -> Callable[..., Node]:
    """A comparison and a choice, which is what the minimum and maximum instructions do (no case for NaN)."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        return builder.select(builder.fcmp_ordered(comparison, *values, flags=("nnan", "nsz")), *values)

    return generate


@_operation
def least(_typing: Node, left: Node, right: Node) -> Node:  # noqa: ARG001
    """The smaller of two, lane by lane."""
    return _LANES(_LANES, _LANES), _choice("<")


@_operation
def least_cost(_typing: Node, left: Node, right: Node) -> Node:  # noqa: ARG001
    """The smaller of two, lane by lane, where none is negative.

    The bits of such numbers are in the order of the numbers, and processors compare integers sooner and in more places.
    """

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        bits = [builder.bitcast(value, ir.VectorType(_INDEX, LANES)) for value in values]
        return builder.bitcast(builder.select(builder.icmp_signed("<", *bits), *bits), _VECTOR)

    return _LANES(_LANES, _LANES), generate


@_operation
def greatest(_typing: Node, left: Node, right: Node) -> Node:  # noqa: ARG001
    """The larger of two, lane by lane."""
    return _LANES(_LANES, _LANES), _choice(">")


@_operation
def add_square(_typing: Node, total: Node, number: Node) -> Node:  # noqa: ARG001
    """Total + number * number, lane by lane, in one rounding where the processor has such an instruction."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
        return builder.call(fused, [values[1], values[1], values[0]])

    return _LANES(_LANES, _LANES), generate


@_operation
def floats_at(_typing: Node, address: Node) -> Node:  # noqa: ARG001
    """A pointer to the float32 values at a memory address, for `numba.carray`."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        return builder.inttoptr(values[0], ir.FloatType().as_pointer())

    return types.CPointer(types.float32)(types.intp), generate


@_operation
def transpose_block(_typing: Node, source: Node, start: Node, step: Node, target: Node, to: Node, by: Node) -> Node:  # noqa: ARG001
    """target[to + by * j + i] = source[start + step * i + j] for i and j below `BLOCK`.

    Four rounds, in each of which rows 8, 4, 2 and 1 apart exchange halves, quarters and so on.
    """

    def generate(context: Node, builder: Node, signature: Node, values: Node) -> Node:
        def row(array: int, k: int) -> Node:
            data = context.make_array(signature.args[array])(context, builder, values[array]).data
            skipped = builder.mul(values[array + 2], ir.Constant(values[array + 2].type, k))
            return builder.bitcast(
                builder.gep(data, [builder.add(values[array + 1], skipped)]), _BLOCK_ROW.as_pointer()
            )

        rows = [builder.load(row(0, k), align=_ELEMENT_BYTES) for k in range(BLOCK)]
        for apart in (8, 4, 2, 1):
            for i in range(BLOCK):
                if not i & apart:
                    rows[i], rows[i + apart] = _exchange(builder, rows[i], rows[i + apart], apart)
        for k in range(BLOCK):
            builder.store(rows[k], row(3, k), align=_ELEMENT_BYTES)
        return context.get_dummy_value()

    return types.none(source, types.intp, types.intp, target, types.intp, types.intp), generate


def _exchange(builder: Node, upper: Node, lower: Node, apart: int) -> tuple[Node, Node]:
    """Of each 2 x 2 square of pieces `apart` wide, swap the two off the diagonal."""
    kept = [k if not k & apart else BLOCK + k - apart for k in range(BLOCK)]
    moved = [k + apart if not k & apart else BLOCK + k for k in range(BLOCK)]
    masks = [ir.Constant(ir.VectorType(_INDEX, BLOCK), places) for places in (kept, moved)]
    return builder.shuffle_vector(upper, lower, masks[0]), builder.shuffle_vector(upper, lower, masks[1])
