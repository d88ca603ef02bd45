"""One part of a plan, for schedulers that start the same command many times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from readbench.errors import UsageError

Work = TypeVar("Work")


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, counted from 1.

    A part is a stretch of jobs in plan order. Those of one task stand together there, so a part builds few datasets
    and finds the legs that its methods share in its own cache.

    >>> str(parse_shard("2/8"))
    '2/8'
    """

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise UsageError(f"There is no part {self} of a run: parts are counted from 1/{max(1, self.count)} on.")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, jobs: Sequence[Work]) -> Sequence[Work]:
        """The jobs of this part; all parts together are all jobs, none twice, and differ by one job at most."""
        return jobs[len(jobs) * (self.number - 1) // self.count : len(jobs) * self.number // self.count]


WHOLE = Shard()


def parse_shard(text: str) -> Shard:
    """Read `2/8`."""
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if not match:
        raise UsageError(f"A part of a run is written i/n, as in --shard 2/8. Got {text!r}.")
    return Shard(int(match[1]), int(match[2]))
