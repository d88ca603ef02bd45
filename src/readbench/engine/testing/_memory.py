"""Memory that nobody has written, made to show.

`np.empty` gives whatever was there before: often zeros, or what the last call left, so that a row that is never written
looks right in a test and wrong once in a while elsewhere. Here it gives NaN, or the largest integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

Check = TypeVar("Check", bound=Callable[..., None])


def _fill(array: NDArray[Any]) -> None:
    """Write what no computation means: NaN, the largest integer, True; other kinds stay as they are."""
    kind = array.dtype.kind
    if array.dtype.names:
        for name in array.dtype.names:
            _fill(array[name])
    elif kind in "fc":
        array.fill(np.nan)
    elif kind in "iu":
        array.fill(np.iinfo(array.dtype).max)
    elif kind == "b":
        array.fill(True)  # noqa: FBT003 - what it is filled with
    elif kind in "mM":
        array.fill(np.array("NaT", array.dtype))


def _filling(allocate: Any) -> Any:  # noqa: ANN401 - a function of numpy, and the same
    """The same function with its arrays filled."""

    @wraps(allocate)
    def allocate_filled(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the function
        array = allocate(*args, **options)
        if isinstance(array, np.ndarray):
            _fill(array)
        return array

    return allocate_filled


_ORIGINALS = {"empty": np.empty, "empty_like": np.empty_like}
_FILLED = {name: _filling(allocate) for name, allocate in _ORIGINALS.items()}


@cache
def _introduce_to_numba() -> None:
    """Code that is compiled while memory is filled finds the functions that numba knows."""
    from numba.core.registry import cpu_target  # noqa: PLC0415 - slow to import

    compiler = cpu_target.typing_context
    cpu_target.target_context.refresh()  # what numba knows of numpy is registered by its back end
    compiler.refresh()
    for name, filled in _FILLED.items():
        compiler.insert_global(filled, compiler.resolve_value_type(_ORIGINALS[name]))


@contextmanager
def unwritten_memory_shown() -> Iterator[None]:
    """Arrays of `np.empty` and `np.empty_like` are full of NaN, of the largest integer, or of True.

    What compiled code allocates stays as it is; so does what libraries allocate under another name.

    >>> with unwritten_memory_shown():
    ...     np.empty(2), np.empty_like([3])
    (array([nan, nan]), array([9223372036854775807]))
    """
    _introduce_to_numba()
    with patch.object(np, "empty", _FILLED["empty"]), patch.object(np, "empty_like", _FILLED["empty_like"]):
        yield


def shows_unwritten_memory(check: Check) -> Check:
    """Decorator: a check during which unwritten memory shows."""
    return unwritten_memory_shown()(check)
