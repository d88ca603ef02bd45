"""Values out of JSON texts, with errors that say where."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.errors import DataError


def parse_json(where: str, text: str | bytes) -> Any:  # noqa: ANN401 - JSON may hold anything
    """What a JSON text says; raises `DataError` where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: no JSON ({error}). It is incomplete or damaged: get the file again.") from error


def number_list(where: str, name: str, values: object) -> NDArray[np.float64]:
    """(T,) a list of numbers; null is a gap, and so is a number that float64 cannot hold.

    >>> number_list("file, line 1", "RSRP", [1, None, 2.5]).tolist()
    [1.0, nan, 2.5]
    """
    if not isinstance(values, list):
        raise DataError(f"{where}: {name} is no list of numbers. Get the file again.")
    if set(map(type, values)) == {float}:
        return np.array(values, np.float64)
    numbers = np.full(len(values), np.nan)
    for place, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise DataError(
                f"{where}: value {place + 1} of {name} is {str(value)[:40]!r}, which is no number. Get the file again."
            )
        if value is not None and abs(value) <= sys.float_info.max:
            numbers[place] = value
    return numbers
