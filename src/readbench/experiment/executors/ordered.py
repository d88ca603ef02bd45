"""Results in the order of the items, wherever the work runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from readbench.errors import RunError
from readbench.experiment.executors.base import Executor, Item, Lost, Result
from readbench.pipeline import Progress


class InOrder:
    """An executor that is used like `map`.

    Args:
        executor: where items are worked on; results that come early wait for those before them.

    >>> from readbench.experiment.executors import Local
    >>> list(InOrder(Local())(abs, [-3, 2]))
    [3, 2]
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item], /) -> Iterator[Result]:
        """Each result; an item that kills every worker is an error."""
        early: dict[int, Result] = {}
        due = 0
        for (number, item), result in self.executor.map(partial(_work, work), list(enumerate(items)), _untold):
            if isinstance(result, Lost):
                raise RunError(f"{item}: {result.reason}")
            early[number] = result
            while due in early:
                yield early.pop(due)
                due += 1


def _work(work: Callable[[Item], Result], item: tuple[int, Item], encoding: Progress) -> Result:  # noqa: ARG001
    return work(item[1])


def _untold(leg: str, done: int, total: int) -> None:
    """Nobody asked how far encodings have come."""
