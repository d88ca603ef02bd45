"""How numba compiles the kernels, and a vector type: some numbers side by side, one per lane.

Numba has no vector type. What LLVM vectorises by itself keeps the state of a recursion in memory, and it gives up on
loops that read one array at many places. In variables of an LLVM vector type (`Lanes`) the state stays in registers,
and kernels read like their scalar form: an operation works on all lanes at once. LLVM splits the vectors into whatever
registers the processor has, so that the same code serves every instruction set.

`make_load(width)` and `make_splat(width)` make the operations that bring numbers into vectors; all others take the
width from their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from llvmlite import binding, ir
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_jitable, register_model

F = TypeVar("F", bound=Callable[..., Any])
Node = Any
"""A type, value, builder or context of numba or LLVM, which are untyped."""

operation: Callable[[Callable[..., Node]], Callable[..., Node]] = intrinsic
"""Decorator: an operation of compiled code that is written as LLVM instructions."""


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


_INDEX = ir.IntType(32)
_FLOAT_BYTES = 4


def wide_registers() -> bool:
    """Whether kernels are compiled for a processor with 512-bit registers."""
    features: str | None = config.CPU_FEATURES
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    return "+avx512f" in features.split(",")


class Lanes(types.Type):  # type: ignore[misc]
    """Numba's name for a vector of `width` float32 numbers."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.vector = ir.VectorType(ir.FloatType(), width)
        super().__init__(name=f"Lanes({width})")


@register_model(Lanes)  # type: ignore[untyped-decorator]
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Node, kind: Lanes) -> None:
        super().__init__(manager, kind, kind.vector)


def _pointer(context: Node, builder: Node, kind: Lanes, signature: Node, values: Node) -> Node:
    """Where the lanes that begin at element `values[1]` of the array `values[0]` are."""
    array = context.make_array(signature.args[0])(context, builder, values[0])
    return builder.bitcast(builder.gep(array.data, [values[1]]), kind.vector.as_pointer())


def make_load(width: int) -> Callable[..., Node]:
    """The operation `load(array, start)`: the lanes at `array[start : start + width]`."""
    kind = Lanes(width)

    @operation
    def load(_typing: Node, array: Node, start: Node) -> Node:  # noqa: ARG001 - numba reads the names
        def generate(context: Node, builder: Node, signature: Node, values: Node) -> Node:
            return builder.load(_pointer(context, builder, kind, signature, values), align=_FLOAT_BYTES)

        return kind(array, types.intp), generate

    return load


def make_splat(width: int) -> Callable[..., Node]:
    """The operation `splat(number)`: the same number in every lane."""
    kind = Lanes(width)

    @operation
    def splat(_typing: Node, number: Node) -> Node:  # noqa: ARG001
        def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
            empty = ir.Constant(kind.vector, ir.Undefined)
            one = builder.insert_element(empty, values[0], ir.Constant(_INDEX, 0))
            return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(_INDEX, width), [0] * width))

        return kind(types.float32), generate

    return splat


@operation
def store(_typing: Node, array: Node, start: Node, lanes: Node) -> Node:  # noqa: ARG001
    """Write the lanes to `array[start : start + width]`."""

    def generate(context: Node, builder: Node, signature: Node, values: Node) -> Node:
        builder.store(values[2], _pointer(context, builder, lanes, signature, values), align=_FLOAT_BYTES)
        return context.get_dummy_value()

    return types.none(array, types.intp, lanes), generate


@operation
def add(_typing: Node, left: Node, right: Node) -> Node:
    """Left + right, lane by lane."""
    return left(left, right), lambda _context, builder, _signature, values: builder.fadd(*values)


@operation
def subtract(_typing: Node, left: Node, right: Node) -> Node:
    """Left - right, lane by lane."""
    return left(left, right), lambda _context, builder, _signature, values: builder.fsub(*values)


@operation
def multiply(_typing: Node, left: Node, right: Node) -> Node:
    """Left * right, lane by lane."""
    return left(left, right), lambda _context, builder, _signature, values: builder.fmul(*values)


@operation
def add_square(_typing: Node, total: Node, number: Node) -> Node:
    """Total + number * number, lane by lane, in one rounding where the processor has such an instruction."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        kind = ir.FunctionType(total.vector, [total.vector] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{total.width}f32")
        return builder.call(fused, [values[1], values[1], values[0]])

    return total(total, number), generate


def _choice(comparison: str) -> Callable[..., Node]:
    """A comparison and a choice, which is what the minimum and maximum instructions do (no case for NaN)."""

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        return builder.select(builder.fcmp_ordered(comparison, *values, flags=("nnan", "nsz")), *values)

    return generate


@operation
def least(_typing: Node, left: Node, right: Node) -> Node:
    """The smaller of two, lane by lane."""
    return left(left, right), _choice("<")


@operation
def greatest(_typing: Node, left: Node, right: Node) -> Node:
    """The larger of two, lane by lane."""
    return left(left, right), _choice(">")


@operation
def least_cost(_typing: Node, left: Node, right: Node) -> Node:
    """The smaller of two, lane by lane, where none is negative.

    The bits of such numbers are in the order of the numbers, and processors compare integers sooner and in more places.
    """

    def generate(_context: Node, builder: Node, _signature: Node, values: Node) -> Node:
        bits = [builder.bitcast(value, ir.VectorType(_INDEX, left.width)) for value in values]
        return builder.bitcast(builder.select(builder.icmp_signed("<", *bits), *bits), left.vector)

    return left(left, right), generate
