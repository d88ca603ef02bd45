"""`LANES` neighbouring points of a series in a vector, and a count for each of them."""

from __future__ import annotations

from typing import Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from readbench.kernels.compiling import Node, operation
from readbench.kernels.lanes import Lanes, loading, splatting

LANES: Final = 8
"""Points of a vector: one 256-bit register."""
_COUNT = ir.IntType(32)
_VECTOR = ir.VectorType(_COUNT, LANES)

load = loading(LANES)
splat = splatting(LANES)


class Counts(types.Type):  # type: ignore[misc]
    """Numba's name for `LANES` counts."""

    def __init__(self) -> None:
        super().__init__(name=f"Counts({LANES})")


@register_model(Counts)  # type: ignore[untyped-decorator]
class _CountsModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Node, kind: Node) -> None:
        super().__init__(manager, kind, _VECTOR)


_POINTS, _COUNTS = Lanes(LANES), Counts()


@operation
def no_counts(_typing: Node) -> Node:
    """Zero everywhere."""
    return _COUNTS(), lambda _context, _builder, _signature, _values: ir.Constant(_VECTOR, [0] * LANES)


@operation
def count_above(_typing: Node, counts: Node, points: Node, level: Node) -> Node:  # noqa: ARG001 - numba reads the names
    """One more wherever a point is above the level."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        above = builder.fcmp_ordered(">", values[1], values[2])
        return builder.sub(values[0], builder.sext(above, _VECTOR))  # a true comparison is -1

    return _COUNTS(_COUNTS, _POINTS, _POINTS), generate


@operation
def total(_typing: Node, counts: Node) -> Node:  # noqa: ARG001
    """The sum of all counts."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        kind = ir.FunctionType(_COUNT, [_VECTOR])
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.add.v{LANES}i32")
        return builder.sext(builder.call(function, [values[0]]), ir.IntType(64))

    return types.int64(_COUNTS), generate
