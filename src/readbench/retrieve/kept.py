"""What a fitted retriever keeps of its corpus from call to call, within a budget of memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

from readbench.errors import ParameterError

Piece = TypeVar("Piece")
DEFAULT_MB = 512


def kept_bytes() -> int:
    """`READBENCH_KEPT_MB`, else 512, in bytes: the most that one fitted retriever keeps.

    >>> kept_bytes() == 512 * 2**20
    True
    """
    variable = os.environ.get("READBENCH_KEPT_MB", str(DEFAULT_MB))
    if not variable.isdigit():
        raise ParameterError(f"READBENCH_KEPT_MB must be a whole number from 0 on. Got {variable!r} instead.")
    return int(variable) * 2**20


class Kept(Generic[Piece]):
    """Pieces of a corpus, numbered: kept where all of them together fit in `kept_bytes`, else made at every call.

    >>> made = []
    >>> small, large = Kept[list](10), Kept[list](2**40)
    >>> for kept in (small, small, large, large):
    ...     _ = kept.get(0, lambda: made.append("made") or [1, 2])
    >>> len(made)
    3
    """

    def __init__(self, total_bytes: int) -> None:
        self._fits = total_bytes <= kept_bytes()
        self._pieces: dict[int, Piece] = {}

    def get(self, number: int, make: Callable[[], Piece]) -> Piece:
        """Piece `number`, made where it is not kept."""
        if number in self._pieces:
            return self._pieces[number]
        piece = make()
        if self._fits:
            self._pieces[number] = piece
        return piece
