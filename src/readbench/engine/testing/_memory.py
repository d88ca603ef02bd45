"""Fill uninitialised memory with NaN, so that unwritten rows show in tests.

`np.empty` often returns zeros or the result of the last call, so that a row that is never written looks right in a test
and is wrong once in a while elsewhere. Here it returns NaN, or the largest integer.
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
    """Fill with NaN, the largest integer or True; other types stay as they are."""
    kind = array.dtype.kind
    if array.dtype.names:
        for name in array.dtype.names:
            _fill(array[name])
    elif kind in "fc":
        array.fill(np.nan)
    elif kind in "iu":
        array.fill(np.iinfo(array.dtype).max)
    elif kind == "b":
        array.fill(True)  # noqa: FBT003 - the fill value
    elif kind in "mM":
        array.fill(np.array("NaT", array.dtype))


def _filling(allocate: Any) -> Any:  # noqa: ANN401 - a function of numpy
    """Wrap an allocating function to fill its arrays."""

    @wraps(allocate)
    def allocate_filled(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - same signature as the function
        array = allocate(*args, **options)
        if isinstance(array, np.ndarray):
            _fill(array)
        return array

    return allocate_filled


_ORIGINALS = {"empty": np.empty, "empty_like": np.empty_like}
_FILLED = {name: _filling(allocate) for name, allocate in _ORIGINALS.items()}


@cache
def _introduce_to_numba() -> None:
    """Let numba compile code that refers to the wrapped functions."""
    from numba.core.registry import cpu_target  # noqa: PLC0415 - slow to import

    compiler = cpu_target.typing_context
    cpu_target.target_context.refresh()  # numba's back end registers numpy functions
    compiler.refresh()
    for name, filled in _FILLED.items():
        compiler.insert_global(filled, compiler.resolve_value_type(_ORIGINALS[name]))


@contextmanager
def unwritten_memory_shown() -> Iterator[None]:
    """Fill arrays of `np.empty` and `np.empty_like` with NaN, the largest integer, or True inside the block.

    Compiled code and libraries that allocate otherwise are not affected.

    >>> with unwritten_memory_shown():
    ...     np.empty(2), np.empty_like([3])
    (array([nan, nan]), array([9223372036854775807]))
    """
    _introduce_to_numba()
    with patch.object(np, "empty", _FILLED["empty"]), patch.object(np, "empty_like", _FILLED["empty_like"]):
        yield


def shows_unwritten_memory(check: Check) -> Check:
    """Decorate a check to run inside `unwritten_memory_shown`."""
    return unwritten_memory_shown()(check)
