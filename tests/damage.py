"""Damaged files for tests of readers; what becomes of them is counted, so that refusing everything does not pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from readbench.errors import DataError, ReadbenchError

Damage = tuple[int | None, list[tuple[int, int]]]
"""Where a file is cut off, if it is, and which bytes are overwritten with which values."""
FEWEST = 3
"""Of a property's examples, at least this many must be read and as many refused."""
MANY = 100
"""Examples of such a property, so that both outcomes are sure to be among them, whatever the seed."""


def damages(longest: int, values: st.SearchStrategy[int] | None = None) -> st.SearchStrategy[Damage]:
    """Damage to a file of about this length: one changed byte, which may be harmless, or several and a cut."""
    change = st.tuples(st.integers(0, longest), st.integers(0, 255) if values is None else values)
    light = st.tuples(st.none(), st.lists(change, min_size=1, max_size=1))
    return light | st.tuples(st.none() | st.integers(0, longest), st.lists(change, max_size=4))


def damaged(content: bytes, damage: Damage) -> bytes:
    """The content after the damage; places beyond its end count from its start again."""
    cut, changes = damage
    changed = bytearray(content[:cut])
    for place, value in changes:
        if changed:
            changed[place % len(changed)] = value
    return bytes(changed)


class Outcomes(Counter[str]):
    """What a reader did with each of many files: they were read, held nothing, or were refused."""

    def note(
        self, read: Callable[[], Iterable[NDArray[np.floating]]], refusal: type[ReadbenchError] = DataError
    ) -> None:
        """Count one file; what is read must be finite, and nothing but an error of this kind may refuse it."""
        try:
            arrays = list(read())
        except refusal:
            self["refused"] += 1
            return
        assert all(np.isfinite(array).all() for array in arrays), "values that are not finite were let through"
        self["read" if arrays else "empty"] += 1

    def check_both(self) -> None:
        """Neither outcome is rare."""
        assert min(self["read"], self["refused"]) >= FEWEST, f"hardly a choice: {dict(self)}"
