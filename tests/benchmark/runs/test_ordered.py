"""Results in order, whatever order they end in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from readbench.benchmark.runs import InOrder, LostItem, Work
from readbench.benchmark.runs._executors import Item, Result
from readbench.common.progress import Progress
from readbench.errors import RunError


class Backwards:
    """Does the last item first, and loses those it is told to."""

    name = "backwards"

    def __init__(self, *lost: int) -> None:
        self.lost = lost

    def map(
        self, work: Work[Item, Result], items: Sequence[Item], progress: Progress
    ) -> Iterator[tuple[Item, Result | LostItem]]:
        for number, item in reversed(list(enumerate(items))):
            yield item, LostItem() if number in self.lost else work(item, progress)


def test_results_keep_the_order_of_the_items() -> None:
    assert list(InOrder(Backwards())(abs, [-1, 3, -2])) == [1, 3, 2]
    assert list(InOrder(Backwards())(abs, [])) == []


def test_an_item_that_kills_every_worker_is_named() -> None:
    with pytest.raises(RunError, match=r"-2: the worker died 3 times"):
        list(InOrder(Backwards(2))(abs, [-1, 3, -2]))
