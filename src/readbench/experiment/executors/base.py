"""What an executor is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from readbench.pipeline import Progress

Item = TypeVar("Item")
Result = TypeVar("Result")
Work: TypeAlias = Callable[[Item, Progress], Result]
"""A function of a module, so that other processes can find it; it is told where to report encodings."""

TRIES = 3
"""How often an item is begun before it is given up, where the worker that has it dies each time."""


@dataclass(frozen=True)
class Lost:
    """In place of a result: no worker lived long enough to finish the item."""

    reason: str = (
        f"the worker died {TRIES} times on this job. Out of memory? Run with fewer jobs side by side, or on a larger"
        " machine."
    )


class Executor(Protocol):
    """Does the same work on many items.

    Items may end in any order. A worker that dies (killed, out of memory, its machine lost) costs nothing but time:
    what it was at is begun again elsewhere, `TRIES` times in all. An exception in the work itself is the caller's.
    """

    @property
    def name(self) -> str:
        """Its name on the command line."""
        ...

    def map(
        self, work: Work[Item, Result], items: Sequence[Item], encoding: Progress
    ) -> Iterator[tuple[Item, Result | Lost]]:
        """Each item with its result, as it ends.

        Args:
            work: what to do with one item.
            items: what can be sent to other processes.
            encoding: told how far encodings have come.
        """
        ...
