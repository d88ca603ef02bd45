"""How numba compiles the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.extending import intrinsic, register_jitable

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
