"""One item after the other, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from readbench.experiment.executors.base import Item, Lost, Result, Work
from readbench.pipeline import Progress


class Local:
    """Does everything itself, in the order given."""

    name = "local"

    def map(
        self, work: Work[Item, Result], items: Sequence[Item], encoding: Progress
    ) -> Iterator[tuple[Item, Result | Lost]]:
        """Each item with its result; see `Executor`."""
        for item in items:
            yield item, work(item, encoding)
