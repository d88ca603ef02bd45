"""Vector types for numba: `LANES` neighbouring points of a series, and a count for each of them.

Numba has no vector type, and its automatic vectorisation gives up on loops that read one array at nine places and
write another. With an LLVM vector type such loops read like their scalar form; LLVM maps it to whatever registers the
processor has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numba.core.cgutils
import numba.extending
from llvmlite import ir

F = TypeVar("F", bound=Callable[..., Any])
Node = Any
"""A type, value, builder or context of numba or LLVM, which are hardly typed."""
types: Node = numba.types
_extending: Node = numba.extending
_tools: Node = numba.core.cgutils

LANES: Final = 8
"""Points of a vector: one 256-bit register."""
_ELEMENT_BYTES = 4
_INDEX = ir.IntType(32)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_WHOLES = ir.VectorType(_INDEX, LANES)
_NOTHING = ir.Constant(_WHOLES, [0] * LANES)


def compiled(signature: Node) -> Callable[[F], F]:
    """Decorator: numba without the interpreter's lock, kept on disk between processes."""
    njit: Node = numba.njit
    decorate: Callable[[F], F] = njit(signature, nogil=True, cache=True, error_model="numpy")
    return decorate


class Points(types.Type):  # type: ignore[misc]
    """Numba's name for `LANES` numbers."""

    def __init__(self) -> None:
        super().__init__(name=f"Points({LANES})")


class Counts(types.Type):  # type: ignore[misc]
    """Numba's name for `LANES` counts."""

    def __init__(self) -> None:
        super().__init__(name=f"Counts({LANES})")


_POINTS, _COUNTS = Points(), Counts()


@_extending.register_model(Points)
class _PointsModel(_extending.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Node, kind: Node) -> None:
        super().__init__(manager, kind, _FLOATS)


@_extending.register_model(Counts)
class _CountsModel(_extending.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Node, kind: Node) -> None:
        super().__init__(manager, kind, _WHOLES)


_operation: Callable[[Callable[..., Node]], Callable[..., Node]] = _extending.intrinsic


def _pointer(context: Node, builder: Node, signature: Node, values: Node) -> Node:
    array = context.make_array(signature.args[0])(context, builder, values[0])
    return builder.bitcast(builder.gep(array.data, [values[1]]), _FLOATS.as_pointer())


@_operation
def load(_typing: Node, array: Node, start: Node) -> Node:  # noqa: ARG001 - numba reads the names
    """The points at `array[start : start + LANES]`."""

    def generate(context: Node, builder: Node, signature: Node, values: Node) -> Node:
        return builder.load(_pointer(context, builder, signature, values), align=_ELEMENT_BYTES)

    return _POINTS(array, types.intp), generate


@_operation
def store(_typing: Node, array: Node, start: Node, points: Node) -> Node:  # noqa: ARG001
    """Write the points to `array[start : start + LANES]`."""

    def generate(context: Node, builder: Node, signature: Node, values: Node) -> Node:
        builder.store(values[2], _pointer(context, builder, signature, values), align=_ELEMENT_BYTES)
        return context.get_dummy_value()

    return types.none(array, types.intp, _POINTS), generate


@_operation
def splat(_typing: Node, number: Node) -> Node:  # noqa: ARG001
    """The same number everywhere."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        empty = ir.Constant(_FLOATS, ir.Undefined)
        one = builder.insert_element(empty, values[0], ir.Constant(_INDEX, 0))
        return builder.shuffle_vector(one, empty, _NOTHING)

    return _POINTS(types.float32), generate


@_operation
def add(_typing: Node, left: Node, right: Node) -> Node:  # noqa: ARG001
    """Sum, point by point."""
    return _POINTS(_POINTS, _POINTS), lambda _context, builder, _signature, values: builder.fadd(*values)


@_operation
def subtract(_typing: Node, left: Node, right: Node) -> Node:  # noqa: ARG001
    """Difference, point by point."""
    return _POINTS(_POINTS, _POINTS), lambda _context, builder, _signature, values: builder.fsub(*values)


@_operation
def multiply(_typing: Node, left: Node, right: Node) -> Node:  # noqa: ARG001
    """Product, point by point."""
    return _POINTS(_POINTS, _POINTS), lambda _context, builder, _signature, values: builder.fmul(*values)


@_operation
def no_counts(_typing: Node) -> Node:
    """Zero everywhere."""
    return _COUNTS(), lambda _context, _builder, _signature, _values: _NOTHING


@_operation
def count_above(_typing: Node, counts: Node, points: Node, level: Node) -> Node:  # noqa: ARG001
    """One more wherever a point is above the level."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        above = builder.fcmp_ordered(">", values[1], values[2])
        return builder.sub(values[0], builder.sext(above, _WHOLES))  # a true comparison is -1

    return _COUNTS(_COUNTS, _POINTS, _POINTS), generate


@_operation
def total(_typing: Node, counts: Node) -> Node:  # noqa: ARG001
    """The sum of all counts."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        kind = ir.FunctionType(_INDEX, [_WHOLES])
        function = _tools.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.add.v{LANES}i32")
        return builder.sext(builder.call(function, [values[0]]), ir.IntType(64))

    return types.int64(_COUNTS), generate
