"""Cutting a long series with several faults so that each fault stands alone, as one group of the split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Episode:
    """One fault in a series: its name, its class, its first step and one past its last."""

    name: str
    label: int
    start: int
    stop: int


@dataclass(frozen=True)
class Stretch:
    """Steps `start` to `stop` (exclusive) of a series with the one fault inside them, if any."""

    start: int
    stop: int
    episode: Episode | None

    def labels(self) -> NDArray[np.int32]:
        """(stop - start,) the fault's class during the fault, elsewhere normal."""
        labels = np.zeros(self.stop - self.start, np.int32)
        if self.episode is not None:
            labels[max(0, self.episode.start - self.start) : self.episode.stop - self.start] = self.episode.label
        return labels


def stretches(steps: int, episodes: Sequence[Episode]) -> Iterator[Stretch]:
    """Cut `steps` half way between each two faults; faults are in order of time and do not overlap.

    >>> one, two = Episode("a", 1, 2, 4), Episode("b", 2, 8, 9)
    >>> [(part.start, part.stop) for part in stretches(20, [one, two])]
    [(0, 6), (6, 20)]
    """
    edges = [0, *((one.stop + two.start) // 2 for one, two in pairwise(episodes)), steps]
    owners: Sequence[Episode | None] = episodes or (None,)
    for (start, stop), episode in zip(pairwise(edges), owners, strict=True):
        yield Stretch(start, stop, episode)


def runs(active: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First step and one past the last of each unbroken run of True.

    >>> runs(np.array([False, True, True, False, True]))
    [(1, 3), (4, 5)]
    """
    edges = np.flatnonzero(np.diff(active.astype(np.int8), prepend=0, append=0))
    return [(int(start), int(stop)) for start, stop in zip(edges[::2], edges[1::2], strict=True)]
