"""What can be reached from an object by following references: the test that a method cannot see what it must not."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

_STOP = (type, ModuleType, BuiltinFunctionType)


def reachable(*roots: object) -> Iterator[object]:
    """Every object that can be reached from the roots through attributes, containers, buffers and array bases.

    Of functions only what they were closed over and their defaults are entered; classes, modules and the rest of a
    function are code, the same for every query. Deliberate inspection of the interpreter (frames of callers, the
    garbage collector's list of all objects) is outside this walk.

    >>> secret = object()
    >>> any(found is secret for found in reachable({"a": [1, (secret,)]}))
    True
    """
    seen: dict[int, Any] = {}  # holds what it has seen, so that no address is used again during the walk
    pending: list[Any] = list(roots)
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, _STOP):
            continue
        seen[id(item)] = item
        yield item
        if isinstance(item, FunctionType):
            pending.extend([item.__closure__, item.__defaults__, item.__kwdefaults__])
            continue
        pending.extend(gc.get_referents(item))
        if isinstance(item, np.ndarray):
            pending.append(item.base)
            if item.dtype == object or isinstance(item.dtype, np.dtypes.StringDType):
                pending.extend(item.ravel().tolist())
